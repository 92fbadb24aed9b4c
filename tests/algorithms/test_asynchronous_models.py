"""Bounded staleness and averages of all models: limits, what is kept, what a dead rank does."""

import itertools

import numpy as np
import pytest

import dectool
from dectool import problems, sim, topology
from dectool.algorithms import (
    ADPSGD,
    DGD,
    AsynchronousGradientPush,
    AsynchronousModelAverage,
    BoundedStaleness,
    NewestModelAverage,
    SwarmSGD,
)
from tests.algorithms.pacing import RING, B, H, N, last, quadratic, run_until, solve


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_bounded_staleness_in_step_is_gradient_descent(bound):
    expected = solve(DGD(0.1), steps=50)
    found = solve(
        BoundedStaleness(0.1, bound),
        steps=50,
        network=sim.AlphaBeta(latency=0.5),
        compute=sim.Constant(1.0),
    )
    assert found.x.tobytes() == expected.x.tobytes()


def test_bounded_staleness_has_the_limit_of_gradient_descent():
    """Published limit of DGD on this problem; values that are late are the same in the end."""
    h = solve(
        BoundedStaleness(0.1, 2),
        steps=400,
        network=sim.AlphaBeta(latency=0.5),
        compute=sim.Exponential(1.0),
        record_every=400,
    )
    assert h.last["distance"] == pytest.approx(1.257364744673, abs=1e-10)


@pytest.mark.parametrize("bound", [0, 2, 5])
def test_nobody_is_further_ahead_than_the_bound(bound):
    """A neighbor of a slow rank ends step k once that has put its value of step k - bound."""
    algorithm, problem, steps = BoundedStaleness(0.1, bound), quadratic(), 12

    def program(comm):
        def grad(x):
            with comm.computing():
                return problem.grad(x, comm.rank)

        state, begun, ended = algorithm.init(comm, np.zeros(1), grad), [], []
        for _ in range(steps):
            begun.append(comm.now())
            state = algorithm.step(comm, state, grad)
            ended.append(comm.now())
        return begun, ended

    times = dectool.run(
        program, topology=RING, backend="sim", compute=sim.PerRank({0: 10.0})
    ).values
    slow = times[0][0]
    for rank in (1, 7):
        ended = times[rank][1]
        assert all(ended[k] >= slow[k - bound] for k in range(bound, steps))
        assert all(ended[k] == k + 1.0 for k in range(bound))
        waited = [k for k in range(bound + 1, steps) if ended[k] == slow[k - bound]]
        assert len(waited) > (steps - bound) // 2


def complete_limit(lr):
    """The fixed point of x = J x - lr (H x - b)."""
    J = np.full((N, N), 1.0 / N)
    return np.linalg.solve(np.eye(N) - J + lr * np.diag(H[:, 0]), lr * B[:, 0])


@pytest.mark.parametrize("kind", [AsynchronousModelAverage, NewestModelAverage])
def test_model_averages_in_step_are_descent_on_the_complete_graph(kind):
    expected = solve(DGD(0.1), topology.complete(8), 60)
    found = solve(
        kind(0.1), RING, 60, network=sim.AlphaBeta(latency=0.5), compute=sim.Constant(1.0)
    )
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-13)


@pytest.mark.parametrize("horizon", [float("inf"), 60.0])
def test_newest_models_have_the_limit_of_the_complete_graph(horizon):
    h = solve(
        NewestModelAverage(0.1, horizon),
        steps=500,
        network=sim.AlphaBeta(latency=0.5),
        compute=sim.Exponential(1.0),
    )
    np.testing.assert_allclose(h.x[:, 0], complete_limit(0.1), atol=1e-10)


def increments(states):
    """What each average added to a rank's model where there are no gradients."""
    found = {}
    for before, after in itertools.pairwise(states):
        if not np.array_equal(before.x, after.x):
            found[int(before.average)] = after.x - before.x
    return found


def test_model_averages_keep_the_sum():
    """What an average adds to all ranks together is zero, whoever is slow."""
    problem = problems.Averaging(np.sin(1 + 7 * np.arange(N)[:, None] + np.arange(2)))

    class Silent:
        initial = staticmethod(problem.initial)

        @staticmethod
        def grad(x, rank):
            return 0.0 * x

    states = run_until(
        60.0,
        AsynchronousModelAverage(0.1),
        Silent,
        RING,
        network=sim.AlphaBeta(latency=0.3),
        compute=sim.PerRank({2: 6.0}, sim.Exponential(1.0)),
    )
    added = [increments(each) for each in states]
    first = [each[1] for each in added]
    np.testing.assert_allclose(sum(first), 0.0, atol=1e-15)
    assert np.abs(first).min() > 1e-3
    np.testing.assert_allclose(last(states), np.tile(problem.optimum, (N, 1)), atol=1e-12)


def test_steps_between_averages():
    """With period 4 an average begins with every fourth step, or later."""
    states = run_until(
        40.0, AsynchronousModelAverage(0.1, period=4), quadratic(), RING, compute=sim.Constant(1.0)
    )
    for each in states:
        began = [k for k, (a, b) in enumerate(itertools.pairwise(each), 1) if b.average > a.average]
        assert began == list(range(4, len(each), 4))


def test_a_slow_rank_does_not_slow_the_others_down():
    """Everybody steps at its own pace, and all agree to within the step size."""
    for kind in (AsynchronousModelAverage, NewestModelAverage, ADPSGD):
        states = run_until(
            100.0, kind(0.02), quadratic(), topology.complete(8), compute=sim.PerRank({0: 5.0})
        )
        assert [len(each) - 1 for each in states] == [20] + [100] * 7
        assert np.ptp(last(states)) < 0.8


@pytest.mark.parametrize(
    ("algorithm", "leans"),
    [
        (ADPSGD(0.02), True),
        (SwarmSGD(0.02), True),
        (AsynchronousModelAverage(0.02), True),
        (AsynchronousGradientPush(0.02), True),
        (NewestModelAverage(0.02), False),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_who_leans_towards_the_objectives_of_fast_ranks(algorithm, leans):
    """Towards the optimum of sum r_i f_i, where rank i takes r_i steps; or not at all."""
    b = np.array([8.0, *[0.0] * 7])[:, None]
    problem = problems.Quadratic(h=np.ones((8, 1)), b=b)
    compute = sim.PerRank({0: 5.0}, sim.Exponential(1.0))
    graph = RING if algorithm.needs.undirected else topology.exponential(8)
    states = run_until(1500.0, algorithm, problem, graph, compute=compute)
    late = [np.mean([s.x for s in each[len(each) // 2 :]]) for each in states]
    taken = np.array([len(each) - 1 for each in states])
    expected = (taken @ b[:, 0]) / taken.sum() if leans else 1.0
    assert np.mean(late) == pytest.approx(expected, abs=0.04)
    assert expected < 0.3 or not leans


def test_the_newest_models_of_ranks_that_are_left():
    """A dead rank blocks nobody, and counts no more when its model is too old."""
    h = solve(
        NewestModelAverage(0.1, horizon=9.0),
        steps=400,
        compute=sim.Constant(1.0),
        network=sim.AlphaBeta(latency=0.5),
        faults=[sim.Crash(rank=3, at=20.5)],
    )
    left = [rank for rank in range(N) if rank != 3]
    J = np.full((7, 7), 1.0 / 7)
    limit = np.linalg.solve(np.eye(7) - J + 0.1 * np.diag(H[left, 0]), 0.1 * B[left, 0])
    np.testing.assert_allclose(h.x[left, 0], limit, atol=1e-10)


def test_a_dead_rank_ends_the_averages_of_all_but_not_their_steps():
    h = solve(
        AsynchronousModelAverage(0.1),
        steps=400,
        compute=sim.Constant(1.0),
        network=sim.AlphaBeta(latency=0.5),
        faults=[sim.Crash(rank=3, at=20.5)],
    )
    left = [rank for rank in range(N) if rank != 3]
    assert h.step == 400
    np.testing.assert_allclose(h.x[left], (B / H)[left], atol=1e-10)
