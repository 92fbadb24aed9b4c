"""Optimal weights on directed graphs: closed forms, and a semidefinite solver as the oracle."""

import math

import networkx as nx
import numpy as np
import pytest

from dectool import topology
from dectool.topology import _fastest
from dectool.topology._edges import of_graph
from dectool.topology._fastest_problem import Directed

MIXING, AVERAGING = "fastest_mixing", "fastest_averaging"


def digraph(n, p, seed):
    graph = nx.DiGraph([(i, (i + 1) % n) for i in range(n)])
    graph.add_edges_from(nx.gnp_random_graph(n, p, seed=seed, directed=True).edges)
    return graph


def least_norm(cp, graph, mixing):
    """Return the least ‖W - J‖₂ over all W on the graph, by a semidefinite solver."""
    n = graph.number_of_nodes()
    allowed = np.eye(n) + nx.to_numpy_array(graph, nodelist=range(n)).T
    W = cp.Variable((n, n))
    limits = [
        cp.multiply(1 - allowed, W) == 0,
        cp.sum(W, axis=0) == 1,
        cp.sum(W, axis=1) == 1,
    ]
    limits += [W >= 0] if mixing else []
    return cp.Problem(cp.Minimize(cp.sigma_max(W - 1 / n)), limits).solve(solver="CLARABEL")


def check(t, graph):
    """Check that W is doubly stochastic, on the graph, and certified."""
    W = t.to_dense()
    np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-12)
    off = W - np.diag(np.diag(W))
    assert all(graph.has_edge(int(j), int(i)) for i, j in np.argwhere(off))
    assert t.rho == pytest.approx(np.linalg.norm(W - 1 / len(W), 2), abs=1e-12)
    assert t.certified_gap >= 0
    if t.weights == MIXING:
        assert W.min() >= -1e-13


@pytest.mark.parametrize("seed", range(5))
def test_semidefinite_solver(seed, monkeypatch):
    cp = pytest.importorskip("cvxpy", reason="the semidefinite solver is not installed")
    graph = digraph(4 + seed, 0.25, seed)
    for weights in (MIXING, AVERAGING):
        best = least_norm(cp, graph, weights == MIXING)
        monkeypatch.setattr(_fastest, "EXACT", 500)
        t = topology.from_graph(graph, weights=weights)
        check(t, graph)
        assert t.certified_gap < 1e-6
        assert best - 1e-7 <= t.rho <= best + t.certified_gap + 1e-7
        monkeypatch.setattr(_fastest, "EXACT", 1)
        t = topology.from_graph(graph, weights=weights)
        check(t, graph)
        assert best - 1e-7 <= t.rho <= best + min(t.certified_gap, 0.01) + 1e-7


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
def test_no_asymmetry_helps_on_an_undirected_graph(weights):
    cp = pytest.importorskip("cvxpy", reason="the semidefinite solver is not installed")
    graph = nx.random_labeled_tree(7, seed=3)
    graph.add_edges_from([(0, 3), (2, 5)])
    best = least_norm(cp, graph, weights == MIXING)
    t = topology.from_graph(graph, weights=weights)
    assert t.is_symmetric
    assert t.rho == pytest.approx(best, abs=1e-6)
    assert topology.from_graph(graph.to_directed(), weights=weights).rho == t.rho


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
@pytest.mark.parametrize("n", [3, 4, 7, 20])
def test_directed_ring(n, weights):
    """Circulant by symmetry, so 1/2 for each of the two: ρ = cos(π/n)."""
    t = topology.directed_ring(n, weights=weights)
    assert t.rho == pytest.approx(math.cos(math.pi / n), abs=2e-9)
    assert t.certified_gap < 1e-7


def test_signs_help():
    """Weights of any sign are faster, and those of one sign than the rules."""
    graph = topology.random_digraph(10, 0.4, seed=3).graph
    mixing, averaging = (topology.from_graph(graph, weights=w) for w in (MIXING, AVERAGING))
    assert averaging.rho < mixing.rho - 1e-4
    assert averaging.to_dense().min() < -0.01
    assert mixing.rho < topology.from_graph(graph, weights="sinkhorn").rho - 0.01


def test_the_border_is_not_reached_too_early():
    """Here Newton's steps can end a rounding error away from a singular matrix."""
    assert topology.random_digraph(80, 6 / 80, seed=1, weights=MIXING).certified_gap < 1e-6


@pytest.mark.parametrize("weights", [MIXING, AVERAGING])
def test_large(weights):
    rng, n = np.random.default_rng(0), 300
    graph = nx.DiGraph([(i, int(j)) for _ in range(4) for i, j in enumerate(rng.permutation(n))])
    graph.remove_edges_from(nx.selfloop_edges(graph))
    t = topology.from_graph(graph, weights=weights)
    check(t, graph)
    assert t.certified_gap < 0.005
    assert t.rho < topology.from_graph(graph, weights="sinkhorn").rho - 0.01


def test_projection_is_nearest():
    cp = pytest.importorskip("cvxpy", reason="the solver of quadratic programs is not installed")
    edges = of_graph(digraph(9, 0.25, 1))
    problem = Directed(9, edges.receivers, edges.senders, True)
    y = problem.inside() + 0.2 * np.random.default_rng(3).standard_normal(edges.senders.size)
    w = cp.Variable(y.size)
    incoming, outgoing = (
        np.equal.outer(np.arange(9), ends).astype(float)
        for ends in (edges.receivers, edges.senders)
    )
    limits = [w >= 0, incoming @ w <= 1, (incoming - outgoing) @ w == 0]
    cp.Problem(cp.Minimize(cp.sum_squares(w - y)), limits).solve(solver="CLARABEL")
    dual = None
    for _ in range(20):
        found, dual = problem.project(y, dual)
    assert found == pytest.approx(w.value, abs=2e-5)
    assert np.linalg.norm(y - found) > 0.1
