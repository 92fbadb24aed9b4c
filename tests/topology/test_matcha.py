"""MATCHA: colorings, probabilities with their certificate, and the second moment."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import ArgumentError, TopologyError
from dectool.topology._coloring import matchings


@given(st.integers(2, 20), st.floats(0.1, 1), st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_every_edge_is_in_one_matching(n, p, seed):
    graph = nx.gnp_random_graph(n, p, seed=seed)
    if not graph.edges:
        return
    first, second = np.array(graph.edges).T
    parts = matchings(n, first, second)
    most = max(dict(graph.degree).values())
    assert len(parts) <= most + (0 if nx.is_bipartite(graph) else 1)
    edges = [edge for part in parts for edge in part]
    assert sorted(edges) == sorted(tuple(sorted(edge)) for edge in graph.edges)
    for part in parts:
        assert nx.is_matching(graph, set(part))


def laplacian(n, part):
    L = np.zeros((n, n))
    for i, j in part:
        L[[i, j], [i, j]] += 1
        L[[i, j], [j, i]] -= 1
    return L


@pytest.mark.parametrize(
    ("graph", "budget"),
    [
        (topology.ring(6), 0.5),
        (topology.ring(7), 0.3),
        (topology.star(5), 0.5),
        (topology.grid(3, 3), 0.7),
        (topology.complete(5), 1.0),
        (topology.path(2), 0.5),
    ],
)
def test_second_moment_by_enumeration(graph, budget):
    plan, n = topology.matcha_plan(graph, budget), graph.size
    expected = np.zeros((n, n))
    for used in itertools.product([0, 1], repeat=len(plan.matchings)):
        W, chance = np.eye(n), 1.0
        for b, part, p in zip(used, plan.matchings, plan.probabilities, strict=True):
            W = W - plan.alpha * b * laplacian(n, part)
            chance *= p if b else 1 - p
        expected += chance * W.T @ W
    np.testing.assert_allclose(plan.second_moment(), expected, atol=1e-14)
    assert plan.rho == pytest.approx(np.linalg.norm(expected - 1 / n, 2), abs=1e-13)
    assert plan.rho < 1


@pytest.mark.parametrize("budget", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    "graph",
    [topology.grid(4, 4), topology.erdos_renyi(16, 0.4, seed=1), topology.geometric(16, 0.5)],
)
def test_no_probabilities_are_better(graph, budget):
    plan, n = topology.matcha_plan(graph, budget), graph.size
    p = np.array(plan.probabilities)
    parts = [laplacian(n, part) for part in plan.matchings]
    assert (p >= 0).all()
    assert (p <= 1).all()
    assert p.sum() <= budget * p.size + 1e-12
    assert plan.gap < 1e-6

    def connectivity(q):
        return np.linalg.eigvalsh(sum(c * L for c, L in zip(q, parts, strict=True)))[1]

    best = connectivity(p)
    rng = np.random.default_rng(0)
    others = [
        np.full(p.size, budget),
        *(np.clip(p + d, 0, 1) for d in rng.normal(0, 0.05, (50, p.size))),
    ]
    for q in others:
        q = q * min(1, budget * p.size / q.sum())
        assert connectivity(q) <= best * (1 + plan.gap) + 1e-12


def test_alpha_is_the_best():
    plan = topology.matcha_plan(topology.grid(4, 4), 0.5)
    for factor in (0.9, 0.99, 1.01, 1.1):
        moved = topology.MatchaPlan(
            16, "moved", plan.matchings, plan.probabilities, factor * plan.alpha, 0.0
        )
        assert moved.rho > plan.rho


def test_full_budget_is_the_best_constant_weight():
    # All matchings always: W = I - alpha L, and the best alpha is 2/(l_2 + l_n).
    graph = topology.grid(3, 4)
    plan = topology.matcha_plan(graph, 1.0)
    best = topology.grid(3, 4, weights="best_constant")
    assert plan.alpha == pytest.approx(best.weight(0, 1), abs=1e-7)
    assert plan.rho == pytest.approx(best.rho**2, abs=1e-7)
    assert set(plan.probabilities) == {1.0}
    step = topology.matcha(graph, 1.0).at(3)
    np.testing.assert_allclose(step.to_dense(), best.to_dense(), atol=1e-7)


def test_steps_use_matchings_as_often_as_planned():
    plan = topology.matcha_plan(topology.grid(3, 3), 0.5)
    s = plan.schedule(seed=4)
    heads = [part[0] for part in plan.matchings]
    used = np.array([[s.at(k).weight(i, j) != 0 for i, j in heads] for k in range(600)])
    p = np.array(plan.probabilities)
    assert (abs(used.mean(axis=0) - p) <= 4 * np.sqrt(p * (1 - p) / 600) + 1e-9).all()
    assert abs(np.corrcoef(used[:, p < 1].T) - np.eye((p < 1).sum())).max() < 0.2


def test_one_rank_and_bad_arguments():
    assert topology.matcha(topology.ring(1), 0.5).at(3).to_dense().tolist() == [[1.0]]
    for budget in (0, -1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match=r"budget must be above 0 and at most 1"):
            topology.matcha(topology.ring(4), budget)
    with pytest.raises(TopologyError, match=r"connected undirected graph, and exponential graph"):
        topology.matcha(topology.exponential(8), 0.5)
    with pytest.raises(ArgumentError, match=r"graphs up to size 3000"):
        topology.matcha(topology.ring(3001), 0.5)
