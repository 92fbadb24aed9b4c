"""Faults under ``solve``: who is left, what they find, and what the history says."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.errors import ArgumentError, MessageLostError, PeerLostError

NET = sim.AlphaBeta(latency=1e-3, bandwidth=1e6)
TWO = [sim.Crash(3, at=1.0), sim.Crash(9, at=1.5)]


def solve(algorithm: Any, problem: Any, **options: Any) -> dectool.History:
    options = {
        "topology": topology.torus(4, 4),
        "steps": 100,
        "backend": "sim",
        "network": NET,
        "compute": sim.Constant(1e-2),
        "missing": "self",
        **options,
    }
    return dectool.solve(algorithm, problem, **options)


def quadratic(n: int = 16) -> problems.Quadratic:
    return problems.Quadratic.random(n, 4, kappa=4.0, heterogeneity=1.0, seed=1)


def test_survivors_converge_to_their_own_optimum(tmp_path: Any) -> None:
    """Two of 16 ranks die; with steps that shrink, diffusion goes on to what the others have."""
    problem = quadratic()
    descent = algorithms.ATC(lr=lambda k: 5.0 / (k + 20))
    history = solve(descent, problem, steps=3000, record_every=20, faults=TWO)
    left = [rank for rank in range(16) if rank not in (3, 9)]
    # H x = b of the survivors, worked out by hand.
    points = np.zeros((16, 4))
    H = problem.hessian(points, np.arange(16))[left].sum(axis=0)
    b = -problem.grad(points, np.arange(16))[left].sum(axis=0)
    own = np.linalg.solve(H, b)
    np.testing.assert_allclose(problems.Among(problem, left).optimum, own, atol=1e-9)
    mean = history.x[left].mean(axis=0)
    assert np.linalg.norm(own - problem.optimum) > 0.05
    assert np.linalg.norm(mean - own) < 2e-4
    assert history.last["gap"] < 2e-8
    assert history.last["worst_distance"] < 5e-3
    assert np.isnan(history.x[[3, 9]]).all()
    assert history.status == "completed"

    alive = history["alive"]
    assert alive[0] == 16
    assert alive[-1] == 14
    assert (np.diff(alive) <= 0).all()
    assert not np.isnan(history["gap"]).any()
    assert (np.diff(history["messages"]) > 0).all()

    report = history.faults
    assert report is not None
    assert report.events == ((3, "crash", 1.0), (9, "crash", 1.5))
    assert report.crashed == (3, 9)
    assert history.last["messages"] == report.messages
    # Each of the four neighbours went on sending to the dead.
    links = {(link.source, link.dest) for link in report.lost}
    graph = topology.torus(4, 4)
    assert links == {(j, i) for i in (3, 9) for j in graph.in_neighbors(i)}
    text = str(report)
    assert "3  crash    1 s" in text
    assert "receiver crashed" in text

    again = dectool.History.load(history.save(tmp_path / "h.npz"))
    assert again.faults == report
    assert again["alive"].tobytes() == alive.tobytes()


def test_the_gap_is_that_of_those_who_are_left() -> None:
    problem = quadratic()
    history = solve(algorithms.ATC(lr=0.05), problem, steps=150, faults=TWO)
    after = int(np.argmax(history["alive"] == 14))
    left = [rank for rank in range(16) if rank not in (3, 9)]
    among = problems.Among(problem, left)
    mean = history.x[left].mean(axis=0)
    assert history.last["gap"] == pytest.approx(float(among.gap(mean)), rel=1e-12)
    assert history["gap"][after] > history["gap"][after - 1]  # the goal has moved


def test_the_first_record_without_a_rank_is_the_first_step_that_it_misses() -> None:
    """A rank is recorded at the steps that it has finished before its crash."""
    problem = problems.Averaging(np.arange(4.0)[:, None])
    history = solve(
        algorithms.Gossip(),
        problem,
        topology=topology.ring(4),
        network=sim.AlphaBeta(latency=1.0),
        faults=[sim.Crash(2, at=5.5)],
        steps=10,
    )
    assert history["alive"].tolist() == [4] * 6 + [3] * 5


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_self_keeps_the_mean_where_both_directions_fail(p: float) -> None:
    """Symmetric weights and losses that both ranks notice: W of every step is doubly stochastic."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    graph = topology.erdos_renyi(12, 0.4, seed=3)
    loss = [sim.MessageLoss(p, both=True)]
    history = solve(
        algorithms.Gossip(), problems.Averaging(X), topology=graph, steps=300, faults=loss
    )
    assert history.faults is not None
    lost = {(link.source, link.dest): link.messages for link in history.faults.lost}
    assert all(lost[b, a] == count for (a, b), count in lost.items())
    assert history.faults.messages_lost / history.faults.messages == pytest.approx(p, rel=0.1)
    np.testing.assert_allclose(history.x.mean(axis=0), X.mean(axis=0), atol=1e-12, rtol=0)
    assert history.last["consensus_error"] < 1e-9


def test_one_way_loss_moves_the_mean_under_any_policy_of_averages() -> None:
    """Stated as it is: weights whose columns do not sum to 1 keep no mean."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    for missing in ("renormalize", "self"):
        history = solve(
            algorithms.Gossip(),
            problems.Averaging(X),
            topology=topology.ring(12),
            steps=400,
            faults=[sim.MessageLoss(0.2)],
            missing=missing,
        )
        drift = np.abs(history.x.mean(axis=0) - X.mean(axis=0)).max()
        assert history.last["consensus_error"] < 1e-6
        assert 1e-3 < drift < 1.0


def test_renormalize_moves_the_mean_even_where_both_directions_fail() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3))
    down = [sim.MessageLoss(0.2, both=True)]
    history = solve(
        algorithms.Gossip(), problems.Averaging(X), topology=topology.path(12), steps=300,
        faults=down, missing="renormalize",
    )  # fmt: skip
    assert np.abs(history.x.mean(axis=0) - X.mean(axis=0)).max() > 1e-3


def test_a_rank_that_comes_back_and_a_late_one_reach_the_others() -> None:
    problem = quadratic()
    faults = [sim.Crash(3, at=0.2, restart_after=0.3), sim.LateJoin(9, at=0.4)]
    history = solve(algorithms.ATC(lr=lambda k: 5.0 / (k + 20)), problem, faults=faults, steps=1500)
    alive = history["alive"].tolist()
    assert alive[0] == 15
    assert min(alive) == 14
    assert alive[-1] == 16
    assert history.last["gap"] < 1e-6
    assert history.last["worst_distance"] < 0.05
    assert not np.isnan(history.x).any()
    kinds = [(event.rank, event.kind) for event in history.faults.events]  # type: ignore[union-attr]
    assert kinds == [(3, "crash"), (9, "join"), (3, "restart")]


def test_the_default_is_an_error_that_names_both_ranks() -> None:
    with pytest.raises(PeerLostError, match=r"gets nothing from rank 3, which crashed at t = 1 s"):
        solve(algorithms.ATC(lr=0.05), quadratic(), faults=TWO, missing="error")


def test_an_algorithm_that_needs_everybody_says_so() -> None:
    with pytest.raises(PeerLostError, match="allreduce"):
        solve(algorithms.AllReduceGD(lr=0.05), quadratic(), faults=TWO)


def test_a_stop_may_be_met_by_those_who_are_left() -> None:
    history = solve(
        algorithms.ATC(lr=lambda k: 5.0 / (k + 20)),
        quadratic(),
        steps=3000,
        faults=TWO,
        stop={"gap": 1e-6, "alive": 14},
    )
    assert history.status == "stopped"
    assert history.last["alive"] == 14


def test_compare_takes_faults() -> None:
    X = np.eye(4)
    loss = [sim.MessageLoss(0.2)]
    table = dectool.compare(
        [algorithms.Gossip(), algorithms.RobustPushSum()],
        problems.Averaging(X),
        topologies=[topology.ring(4)],
        steps=200,
        faults=loss,
        missing="self",
        backend="sim",
        tolerance={"distance": 1e-9},
        processes=1,
    )
    assert {run.algorithm: run.reached is not None for run in table} == {
        "Gossip": False,
        "RobustPushSum": True,
    }


def test_among_is_the_problem_of_some_ranks() -> None:
    data = problems.breast_cancer(rows=60)
    whole = problems.LogisticRegression.from_data(data, n=6, l2=0.1, bias=True)
    some = problems.Among(whole, [4, 1, 2])
    x = np.random.default_rng(0).normal(size=some.shape)
    mean = np.mean([whole.value(x, r) for r in (1, 2, 4)])
    assert some.objective(x) == pytest.approx(mean, rel=1e-13)
    assert some.grad(x, 2).tobytes() == whole.grad(x, 4).tobytes()
    assert np.linalg.norm(some.gradient(some.optimum)) < 1e-10
    assert some.initial(0).tobytes() == whole.initial(1).tobytes()
    assert np.linalg.eigvalsh(some._hessian_of_mean(x.reshape(1, 1, -1))).max() <= some.L
    for wrong in ([], [1, 1], [6], [-1]):
        with pytest.raises(ArgumentError, match="each once"):
            problems.Among(whole, wrong)


SEVEN_ALIKE = problems.Quadratic(
    h=np.ones((8, 1)), b=np.array([1.0, 1.0, 1.0, 50.0, 1.0, 1.0, 1.0, 1.0])[:, None]
)
"""Rank 3 is far from the others, who agree."""


@pytest.mark.parametrize("algorithm", [algorithms.ADPSGD(0.1), algorithms.SwarmSGD(0.05)])
def test_a_dead_partner_pulls_nobody_any_more(algorithm: Any) -> None:
    """What it had is averaged with no more, though it is still there to be read."""
    history = solve(
        algorithm,
        SEVEN_ALIKE,
        topology=topology.ring(8),
        steps=None,
        duration=250.0,
        compute=sim.Exponential(1.0),
        faults=[sim.Crash(3, at=20.0)],
        detection=0.1,
    )
    before = history["time"] < 20.0
    assert history["distance"][before].max() > 10.0
    left = [rank for rank in range(8) if rank != 3]
    np.testing.assert_allclose(history.x[left], 1.0, atol=1e-4)


@pytest.mark.parametrize("missing", ["self", "renormalize"])
@pytest.mark.parametrize("bound", [0, 2])
def test_a_value_that_no_more_comes_gets_too_old(bound: int, missing: str) -> None:
    history = solve(
        algorithms.BoundedStaleness(lr=0.1, bound=bound),
        SEVEN_ALIKE,
        topology=topology.ring(8),
        steps=200,
        compute=sim.Exponential(1.0),
        faults=[sim.Crash(3, at=20.0)],
        missing=missing,
    )
    left = [rank for rank in range(8) if rank != 3]
    np.testing.assert_allclose(history.x[left], 1.0, atol=1e-4)


def test_directed_graphs_lose_messages_too() -> None:
    graph = topology.from_graph(nx.DiGraph([(0, 1), (1, 2), (2, 0)]), weights="uniform_push")
    with pytest.raises(MessageLostError):
        solve(
            algorithms.PushSum(),
            problems.Averaging(np.eye(3)),
            topology=graph,
            faults=[sim.MessageLoss(0.5)],
            missing="error",
        )
