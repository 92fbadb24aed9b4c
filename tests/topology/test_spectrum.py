"""Spectral quantities: sparse against dense methods, and closed forms at large sizes."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from dectool import topology
from dectool.errors import ArgumentError, TopologyError
from dectool.topology import WEIGHTS, _lanczos, _spectrum

FAMILIES = {
    "ring": lambda **w: topology.ring(600, **w),
    "path": lambda **w: topology.path(601, **w),
    "torus": lambda **w: topology.torus(24, 25, **w),
    "star": lambda **w: topology.star(600, **w),
    "complete": lambda **w: topology.complete(501, **w),
    "random_regular": lambda **w: topology.random_regular(600, 4, **w),
    "tree": lambda **w: topology.from_graph(nx.balanced_tree(2, 8), **w),
}
CLOSE = 1e-10


def reference(t):
    """Return rho, slem and, if symmetric, the extreme eigenvalues, by LAPACK."""
    W = t.to_dense()
    rest = W - 1 / t.size
    eigenvalues = np.linalg.eigvalsh if t.is_symmetric else np.linalg.eigvals
    values = [np.linalg.norm(rest, 2), np.abs(eigenvalues(rest)).max()]
    if t.is_symmetric:
        values += np.linalg.eigvalsh(W)[[-2, 0]].tolist()
    return values


def computed(t):
    return [t.rho, t.slem, *([t.lambda_2, t.lambda_min] if t.is_symmetric else [])]


@pytest.mark.parametrize("weights", ["metropolis_hastings", "metropolis_hastings_boyd", "uniform"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sparse_equals_dense(family, weights):
    t = FAMILIES[family](weights=weights)
    assert t.size > _spectrum.DENSE
    np.testing.assert_allclose(computed(t), reference(t), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("weights", ["max_degree", "best_constant", "lazy", "uniform_push"])
@pytest.mark.parametrize("family", ["ring", "random_regular", "tree"])
def test_sparse_equals_dense_for_other_rules(family, weights):
    t = FAMILIES[family](weights=weights)
    np.testing.assert_allclose(computed(t), reference(t), atol=CLOSE, rtol=0)


def directed(n):
    """Return a strongly connected random digraph with uneven degrees."""
    graph = nx.gnp_random_graph(n, 4 / n, seed=2, directed=True)
    graph.add_edges_from((i, (i + 1) % n) for i in range(n))
    return graph


@pytest.mark.parametrize(
    "t",
    [
        topology.exponential(600),
        topology.exponential(601),
        topology.one_peer_exponential(600).at(0),
        topology.one_peer_exponential(600).at(4),
        topology.from_graph(directed(600), weights="uniform"),
        topology.from_graph(directed(600), weights="uniform_push"),
    ],
    ids=repr,
)
def test_sparse_equals_dense_directed(t):
    np.testing.assert_allclose(computed(t), reference(t), atol=CLOSE, rtol=0)


@given(st.integers(5, 40), st.integers(0, 10**6), st.sampled_from(WEIGHTS))
@settings(max_examples=60, deadline=None)
def test_forced_sparse_equals_dense(n, seed, weights):
    """The sparse methods must be right at any size, not only where they are chosen."""
    t = topology.erdos_renyi(n, 0.9 if n < 10 else 0.4, seed=seed, weights=weights)
    expected = reference(t)
    limit, _spectrum.DENSE = _spectrum.DENSE, 1
    try:
        got = computed(t)
    finally:
        _spectrum.DENSE = limit
    np.testing.assert_allclose(got, expected, atol=CLOSE, rtol=0)


@given(st.integers(3, 40), st.integers(0, 10**6), st.sampled_from(["lazy", "max_degree_boyd"]))
@settings(max_examples=60, deadline=None)
def test_factorisations_equal_dense(n, seed, weights):
    t = topology.erdos_renyi(n, 0.9 if n < 10 else 0.4, seed=seed, weights=weights)
    values = np.linalg.eigvalsh(t.to_dense())
    gap = _lanczos.gap_by_factor(t.W, np.full(n, n**-0.5))
    lowest = _lanczos.smallest_by_factor(t.W, _spectrum.gershgorin(t.W))
    assert gap == pytest.approx(1 - values[-2], abs=CLOSE)
    assert lowest == pytest.approx(values[0], abs=CLOSE)


def test_rings_of_ten_thousand():
    n = 10_000
    c = np.cos(2 * np.pi / n)
    ring = topology.ring(n)
    # The gap is about 1.3e-7: relative accuracy shows that it is no rounding artefact.
    assert ring.spectral_gap == pytest.approx(2 / 3 * (1 - c), rel=1e-7)
    assert ring.lambda_min == pytest.approx(-1 / 3, abs=CLOSE)
    assert topology.ring(n + 1).lambda_min == pytest.approx(
        1 / 3 + 2 / 3 * np.cos(np.pi * n / (n + 1)), abs=CLOSE
    )
    best = topology.ring(n, weights="best_constant")
    assert best.spectral_gap == pytest.approx(1 - (1 + c) / (3 - c), rel=1e-7)
    assert topology.ring(n, weights="metropolis_hastings_boyd").rho == pytest.approx(1, abs=CLOSE)


def test_other_large_graphs():
    n = 10_000
    m = 100
    torus = topology.torus(m, m)
    assert torus.rho == pytest.approx(3 / 5 + 2 / 5 * np.cos(2 * np.pi / m), abs=CLOSE)
    assert torus.lambda_min == pytest.approx(-3 / 5, abs=CLOSE)
    assert topology.star(n).rho == pytest.approx(1 - 1 / n, abs=CLOSE)
    assert topology.exponential(n).rho == pytest.approx(13 / 15, abs=CLOSE)
    assert topology.hypercube(12).rho == pytest.approx(11 / 13, abs=CLOSE)
    # Uniform weights on a path: a reversible chain that hops left, stays or hops right with 1/3.
    path = topology.path(n, weights="uniform")
    assert 1 - path.slem == pytest.approx(1 / 3 * (np.pi / n) ** 2, rel=1e-3)
    one_way = topology.one_peer_exponential(n).at(0)
    assert one_way.rho == pytest.approx(np.cos(np.pi / n), abs=CLOSE)


def test_perron_of_large_graphs():
    slow, fast = topology.path(3000, weights="uniform"), FAMILIES["tree"](weights="uniform")
    for t in (slow, fast):
        expected = 1.0 + t.in_degrees
        np.testing.assert_allclose(t.perron, expected / expected.sum(), rtol=1e-8)


def test_eigenvalue_order():
    symmetric = topology.path(5).eigenvalues
    assert (np.diff(symmetric) <= 0).all()
    assert symmetric[0] == pytest.approx(1)
    assert symmetric[1] == pytest.approx(topology.path(5).lambda_2)
    moduli = np.abs(topology.exponential(7).eigenvalues)
    assert (np.diff(moduli) <= 1e-15).all()
    assert moduli[1] == pytest.approx(topology.exponential(7).slem)


def test_eigenvalues_above_one_are_not_hidden():
    # Symmetric and row sums 1, yet not an averaging matrix: the eigenvalues are 1, 2 and -0.5.
    u, v = np.array([1, -1, 0]) / 2**0.5, np.array([1, 1, -2]) / 6**0.5
    W = 1 / 3 + 2 * np.outer(u, u) - 0.5 * np.outer(v, v)
    t = topology.from_matrix(W)
    assert (t.lambda_2, t.lambda_min, t.rho) == (
        pytest.approx(2),
        pytest.approx(-0.5),
        pytest.approx(2),
    )
    large = topology.ring(600, weights="max_degree").W * 5 - 4 * sparse.eye_array(600)
    wild = topology.from_matrix(large)
    assert wild.rho == pytest.approx(4 + 5 / 3, abs=CLOSE)
    diverging = topology.from_matrix(2 * sparse.eye_array(600) - topology.ring(600).W)
    assert diverging.lambda_2 == pytest.approx(2 + 1 / 3, abs=CLOSE)
    assert diverging.rho == pytest.approx(2 + 1 / 3, abs=CLOSE)


@pytest.mark.parametrize("name", ["lambda_2", "lambda_min"])
def test_symmetric_only(name):
    with pytest.raises(
        TopologyError, match=rf"{name} needs a symmetric W, and that of exponential graph of 8"
    ):
        getattr(topology.exponential(8), name)


def test_eigenvalues_have_a_size_limit():
    with pytest.raises(
        ArgumentError, match=r"eigenvalues of ring of 5000.*up to size 3000; use rho"
    ):
        _ = topology.ring(5000).eigenvalues


def test_what_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(_spectrum, "second", lambda *_, **__: None)
    monkeypatch.setattr(_spectrum, "cheap_to_factor", lambda _: False)
    assert topology.ring(600).rho == pytest.approx(1 / 3 + 2 / 3 * np.cos(np.pi / 300), abs=CLOSE)
    with pytest.raises(TopologyError, match=r"4000 x 4000 matrix did not converge.*up to 3000"):
        _ = topology.ring(4000).rho
