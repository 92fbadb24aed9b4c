"""Constructors: the smallest sizes, each edge once, and what bad arguments get."""

import networkx as nx
import numpy as np
import pytest

import dectool.topology
from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import WEIGHTS, _random


def edges(t):
    return sorted(tuple(sorted(edge)) for edge in t.graph.edges)


SIZED = {
    "ring": topology.ring,
    "path": topology.path,
    "star": topology.star,
    "complete": topology.complete,
    "exponential": topology.exponential,
    "row grid": lambda n, **w: topology.grid(1, n, **w),
    "column grid": lambda n, **w: topology.grid(n, 1, **w),
    "row torus": lambda n, **w: topology.torus(1, n, **w),
    "column torus": lambda n, **w: topology.torus(n, 1, **w),
    "random_regular": lambda n, **w: topology.random_regular(n, n - 1, **w),
    "erdos_renyi": lambda n, **w: topology.erdos_renyi(n, 1.0, **w),
    "geometric": lambda n, **w: topology.geometric(n, 2.0, **w),
    "from_graph": lambda n, **w: topology.from_graph(nx.path_graph(n), **w),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", SIZED)
def test_smallest_sizes(name, n, weights):
    if name == "exponential" and weights not in ("uniform", "uniform_push"):
        weights = "uniform"
    t = SIZED[name](n, weights=weights)
    assert t.size == n
    assert np.isfinite(t.to_dense()).all()
    assert t.is_connected
    assert t.slem <= 1 + 1e-12
    assert t.spectral_gap == 1 - t.rho
    assert len(t.eigenvalues) == len(t.perron) == n
    assert t.eigenvalues[0] == pytest.approx(1)
    if t.is_symmetric and n > 1:
        assert t.lazy().lambda_2 == pytest.approx((1 + t.lambda_2) / 2)
    if n == 1:
        assert t.rho == t.slem == t.max_degree == 0
        assert t.row(0) == ((0,), (1.0,))
        assert (t.lambda_2, t.lambda_min) == (0, 1)
        assert list(t.graph.edges) == []


def test_each_edge_once():
    assert edges(topology.ring(1)) == []
    assert edges(topology.ring(2)) == [(0, 1)]
    assert edges(topology.ring(3)) == [(0, 1), (0, 2), (1, 2)]
    assert edges(topology.torus(2, 2)) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert edges(topology.torus(1, 5)) == edges(topology.ring(5)) == edges(topology.torus(5, 1))
    assert len(edges(topology.torus(2, 4))) == 12
    assert len(edges(topology.torus(3, 4))) == 24
    assert edges(topology.hypercube(0)) == []
    assert edges(topology.hypercube(1)) == [(0, 1)]
    assert edges(topology.path(4)) == [(0, 1), (1, 2), (2, 3)]
    assert edges(topology.star(4)) == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (topology.ring(9), nx.cycle_graph(9)),
        (topology.path(9), nx.path_graph(9)),
        (topology.star(9), nx.star_graph(8)),
        (topology.complete(9), nx.complete_graph(9)),
        (topology.grid(3, 5), nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5))),
        (
            topology.torus(3, 5),
            nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5, periodic=True)),
        ),
        (topology.hypercube(5), nx.hypercube_graph(5)),
    ],
    ids=lambda value: value.name if isinstance(value, topology.Topology) else "",
)
def test_same_graphs_as_networkx(ours, theirs):
    if all(isinstance(node, int) for node in theirs):
        assert edges(ours) == sorted(tuple(sorted(edge)) for edge in theirs.edges)
    else:
        assert nx.is_isomorphic(ours.graph, theirs)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9, 16, 17])
def test_exponential_hops(n):
    t = topology.exponential(n)
    hops = [2**j for j in range(20) if 2**j < n]
    for i in range(n):
        assert t.out_neighbors(i) == tuple(sorted((i + hop) % n for hop in hops))
        assert t.row(i)[1] == pytest.approx([1 / (1 + len(hops))] * (1 + len(hops)), abs=1e-15)


def test_default_ring_weights():
    assert topology.ring(8).weight(0, 1) == 1 / 3
    assert topology.ring(8).self_weight(0) == pytest.approx(1 / 3, abs=1e-15)
    assert topology.ring(8).weights == "metropolis_hastings"


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: topology.random_regular(20, 3, seed=seed),
        lambda seed: topology.erdos_renyi(20, 0.2, seed=seed),
        lambda seed: topology.geometric(20, 0.4, seed=seed),
    ],
)
def test_random_graphs_follow_their_seed(make):
    assert edges(make(7)) == edges(make(7))
    assert len({tuple(edges(make(seed))) for seed in range(5)}) == 5
    assert all(make(seed).is_connected for seed in range(20))


def test_random_regular_degrees():
    for n, degree in [(1, 0), (2, 1), (3, 2), (10, 3), (9, 4), (8, 7), (30, 2)]:
        t = topology.random_regular(n, degree, seed=1)
        assert set(t.in_degrees.tolist()) == {degree}


def test_random_graphs_retry(monkeypatch):
    drawn = []
    disconnected = nx.Graph([(0, 1), (2, 3)])

    def make(n, p, seed):
        drawn.append(seed)
        return disconnected if len(drawn) < 4 else nx.path_graph(n)

    monkeypatch.setattr(nx, "fast_gnp_random_graph", make)
    assert edges(topology.erdos_renyi(4, 0.3)) == [(0, 1), (1, 2), (2, 3)]
    assert len(set(drawn)) == 4
    monkeypatch.setattr(nx, "fast_gnp_random_graph", lambda n, p, seed: disconnected)
    with pytest.raises(TopologyError, match=rf"none of {_random.DRAWS} draws"):
        topology.erdos_renyi(4, 0.3)


def test_from_graph_labels():
    shuffled = nx.Graph([(2, 0), (0, 1)])
    t = topology.from_graph(shuffled)
    assert t.labels == (0, 1, 2)
    assert edges(t) == [(0, 1), (0, 2)]
    named = topology.from_graph(nx.Graph([("c", "a"), ("a", "b")]))
    assert named.labels == ("c", "a", "b")
    assert edges(named) == [(0, 1), (1, 2)]
    offset = topology.from_graph(nx.Graph([(1, 2), (2, 3)]))
    assert offset.labels == (1, 2, 3)
    grid = topology.from_graph(nx.grid_2d_graph(2, 3))
    assert grid.labels[4] == (1, 1)
    assert grid.rho == pytest.approx(topology.grid(2, 3).rho)


def test_from_graph_details():
    looped = nx.path_graph(3)
    looped.add_edge(1, 1)
    assert edges(topology.from_graph(looped)) == [(0, 1), (1, 2)]
    assert topology.from_graph(looped).rho == topology.path(3).rho
    assert topology.from_graph(nx.path_graph(3)).name == "graph of 3"
    assert topology.from_graph(nx.path_graph(3), name="wire").name == "wire"
    assert topology.from_graph(nx.petersen_graph()).name == "Petersen Graph"
    sends = topology.from_graph(nx.DiGraph([(0, 1), (1, 2), (2, 0)]), weights="uniform")
    assert sends.out_neighbors(0) == (1,)
    assert sends.weight(1, 0) == 0.5


def test_from_matrix_inside_a_graph():
    W = topology.ring(5).to_dense()
    assert topology.from_matrix(W, nx.cycle_graph(5)).name == "matrix of 5"
    assert topology.from_matrix(W, nx.complete_graph(5), name="mine").max_degree == 2
    with pytest.raises(
        TopologyError, match=r"W\[0, 4\] = 0.333333 but the graph has no edge 4 -> 0"
    ):
        topology.from_matrix(W, nx.path_graph(5))
    one_way = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    forward = [[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert topology.from_matrix(forward, one_way).out_neighbors(0) == (1,)
    with pytest.raises(TopologyError, match=r"W\[0, 1\] = 0.5 but the graph has no edge 1 -> 0"):
        topology.from_matrix(np.transpose(forward), one_way)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.ring(0), ArgumentError, r"n must be at least 1, got 0"),
        (lambda: topology.path(-3), ArgumentError, r"n must be at least 1, got -3"),
        (lambda: topology.star(8.0), ArgumentTypeError, r"n must be an integer, got 8.0 \(float\)"),
        (
            lambda: topology.complete("4"),
            ArgumentTypeError,
            r"n must be an integer, got '4' \(str\)",
        ),
        (lambda: topology.grid(0, 3), ArgumentError, r"rows must be at least 1, got 0"),
        (lambda: topology.torus(3, 0), ArgumentError, r"cols must be at least 1, got 0"),
        (lambda: topology.hypercube(-1), ArgumentError, r"dimension must be at least 0, got -1"),
        (lambda: topology.exponential(0), ArgumentError, r"n must be at least 1, got 0"),
        (
            lambda: topology.random_regular(5, 3),
            ArgumentError,
            r"n \* degree must be even, got n=5 and degree=3.*use degree=4 or n=6",
        ),
        (
            lambda: topology.random_regular(4, 4),
            ArgumentError,
            r"degree must be below n, got degree=4 with n=4",
        ),
        (
            lambda: topology.random_regular(6, 1),
            ArgumentError,
            r"degree=1 cannot connect n=6 ranks; use degree=2 or more",
        ),
        (lambda: topology.random_regular(6, 3, seed=-2), ArgumentError, r"seed must be at least 0"),
        (
            lambda: topology.random_regular(6, 3, seed=None),
            ArgumentTypeError,
            r"seed must be an int",
        ),
        (lambda: topology.erdos_renyi(9, 1.5), ArgumentError, r"p must be a prob.*got 1.5"),
        (
            lambda: topology.erdos_renyi(9, float("nan")),
            ArgumentError,
            r"p must be a prob.*got nan",
        ),
        (
            lambda: topology.erdos_renyi(50, 0.01, seed=3),
            TopologyError,
            r"Erdos-Renyi graph of 50 \(p=0.01\): none of 100 draws from seed=3 was connected; use "
            r"p well above ln\(n\)/n = 0.0782, such as 0.16",
        ),
        (lambda: topology.erdos_renyi(9, "1"), ArgumentTypeError, r"p must be a number, got '1'"),
        (lambda: topology.geometric(9, None), ArgumentTypeError, r"radius must be a number.*None"),
        (lambda: topology.geometric(9, 0), ArgumentError, r"radius must be above 0, got 0"),
        (
            lambda: topology.geometric(30, 0.01),
            TopologyError,
            r"geometric graph of 30 \(radius=0.01\): none of 100 draws.*= 0.19, such as 0.28",
        ),
        (
            lambda: topology.from_graph([(0, 1)]),
            ArgumentTypeError,
            r"graph must be a networkx Graph or DiGraph, got list.*from_matrix",
        ),
        (
            lambda: topology.from_graph(nx.MultiGraph([(0, 1)])),
            TopologyError,
            r"graph is a MultiGraph, whose parallel edges.*networkx.Graph\(graph\)",
        ),
        (lambda: topology.from_graph(nx.Graph()), TopologyError, r"graph has no nodes"),
        (
            lambda: topology.from_graph(nx.Graph([(0, 1), (2, 3)])),
            TopologyError,
            r"graph of 4 is not connected: 2 components \{0, 1\}, \{2, 3\}",
        ),
        (
            lambda: topology.from_graph(nx.empty_graph(3), weights="best_constant"),
            TopologyError,
            r"graph of 3 is not connected: 3 components",
        ),
        (
            lambda: topology.from_graph(nx.DiGraph([(0, 1)]), weights="uniform"),
            TopologyError,
            r"graph of 2 is not connected: 2 components \{0\}, \{1\}",
        ),
        (
            lambda: topology.from_matrix(np.eye(2), nx.path_graph(3)),
            TopologyError,
            r"W is 2 x 2 but the graph has 3 nodes",
        ),
        (
            lambda: topology.from_matrix(np.eye(2), nx.path_graph(["a", "b"])),
            TopologyError,
            r"graph must have the nodes 0 to 1, got 'a', \.\.\.; relabel it",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_exports():
    assert len(topology.__all__) == len(set(topology.__all__))
    for name in topology.__all__:
        assert getattr(dectool.topology, name) is not None
        if callable(getattr(topology, name)) and name != "Weights":
            assert getattr(topology, name).__doc__
