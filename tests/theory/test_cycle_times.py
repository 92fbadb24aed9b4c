"""Cycle times: against enumeration, Karp's algorithm and the recursion itself; and refusals."""

import math

import networkx as nx
import numpy as np
import pytest

from dectool import sim, theory, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError


def random_digraph(rng, n):
    """Return a strongly connected topology, with c and d that are integers now and then."""
    graph = nx.cycle_graph(n, create_using=nx.DiGraph) if n > 1 else nx.empty_graph(1, nx.DiGraph)
    graph.add_edges_from(np.argwhere(rng.random((n, n)) < 0.3).tolist())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    c, d = rng.uniform(0.1, 5.0, n), rng.uniform(0.0, 5.0, (n, n))
    if rng.random() < 0.5:
        c, d = np.ceil(c), np.floor(d)
    return topology.from_graph(graph, weights="uniform"), c, d


def mean_of(circuit, c, d, staleness=0):
    """Return the weight of a circuit over the steps that it spans."""
    if len(circuit) == 1:
        return c[circuit[0]]
    before = [circuit[-1], *circuit[:-1]]
    total = sum(c[i] + d[j, i] for j, i in zip(before, circuit, strict=True))
    return total / (len(circuit) * (1 + staleness))


def karp(graph, c, d):
    """Return the maximum cycle mean by Karp's characterization."""
    edges, n = graph.edges, graph.size
    weights = np.full((n, n), -np.inf)
    weights[edges.senders, edges.receivers] = d[edges.senders, edges.receivers]
    np.fill_diagonal(weights, 0.0)
    weights += c
    walks = [np.zeros(n)]
    for _ in range(n):
        walks.append((walks[-1][:, None] + weights).max(axis=0))
    return np.min([(walks[n] - walks[k]) / (n - k) for k in range(n)], axis=0).max()


@pytest.mark.parametrize("seed", range(60))
def test_cycle_time_is_that_of_the_worst_circuit(seed):
    rng = np.random.default_rng(seed)
    graph, c, d = random_digraph(rng, int(rng.integers(1, 8)))
    staleness = int(rng.integers(0, 3))
    circuits = [*nx.simple_cycles(graph.graph.to_directed()), *([i] for i in range(graph.size))]
    worst = max(mean_of(circuit, c, d, staleness) for circuit in circuits)
    found = theory.cycle_time(graph, c, delay=d, staleness=staleness)
    assert found == pytest.approx(worst, rel=1e-14)
    circuit = theory.critical_circuit(graph, c, delay=d, staleness=staleness)
    assert mean_of(circuit, c, d, staleness) == pytest.approx(worst, rel=1e-14)
    if not staleness:
        assert karp(graph, c, d) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(
    "graph",
    [
        topology.ring(600),
        topology.random_regular(600, 4, seed=0),
        topology.exponential(512),
        topology.torus(20, 25),
    ],
    ids=lambda graph: graph.name,
)
def test_cycle_time_of_large_graphs(graph):
    rng = np.random.default_rng(0)
    c, d = rng.exponential(1.0, graph.size) + 0.1, rng.exponential(3.0, (graph.size, graph.size))
    assert theory.cycle_time(graph, c, delay=d) == pytest.approx(karp(graph, c, d), rel=1e-12)


def test_thousands_of_ranks_with_equal_times():
    assert theory.cycle_time(topology.torus(60, 60), 0.1, delay=0.3) == pytest.approx(0.4)
    assert theory.cycle_time(topology.one_peer_exponential(4096), 0.1) == pytest.approx(0.1)


def stale_clocks(graph, draw, staleness, steps):
    """Iterate the recursion; return when each computation ends, shape (steps + 1, n)."""
    times = [np.zeros(graph.size)] * (staleness + 1)
    for _ in range(steps):
        waited = [times[-1 - staleness][list(graph.in_neighbors(i))] for i in range(graph.size)]
        begin = np.maximum(times[-1], [w.max(initial=0.0) for w in waited])
        times.append(begin + draw())
    return np.array(times[staleness:])


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_staleness_against_the_recursion(staleness):
    graph, means = topology.path(4), np.array([1.0, 1.0, 1.5, 1.0])
    rng = np.random.default_rng(0)
    marks = stale_clocks(graph, lambda: rng.exponential(means), staleness, 20_100)[100::500]
    batches = np.diff(marks.mean(axis=1)) / 500
    error = batches.std(ddof=1) / math.sqrt(len(batches))
    predicted = theory.exponential_cycle_time(graph, means, staleness=staleness)
    assert abs(batches.mean() - predicted) < 5 * error


@pytest.mark.parametrize("staleness", [0, 1, 5, 20])
def test_staleness_of_two_ranks(staleness):
    # Who is ahead by how much walks at random between ±(s + 1), and is everywhere equally often.
    found = theory.exponential_cycle_time(topology.path(2), staleness=staleness)
    assert found == pytest.approx(1 + 1 / (2 * (staleness + 1)), abs=1e-12)


def test_staleness_hides_random_delays_but_no_slow_rank():
    means = [2.0, 1.0, 1.0, 1.0]
    graph = topology.complete(4)
    times = [theory.exponential_cycle_time(graph, means, staleness=s) for s in (0, 1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 2.5
    assert times[-1] == pytest.approx(2.0, abs=1e-3)
    assert times[-1] > len(means) / theory.synchronous_throughput(means)


def test_staleness_hides_delays_of_messages():
    ring = topology.ring(4)
    found = [theory.cycle_time(ring, 1.0, delay=3.0, staleness=s) for s in range(5)]
    assert found == [4.0, 2.0, 4 / 3, 1.0, 1.0]


def test_the_slowest_rank_may_be_felt_late():
    graph, c = topology.path(11), np.array([3.0, *[1.0] * 9, 2.9])
    times = stale_clocks(graph, lambda: c, 0, 200)[:, -1]
    steps = np.diff(times)
    assert theory.cycle_time(graph, c) == 3.0
    assert steps[150] == pytest.approx(2.9)
    assert steps[199] == pytest.approx(3.0)


def test_one_rank_waits_for_nobody():
    assert theory.cycle_time(topology.complete(1), 2.0) == 2.0
    assert theory.exponential_cycle_time(topology.complete(1), 2.0) == pytest.approx(2.0)


def test_very_slow_rank():
    found = theory.exponential_cycle_time(topology.ring(8), [1e6] + [1.0] * 7)
    assert found == pytest.approx(1e6, rel=1e-5)
    assert found > 1e6


def test_too_many_states_say_what_to_do():
    with pytest.raises(ArgumentError, match=r"ring of 64 has at least .*Simulate instead"):
        theory.exponential_cycle_time(topology.ring(64))
    with pytest.raises(ArgumentError, match="more than 1,000 states"):
        theory.exponential_cycle_time(topology.path(8), max_states=1000)
    with pytest.raises(ArgumentError, match="too slowly"):
        theory.exponential_cycle_time(topology.path(2), staleness=150)
    with pytest.raises(ArgumentError, match="very many"):
        theory.exponential_cycle_time(topology.path(2), staleness=300)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: theory.cycle_time(topology.ring(4), [1.0, 2.0]), ArgumentError, "4 for 4 ranks"),
        (lambda: theory.cycle_time(topology.ring(4), 0.0), ArgumentError, "above 0 seconds"),
        (lambda: theory.cycle_time(topology.ring(4), 1.0, delay=-1.0), ArgumentError, "at least 0"),
        (
            lambda: theory.cycle_time(topology.ring(4), 1.0, delay=[1.0, 2.0]),
            ArgumentError,
            r"\(4, 4\), got \(2,\)",
        ),
        (
            lambda: theory.cycle_time(topology.one_peer_exponential(4), 1.0, staleness=1),
            ArgumentError,
            "needs one topology",
        ),
        (
            lambda: theory.exponential_cycle_time(topology.random_matching(topology.ring(4))),
            ArgumentError,
            "no period",
        ),
        (
            lambda: theory.cycle_time(
                topology.from_matrix(np.eye(3), require_connected=False), 1.0
            ),
            TopologyError,
            "not strongly connected",
        ),
        (lambda: theory.expected_maximum(1.0, 4), ArgumentTypeError, "no distribution"),
        (lambda: theory.expected_maximum(sim.Constant(1.0), 4), ArgumentError, "Constant"),
        (lambda: theory.expected_maximum(sim.Exponential(1.0), 0), ArgumentError, "at least 1"),
        (lambda: theory.expected_maximum(sim.Exponential(1.0), 1.5), ArgumentTypeError, "integer"),
        (
            lambda: theory.expected_order_statistic(sim.Exponential(1.0), 3, 4),
            ArgumentError,
            "at most n",
        ),
        (lambda: theory.asynchronous_speedup(4, 0.5), ArgumentError, "at least 1"),
        (lambda: theory.asynchronous_throughput([]), ArgumentError, "one number for each rank"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
