"""Dual bounds of the fastest weights: whatever the dual point, no weights are below."""

import networkx as nx
import numpy as np
import pytest

from dectool import topology
from dectool.topology._edges import of_graph
from dectool.topology._fastest_barrier import _center, barrier
from dectool.topology._fastest_problem import Directed, Multipliers, Undirected


def undirected(mixing):
    graph = nx.random_regular_graph(3, 12, seed=1)
    first, second = np.array(graph.edges).T
    return graph, Undirected(12, first, second, mixing)


def directed(mixing):
    graph = nx.DiGraph([(i, (i + 1) % 10) for i in range(10)])
    graph.add_edges_from(nx.gnp_random_graph(10, 0.2, seed=4, directed=True).edges)
    edges = of_graph(graph)
    return graph, Directed(10, edges.receivers, edges.senders, mixing)


def centered(X):
    X = X - X.mean(axis=0)
    return X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)


@pytest.mark.parametrize("mixing", [True, False])
@pytest.mark.parametrize("make", [undirected, directed])
def test_every_dual_point_is_a_bound(make, mixing):
    """Points from next to the best one to far from it, with multipliers that are good or not."""
    graph, problem = make(mixing)
    n, m = problem.n, problem.first.size
    weights = "fastest_mixing" if mixing else "fastest_averaging"
    exact = topology.from_graph(graph, weights=weights).rho
    w, _ = barrier(problem)
    point, _ = _center(problem, w, 1.001 * problem.norm(w), 1e6)
    left, sizes, right = np.linalg.svd(point.B)
    rng, found = np.random.default_rng(5), []
    for scale in np.geomspace(1e-8, 1, 50):
        U, V = (centered(X + scale * rng.standard_normal((n, n))) for X in (left, right.T))
        shares = (1 - scale) * sizes / sizes.sum() + scale * rng.dirichlet(np.ones(n))
        trace, stretch = np.einsum("ik,ik,k", U, V, shares), problem.stretch(U, V, shares)
        guesses = [Multipliers(z, rng.random(m) / m) for z in (rng.random(n) / n, np.zeros(n))]
        found += [problem.bound(trace, stretch, 1.0, near) for near in (None, *guesses)]
    assert max(found) <= exact + 1e-12
    assert max(found) > 0.999 * exact
