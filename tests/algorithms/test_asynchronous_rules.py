"""What holds for every asynchronous algorithm: refusals, determinism, plain states, one rank."""

import pickle

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.errors import (
    ArgumentError,
    ArgumentTypeError,
    TopologyError,
    UnsupportedOperation,
    WindowError,
)
from tests.algorithms.pacing import quadratic

ALL = {
    name: algorithms.get(name, **({"lr": 0.05} if "lr" in kind.__dataclass_fields__ else {}))
    for name, kind in algorithms.ALGORITHMS.items()
    if kind.asynchronous
}
RESUMABLE = {
    "AsynchronousADMM",
    "BlockingSwarmSGD",
    "BroadcastGossip",
    "RandomizedGossip",
}


def solve(name, n=8, **options):
    algorithm = ALL[name]
    problem = quadratic() if algorithm.uses_gradient else problems.Averaging(np.eye(n)[:, :2])
    graph = topology.path(n) if algorithm.needs.tree else topology.ring(n)
    options = {
        "topology": graph,
        "steps": 12,
        "backend": "sim",
        "network": sim.AlphaBeta(latency=0.3, bandwidth=1e3),
        "compute": sim.LogNormal(1.0, 0.7),
        **options,
    }
    return dectool.solve(algorithm, problem, **options)


def test_what_is_resumable():
    assert {name for name, one in ALL.items() if one.resumable} == RESUMABLE
    assert len(ALL) == 14


@pytest.mark.parametrize("name", ALL)
def test_stacked_is_refused(name):
    with pytest.raises(UnsupportedOperation, match=f"{name} is asynchronous.*'sim' or 'mpi'"):
        solve(name, backend="stacked", network=None, compute=None)


@pytest.mark.parametrize("name", ALL)
def test_one_seed_gives_the_same_bits(name):
    first, again, other = (solve(name, seed=seed) for seed in (7, 7, 8))
    for key, value in first.state.items():
        assert np.asarray(value).tobytes() == np.asarray(again.state[key]).tobytes(), key
    for key in ("time", "bytes", "messages", "distance"):
        assert first[key].tobytes() == again[key].tobytes(), key
    assert first["distance"].tobytes() != other["distance"].tobytes()


@pytest.mark.parametrize("name", ALL)
def test_states_are_plain_arrays_and_numbers(name):
    problem = quadratic()

    def program(comm):
        state = ALL[name].init(comm, np.ones(1), lambda x: problem.grad(x, comm.rank))
        state = ALL[name].step(comm, state, lambda x: problem.grad(x, comm.rank))
        assert all(isinstance(value, (np.ndarray, int)) for value in state.values())
        again = pickle.loads(pickle.dumps(state))
        assert list(again) == list(state)
        assert all(np.array_equal(again[key], value) for key, value in state.items())

    graph = topology.path(8) if ALL[name].needs.tree else topology.ring(8)
    dectool.run(program, topology=graph, backend="sim")


@pytest.mark.parametrize("name", ALL)
def test_going_on_from_a_state(name, tmp_path):
    """Bit for bit where the state is all there is; refused where values wait in windows."""
    options = {"seed": 3, "network": None, "compute": None}
    if name not in RESUMABLE:
        with pytest.raises(UnsupportedOperation, match=f"checkpoint= with {name}: what is in its"):
            solve(name, checkpoint=tmp_path, checkpoint_every=4, **options)
        half = solve(name, steps=6, **options)
        with pytest.raises(UnsupportedOperation, match=f"resume= with {name}"):
            solve(name, resume=half, **options)
        return
    rest = solve(name, resume=solve(name, steps=6, **options), **options)
    assert rest.x.tobytes() == solve(name, **options).x.tobytes()


@pytest.mark.parametrize("name", [n for n, one in ALL.items() if n != "BroadcastGossip"])
def test_one_rank_alone(name):
    problem = problems.Quadratic(h=[[2.0, 1.0]], b=[[1.0, 3.0]])
    if not ALL[name].uses_gradient:
        problem = problems.Averaging([[1.0, 3.0]])
    h = dectool.solve(ALL[name], problem, topology=topology.ring(1), steps=400, backend="sim")
    assert h.last["messages"] == 0
    np.testing.assert_allclose(h.x[0], problem.optimum, atol=1e-6)


@pytest.mark.parametrize("name", ["ADPSGD", "SwarmSGD", "RandomizedGossip", "AsynchronousADMM"])
def test_pairs_need_an_undirected_graph(name):
    with pytest.raises(TopologyError, match="some edges go one way only"):
        solve(name, topology=topology.exponential(8))


@pytest.mark.parametrize("name", ["RandomizedGossip", "ADPSGD"])
def test_a_program_on_stacked_is_refused(name):
    def program(comm):
        ALL[name].init(comm, comm.per_rank(lambda rank: np.ones(1)), lambda x: x)

    with pytest.raises(UnsupportedOperation, match="use backend='sim' or 'mpi'"):
        dectool.run(program, topology=topology.ring(4), backend="stacked")


def test_a_step_without_init_is_refused():
    algorithm = ALL["ADPSGD"]

    def program(comm):
        algorithm.step(comm, algorithms.State(x=np.ones(1), k=0), lambda x: x)

    with pytest.raises(WindowError, match="no open window 'ADPSGD'; begin with init"):
        dectool.run(program, topology=topology.ring(2), backend="sim")


@pytest.mark.parametrize(
    ("kind", "options", "part"),
    [
        ("SwarmSGD", {"lr": 0.1, "local_steps": 0}, "local_steps=0 must be an integer, at least 1"),
        ("BlockingSwarmSGD", {"lr": 0.1, "local_steps": 1.5}, "local_steps=1.5"),
        ("OSGP", {"lr": 0.1, "delay": -1}, "delay=-1 must be an integer, at least 0"),
        ("BoundedStaleness", {"lr": 0.1, "bound": True}, "bound=True"),
        ("AsynchronousModelAverage", {"lr": 0.1, "period": 0}, "period=0"),
        ("NewestModelAverage", {"lr": 0.1, "horizon": 0.0}, "horizon=0.0"),
        ("AsynchronousGradientPush", {"lr": 0.1, "floor": -1.0}, "floor=-1.0"),
        ("AsynchronousADMM", {"lr": 0.1, "rho": 0.0}, "rho=0.0 must be finite and above 0"),
        ("RandomizedGossip", {"rate": -1.0}, "rate=-1.0"),
        ("BroadcastGossip", {"gamma": 1.0}, "gamma=1.0 must lie between 0 and 1"),
        ("ADPSGD", {"lr": -0.1}, "lr=-0.1"),
    ],
)
def test_wrong_parameters(kind, options, part):
    with pytest.raises(ArgumentError) as caught:
        algorithms.get(kind, **options)
    assert part in str(caught.value)
    assert str(caught.value).startswith(kind)


@pytest.mark.parametrize(
    ("kind", "options", "part"),
    [
        ("NewestModelAverage", {"lr": 0.1, "horizon": "long"}, "horizon is 'long'; give a number"),
        ("AsynchronousGradientPush", {"lr": 0.1, "floor": None}, "floor is None; give a number"),
        ("AsynchronousADMM", {"lr": 0.1, "rho": "1"}, "rho is '1'; give a number"),
        ("RandomizedGossip", {"interval": [1.0]}, "interval is [1.0]; give a number"),
        ("BroadcastGossip", {"gamma": "half"}, "gamma is 'half'; give a number"),
    ],
)
def test_what_is_no_number(kind, options, part):
    with pytest.raises(ArgumentTypeError) as caught:
        algorithms.get(kind, **options)
    assert str(caught.value).startswith(f"{kind}: {part}")


@pytest.mark.parametrize("name", ALL)
def test_single_precision_stays_single(name):
    h = solve(name, x0=np.ones((8, 1 if ALL[name].uses_gradient else 2), np.float32))
    assert h.state["x"].dtype == np.float32
    assert np.isfinite(h.x).all()
