"""Optimal weights: published values, closed forms, and a semidefinite solver as the oracle."""

import math
import pickle

import networkx as nx
import numpy as np
import pytest

from dectool import topology
from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _fastest, _fastest_smooth

MIXING, AVERAGING = "fastest_mixing", "fastest_averaging"


def graph(text):
    """Return the graph of edges written as two digits each, counted from 1."""
    return nx.Graph([(int(a) - 1, int(b) - 1) for a, b in text.split()])


def grid(rows, cols):
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, cols))


def cut_grid():
    """Return the grid of 8 x 8 with a cut in it, 95 edges, of ``cut_grid_data.m`` of CVX."""
    cut = "49-41 50-42 16-8 24-16 15-7 23-15 21-13 13-5 22-14 14-6 51-43 52-44 53-45 54-46"
    cut += " 42-41 34-33 26-25"
    graph = grid(8, 8)
    graph.remove_edges_from(
        [tuple(int(end) - 1 for end in pair.split("-")) for pair in cut.split()]
    )
    return graph


def check(t, graph):
    """Check that W is symmetric, doubly stochastic, on the graph, and certified."""
    W = t.to_dense()
    np.testing.assert_allclose(W, W.T, atol=1e-15)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-12)
    off = W - np.diag(np.diag(W))
    assert all(graph.has_edge(int(i), int(j)) for i, j in np.argwhere(off))
    assert t.rho == pytest.approx(np.linalg.norm(W - 1 / len(W), 2), abs=1e-12)
    assert t.certified_gap >= 0
    if t.weights == MIXING:
        assert W.min() >= -1e-13


PRINTED = graph("12 23 34 15 28 24 56 57 37 48 67 78 27")
PUBLISHED = [
    # Boyd, Diaconis & Xiao 2004, figure 1 and table 1.
    (graph("12 23 34"), MIXING, math.sqrt(0.5)),
    (graph("12 23 34"), AVERAGING, math.sqrt(0.5)),
    (graph("12 23 24 34"), MIXING, 7 / 11),
    (graph("12 23 24 34"), AVERAGING, 1 / math.sqrt(3)),
    (graph("12 14 15 23 34 35"), MIXING, 3 / 7),
    (graph("12 14 15 23 34 35"), AVERAGING, 3 / 7),
    (graph("12 13 15 24 25 34 35 45"), MIXING, 1 / 4),
    (graph("12 13 15 24 25 34 35 45"), AVERAGING, 1 / 4),
    # Printed by the example graph_laplacian of CVX as .680961 and .643331.
    (PRINTED, MIXING, 0.680960675678),
    (PRINTED, AVERAGING, 0.643331402575),
    *((grid(2, 4), weights, 0.733814326) for weights in (MIXING, AVERAGING)),
    *((grid(4, 4), weights, 0.824388643) for weights in (MIXING, AVERAGING)),
    *((grid(5, 5), weights, 0.886709263) for weights in (MIXING, AVERAGING)),
]


@pytest.mark.parametrize(("graph", "weights", "value"), PUBLISHED)
def test_published_values(graph, weights, value):
    t = topology.from_graph(graph, weights=weights)
    check(t, graph)
    assert t.certified_gap < 1e-6
    assert t.rho == pytest.approx(value, abs=2e-9)
    assert t.rho - t.certified_gap <= value + 1e-9


@pytest.mark.parametrize(
    ("weights", "printed", "value"),
    [
        (AVERAGING, 0.9883, 0.98829188),
        (MIXING, 0.9888, 0.98882615),
        ("metropolis_hastings_boyd", 0.9917, 0.991718072866),
        ("max_degree_boyd", 0.9927, 0.992714178199),
        ("best_constant", 0.9921, 0.992116400846),
    ],
)
def test_cut_grid(weights, printed, value):
    """Printed by the example graph_laplacian of CVX, and computed to more digits."""
    graph = cut_grid()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (64, 95)
    t = topology.from_graph(graph, weights=weights)
    assert t.rho == pytest.approx(printed, abs=5e-5)
    assert t.rho == pytest.approx(value, abs=1e-8 if "fastest" in weights else 1e-11)


def cosine(n):
    return math.cos(2 * math.pi / n)


# One orbit of edges, so that equal weights are optimal: the best constant ones.
TRANSITIVE = [
    (topology.ring, (5,), 1 / math.sqrt(5)),
    (topology.ring, (8,), (1 + cosine(8)) / (3 - cosine(8))),
    (topology.hypercube, (3,), 1 / 2),
    (topology.hypercube, (4,), 3 / 5),
    (topology.complete, (6,), 0.0),
    (topology.torus, (5, 5), topology.torus(5, 5, weights="best_constant").rho),
    (topology.petersen, (), 3 / 7),
]


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
@pytest.mark.parametrize(("make", "sizes", "value"), TRANSITIVE)
def test_edge_transitive(make, sizes, value, weights):
    t = make(*sizes, weights=weights)
    check(t, t.graph if value else nx.complete_graph(6))
    assert t.rho == pytest.approx(value, abs=2e-9)
    assert t.certified_gap < 1e-6


@pytest.mark.parametrize(
    ("weights", "value"),
    [(MIXING, 1 - 1 / 7), (AVERAGING, 7 / 9)],
)
def test_star(weights, value):
    t = topology.star(8, weights=weights)
    assert t.rho == pytest.approx(value, abs=2e-9)
    assert t.certified_gap < 1e-6
    assert (t.self_weight(0) < 0) == (weights == AVERAGING)


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
def test_one_and_two_ranks(weights):
    assert topology.complete(1, weights=weights).certified_gap == 0
    assert topology.path(2, weights=weights).to_dense() == pytest.approx(0.5, abs=1e-9)


# Where the optimum is unique: the weights of edges, in the order of the graph.
WEIGHTS = [
    (graph("12 23 34"), MIXING, [1 / 2] * 3),
    (graph("12 23 24"), MIXING, [1 / 3] * 3),
    (graph("12 14 15 23 34 35"), MIXING, [2 / 7] * 6),
    (graph("12 13 15 24 25 34 35 45"), MIXING, [1 / 4] * 8),
    (graph("12 23 24 34"), AVERAGING, [1 / 2, 1 / 3, 1 / 3, 1 / 3]),
    # That of the edge 34 may be any of an interval.
    (graph("12 23 24 34"), MIXING, [5 / 11, 3 / 11, 3 / 11]),
]


@pytest.mark.parametrize(("graph", "weights", "expected"), WEIGHTS)
def test_published_weights(graph, weights, expected):
    t = topology.from_graph(graph, weights=weights)
    edges = [(t.labels.index(u), t.labels.index(v)) for u, v in sorted(graph.edges)]
    found = [t.weight(i, j) for i, j in edges[: len(expected)]]
    assert found == pytest.approx(expected, abs=2e-4)


def least_norm(cp, matrix, limits):
    """Return the least norm of a symmetric matrix, by a solver.

    ``sigma_max`` would say the same with a matrix of twice the size, at which the solver gives up
    on some processors.
    """
    norm, one = cp.Variable(), np.eye(matrix.shape[0])
    bounds = [norm * one - matrix >> 0, norm * one + matrix >> 0]
    return cp.Problem(cp.Minimize(norm), [*limits, *bounds]).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(20))
def test_semidefinite_solver(seed, monkeypatch):
    cp = pytest.importorskip("cvxpy", reason="the semidefinite solver is not installed")
    n = 6 + seed % 8
    graph = nx.random_labeled_tree(n, seed=seed)
    graph.add_edges_from(nx.gnp_random_graph(n, 0.25, seed=seed).edges)
    incidence = nx.incidence_matrix(graph, nodelist=range(n), oriented=True).toarray()
    w = cp.Variable(incidence.shape[1])
    matrix = np.eye(n) - 1 / n - incidence @ cp.diag(w) @ incidence.T
    limits = {MIXING: [w >= 0, np.abs(incidence) @ w <= 1], AVERAGING: []}
    best = {}
    for weights, constraints in limits.items():
        best[weights] = least_norm(cp, matrix, constraints)
        t = topology.from_graph(graph, weights=weights)
        check(t, graph)
        assert t.certified_gap < 1e-6
        assert best[weights] - 1e-7 <= t.rho <= best[weights] + t.certified_gap + 1e-7
    monkeypatch.setattr(_fastest, "EXACT", 1)
    t = topology.from_graph(graph, weights=MIXING)
    check(t, graph)
    assert t.certified_gap < 0.015
    assert best[MIXING] - 1e-7 <= t.rho <= best[MIXING] + t.certified_gap + 1e-7


def test_no_chain_without_self_loops_is_faster_on_the_wheel():
    """0.75, as the example ``fastest_mixing_MC`` of CVX prints it."""
    cp = pytest.importorskip("cvxpy", reason="the semidefinite solver is not installed")
    incidence = nx.incidence_matrix(
        graph("12 13 15 24 25 34 35 45"), nodelist=range(5), oriented=True
    ).toarray()
    w = cp.Variable(8)
    matrix = np.eye(5) - 1 / 5 - incidence @ cp.diag(w) @ incidence.T
    limits = [w >= 0, np.abs(incidence) @ w == 1]
    assert least_norm(cp, matrix, limits) == pytest.approx(0.75, abs=1e-7)


def test_two_thousand_ranks(monkeypatch):
    monkeypatch.setattr(_fastest_smooth, "_GAP", 0.02)
    t = topology.random_regular(2000, 4, seed=1, weights=MIXING)
    assert t.is_symmetric
    assert t.is_doubly_stochastic
    assert t.W.data.min() > -1e-13
    assert 0 <= t.certified_gap <= 0.02 * t.rho
    assert t.rho < topology.random_regular(2000, 4, seed=1, weights="best_constant").rho


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
def test_gradients_agree_with_barrier(weights, monkeypatch):
    graph = nx.random_regular_graph(3, 40, seed=3)
    exact = topology.from_graph(graph, weights=weights)
    monkeypatch.setattr(_fastest, "EXACT", 10)
    t = topology.from_graph(graph, weights=weights)
    check(t, graph)
    assert t.rho - t.certified_gap <= exact.rho <= t.rho + 1e-9
    assert 1e-6 < t.certified_gap < (0.01 if weights == MIXING else 0.03)


@pytest.mark.parametrize("make", [topology.path, topology.star, topology.tree])
def test_large_graphs_are_no_slower_than_by_a_rule(make):
    """Where the gap is far below what smoothing sees, one of the rules may be the best."""
    nonnegative = ("metropolis_hastings", "metropolis_hastings_boyd", "max_degree_boyd")
    mixing = min(make(600, weights=rule).rho for rule in nonnegative)
    fastest = make(600, weights=MIXING).rho
    assert fastest <= mixing + 1e-12
    averaging = min(fastest, make(600, weights="best_constant").rho)
    assert make(600, weights=AVERAGING).rho <= averaging + 1e-12


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
def test_large_complete_graphs_are_done_at_once(weights):
    """W = J, of whose deviation there are no singular vectors to follow."""
    t = topology.complete(40, weights=weights)
    assert t.edges.senders.size // 2 > _fastest.EXACT
    assert t.rho < 1e-14
    assert t.certified_gap < 1e-14


def test_gradients_where_the_block_is_the_whole_space(monkeypatch):
    """The filter must not drown directions in the rounding of the largest ones."""
    graph = nx.random_labeled_tree(12, seed=6)
    graph.add_edges_from(nx.gnp_random_graph(12, 0.25, seed=6).edges)
    exact = topology.from_graph(graph, weights=AVERAGING).rho
    monkeypatch.setattr(_fastest, "EXACT", 1)
    assert topology.from_graph(graph, weights=AVERAGING).rho == pytest.approx(exact, abs=0.003)


def test_the_gap_survives_pickling():
    t = topology.ring(6, weights=MIXING)
    assert pickle.loads(pickle.dumps(t)).certified_gap == t.certified_gap


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (nx.DiGraph([(0, 1), (1, 2)]), TopologyError, r"strongly connected .* ranks 0 and [12]"),
        (nx.Graph([(0, 1), (2, 3)]), TopologyError, r"a connected graph, but ranks 0 and 2"),
    ],
)
def test_refused_graphs(graph, weights, error, message):
    with pytest.raises(error, match=f"weights='{weights}' needs .*{message}"):
        topology.from_graph(graph, weights=weights, require_connected=False)


def test_refused_uses():
    with pytest.raises(TopologyError, match=r"certified_gap of ring of 4 .* use weights='fastest"):
        _ = topology.ring(4).certified_gap
    with pytest.raises(ArgumentError, match=r"did you mean 'fastest_mixing'"):
        topology.ring(4, weights="fastest_mixin")
    with pytest.raises(ArgumentError, match=r"for one whole graph, not for the parts"):
        topology.b_connected(topology.ring(6), 2, weights=MIXING)
