"""Published and closed-form values of graphs and schedules.

Sources: lengths of Base-(k+1) graphs as the authors' own code builds them
(github.com/yukiTakezawa/BaseGraph); spectra of named graphs from A. Brouwer and W. Haemers, Spectra
of graphs, Springer 2012; the others follow from the definitions, as each test says.
"""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from dectool import topology

SIZES = [3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 21, 22, 23, 24, 25, 32, 48, 50, 64, 100]
LENGTHS = {
    1: [3, 2, 5, 4, 5, 3, 7, 6, 5, 7, 4, 7, 9, 8, 9, 6, 9, 5, 7, 10, 6, 11],
    2: [1, 2, 3, 2, 4, 3, 2, 4, 3, 4, 4, 5, 5, 6, 6, 4, 6, 5, 5, 7, 6, 8],
    3: [1, 1, 3, 2, 3, 2, 2, 4, 2, 4, 2, 4, 4, 5, 5, 3, 5, 3, 3, 6, 3, 6],
    4: [1, 1, 1, 2, 3, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 3, 2, 3, 3, 3, 3, 3],
}
SIMPLE = {6: 5, 10: 7, 12: 7, 20: 9, 22: 9, 24: 9, 48: 11, 50: 11, 100: 13}

ROOT = {number: math.sqrt(number) for number in (2, 3, 5)}
# Eigenvalues of the adjacency matrix, each with its multiplicity.
SPECTRA = {
    "petersen": {3: 1, 1: 5, -2: 4},
    "tetrahedral": {3: 1, -1: 3},
    "cubical": {3: 1, 1: 3, -1: 3, -3: 1},
    "octahedral": {4: 1, 0: 3, -2: 2},
    "icosahedral": {5: 1, ROOT[5]: 3, -1: 5, -ROOT[5]: 3},
    "dodecahedral": {3: 1, ROOT[5]: 3, 1: 5, 0: 4, -2: 4, -ROOT[5]: 3},
    "heawood": {3: 1, ROOT[2]: 6, -ROOT[2]: 6, -3: 1},
    "moebius_kantor": {3: 1, ROOT[3]: 4, 1: 3, -1: 3, -ROOT[3]: 4, -3: 1},
    "pappus": {3: 1, ROOT[3]: 6, 0: 4, -ROOT[3]: 6, -3: 1},
    "desargues": {3: 1, 2: 4, 1: 5, -1: 5, -2: 4, -3: 1},
    "hoffman_singleton": {7: 1, 2: 28, -3: 21},
}


def product(schedule, start=0, length=None):
    total = np.eye(schedule.size)
    for k in range(start, start + (length or schedule.period)):
        total = schedule.at(k).W @ total
    return total


@pytest.mark.parametrize("k", LENGTHS)
def test_lengths_of_base_k_graphs(k):
    schedules = [topology.base_k(n, k=k) for n in SIZES]
    assert [s.period for s in schedules] == LENGTHS[k]
    for s in schedules:
        assert abs(product(s) - 1 / s.size).max() <= 1e-15
        assert s.period <= 2 * math.log(s.size, k + 1) + 2
        steps = [s.at(t) for t in range(s.period)]
        assert all(t.is_symmetric and t.is_nonnegative and t.max_degree <= k for t in steps)


def test_lengths_of_simple_base_2_graphs():
    assert {n: topology.simple_base_k(n).period for n in SIMPLE} == SIMPLE
    assert topology.hyper_hypercube(36, k=5).period == 2
    assert topology.hyper_hypercube(64).period == 6


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_named_graphs(name):
    t = topology.named(name)
    degree = t.max_degree
    values = sorted((x for x, times in SPECTRA[name].items() for _ in range(times)), reverse=True)
    np.testing.assert_allclose(t.eigenvalues, (1 + np.array(values)) / (1 + degree), atol=1e-12)
    second, last = values[1], values[-1]
    assert t.rho == pytest.approx(max(1 + second, -1 - last) / (1 + degree), abs=1e-12)
    best = topology.named(name, weights="best_constant")
    assert best.rho == pytest.approx((second - last) / (2 * degree - second - last), abs=1e-11)


def test_petersen_and_complete_bipartite():
    assert topology.petersen().rho == pytest.approx(1 / 2, abs=1e-13)
    assert topology.petersen(weights="best_constant").rho == pytest.approx(3 / 7, abs=1e-13)
    for m in (2, 3, 5, 8):
        t = topology.complete_bipartite(m, m, weights="best_constant")
        assert t.rho == pytest.approx(1 / 3, abs=1e-13)


def test_sizes_of_named_graphs():
    # Orders and sizes as published with each graph.
    known = {
        "karate_club": (34, 78),  # Zachary 1977
        "florentine_families": (15, 20),  # Padgett & Ansell 1993
        "davis_southern_women": (32, 89),  # Davis, Gardner & Gardner 1941
        "les_miserables": (77, 254),  # Knuth 1993
        "chvatal": (12, 24),
        "frucht": (12, 18),
        "tutte": (46, 69),
        "hoffman_singleton": (50, 175),
    }
    for name, (n, edges) in known.items():
        t = topology.named(name)
        assert (t.size, t.edges.senders.size) == (n, 2 * edges)


@pytest.mark.parametrize("p", [5, 13, 17, 29, 101])
def test_paley(p):
    values = topology.paley(p).eigenvalues * (p + 1) / 2 - 1
    root = math.sqrt(p)
    np.testing.assert_allclose(np.unique(values.round(9))[:2], [(-1 - root) / 2, (-1 + root) / 2])
    assert topology.paley(p).rho == pytest.approx((1 + root) / (p + 1), abs=1e-12)


@pytest.mark.parametrize("side", [2, 3, 5, 8, 13, 20])
def test_margulis_stays_below_gabber_and_galil(side):
    t = topology.margulis(side)
    W = np.zeros((side, side, side, side))
    for x, y in itertools.product(range(side), repeat=2):
        for dx, dy in [(2 * y, 0), (2 * y + 1, 0), (0, 2 * x), (0, 2 * x + 1)]:
            W[x, y, (x + dx) % side, (y + dy) % side] += 1 / 8
            W[x, y, (x - dx) % side, (y - dy) % side] += 1 / 8
    np.testing.assert_array_equal(t.to_dense(), W.reshape(side**2, side**2))
    assert t.lambda_2 <= 5 * math.sqrt(2) / 8


def test_random_lifts_keep_old_eigenvalues_and_come_near_the_tree():
    base, copies = nx.complete_graph(5), 200
    t = topology.random_lift(base, copies, seed=1)
    values = t.eigenvalues * 5 - 1
    old = np.isclose(values, 4, atol=1e-9).sum(), np.isclose(values, -1, atol=1e-9).sum()
    assert old[0] == 1
    assert old[1] >= 4
    assert t.rho == pytest.approx((1 + 2 * math.sqrt(3)) / 5, abs=0.03)


def test_random_regular_graphs_come_near_the_tree():
    # Friedman 2008: (1 + 2 sqrt(d - 1)) / (d + 1).
    for degree in (3, 4, 8):
        t = topology.random_regular(1000, degree, seed=1)
        limit = (1 + 2 * math.sqrt(degree - 1)) / (degree + 1)
        assert t.rho == pytest.approx(limit, abs=0.02)


@pytest.mark.parametrize(
    ("n", "degree", "steps"), [(8, 2, 3), (16, 2, 4), (27, 3, 3), (16, 4, 2), (12, 6, 2), (1, 2, 1)]
)
def test_de_bruijn_averages_exactly_though_rho_is_1(n, degree, steps):
    t = topology.de_bruijn(n, degree)
    s = topology.static(t)
    np.testing.assert_allclose(product(s, length=steps), 1 / n, atol=1e-15)
    if steps > 1:
        assert np.linalg.norm(product(s, length=steps - 1) - 1 / n, 2) > 0.5
        assert t.rho == pytest.approx(1, abs=1e-12)
    # The others are 0 in blocks as long as the steps, so rounding moves them by eps^(1/steps).
    assert t.slem < 2e-16 ** (1 / steps) * 10


@pytest.mark.parametrize("n", [3, 4, 5, 8, 25])
def test_directed_ring(n):
    assert topology.directed_ring(n).rho == pytest.approx(math.cos(math.pi / n), abs=1e-12)


@pytest.mark.parametrize(
    ("t", "steps"),
    [
        (topology.star(9), 2),
        (topology.petersen(), 2),
        (topology.complete(7), 1),
        (topology.hypercube(5), 5),
        (topology.torus(4, 4), 4),
        (topology.grid(4, 4), 8),
        *((topology.ring(n), n // 2) for n in (5, 8, 16, 200)),
        *((topology.path(n), n - 1) for n in (2, 9, 64)),
    ],
    ids=lambda value: value.name if isinstance(value, topology.Topology) else "",
)
def test_laplacian_sequences(t, steps):
    s = topology.laplacian_sequence(t)
    assert s.period == steps
    for start in (0, steps // 2):
        assert abs(product(s, start) - 1 / t.size).max() < 1e-13


@pytest.mark.parametrize("n", [2, 5, 8, 21])
def test_equidyn_contracts_exactly_in_mean_square(n):
    # E[W^T W] restricted to e with sum 0 is (n - 1)/(2n) times the identity.
    steps = [topology.equidyn(n, directed=True, hops=[hop]).at(0) for hop in range(1, n)]
    moment = sum(t.W.T @ t.W for t in steps).toarray() / (n - 1)
    away = np.eye(n) - 1 / n
    np.testing.assert_allclose(away @ moment @ away, away * (n - 1) / (2 * n), atol=1e-14)


def test_equistatic_bound_of_matrix_bernstein():
    # M >= 8 ln(2n / delta) / (3 eps^2) hops; here at most one graph in 20 may miss eps.
    n, eps, delta = 1024, 0.5, 0.05
    hops = math.ceil(8 * math.log(2 * n / delta) / (3 * eps**2))
    found = [topology.equistatic(n, hops, directed=True, seed=seed).rho for seed in range(5)]
    assert max(found) < eps


def test_random_pairs_on_a_ring():
    # Boyd et al. 2006: lambda_2 of E[W] is 1 - (1 - cos(2 pi / n)) / n.
    n = 16
    s = topology.random_pair(topology.ring(n), seed=1)
    pairs = sorted(tuple(sorted(e)) for e in topology.ring(n).graph.edges)
    mean = np.zeros((n, n))
    for i, j in pairs:
        e = np.eye(n)[i] - np.eye(n)[j]
        mean += (np.eye(n) - np.outer(e, e) / 2) / len(pairs)
    assert np.linalg.eigvalsh(mean)[-2] == pytest.approx(1 - (1 - math.cos(2 * math.pi / n)) / n)
    drawn = [tuple(np.flatnonzero(s.at(k).in_degrees).tolist()) for k in range(800)]
    assert set(drawn) == set(pairs)
    counts = np.array([drawn.count(pair) for pair in pairs])
    assert ((counts - 50) ** 2 / 50).sum() < 37.7  # chi square, 15 degrees of freedom, 0.001


def test_geographic_gossip_mixes_like_the_complete_graph():
    # With every pair equally likely, E|We|^2 = (1 - 1/(n - 1)) |e|^2.
    n = 8
    moments = np.zeros((n, n))
    for i, j in itertools.combinations(range(n), 2):
        e = np.eye(n)[i] - np.eye(n)[j]
        moments += (np.eye(n) - np.outer(e, e) / 2) / math.comb(n, 2)
    away = np.eye(n) - 1 / n
    np.testing.assert_allclose(away @ moments, away * (1 - 1 / (n - 1)), atol=1e-14)
    s = topology.geographic_gossip(n, 0.9, seed=3)
    drawn = [s.at(k) for k in range(560)]
    assert all(t.max_degree == 1 for t in drawn)  # every message arrived
    counts = sum((t.W != 0).astype(int) for t in drawn).toarray()[np.triu_indices(n, 1)]
    assert ((counts - 20) ** 2 / 20).sum() < 55.5  # chi square, 27 degrees of freedom, 0.001


def test_one_peer_exponential_schedules():
    # Ying et al. 2021; 12 digits from dense products.
    assert topology.one_peer_exponential(6).contraction() == pytest.approx(
        0.216506350946, abs=1e-12
    )
    assert topology.one_peer_exponential(25).contraction() == pytest.approx(
        0.192116154287, abs=1e-12
    )
    for d in (1, 3, 5):
        xor = topology.one_peer_hypercube(d)
        for start in range(d):
            np.testing.assert_array_equal(product(xor, start), 1 / 2**d)
