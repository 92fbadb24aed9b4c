"""Gossip on Poisson clocks: the order of events, and exact means and mean squares."""

import numpy as np
import pytest
from scipy.linalg import expm

import dectool
from dectool import problems, sim, topology
from dectool.algorithms import BroadcastGossip, RandomizedGossip
from dectool.algorithms.asynchronous import _clocks

RUNS = 200


def pair(n, i, j):
    e = np.zeros(n)
    e[i], e[j] = 1.0, -1.0
    return np.eye(n) - 0.5 * np.outer(e, e)


def pair_events(graph):
    """Rate and matrix of each edge, whose ends pick each other uniformly."""
    return [
        (1.0 / graph.out_degree(i) + 1.0 / graph.out_degree(j), pair(graph.size, i, j))
        for i in range(graph.size)
        for j in graph.out_neighbors(i)
        if i < j
    ]


def broadcast_events(graph, gamma):
    events = []
    for i in range(graph.size):
        W = np.eye(graph.size)
        for j in graph.out_neighbors(i):
            W[j, j], W[j, i] = gamma, 1.0 - gamma
        events.append((1.0, W))
    return events


def mean_after(events, x, time):
    return expm(time * sum(rate * (W - np.eye(len(x))) for rate, W in events)) @ x


def square_after(events, x, time):
    """E[e eᵀ] for e = Q x, of which each event makes (Q W) e."""
    n = len(x)
    Q = np.eye(n) - 1.0 / n
    generator = sum(rate * (np.kron(Q @ W @ Q, Q @ W @ Q) - np.eye(n * n)) for rate, W in events)
    e = Q @ x
    return np.trace((expm(time * generator) @ np.kron(e, e)).reshape(n, n))


def rate_per_tick(events, n):
    """The factor of the mean square per tick of one of n clocks, in the long run."""
    Q = np.eye(n) - 1.0 / n
    total = sum(rate for rate, _ in events)
    operator = sum(rate / total * np.kron(Q @ W, Q @ W) for rate, W in events)
    return np.abs(np.linalg.eigvals(operator)).max()


def samples(algorithm, graph, x, steps, runs=RUNS):
    """Final x of many seeds."""
    problem = problems.Averaging(x[:, None])
    return np.array(
        [
            dectool.solve(
                algorithm,
                problem,
                topology=graph,
                steps=steps,
                backend="sim",
                seed=seed,
                record_every=steps,
            ).x[:, 0]
            for seed in range(runs)
        ]
    )


def agree(found, expected, errors=4.0):
    """The mean of samples is what is expected, within so many standard errors."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < errors * error), (
        found.mean(axis=0),
        expected,
        error,
    )


CASES = {
    "complete, pairs": (RandomizedGossip(interval=0.5), topology.complete(6), None),
    "ring, pairs": (RandomizedGossip(rate=2.0, interval=0.5), topology.ring(6), None),
    "star, pairs": (RandomizedGossip(), topology.star(5), None),
    "ring, broadcasts": (BroadcastGossip(gamma=0.4), topology.ring(6), 0.4),
}


@pytest.mark.parametrize("name", CASES)
def test_means_and_mean_squares_are_those_of_the_exact_operators(name):
    algorithm, graph, gamma = CASES[name]
    n, steps = graph.size, 2
    x = np.sin(1.0 + 7.0 * np.arange(n))
    events = pair_events(graph) if gamma is None else broadcast_events(graph, gamma)
    ticks = steps * algorithm.interval * algorithm.rate
    X = samples(algorithm, graph, x, steps)
    agree(X, mean_after(events, x, ticks))
    squares = ((X - X.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    agree(squares, square_after(events, x, ticks))
    if gamma is None:
        np.testing.assert_allclose(X.mean(axis=1), x.mean(), atol=1e-15)
    if graph.name == "complete":
        first = ((x - x.mean()) ** 2).sum()
        exact = first * np.exp(-n * ticks / (n - 1))
        assert square_after(events, x, ticks) == pytest.approx(exact)


def test_published_rates():
    """Ring of 16: exact 0.990581112908, bound 1 - (1 - cos(2 pi / n)) / n; broadcasts 0.9952."""
    ring = topology.ring(16)
    exact = rate_per_tick(pair_events(ring), 16)
    assert exact == pytest.approx(0.990581112908, abs=1e-11)
    bound = 1 - (1 - np.cos(2 * np.pi / 16)) / 16
    assert bound == pytest.approx(0.995242470782, abs=1e-11)
    assert exact < bound
    Q = np.eye(16) - 1 / 16
    mean = sum(W.T @ Q @ W for _, W in broadcast_events(ring, 0.5)) / 16
    assert np.linalg.eigvalsh(Q @ mean @ Q).max() == pytest.approx(0.995219836698, abs=1e-11)


def test_the_bound_of_the_averaging_time():
    """No slower than lambda_2 of the mean matrix allows, on average over seeds."""
    ring, steps = topology.ring(16), 3
    x = np.cos(2 * np.pi * np.arange(16) / 16)
    X = samples(RandomizedGossip(), ring, x, steps, runs=80)
    ratio = (X**2).sum(axis=1) / (x**2).sum()
    lambda_2 = 1 - (1 - np.cos(2 * np.pi / 16)) / 16
    assert ratio.mean() < np.exp(16 * steps * (lambda_2 - 1))


def test_broadcasts_agree_on_a_random_value_whose_mean_is_the_average():
    graph, x = topology.ring(6), np.arange(6.0)
    X = samples(BroadcastGossip(), graph, x, 10, runs=80)
    assert np.ptp(X, axis=1).mean() < 0.5
    agree(X.mean(axis=1), x.mean())
    assert X.mean(axis=1).std() > 0.1


def in_order(graph, seed, steps, kind):
    """All events of all ranks in one order: (step, time, rank, other)."""
    draw = _clocks.meetings if kind is RandomizedGossip else _clocks.broadcasts
    return sorted(
        (k, at, rank, other)
        for rank in range(graph.size)
        for k in range(steps)
        for at, other in draw(rank, graph, seed, k, 1.0)
    )


@pytest.mark.parametrize("kind", [RandomizedGossip, BroadcastGossip])
@pytest.mark.parametrize("latency", [0.0, 0.7])
def test_every_rank_sees_the_events_in_the_one_order(kind, latency):
    """Bit for bit what one process makes of them in turn, however late messages are."""
    graph = topology.grid(2, 3)
    X0 = np.sin(1.0 + 7.0 * np.arange(6)[:, None] + np.arange(3))
    h = dectool.solve(
        kind(),
        problems.Averaging(X0),
        topology=graph,
        steps=6,
        backend="sim",
        network=sim.AlphaBeta(latency=latency),
        seed=3,
    )
    X = X0.copy()
    events = in_order(graph, h.state["seed"], 6, kind)
    for _, _, rank, other in events:
        if kind is RandomizedGossip and rank < other:
            X[[rank, other]] = 0.5 * X[rank] + 0.5 * X[other]
        elif kind is BroadcastGossip and rank != other:
            # The speaker's own event sorts beside those of its listeners and changes nothing.
            X[rank] = 0.5 * X[rank] + (1.0 - 0.5) * X[other]
    assert len(events) > 50
    assert h.x.tobytes() == X.tobytes()
    if latency == 0.0:
        assert h.last["time"] == pytest.approx(6.0)


@pytest.mark.parametrize("kind", [RandomizedGossip, BroadcastGossip])
def test_a_resumed_run_has_the_bits_of_a_whole_one(kind, tmp_path):
    problem = problems.Averaging(np.eye(6))
    options = {"topology": topology.ring(6), "backend": "sim", "seed": 2}
    dectool.solve(kind(), problem, steps=4, checkpoint=tmp_path, checkpoint_every=4, **options)
    rest = dectool.solve(kind(), problem, steps=9, resume=tmp_path, **options)
    whole = dectool.solve(kind(), problem, steps=9, **options)
    assert rest.x.tobytes() == whole.x.tobytes()
