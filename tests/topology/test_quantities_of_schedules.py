"""Quantities of schedules, and of graphs of up to 100,000 ranks."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _effective, _quantities, _resistance, _spectrum
from dectool.topology._circulant import circulant_eigenvalues

ALTERNATING = topology.alternating_ring(10)
MIXED = topology.periodic([topology.ring(9), topology.star(9), topology.path(9)])
PERIODIC = (ALTERNATING, MIXED, topology.one_peer_exponential(12))


def product(schedule, length, start=0):
    total = np.eye(schedule.size)
    for k in range(start, start + length):
        total = schedule.at(k).W @ total
    return total


def test_rho_of_a_torus_of_a_hundred_thousand():
    closed = 3 / 5 + 2 / 5 * math.cos(2 * math.pi / 400)
    assert topology.torus(250, 400).rho == pytest.approx(closed, abs=1e-9)


@pytest.mark.parametrize("schedule", PERIODIC, ids=repr)
@pytest.mark.parametrize("eps", [0.3, 1e-3])
def test_consensus_of_periodic_schedules(schedule, eps):
    n = schedule.size
    k = topology.consensus_rounds(schedule, eps)
    far = [np.linalg.norm(product(schedule, steps) - 1 / n, 2) for steps in (k - 1, k)]
    assert far[0] > eps >= far[1] - 1e-12
    p = topology.consensus_rate(schedule)
    assert p == pytest.approx(1 - schedule.contraction() ** 2, abs=1e-14)


@pytest.mark.parametrize("schedule", PERIODIC, ids=repr)
def test_mixing_time_of_periodic_schedules(schedule):
    k = topology.mixing_time(schedule, 0.05)
    far = [
        0.5 * np.abs(product(schedule, steps) - 1 / schedule.size).sum(axis=1).max()
        for steps in (k - 1, k)
    ]
    assert far[0] > 0.05 >= far[1]


def test_consensus_of_random_schedules():
    s = topology.random_pair(topology.ring(10))
    factor = 1 - (1 - math.cos(2 * math.pi / 10)) / 10
    assert topology.consensus_rate(s) == pytest.approx(1 - factor)
    k = topology.consensus_rounds(s, 1e-3)
    assert factor ** (k / 2) <= 1e-3 < factor ** ((k - 1) / 2)


def test_static_schedules_have_the_quantities_of_their_topology():
    t = topology.ring(9)
    s = topology.static(t)
    assert topology.consensus_rate(s) == pytest.approx(topology.consensus_rate(t), abs=1e-14)
    assert topology.consensus_rounds(s, 1e-4) == topology.consensus_rounds(t, 1e-4)
    assert topology.mixing_time(s) == topology.mixing_time(t)
    assert topology.dobrushin(s) == pytest.approx(topology.dobrushin(t), abs=1e-15)
    for gamma in (0.0, 0.9):
        both = [topology.effective_number_of_neighbors(x, gamma) for x in (s, t)]
        assert both[0] == pytest.approx(both[1], rel=1e-14)


def test_dobrushin_of_schedules():
    for s in PERIODIC:
        for start, length in ((0, 3), (1, 5)):
            P = product(s, length, start)
            by_pairs = max(0.5 * np.abs(row - other).sum() for row in P for other in P)
            found = topology.dobrushin(s, start=start, length=length)
            assert found == pytest.approx(by_pairs, abs=1e-14)
        halves = topology.dobrushin(s, length=4) * topology.dobrushin(s, start=4, length=3)
        assert topology.dobrushin(s, length=7) <= halves + 1e-12
    assert topology.dobrushin(topology.one_peer_exponential(8)) == 0


def test_dobrushin_of_large_graphs():
    assert topology.dobrushin(topology.torus(250, 400)) == 1
    assert topology.dobrushin(topology.star(4000)) == pytest.approx(1 - 1 / 4000, abs=1e-12)


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_dobrushin_by_definition(n, seed):
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(n, 0.5), size=n) * (rng.random((n, n)) < 0.7) + 0.1 * np.eye(n)
    W /= W.sum(axis=1, keepdims=True)
    t = topology.from_matrix(W, require_connected=False)
    by_pairs = max(0.5 * np.abs(row - other).sum() for row in W for other in W)
    assert topology.dobrushin(t) == pytest.approx(by_pairs, abs=1e-14)


def variance(schedule, gamma, rounds):
    """Follow the covariance of z⁺ = W (√γ z + ξ) over a long time."""
    n, C, found = schedule.size, np.zeros((schedule.size,) * 2), []
    for k in range(rounds):
        W = schedule.at(k).to_dense()
        C = W @ (gamma * C + np.eye(n)) @ W.T
        found.append(np.trace(C) / n)
    return np.mean(found[-schedule.period :])


@pytest.mark.parametrize("schedule", PERIODIC, ids=repr)
def test_effective_neighbors_of_periodic_schedules(schedule):
    gamma = 0.8
    rounds = 60 * schedule.period
    expected = 1 / (1 - gamma) / variance(schedule, gamma, rounds)
    found = topology.effective_number_of_neighbors(schedule, gamma)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 0.7, 0.99])
def test_effective_neighbors_of_random_schedules(gamma):
    s = topology.random_pair(topology.ring(8))
    C = np.zeros((8, 8))
    for _ in range(3000):
        C = s.law.forward(gamma * C + np.eye(8))
    expected = 1 / (1 - gamma) / (np.trace(C) / 8)
    assert topology.effective_number_of_neighbors(s, gamma) == pytest.approx(expected, rel=1e-9)
    # One W for ever is no other thing than a schedule that draws it.
    alone = topology.random_choice([topology.ring(8)])
    pair = [topology.effective_number_of_neighbors(x, gamma) for x in (alone, topology.ring(8))]
    assert pair[0] == pytest.approx(pair[1], rel=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 1e-12, 1e-4, 0.5, 0.999])
def test_effective_neighbors_by_factors(gamma, monkeypatch):
    i, j = np.arange(12), np.arange(13)
    torus = 0.2 + 0.4 * (np.cos(2 * np.pi * i / 12)[:, None] + np.cos(2 * np.pi * j / 13))
    expected = 1 / (1 - gamma) / np.mean(torus**2 / (1 - gamma * torus**2))
    monkeypatch.setattr(_spectrum, "DENSE_RESCUE", 10)
    found = topology.effective_number_of_neighbors(topology.torus(12, 13), gamma)
    assert found == pytest.approx(expected, rel=1e-11)


def test_effective_neighbors_of_large_graphs(monkeypatch):
    n, gamma, find = 50_000, 0.99, topology.effective_number_of_neighbors
    ring = 1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)
    expected = 1 / (1 - gamma) / np.mean(ring**2 / (1 - gamma * ring**2))
    assert find(topology.ring(n), gamma) == pytest.approx(expected)
    path = 1 / 3 + 2 / 3 * np.cos(np.pi * np.arange(n) / n)
    expected = 1 / (1 - gamma) / np.mean(path**2 / (1 - gamma * path**2))
    assert find(topology.path(n), gamma) == pytest.approx(expected)
    monkeypatch.setattr(_effective, "cheap_to_factor", lambda W: False)
    with pytest.raises(ArgumentError, match="circulant, or symmetric with sparse factors"):
        topology.effective_number_of_neighbors(topology.path(n), gamma)


def test_variances_without_a_limit_are_refused(monkeypatch):
    """2 I - W has the eigenvalue 7/3 on this ring: below gamma = 9/49 the walks stay near."""
    wild = topology.from_matrix(2 * np.eye(12) - topology.ring(12).to_dense())
    find = topology.effective_number_of_neighbors
    cases = [wild, topology.periodic([wild, topology.ring(12)]), topology.random_choice([wild])]
    for gamma, fine in ((0.18, True), (0.19, False)):
        for case in (cases[0], cases[2]):
            if fine:
                assert 0 < find(case, gamma) < 1
                continue
            with pytest.raises(TopologyError, match=r"grows without bound.* use a smaller gamma"):
                find(case, gamma)
    with pytest.raises(TopologyError, match="grows without bound"):
        find(topology.periodic([wild, wild]), 0.5)
    assert find(cases[1], 0.5) > 0
    monkeypatch.setattr(_spectrum, "DENSE_RESCUE", 10)
    grid = topology.grid(4, 5)
    wild = topology.from_matrix(2 * np.eye(20) - grid.to_dense())
    with pytest.raises(TopologyError, match="grows without bound"):
        find(wild, 0.5)


@pytest.mark.parametrize(
    "t",
    [topology.ring(7), topology.exponential(12), topology.directed_ring(5), topology.complete(6)],
    ids=repr,
)
def test_circulant_spectra(t):
    values = circulant_eigenvalues(t.W)
    n = t.size
    for k in range(n):
        v = np.exp(2j * np.pi * np.arange(n) * k / n)
        np.testing.assert_allclose(t.W @ v, values[k] * v, atol=1e-13)
    assert circulant_eigenvalues(topology.torus(3, 4).W) is None
    assert circulant_eigenvalues(topology.star(5).W) is None
    assert circulant_eigenvalues(topology.path(4).W) is None


@pytest.mark.parametrize("t", [topology.ring(31), topology.exponential(24)], ids=repr)
def test_mixing_times_agree(t, monkeypatch):
    dense = topology.mixing_time(t, 0.01)
    assert topology.mixing_time(t, 0.01, start=3) == dense
    monkeypatch.setattr(_spectrum, "DENSE_RESCUE", 10)
    assert topology.mixing_time(t, 0.01) == dense


def test_mixing_time_from_one_rank():
    t = topology.star(6)
    W = t.to_dense()

    def far(rank, k):
        return 0.5 * np.abs(np.linalg.matrix_power(W, k)[rank] - 1 / 6).sum()

    times = [topology.mixing_time(t, 0.1, start=rank) for rank in range(6)]
    for rank, k in enumerate(times):
        assert far(rank, k) <= 0.1 < far(rank, k - 1)
    assert max(times) == topology.mixing_time(t, 0.1)
    assert topology.mixing_time(topology.complete(4), 0.9, start=0) == 0


def test_mixing_time_of_a_long_ring():
    """The slowest mode rules: its distance is (2/π) λ₂ᵏ."""
    n = 20_000
    k = topology.mixing_time(topology.ring(n), 0.01)
    gap = 2 / 3 * (1 - math.cos(2 * math.pi / n))
    assert k == pytest.approx(math.log(2 / math.pi / 0.01) / gap, rel=1e-5)


def test_resistances_of_pairs():
    t = topology.erdos_renyi(30, 0.2, seed=1)
    R = topology.effective_resistance(t)
    pairs = [(0, 5), (29, 3), (7, 7), (29, 29), (28, 29)]
    found = topology.effective_resistance(t, pairs)
    np.testing.assert_allclose(found, [R[i, j] for i, j in pairs], atol=1e-12)
    assert isinstance(topology.effective_resistance(t, (0, 5)), float)
    n = 30_000
    assert topology.effective_resistance(topology.path(n), (0, n - 1)) == pytest.approx(n - 1)
    assert topology.effective_resistance(topology.ring(1), (0, 0)) == 0


def test_resistances_by_conjugate_gradients(monkeypatch):
    t = topology.random_regular(60, 3)
    R = topology.effective_resistance(t)
    monkeypatch.setattr(_resistance, "cheap_to_factor", lambda W: False)
    assert topology.effective_resistance(t, (4, 50)) == pytest.approx(R[4, 50], abs=1e-11)
    monkeypatch.setattr(_resistance, "_STEPS", 2)
    with pytest.raises(TopologyError, match="did not converge in 2 steps"):
        topology.effective_resistance(t, (4, 50))


PUSH = topology.random_digraph(8, 0.4, seed=1, weights="uniform_push")
HALVES = topology.from_graph(
    nx.from_edgelist([(0, 1), (2, 3)]), require_connected=False, name="two pairs"
)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.consensus_rate(topology.periodic([PUSH, PUSH])), TopologyError,
         "rows and columns"),
        (lambda: topology.consensus_rounds(topology.static(PUSH), 0.1), TopologyError,
         "rows and columns"),
        (lambda: topology.consensus_rate(topology.b_connected(topology.ring(4), 2)), TopologyError,
         "law of a step"),
        (lambda: topology.consensus_rate(topology.random_broadcast(topology.ring(4))),
         TopologyError, r"consensus_rate needs rows and columns .* the mean moves"),
        (lambda: topology.consensus_rounds(topology.random_broadcast(topology.ring(4)), 0.1),
         TopologyError, r"consensus_rounds needs rows and columns .* the mean moves"),
        (lambda: topology.consensus_rounds(topology.periodic([HALVES, HALVES]), 0.1),
         TopologyError, "never comes within eps"),
        (lambda: topology.mixing_time(topology.random_pair(topology.ring(4))), TopologyError,
         "needs a periodic schedule"),
        (lambda: topology.mixing_time(topology.alternating_ring(4), start=0), ArgumentError,
         "start=0 is for one topology"),
        (lambda: topology.mixing_time(topology.ring(4), start=4), ArgumentError, "rank 4 is out"),
        (lambda: topology.mixing_time(topology.torus(60, 60)), ArgumentError, "give start="),
        (lambda: topology.dobrushin(topology.random_pair(topology.ring(4))), ArgumentError,
         "length must be given"),
        (lambda: topology.effective_resistance(topology.ring(3001)), ArgumentError,
         r"give between=\(i, j\)"),
        (lambda: topology.effective_resistance(topology.ring(4), (0, 4)), ArgumentError,
         r"two ranks from 0 to 3.*got \(0, 4\)"),
        (lambda: topology.effective_resistance(topology.ring(4), (0.0, 1.5)), ArgumentError,
         "two ranks"),
        (lambda: topology.effective_resistance(topology.ring(4), [(0, 1, 2)]), ArgumentError,
         "two ranks"),
        (lambda: topology.effective_resistance(topology.ring(4), [(0, 1), (2,)]), ArgumentError,
         "two ranks"),
        (lambda: topology.effective_number_of_neighbors(topology.one_peer_exponential(1024), 0.5),
         ArgumentError, "schedules are computed up to size 500"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_takes_too_long_says_so(monkeypatch):
    monkeypatch.setattr(_quantities, "_WORK", 400)
    with pytest.raises(ArgumentError, match="has not settled after 4 steps"):
        topology.mixing_time(topology.ring(30), start=0)
    with pytest.raises(ArgumentError, match="takes too long at this size"):
        topology.dobrushin(topology.star(9))
