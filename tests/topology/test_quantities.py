"""Quantities against closed forms and against what they mean."""

import networkx as nx
import numpy as np
import pytest

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError


@pytest.mark.parametrize("d", [2, 3, 5])
def test_consensus_of_hypercubes(d):
    t, rho = topology.hypercube(d), (d - 1) / (d + 1)
    assert topology.consensus_rate(t) == pytest.approx(1 - rho**2)
    k = topology.consensus_rounds(t, eps=1e-3)
    assert rho**k <= 1e-3 < rho ** (k - 1)


def test_rounds_at_an_exact_power():
    assert topology.consensus_rounds(topology.hypercube(3), eps=0.125) == 3
    assert topology.consensus_rounds(topology.complete(5), eps=1e-9) == 1


@pytest.mark.parametrize("eps", [0.25, 0.01])
@pytest.mark.parametrize("n", [3, 8, 15])
def test_mixing_time_of_a_lazy_clique(n, eps):
    """(I + J)/2 is 2⁻ᵏ (1 - 1/n) away after k steps."""
    t = topology.complete(n).lazy()
    k = topology.mixing_time(t, eps)
    assert 0.5**k * (1 - 1 / n) <= eps + 1e-12
    assert 0.5 ** (k - 1) * (1 - 1 / n) > eps


@pytest.mark.parametrize(
    "t",
    [
        topology.ring(9),
        topology.star(6),
        topology.exponential(8),
        topology.path(1),
        topology.random_digraph(10, 0.4, seed=1, weights="uniform"),
    ],
)
def test_mixing_time_by_definition(t):
    W, power, k = t.to_dense(), np.eye(t.size), 0
    while 0.5 * np.abs(power - t.perron).sum(axis=1).max() > 0.1:
        power, k = power @ W, k + 1
    assert topology.mixing_time(t, 0.1) == k


@pytest.mark.parametrize(("n", "value"), [(3, 0.0), (4, 1 / 3), (5, 2 / 3), (6, 1.0)])
def test_dobrushin_of_rings(n, value):
    """Opposite ranks of a ring with weights 1/3 share n - 3 fewer than all of their three."""
    assert topology.dobrushin(topology.ring(n)) == pytest.approx(value, abs=1e-12)


def test_dobrushin_contracts_the_spread():
    rng = np.random.default_rng(3)
    for t in (topology.star(5), topology.random_digraph(9, 0.5, seed=2, weights="uniform")):
        tau, W = topology.dobrushin(t), t.to_dense()
        for x in rng.standard_normal((100, t.size)):
            assert np.ptp(W @ x) <= tau * np.ptp(x) + 1e-12
        other = topology.complete(t.size).lazy()
        both = topology.from_matrix(W @ other.to_dense())
        assert topology.dobrushin(both) <= tau * topology.dobrushin(other) + 1e-12


def test_resistances():
    n, i = 7, np.arange(7)
    hops = np.abs(i[:, None] - i)
    find = topology.effective_resistance
    np.testing.assert_allclose(find(topology.path(n)), hops, atol=1e-12)
    np.testing.assert_allclose(find(topology.ring(n)), hops * (n - hops) / n, atol=1e-12)
    clique = find(topology.complete(n, weights="lazy"))
    np.testing.assert_allclose(clique, 2 / n * (1 - np.eye(n)), atol=1e-12)
    # Foster: over the edges of any graph they add up to n - 1.
    t = topology.erdos_renyi(20, 0.3, seed=4)
    R = find(t)
    assert sum(R[i, j] for i, j in t.graph.edges) == pytest.approx(19)
    eigenvalues = np.sort(nx.laplacian_spectrum(t.graph))[1:]
    assert R.sum() / 2 == pytest.approx(20 * np.sum(1 / eigenvalues))


def test_effective_neighbors():
    find = topology.effective_number_of_neighbors
    for gamma in (0.0, 0.5, 0.99):
        assert find(topology.complete(9), gamma) == pytest.approx(9)
    assert find(topology.ring(10), 0.0) == pytest.approx(3)
    assert find(topology.exponential(16), 0.0) == pytest.approx(5)
    assert find(topology.ring(10), 1 - 1e-9) == pytest.approx(10, abs=1e-5)
    # The covariance of z⁺ = W (√γ z + ξ), by its fixed point.
    t, gamma = topology.star(6), 0.8
    W, C = t.to_dense(), np.zeros((6, 6))
    for _ in range(300):
        C = W @ (gamma * C + np.eye(6)) @ W.T
    assert find(t, gamma) == pytest.approx(1 / (1 - gamma) / (np.trace(C) / 6))


PUSH = topology.random_digraph(8, 0.4, seed=1, weights="uniform_push")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.consensus_rate(PUSH), TopologyError, "rows and columns .* use weights="),
        (lambda: topology.mixing_time(PUSH), TopologyError, "rows that sum to 1.* use weights="),
        (lambda: topology.dobrushin(topology.star(5, weights="best_constant")), TopologyError,
         "needs W >= 0"),
        (lambda: topology.effective_resistance(PUSH), TopologyError, "undirected"),
        (lambda: topology.effective_number_of_neighbors(PUSH, 0.5), TopologyError, "use symmetric"),
        (lambda: topology.effective_number_of_neighbors(topology.ring(4), 1.0), ArgumentError,
         "gamma must be .* below 1, got 1"),
        (lambda: topology.mixing_time(topology.ring(4), eps=0), ArgumentError, "eps must be above"),
        (lambda: topology.mixing_time(topology.ring(4, weights="max_degree_boyd")), TopologyError,
         r"periodic.*lazy\(\)"),
        (lambda: topology.consensus_rounds(topology.ring(4, weights="max_degree_boyd"), 0.1),
         TopologyError, r"rho is 1.*lazy\(\)"),
        (lambda: topology.dobrushin(topology.static(topology.ring(3001))), ArgumentError,
         "up to size 3000"),
        (lambda: topology.consensus_rate(nx.path_graph(3)), ArgumentTypeError, "got Graph; use"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
