"""solve: its arguments, when it stops, what it records, what it refuses."""

import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, DectoolError, TopologyError
from dectool.metrics import COLUMNS
from dectool.sim import AlphaBeta, Constant, Exponential
from tests.solving import (
    ALL,
    BACKENDS,
    TRACKING,
    H,
    logistic,
    quadratic,
    same_bits,
    same_records,
    solve,
)

# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "parts"),
    [
        ({"algorithm": algorithms.EXTRA}, TypeError, ["algorithm is", "make an instance"]),
        ({"algorithm": "EXTRA"}, TypeError, ["algorithm is 'EXTRA'", "algorithms.EXTRA(lr=0.1)"]),
        ({"problem": np.eye(8)}, TypeError, ["problem is a ndarray", "dectool.problems"]),
        ({"topology": None}, TypeError, ["must be a Topology, got NoneType", "topology.ring(n)"]),
        ({"topology": "ring"}, TypeError, ["must be a Topology, got str"]),
        (
            {"topology": topology.ring(6)},
            ValueError,
            ["topology is a ring of 6 with 6 ranks", "the problem has 8", "build both"],
        ),
        (
            {"topology": topology.one_peer_exponential(4), "algorithm": TRACKING},
            ValueError,
            ["one-peer exponential graph of 4 with 4 ranks", "the problem has 8"],
        ),
        ({"steps": -1}, ValueError, ["steps=-1 must be an integer, at least 0"]),
        ({"steps": 2.5}, ValueError, ["steps=2.5 must be an integer"]),
        ({"steps": True}, ValueError, ["steps=True must be an integer"]),
        ({"steps": "10"}, ValueError, ["steps='10' must be an integer"]),
        ({"record_every": 0}, ValueError, ["record_every=0 must be an integer, at least 1"]),
        ({"backend": "stcked"}, ValueError, ["backend='stcked'", "did you mean 'stacked'"]),
        ({"backend": "nccl"}, NotImplementedError, ["backend 'nccl'", "'stacked', 'sim', 'mpi'"]),
        ({"network": 1e9}, TypeError, ["network is 1000000000.0", "AlphaBeta("]),
        ({"compute": 1e-3}, TypeError, ["compute is 0.001", "Exponential("]),
        ({"network": Constant(1.0)}, TypeError, ["network is Constant(seconds=1.0)"]),
        ({"seed": -1}, ValueError, ["seed=-1 must be at least 0"]),
        ({"seed": 0.5}, TypeError, ["seed is 0.5", "must be an integer"]),
        ({"ranks_per_node": 0}, ValueError, ["ranks_per_node=0"]),
        ({"batch_size": 4}, ValueError, ["batch_size=4", "Quadratic has no samples", "leave it"]),
        ({"stop": {}}, TypeError, ["stop is {}", "{'gap': 1e-6}"]),
        ({"stop": 1e-6}, TypeError, ["stop is 1e-06", "{'gap': 1e-6}"]),
        ({"stop": "gap"}, TypeError, ["stop is 'gap'"]),
        ({"stop": {"gpa": 1.0}}, ValueError, ["stop names 'gpa'", "did you mean 'gap'"]),
        ({"stop": {1: 1.0}}, ValueError, ["stop names 1", "no metric"]),
        ({"stop": {"gap": "low"}}, TypeError, ["stop['gap'] is 'low'", "must be a number"]),
        ({"stop": {"gap": float("nan")}}, TypeError, ["stop['gap'] is nan"]),
        ({"x0": np.zeros((7, 1))}, ValueError, ["x0 has shape (7, 1)", "(8, 1)", "(1,)"]),
        ({"x0": 1.0}, ValueError, ["x0 has shape ()", "give (8, 1)"]),
        ({"x0": np.full((8, 1), np.nan)}, ValueError, ["x0 (dtype float64)", "finite"]),
        ({"x0": [np.inf]}, ValueError, ["x0", "finite"]),
        ({"x0": np.zeros((8, 1), complex)}, ValueError, ["x0 (dtype complex128)", "real"]),
        ({"x0": [["a"]] * 8}, ValueError, ["x0 (dtype <U1)", "real numbers"]),
    ],
)
def test_bad_argument(options, kind, parts):
    with pytest.raises(DectoolError) as caught:
        solve(**options)
    assert isinstance(caught.value, kind)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("size", [0, -3, 2.0, True])
def test_bad_batch_size(size):
    with pytest.raises(ArgumentError, match=r"batch_size=.* must be an integer, at least 1"):
        solve(problem=logistic(), batch_size=size)


@pytest.mark.parametrize("lr", [0.0, -0.1, float("nan"), float("inf")])
def test_bad_step_size(lr):
    with pytest.raises(ArgumentError, match=r"EXTRA: lr=.* must be finite and above 0"):
        algorithms.EXTRA(lr=lr)


@pytest.mark.parametrize("lr", ["0.1", None, True, [0.1]])
def test_step_size_that_is_no_number(lr):
    with pytest.raises(ArgumentTypeError, match=r"EXTRA: lr is .*; give a number"):
        algorithms.EXTRA(lr=lr)


def test_algorithm_by_name():
    assert algorithms.get("extra", lr=0.1) == algorithms.EXTRA(lr=0.1)
    for name, parameters, message in [
        ("extr", {}, "algorithm 'extr' is unknown; did you mean 'EXTRA'"),
        ("EXTRA", {}, "EXTRA needs lr, such as lr=0.1"),
        ("EXTRA", {"lr": 0.1, "step": 1}, "EXTRA has no parameter 'step'; known: lr"),
        ("Gossip", {"lr": 0.1}, "Gossip has no parameter 'lr'; it has none"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            algorithms.get(name, **parameters)


# -- starting points -------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_starting_points(backend):
    assert solve(steps=0, backend=backend).x.tolist() == [[0.0]] * 8
    assert solve(steps=0, backend=backend, x0=[3]).x.tolist() == [[3.0]] * 8
    own = np.arange(8.0)[:, None]
    h = solve(steps=3, backend=backend, x0=own)
    assert h.x0.tolist() == own.tolist()
    assert own.tolist() == np.arange(8.0)[:, None].tolist()
    start = solve(problem=problems.Averaging(np.eye(8)), algorithm=algorithms.Gossip(), steps=0)
    assert start.x.tolist() == np.eye(8).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_x_of_a_matrix_problem(backend):
    data = problems.digits(rows=60)
    p = problems.SoftmaxRegression.from_data(data, n=4, l2=0.1)
    x0 = np.random.default_rng(0).standard_normal((4, *p.shape))
    h = solve(TRACKING, p, topology=topology.ring(4), steps=3, backend=backend, x0=x0)
    assert h.x.shape == (4, 64, 10)
    assert h.x0.tobytes() == x0.tobytes()
    assert h.state["x"].shape == (4, 640)


# -- records and stopping --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "steps", "expected"),
    [(1, 3, [0, 1, 2, 3]), (5, 12, [0, 5, 10, 12]), (100, 12, [0, 12]), (4, 0, [0])],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_record_every(backend, every, steps, expected):
    h = solve(steps=steps, record_every=every, backend=backend)
    assert h["step"].tolist() == expected
    full = solve(steps=steps, backend=backend)
    for name in set(COLUMNS) - {"change"}:
        assert h[name].tobytes() == full[name][expected].tobytes()


@pytest.mark.parametrize(
    "stop",
    [
        {"gap": 1e-4},
        {"gap": 1e-3, "consensus_error": 1e-2},
        {"time": float("inf"), "distance": 0.1},
        lambda record: record["step"] >= 7,
        lambda record: np.bool_(record["time"] > 0.05),
    ],
)
def test_both_backends_stop_at_the_same_record(stop):
    models = {"network": AlphaBeta(1e-3, 1e6), "compute": Exponential(1e-3)}
    a, b = (solve(steps=400, stop=stop, backend=backend, **models) for backend in BACKENDS)
    assert a.status == b.status == "stopped"
    assert 0 < a.step < 400
    same_records(a, b)
    same_bits(a, b)
    if callable(stop):
        assert not any(stop(a._record(k)) for k in range(len(a) - 1))
    else:
        assert a.first(**stop) == a.last


@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_looks_at_records_only(backend):
    h = solve(steps=400, stop={"gap": 1e-4}, record_every=10, backend=backend)
    assert h.status == "stopped"
    assert h.step % 10 == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_that_holds_from_the_start(backend):
    h = solve(x0=[1.4], stop={"distance": 1e-9}, backend=backend)
    assert (h.status, h.step, len(h)) == ("stopped", 0, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_that_never_holds(backend):
    assert solve(stop={"gap": -1.0}, backend=backend).status == "completed"


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_in_stop_comes_out(backend):
    def stop(record):
        raise RuntimeError("no such luck")

    with pytest.raises(RuntimeError, match="no such luck"):
        solve(stop=stop, backend=backend)


def test_progress(capsys):
    off = solve(progress=False)
    assert capsys.readouterr().err == ""
    on = solve(progress=True)
    assert capsys.readouterr().out == ""
    default = solve()
    assert capsys.readouterr().err == ""
    same_records(off, on)
    same_records(off, default)


def test_progress_bar_reaches_the_end(monkeypatch):
    seen = []

    @contextmanager
    def bar(show, label, total, unit="steps"):
        seen.append((show, label, total))
        yield seen.append

    # dectool.solve is the function.
    monkeypatch.setattr(sys.modules["dectool.solve"], "progress_bar", bar)
    solve(progress=True, steps=12, record_every=5)
    assert seen == [(True, "EXTRA", 12), 0, 5, 10, 12]


# -- divergence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["DGD", "EXTRA", "ATCGradientTracking"])
def test_divergence(backend, name):
    algorithm = algorithms.get(name, lr=1e3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        h = dectool.solve(
            algorithm, quadratic(), topology=topology.ring(8), steps=1000, backend=backend
        )
    assert [str(w.message).split(":")[0] for w in caught] == [f"{algorithm.name} diverged"]
    assert caught[0].filename == __file__
    assert f"at step {h.step} is not finite; use a smaller lr" in str(caught[0].message)
    assert h.status == "diverged"
    assert h.step < 1000
    assert not np.isfinite(h.x).all()


class NaNAt(problems.Problem):
    """Averaging whose gradient at one rank is NaN from some call on."""

    def __init__(self, rank, call):
        super().__init__(8, (2,), "NaNAt")
        self.bad, self.call, self.calls = rank, call, np.zeros(8, int)

    def _values(self, X, rows):
        return 0.5 * (X * X).sum(axis=-1)

    def _grads(self, X, rows):
        g = np.array(X)
        self.calls[rows] += 1
        at = np.flatnonzero(self._ranks[rows] == self.bad)
        if self.calls[self.bad] >= self.call:
            g[at] = np.nan
        return g

    def _gradient(self, X):
        return np.array(X)

    def _hessians(self, X, rows):
        return np.broadcast_to(np.eye(2), (*X.shape, 2)).copy()

    def _curvature(self):
        return problems.Curvature(1.0, 1.0, 1.0)

    def _solve(self):
        return np.zeros(2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_of_one_rank_is_named(backend):
    with pytest.warns(RuntimeWarning, match="DGD diverged: x of rank 5 at step 4 is not finite"):
        h = solve(
            algorithms.DGD(lr=0.1),
            NaNAt(rank=5, call=4),
            backend=backend,
            x0=np.ones((8, 2)),
        )
    assert (h.status, h.step) == ("diverged", 4)
    assert np.flatnonzero(np.isnan(h.x).any(axis=1)).tolist() == [5]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failing_gradient_names_its_rank(backend):
    class Fails(NaNAt):
        def _grads(self, X, rows):
            raise ZeroDivisionError("no gradient today")

    with pytest.raises(ZeroDivisionError) as caught:
        solve(algorithms.DGD(lr=0.1), Fails(5, 1), backend=backend)
    if backend == "sim":
        assert "raised by rank 0 of 8" in caught.value.__notes__[0]


# -- schedules and minibatches ---------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_scheduled_step_size(backend):
    asked = []

    def lr(k):
        asked.append(k)
        return 0.2 / (k + 1)

    h = solve(algorithms.DGD(lr=lr), steps=6, backend=backend)
    assert set(asked) == set(range(6))
    x, W = np.zeros((8, 1)), topology.ring(8).to_dense()
    for k in range(6):
        x = W @ x - 0.2 / (k + 1) * (H * x - np.arange(8.0)[:, None])
    np.testing.assert_allclose(h.x, x, rtol=1e-13)
    assert "lr" in h.about["parameters"]["lr"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_time_varying_topology(backend):
    schedule = topology.one_peer_exponential(8)
    h = solve(algorithms.ATC(lr=0.1), topology=schedule, steps=7, backend=backend)
    x = np.zeros((8, 1))
    for k in range(7):
        x = schedule.at(k).to_dense() @ (x - 0.1 * (H * x - np.arange(8.0)[:, None]))
    np.testing.assert_allclose(h.x, x, rtol=1e-12)
    assert h.last["messages"] == 7 * 8


@pytest.mark.parametrize("batch_size", [1, 4, 100])
@pytest.mark.parametrize("algorithm", [algorithms.DGD(lr=0.1), TRACKING])
def test_minibatches_have_the_same_bits(algorithm, batch_size):
    options = {"problem": logistic(), "batch_size": batch_size, "seed": 3, "steps": 8}
    a, b = (solve(algorithm, backend=backend, **options) for backend in BACKENDS)
    same_bits(a, b)
    same_records(a, b)
    other = solve(algorithm, **{**options, "seed": 4})
    assert other.x.tobytes() != a.x.tobytes()
    assert solve(algorithm, **options).x.tobytes() == a.x.tobytes()
    assert solve(algorithm, **{**options, "batch_size": None}).x.tobytes() != a.x.tobytes()


# -- what the theory needs -------------------------------------------------------------------------

DIGRAPH = topology.from_graph(
    __import__("networkx").DiGraph([(0, 1), (1, 2), (2, 0), (0, 2), (2, 3), (3, 0)]),
    weights="uniform",
)
REFUSED = {
    "EXTRA on a schedule": (
        "EXTRA", topology.one_peer_exponential(8), ["needs a fixed topology", "DIGing"],
    ),
    "NIDS on a schedule": ("NIDS", topology.one_peer_exponential(8), ["fixed topology"]),
    "Chebyshev on a schedule": (
        "ChebyshevGossip", topology.one_peer_exponential(8), ["fixed topology"],
    ),
    "D2 on a ring": ("D2", topology.ring(8), ["-0.333333", "topology.lazy()"]),
    "Gossip on a bipartite ring": (
        "Gossip",
        topology.ring(8, weights="metropolis_hastings_boyd"),
        ["W does not average", "rho = ||W - J|| = 1", "topology.lazy()"],
    ),
    "ExactDiffusion on a bipartite ring": (
        "ExactDiffusion",
        topology.ring(8, weights="metropolis_hastings_boyd"),
        ["smallest eigenvalue of W is -1", "above -1"],
    ),
    "PushSum on rows": ("PushSum", DIGRAPH, ["column stochastic", "weights='uniform_push'"]),
    "DGD on rows": ("DGD", DIGRAPH, ["doubly stochastic", "columns do not sum to 1", "PushSum"]),
    "DGD on columns": (
        "DGD", topology.star(8, weights="uniform_push"), ["doubly stochastic", "its rows"],
    ),
    "EXTRA on a circulant digraph": ("EXTRA", topology.exponential(8), ["W must be symmetric"]),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", REFUSED)
def test_needs(case, backend):
    name, graph, parts = REFUSED[case]
    problem = problems.Averaging(np.eye(graph.size))
    options = {"problem": problem, "topology": graph, "steps": 3, "backend": backend}
    with pytest.raises(TopologyError) as caught:
        solve(ALL[name], **options)
    for part in [name, graph.name, *parts]:
        assert part in str(caught.value)
    assert "check=False insists" in str(caught.value)
    assert solve(ALL[name], check=False, **options).step == 3


# ECD steps from its own compressed estimate, which stays noisy on one rank as well.
EXACT_ALONE = [name for name in ALL if name != "ECD"]
# With a constant step Adam's last digits come late, and so they do with a momentum of 0.99.
STEPS_ALONE = {"OneBitAdam": 1000, "QuasiGlobalMomentum": 3000}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", EXACT_ALONE)
def test_one_rank(name, backend):
    algorithm = ALL[name]
    problem = problems.Quadratic(h=[[2.0, 1.0]], b=[[1.0, 3.0]])
    if not algorithm.uses_gradient:
        problem = problems.Averaging([[1.0, 3.0]])
    steps = STEPS_ALONE.get(name, 400)
    h = solve(algorithm, problem, topology=topology.ring(1), steps=steps, backend=backend)
    assert h.last["messages"] == 0
    assert h.last["consensus_error"] == 0.0
    np.testing.assert_allclose(h.x[0], problem.optimum, atol=1e-6)


def test_one_rank_of_a_schedule():
    schedule = topology.one_peer_exponential(1)
    problem = problems.Averaging([[1.0, 3.0]])
    h = solve(algorithms.ATC(lr=0.5), problem, topology=schedule, steps=3)
    assert h.x.tolist() == [[1.0, 3.0]]
