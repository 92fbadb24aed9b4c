"""Averaging in the least time: against every choice of edges, and against the simulator."""

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from dectool import algorithms, problems, sim, solve, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _fastest, _fastest_time
from dectool.topology._fastest import Weighed

EPS = 1e-6


def times_of(graph, seed):
    rng = np.random.default_rng(seed)
    return {edge: 0.2 + float(rng.exponential()) for edge in graph.edges}


def house():
    """Return a square with a roof and one diagonal: 5 nodes, 7 edges."""
    return nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 4), (3, 4)])


@functools.cache
def every_choice():
    """Return every connected choice of edges of the house, with the rounds of its best weights."""
    graph, choices = house(), []
    for count in range(4, 8):
        for chosen in itertools.combinations(graph.edges, count):
            part = nx.Graph()
            part.add_nodes_from(graph)
            part.add_edges_from(chosen)
            if nx.is_connected(part):
                t = topology.from_graph(part, weights="fastest_mixing")
                choices.append((chosen, topology.consensus_rounds(t, EPS)))
    return choices


def least_seconds(times, port):
    found = []
    for chosen, rounds in every_choice():
        at = [sum(times[edge] for edge in chosen if rank in edge) for rank in range(5)]
        slowest = max(times[edge] for edge in chosen) if port == "parallel" else max(at)
        found.append(slowest * rounds)
    return min(found)


@pytest.mark.parametrize("seed", range(6))
def test_parallel_ports_are_solved_exactly(seed):
    graph = house()
    times = times_of(graph, seed)
    plan = topology.fastest_consensus(graph, times, eps=EPS)
    best = least_seconds(times, "parallel")
    assert plan.seconds == pytest.approx(best, rel=1e-12)
    assert plan.bound <= best * (1 + 1e-12)
    assert plan.certified_gap <= plan.seconds_per_round * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_serial_ports_are_bounded_and_not_far(seed):
    graph = house()
    times = times_of(graph, seed)
    plan = topology.fastest_consensus(graph, times, eps=EPS, port="serial")
    best = least_seconds(times, "serial")
    assert plan.bound <= best * (1 + 1e-12)
    assert best * (1 - 1e-12) <= plan.seconds <= 1.1 * best
    used = plan.topology.graph.edges
    at = [sum(times[e] for e in graph.edges if i in e and e in used) for i in graph]
    assert plan.seconds_per_round == pytest.approx(max(at))


@pytest.mark.parametrize("port", ["parallel", "serial"])
def test_the_bound_does_not_trust_the_weights(port, monkeypatch):
    """With poor weights but true bounds, the time is too long, and the bound still holds."""

    def poor(edges, weights):
        found = fastest(edges, weights)
        return Weighed((0.4 * sparse.eye_array(edges.size) + 0.6 * found.W).tocsr(), found.bound)

    fastest = _fastest.fastest
    monkeypatch.setattr(_fastest_time, "fastest", poor)
    for seed in range(4):
        times = times_of(house(), seed)
        plan = topology.fastest_consensus(house(), times, eps=EPS, port=port)
        best = least_seconds(times, port)
        assert plan.bound <= best * (1 + 1e-12) < plan.seconds
        assert port == "serial" or plan.bound > 0.8 * best


@pytest.mark.parametrize("port", ["parallel", "serial"])
@pytest.mark.parametrize("weights", ["fastest_mixing", "fastest_averaging"])
def test_what_a_plan_says(weights, port):
    graph = nx.random_regular_graph(4, 12, seed=2)
    times = times_of(graph, 5)
    times[min(times)] = 50.0
    plan = topology.fastest_consensus(graph, times, eps=1e-3, port=port, weights=weights)
    used = set(graph.edges) - set(plan.dropped)
    assert plan.dropped
    assert all(i < j for i, j in plan.dropped)
    assert {tuple(sorted(edge)) for edge in used} >= set(plan.topology.graph.edges)
    assert plan.rounds == topology.consensus_rounds(plan.topology, 1e-3)
    assert plan.seconds == plan.rounds * plan.seconds_per_round
    assert (plan.eps, plan.port, plan.topology.weights) == (1e-3, port, weights)
    assert plan.topology.certified_gap < 1e-6
    assert 0 < plan.bound <= plan.seconds == plan.bound + plan.certified_gap
    whole = topology.from_graph(graph, weights=weights)
    at = [sum(times[edge] for edge in graph.edges(i) if edge in times) for i in graph]
    slowest = max(times.values()) if port == "parallel" else max(at)
    assert plan.seconds <= slowest * topology.consensus_rounds(whole, 1e-3)


def test_equal_times_drop_nothing():
    plan = topology.fastest_consensus(topology.hypercube(3), lambda i, j: 2.0, eps=0.01)
    assert plan.dropped == ()
    assert (plan.rounds, plan.seconds, plan.certified_gap) == (7, 14.0, 0.0)
    assert plan.topology.rho == pytest.approx(0.5, abs=1e-8)


def test_a_slow_edge_stays_where_it_saves_more_than_it_costs():
    """The ring of 8 needs 47 rounds, the path 174: worth the edge up to 3.7 times as slow."""
    ring = topology.ring(8)
    for slow, dropped in ((3.0, ()), (4.0, ((0, 7),))):
        times = {edge: slow if edge == (0, 7) else 1.0 for edge in ring.graph.edges}
        assert topology.fastest_consensus(ring, times, eps=EPS).dropped == dropped


@pytest.mark.parametrize("port", ["parallel", "serial"])
def test_infinite_times_are_not_used(port):
    ring = topology.ring(5)
    times = {edge: math.inf if edge == (1, 2) else 1.0 for edge in ring.graph.edges}
    plan = topology.fastest_consensus(ring, times, port=port)
    assert plan.dropped == ((1, 2),)
    assert math.isfinite(plan.seconds)
    times[0, 1] = math.inf
    with pytest.raises(TopologyError, match=r"connected by edges of finite time, and ring of 5"):
        topology.fastest_consensus(ring, times, port=port)


@pytest.mark.parametrize("port", ["parallel", "serial"])
def test_one_and_two_ranks(port):
    alone = topology.fastest_consensus(topology.complete(1), {}, port=port)
    assert (alone.rounds, alone.seconds, alone.bound) == (1, 0.0, 0.0)
    pair = topology.fastest_consensus(topology.path(2), {(0, 1): 3.0}, port=port)
    assert (pair.rounds, pair.seconds, pair.bound) == (1, 3.0, 3.0)


def test_all_forms_of_times_agree():
    graph = nx.Graph()
    seconds = {("a", "b"): 1.0, ("b", "c"): 2.0, ("c", "a"): 9.0, ("c", "d"): 1.5}
    for (u, v), time in seconds.items():
        graph.add_edge(u, v, seconds=time)
    ranks = {label: rank for rank, label in enumerate(graph)}
    array = np.zeros((4, 4))
    for (u, v), time in seconds.items():
        array[ranks[u], ranks[v]] = time
    both = seconds | {("b", "a"): 0.5}
    plans = [
        topology.fastest_consensus(graph, form)
        for form in (
            seconds,
            both,
            "seconds",
            array,
            array.tolist(),
            lambda u, v: seconds.get((u, v), 0.0),
        )
    ]
    assert {(plan.seconds, plan.dropped) for plan in plans} == {(plans[0].seconds, ((0, 2),))}
    assert plans[0].topology.labels == ("a", "b", "c", "d")
    assert plans[0].seconds_per_round == 2.0


@pytest.mark.parametrize(
    ("edge_seconds", "options", "error", "message"),
    [
        ({(0, 1): 1.0}, {}, ArgumentError, r"no time for the edge 0 - 3; add the key \(0, 3\)"),
        (lambda i, j: -1.0, {}, ArgumentError, r"of the edge 0 - 1 is -1; it must be at least 0"),
        (lambda i, j: math.nan, {}, ArgumentError, r"of the edge 0 - 1 is nan"),
        (lambda i, j: "1", {}, ArgumentTypeError, r"edge_seconds must be a number, got '1'"),
        (np.ones((3, 3)), {}, ArgumentError, r"shape \(3, 3\), but .* must be \(4, 4\)"),
        (object(), {}, ArgumentTypeError, r"edge_seconds is a object; give a mapping"),
        ("seconds", {}, ArgumentTypeError, r"attribute, which a Topology does not have"),
        (np.ones((4, 4)), {"eps": 1.0}, ArgumentError, r"eps must be above 0 and below 1"),
        (np.ones((4, 4)), {"port": "both"}, ArgumentError, r"port='both' is unknown; use 'para"),
        (np.ones((4, 4)), {"weights": "fastest"}, ArgumentError, r"weights='fastest' is not opt"),
    ],
)
def test_refusals(edge_seconds, options, error, message):
    with pytest.raises(error, match=message):
        topology.fastest_consensus(topology.ring(4), edge_seconds, **options)


def test_refused_graphs():
    with pytest.raises(TopologyError, match=r"fastest_consensus needs an undirected graph"):
        topology.fastest_consensus(topology.directed_ring(4), np.ones((4, 4)))
    graph = nx.Graph([(0, 1), (1, 2)])
    graph.edges[0, 1]["time"] = 1.0
    with pytest.raises(ArgumentError, match=r"the edge 1 - 2 has no attribute 'time'; set it"):
        topology.fastest_consensus(graph, "time")


@pytest.mark.parametrize("port", ["parallel", "serial"])
def test_the_simulator_takes_as_long(port):
    """Without latency too, one port sends for as long as the sum of its messages."""
    n, d, rng = 8, 100, np.random.default_rng(1)
    speed = rng.uniform(1e6, 1e7, (n, n))
    latency = 1e-3 * rng.exponential(size=(n, n)) if port == "parallel" else 0.0
    speed[0, 1] = 1e4
    latency, speed = latency + np.transpose(latency), np.minimum(speed, speed.T)
    network = sim.AlphaBeta(latency, speed, port=port)
    seconds = network.link_seconds(8 * d, ranks=n)
    plan = topology.fastest_consensus(topology.torus(2, 4), seconds, port=port)
    problem = problems.Averaging(rng.standard_normal((n, d)))
    history = solve(
        algorithms.Gossip(),
        problem,
        topology=plan.topology,
        steps=plan.rounds,
        backend="sim",
        network=network,
    )
    assert plan.dropped
    assert history.last["time"] == pytest.approx(plan.seconds, rel=1e-9)
    assert history.last["consensus_error"] <= EPS * history["consensus_error"][0]


def test_seconds_of_links():
    latency = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]])
    found = sim.AlphaBeta(latency, bandwidth=100.0).link_seconds(50, ranks=3)
    np.testing.assert_array_equal(found, latency + 0.5 * (1 - np.eye(3)))
    found = sim.LogGP(L=3.0, o=1.0, g=7.0, G=0.5).link_seconds(11, ranks=2)
    np.testing.assert_array_equal(found, [[0.0, 10.0], [10.0, 0.0]])
    scaled = sim.AlphaBeta(1.0, bandwidth=100.0).scaled(10.0).link_seconds(5, ranks=2)
    assert scaled[0, 1] == 1.5
    with pytest.raises(ArgumentError, match=r"shape \(3, 3\), but there are 4 ranks"):
        sim.AlphaBeta(latency).link_seconds(50, ranks=4)
    with pytest.raises(ArgumentError, match=r"nbytes=-1 must be at least 0"):
        sim.AlphaBeta().link_seconds(-1, ranks=4)


def test_edges_without_weight_are_not_used(monkeypatch):
    path = topology.path(4)
    monkeypatch.setattr(_fastest_time, "fastest", lambda edges, weights: Weighed(path.W, 0.0))
    seconds = {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (3, 0): 5.0}
    plan = topology.fastest_consensus(topology.ring(4), seconds)
    assert plan.dropped == ((0, 3),)
    assert plan.seconds_per_round == 1.0
