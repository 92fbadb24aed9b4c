"""Asynchronous descent: exact expectations, limits, what is kept, synchronous special cases."""

import numpy as np
import pytest

import dectool
from dectool import problems, sim, topology
from dectool.algorithms import (
    ADPSGD,
    AsynchronousADMM,
    BlockingSwarmSGD,
    SwarmSGD,
)
from dectool.algorithms.asynchronous import _clocks
from tests.algorithms.pacing import (
    RING,
    B,
    H,
    N,
    mean_and_error,
    quadratic,
    run_until,
    solve,
    stationary_mean,
)


def averaged(i, j, size, blocks=1):
    """The matrix that averages x_i and x_j, in the first of some blocks."""
    A = np.eye(size * blocks)
    A[i, i] = A[i, j] = A[j, i] = A[j, j] = 0.5
    return A


def adpsgd_events(graph, lr):
    """z = (x, x_hat); rank i is done with its gradient at rate 1, whichever has passed."""
    events = []
    for i in range(N):
        for j in graph.out_neighbors(i):
            A, c = averaged(i, j, N, 2), np.zeros(2 * N)
            A[i, N + i] -= lr * H[i, 0]
            c[i] = lr * B[i, 0]
            A[N + i], c[N + i] = A[i], c[i]
            events.append((1.0 / graph.out_degree(i), A, c))
    return events


def swarm_events(graph, lr, steps):
    """z = (x, y, start); each local step ends at rate 1, and is the last with chance 1/steps."""
    events = []
    for i in range(N):
        x, y, start = i, N + i, 2 * N + i
        A, c = np.eye(3 * N), np.zeros(3 * N)
        A[y, y], c[y] = 1.0 - lr * H[i, 0], lr * B[i, 0]
        events.append((1.0 - 1.0 / steps, A, c))
        for j in graph.out_neighbors(i):
            moved, pushed = A.copy(), c.copy()
            moved[x], pushed[x] = moved[x] + moved[y], pushed[x] + pushed[y]
            moved[x, start] -= 1.0
            after = averaged(i, j, N, 3)
            moved, pushed = after @ moved, after @ pushed
            for row in (y, start):
                moved[row], pushed[row] = moved[x], pushed[x]
            events.append((1.0 / steps / graph.out_degree(i), moved, pushed))
    return events


def after_own_events(events, z, each):
    """The mean of x_i after an event of rank i, where events see the mean state."""
    found = []
    for i in range(N):
        mine = [(rate, A @ z + c) for rate, A, c in events if each(A, i)]
        found.append(np.average([x[i] for _, x in mine], weights=[rate for rate, _ in mine]))
    return np.array(found)


@pytest.mark.parametrize("name", ["AD-PSGD", "Swarm"])
def test_means_are_those_of_the_exact_recursion(name):
    """Exponential times have no memory, so the expected state obeys a linear equation.

    The step size is large, for what staleness changes is of the order of its square.
    """
    lr = 0.25
    if name == "AD-PSGD":
        algorithm, events = ADPSGD(lr), adpsgd_events(RING, lr)
        z = stationary_mean(events)
        expected = after_own_events(events, z, lambda A, i: A[N + i, N + i] == 0.0 or A[i, N + i])
    else:
        algorithm, events = SwarmSGD(lr, local_steps=2, geometric=True), swarm_events(RING, lr, 2)
        z = stationary_mean(events)
        expected = after_own_events(events, z, lambda A, i: A[2 * N + i, 2 * N + i] != 1.0)
    states = run_until(800.0, algorithm, quadratic(), RING, compute=sim.Exponential(1.0))
    for rank in range(N):
        mean, error = mean_and_error([s.x[0] for s in states[rank][100:]])
        assert abs(mean - expected[rank]) < 4.0 * error
        assert error < 0.1


@pytest.mark.parametrize("algorithm", [ADPSGD(0.3), SwarmSGD(0.3, 3), SwarmSGD(0.3, 2, True)])
def test_pairs_keep_the_sum_of_the_models(algorithm):
    """Without gradients the mean is kept to rounding, and everybody tends to it."""

    def program(comm):
        def nothing(x):
            with comm.computing():
                return 0.0 * x

        state = algorithm.init(comm, np.array([float(comm.rank) ** 2, 1.0]), nothing)
        for _ in range(150):
            state = algorithm.step(comm, state, nothing)
        window = comm.windows[algorithm.name]
        window.fence()
        return window.value

    found = np.array(
        dectool.run(
            program,
            topology=topology.star(N),
            backend="sim",
            network=sim.AlphaBeta(latency=0.3),
            compute=sim.LogNormal(1.0, 1.0),
        ).values
    )
    np.testing.assert_allclose(found.mean(axis=0), [17.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(found[:, 0], 17.5, atol=1e-4)


@pytest.mark.parametrize("algorithm", [ADPSGD(0.1), SwarmSGD(0.05), BlockingSwarmSGD(0.05)])
def test_no_deadlock_on_odd_cycles_and_complete_graphs(algorithm):
    """Ranks that all ask for each other, at once, with late answers."""
    problem = problems.Quadratic(h=np.ones((5, 1)), b=np.full((5, 1), 2.0))
    for graph in (topology.ring(5), topology.complete(5)):
        h = solve(
            algorithm, graph, 250, problem, network=sim.AlphaBeta(1.0), compute=sim.Constant(1.0)
        )
        np.testing.assert_allclose(h.x, 2.0, atol=1e-4)


def test_meetings_of_blocking_swarms_are_in_the_one_order():
    """What one process makes of them in turn, however unequal the ranks are."""
    graph, lr = topology.grid(2, 4), 0.05
    h = solve(BlockingSwarmSGD(lr, local_steps=3), graph, 10, compute=sim.PerRank({2: 9.0}), seed=4)
    x = np.zeros((N, 1))
    for i, j in met(graph, h.state["seed"], 10):
        for rank in (i, j):
            for _ in range(3):
                x[rank] -= lr * (H[rank] * x[rank] - B[rank])
        x[[i, j]] = 0.5 * (x[i] + x[j])
    np.testing.assert_allclose(h.x, x, rtol=1e-13)


def met(graph, seed, steps):
    """Who meets whom, in the order of time."""
    found = [
        (k, at, rank, peer)
        for rank in range(graph.size)
        for k in range(steps)
        for at, peer in _clocks.meetings(rank, graph, seed, k, 1.0)
        if rank < peer
    ]
    return [(rank, peer) for _, _, rank, peer in sorted(found)]


def test_admm_is_the_serial_recursion_of_its_edges():
    """One edge at a time, in dense arithmetic; and the multipliers of an edge sum to zero."""
    graph, lr, rho = topology.grid(2, 4), 0.2, 0.7
    h = solve(AsynchronousADMM(lr, rho), graph, 12, compute=sim.Exponential(1.0), seed=1)
    x = np.zeros(N)
    z = {(i, j): 0.0 for i in range(N) for j in graph.out_neighbors(i)}
    multipliers = dict(z)
    for pair in met(graph, h.state["seed"], 12):
        for i in pair:
            near = graph.out_neighbors(i)
            pull = sum(rho * z[i, j] - multipliers[i, j] for j in near)
            target = x[i] / lr - (H[i, 0] * x[i] - B[i, 0]) + pull
            x[i] = target / (1.0 / lr + rho * len(near))
        i, j = pair
        z[i, j] = z[j, i] = 0.5 * (x[i] + x[j])
        multipliers[i, j] += rho * (x[i] - z[i, j])
        multipliers[j, i] += rho * (x[j] - z[i, j])
    np.testing.assert_allclose(h.x[:, 0], x, rtol=1e-12)
    for (i, j), value in multipliers.items():
        assert value == pytest.approx(-multipliers[j, i], abs=1e-12)
    np.testing.assert_allclose(h.state["multipliers"].sum(), sum(multipliers.values()), atol=1e-12)


@pytest.mark.parametrize("graph", [RING, topology.star(8)], ids=["ring", "star"])
def test_admm_reaches_the_optimum(graph):
    h = solve(AsynchronousADMM(0.2), graph, 500, record_every=500)
    np.testing.assert_allclose(h.x, 1.4, atol=1e-10)
