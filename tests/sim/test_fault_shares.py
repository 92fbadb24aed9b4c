"""Push-sum with dead neighbors: nobody gives a share to a rank that is known to be gone."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.algorithms import State
from dectool.errors import PeerLostError

NET = sim.AlphaBeta(latency=1e-3, bandwidth=1e6)
DEAD = 3
LEFT = [rank for rank in range(8) if rank != DEAD]
EDGES = [(i, (i + 1) % 8) for i in range(8)] + [(i, (i + 3) % 8) for i in range(8)]
# Four ranks speak to the dead one, which speaks to two: columns and rows of C lose different sums.
DIGRAPH = topology.from_graph(nx.DiGraph([*EDGES, (4, DEAD), (6, DEAD)]), weights="uniform_push")
CRASH = [sim.Crash(DEAD, at=1.05)]
SEVEN_ALIKE = problems.Quadratic(
    h=np.ones((8, 1)), b=np.where(np.arange(8) == DEAD, 50.0, 1.0)[:, None]
)
"""Rank 3 is far from the others, who agree."""


def no_gradient(x: Any) -> Any:
    raise AssertionError("averaging takes no gradient")


def totals(algorithm: Any, steps: int = 60, **options: Any) -> Any:
    """Return the sums over those who are left of weight and value, after each step."""

    def program(comm: Any) -> list[tuple[float, float]]:
        state = algorithm.init(comm, np.array([float(comm.rank)]), no_gradient)
        found = []
        for _ in comm.steps(steps):
            comm.elapse(0.1)
            state = algorithm.step(comm, state, no_gradient)
            found.append((float(state.w[0]), float(state.s[0])))
        return found

    options = {"faults": CRASH, "missing": "self", "topology": DIGRAPH, **options}
    result = dectool.run(program, backend="sim", network=NET, **options)
    assert [rank for rank, value in enumerate(result.values) if value is None] == [DEAD]
    return np.array([result.values[rank] for rank in LEFT])


@pytest.mark.parametrize("missing", ["self", "renormalize"])
def test_what_the_living_hold_is_kept_and_averaged(missing: str) -> None:
    found = totals(algorithms.PushSum(), missing=missing)
    weight, value = found.sum(axis=0)[13:].T
    np.testing.assert_allclose(weight, weight[0], rtol=1e-13)
    np.testing.assert_allclose(value, value[0], rtol=1e-13)
    assert 4.0 < weight[0] < 8.0
    ratios = found[:, -1, 1] / found[:, -1, 0]
    np.testing.assert_allclose(ratios, value[0] / weight[0], rtol=1e-9)


def test_columns_are_stochastic_among_the_living() -> None:
    """From unit values, what a step makes of them are the columns of its matrix."""

    def program(comm: Any) -> Any:
        comm.elapse(2.0)
        unit = np.eye(8)[comm.rank]
        state = State(x=unit, s=unit, w=np.ones(1))
        return algorithms.PushSum().step(comm, state, no_gradient).s

    result = dectool.run(
        program, backend="sim", network=NET, topology=DIGRAPH, faults=CRASH, missing="self"
    )
    found = np.array([result.values[rank] for rank in LEFT])
    kept = DIGRAPH.to_dense()[np.ix_(LEFT, LEFT)]
    np.testing.assert_allclose(found[:, LEFT], kept / kept.sum(axis=0), rtol=1e-14)
    assert not found[:, DEAD].any()


def test_a_rank_that_all_others_have_left_keeps_what_it_has() -> None:
    C = topology.from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))

    def program(comm: Any) -> Any:
        comm.elapse(2.0)
        if comm.rank == 0:
            state = State(x=np.ones(1), s=np.full(1, 5.0), w=np.full(1, 0.5))
            return algorithms.PushSum().step(comm, state, no_gradient).x
        return None

    crash = [sim.Crash(1, at=1.0)]
    result = dectool.run(
        program, backend="sim", network=NET, topology=C, faults=crash, missing="self"
    )
    assert result.values[0] == 10.0


@pytest.mark.parametrize(
    "algorithm",
    [algorithms.SGP(lr=0.1), algorithms.SubgradientPush(lr=0.1)],
    ids=lambda one: one.name,
)
def test_descent_goes_on_among_the_living(algorithm: Any) -> None:
    history = dectool.solve(
        algorithm, SEVEN_ALIKE, topology=DIGRAPH, steps=1200, backend="sim", network=NET,
        compute=sim.Constant(1e-2), faults=CRASH, missing="self", record_every=10,
    )  # fmt: skip
    assert history["distance"][history["time"] < 1.05].max() > 5.0
    np.testing.assert_allclose(history.x[LEFT], 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "algorithm",
    [algorithms.AB(lr=0.02), algorithms.PushPull(lr=0.02), algorithms.ATCPushPull(lr=0.02),
     algorithms.PushDIGing(lr=0.02), algorithms.ADDOPT(lr=0.02)],
    ids=lambda one: one.name,
)  # fmt: skip
def test_what_tracks_keeps_its_sum_among_the_living(algorithm: Any) -> None:
    """The sum of y less that of the gradients, of which what the dead rank had is a part."""

    def program(comm: Any) -> list[float]:
        def grad(x: Any) -> Any:
            return x - comm.rank

        state = algorithm.init(comm, np.zeros(1), grad)
        found = []
        for _ in comm.steps(60):
            comm.elapse(0.1)
            state = algorithm.step(comm, state, grad)
            found.append(float(state.y[0] - state.g[0]))
        return found

    result = dectool.run(
        program, backend="sim", network=NET, topology=DIGRAPH, faults=CRASH, missing="self"
    )
    apart = np.array([result.values[rank] for rank in LEFT]).sum(axis=0)[13:]
    assert abs(apart[0]) > 1e-3
    np.testing.assert_allclose(apart, apart[0], atol=1e-12)


@pytest.mark.parametrize("graph", [topology.ring(8), DIGRAPH], ids=["ring", "digraph"])
@pytest.mark.parametrize(
    ("algorithm", "until"),
    [
        (algorithms.OSGP(lr=0.1), {"steps": 400}),
        (algorithms.OSGP(lr=0.1, delay=3), {"steps": 400}),
        (algorithms.AsynchronousGradientPush(lr=0.1), {"steps": None, "duration": 500.0}),
    ],
    ids=lambda one: str(one),
)
def test_asynchronous_descent_goes_on_among_the_living(
    algorithm: Any, until: dict[str, Any], graph: topology.Topology
) -> None:
    history = dectool.solve(
        algorithm, SEVEN_ALIKE, topology=graph, backend="sim", network=NET,
        compute=sim.Exponential(1.0), faults=[sim.Crash(DEAD, at=20.0)], missing="self", **until,
    )  # fmt: skip
    np.testing.assert_allclose(history.x[LEFT], 1.0, atol=1e-6)
    assert history.state["w"][LEFT].min() > 1e-3


def test_asynchronous_averages_keep_the_weights_of_the_living() -> None:
    history = dectool.solve(
        algorithms.AsynchronousPushSum(), problems.Averaging(np.arange(8.0)[:, None]),
        topology=DIGRAPH, steps=None, duration=400.0, backend="sim", network=NET,
        compute=sim.Exponential(1.0), faults=[sim.Crash(DEAD, at=20.0)], missing="self",
    )  # fmt: skip
    assert history.state["w"][LEFT].min() > 1e-2
    assert np.ptp(history.x[LEFT]) < 1e-9


def test_a_share_for_a_dead_rank_is_an_error_by_default() -> None:
    def program(comm: Any) -> str:
        win = comm.window(np.ones(1), name="w", push_sum=True)
        comm.elapse(2.0)
        if comm.rank:
            return ""
        with pytest.raises(PeerLostError, match=r"window 'w' gets nothing from rank 1, which cra"):
            win.iaccumulate()
        # Shares that are given go where they are told to.
        win.iaccumulate(dst_weights={1: 0.5}, self_weight=0.5)
        comm.missing = "self"
        win.iaccumulate()
        return f"{win.weight}"

    result = dectool.run(
        program, backend="sim", network=NET, topology=topology.complete(2),
        faults=[sim.Crash(1, at=1.0)],
    )  # fmt: skip
    assert result.values == ["0.5", None]


def test_who_is_gone_is_known_once_it_is_noticed() -> None:
    faults = [
        sim.Crash(1, at=1.0, restart_after=2.0),
        sim.LateJoin(2, at=2.5),
        sim.Crash(3, at=4.0),
    ]

    def program(comm: Any) -> Any:
        if comm.rank:
            comm.elapse(9.0)
            return None
        found = []
        for at in (0.25, 0.75, 1.25, 1.5, 2.75, 3.25, 4.25, 4.5, 8.0):
            comm.elapse(at - comm.now())
            found.append(comm.gone)
        return found

    result = dectool.run(program, 4, backend="sim", faults=faults, detection=0.5)
    assert result.values[0] == [(), (2,), (2,), (1, 2), (1,), (), (), (3,), (3,)]
