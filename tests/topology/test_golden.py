"""Published and closed-form values.

Sources: BDX = Boyd, Diaconis & Xiao, SIAM Review 46(4), 2004; XB = Xiao & Boyd, Systems & Control
Letters 53, 2004; CVX = the examples ``graph_laplacian`` and ``fastest_mixing_MC`` of CVX and CVXR;
Ying = Ying et al., NeurIPS 2021. The others follow from the Laplacian spectra of the families.
"""

import networkx as nx
import numpy as np
import pytest

from dectool import topology

TIGHT = 1e-11
NAN = float("nan")

# graph, l2, ln, rho(MH1), lambda_min(MH1), rho(MH0), rho(MD1), rho(BC). MH1 = 1/(1 + max degree),
# MH0 = 1/max degree, MD1 = 1/(1 + d_max), BC = 2/(l2 + ln). Computed from dense spectra, 12 digits.
TABLE = {
    "ring 4": (2, 4, 1 / 3, -1 / 3, 1, 1 / 3, 1 / 3),
    "ring 8": (0.585786437627, 4, 0.804737854124, -1 / 3, 1, 0.804737854124, 0.744520838205),
    "ring 16": (0.152240934977, 4, 0.949253021674, -1 / 3, 1, 0.949253021674, 0.926670471506),
    "ring 64": (0.009630546656, 4, 0.996789817781, -1 / 3, 1, 0.996789817781, 0.995196292255),
    "path 4": (
        *(0.585786437627, 3.414213562373, 0.804737854124, -0.138071187458),
        *(0.707106781187, 0.804737854124, 0.707106781187),
    ),
    "path 8": (
        *(0.152240934977, 3.847759065023, 0.949253021674, -0.282586355008),
        *(0.923879532511, 0.949253021674, 0.923879532511),
    ),
    "path 16": (
        *(0.038429439194, 3.961570560806, 0.987190186935, -0.320523520269),
        *(0.980785280403, 0.987190186935, 0.980785280403),
    ),
    "path 64": (
        *(0.002409087590, 3.997590912410, 0.999196970803, -0.332530304137),
        *(0.998795456205, 0.999196970803, 0.998795456205),
    ),
    "star 4": (1, 4, 0.75, 0, 0.666666666667, 0.75, 0.6),
    "star 8": (1, 8, 0.875, 0, 0.857142857143, 0.875, 0.777777777778),
    "star 16": (1, 16, 0.9375, 0, 0.933333333333, 0.9375, 0.882352941176),
    "star 64": (1, 64, 0.984375, 0, 0.984126984127, 0.984375, 0.969230769231),
    "complete 4": (4, 4, 0, 0, 1 / 3, 0, 0),
    "complete 8": (8, 8, 0, 0, 1 / 7, 0, 0),
    "complete 16": (16, 16, 0, 0, 1 / 15, 0, 0),
    "complete 64": (64, 64, 0, 0, 1 / 63, 0, 0),
    "torus 2x2": (2, 4, 1 / 3, -1 / 3, 1, 1 / 3, 1 / 3),
    "torus 2x4": (2, 6, 0.5, -0.5, 1, 0.5, 0.5),
    "torus 4x4": (2, 8, 0.6, -0.6, 1, 0.6, 0.6),
    "torus 8x8": (0.585786437627, 8, 0.882842712475, -0.6, 1, 0.882842712475, 0.863545071408),
    "grid 2x2": (2, 4, 1 / 3, -1 / 3, 1, 1 / 3, 1 / 3),
    "grid 2x4": (
        *(0.585786437627, 5.414213562373, 0.853553390593, -0.383795939622),
        *(0.872677996250, 0.853553390593, 0.804737854124),
    ),
    "grid 4x4": (
        *(0.585786437627, 6.828427124746, 0.868640618290, -0.430842909998),
        *(0.830075636585, 0.882842712475, 0.841982852881),
    ),
    "grid 8x8": (
        *(0.152240934977, 7.695518130045, 0.967704636851, -0.550915258285),
        *(0.958887586008, 0.969551813005, 0.961201424836),
    ),
    "hypercube 2": (2, 4, 1 / 3, -1 / 3, 1, 1 / 3, 1 / 3),
    "hypercube 3": (2, 6, 0.5, -0.5, 1, 0.5, 0.5),
    "hypercube 4": (2, 8, 0.6, -0.6, 1, 0.6, 0.6),
    "hypercube 6": (2, 12, 0.714285714286, -0.714285714286, 1, 0.714285714286, 0.714285714286),
}

# rho of the plain maximum-degree rule 1/d_max, same computation.
MAX_DEGREE_PLAIN = {
    **{f"ring {n}": 1 for n in (4, 8, 16, 64)},
    "path 4": 0.707106781187,
    "path 8": 0.923879532511,
    "path 16": 0.980785280403,
    "path 64": 0.998795456205,
    "grid 2x4": 0.804737854124,
    "grid 4x4": 0.853553390593,
    "grid 5x5": 0.904508497187,
    "grid 8x8": 0.961939766256,
    "torus 5x5": 0.809016994375,
}

# BDX p. 674, figure 1 and table 1 (edges as ranks from 0): rho with 1/d_max, with
# 1/max(d_i, d_j), and of the fastest Markov chain, whose weights follow.
BDX = {
    "path": ([(0, 1), (1, 2), (2, 3)], 0.5**0.5, 0.5**0.5),
    "triangle with a tail": ([(0, 1), (1, 2), (1, 3), (2, 3)], 2 / 3, 2 / 3),
    "K_2,3": ([(0, 1), (0, 3), (0, 4), (1, 2), (2, 3), (2, 4)], 2 / 3, 2 / 3),
    "wheel": ([(0, 1), (0, 2), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)], 1 / 4, 7 / 12),
}

# CVX graph_laplacian: 8 nodes, 13 edges.
CVX_EDGES = "12 23 34 15 28 24 56 57 37 48 67 78 27"


def make(label, **options):
    family, _, size = label.partition(" ")
    return getattr(topology, family)(*map(int, size.split("x")), **options)


def weighed(edges, weights):
    """Return the topology whose symmetric edge weights are given."""
    entries = {
        pair: w for (i, j), w in zip(edges, weights, strict=True) for pair in ((i, j), (j, i))
    }
    return topology.from_graph(nx.Graph(edges), weights=entries)


def close(value):
    return pytest.approx(value, abs=TIGHT, rel=0)


@pytest.mark.parametrize("label", TABLE)
def test_table(label):
    l_2, l_n, mh1, mh1_min, mh0, md1, bc = TABLE[label]
    t = make(label)
    laplacian = nx.laplacian_matrix(t.graph).toarray().astype(float)
    spectrum = np.linalg.eigvalsh(laplacian)
    assert (spectrum[1], spectrum[-1]) == (close(l_2), close(l_n))
    assert (t.rho, t.lambda_min) == (close(mh1), close(mh1_min))
    assert make(label, weights="metropolis_hastings_boyd").rho == close(mh0)
    assert make(label, weights="max_degree").rho == close(md1)
    assert make(label, weights="best_constant").rho == close(bc)
    for halved in (t.lazy(), make(label, weights="lazy")):
        assert halved.rho == close((1 + t.lambda_2) / 2)


@pytest.mark.parametrize("label", MAX_DEGREE_PLAIN)
def test_plain_maximum_degree(label):
    assert make(label, weights="max_degree_boyd").rho == close(MAX_DEGREE_PLAIN[label])


@pytest.mark.parametrize("name", BDX)
def test_boyd_diaconis_xiao(name):
    edges, max_degree, metropolis = BDX[name]
    graph = nx.Graph(edges)
    assert topology.from_graph(graph, weights="max_degree_boyd").rho == close(max_degree)
    assert topology.from_graph(graph, weights="metropolis_hastings_boyd").rho == close(metropolis)


def test_fastest_chains():
    tail, k23, wheel = (BDX[name][0] for name in ("triangle with a tail", "K_2,3", "wheel"))
    assert topology.from_graph(nx.Graph(tail), weights="best_constant").rho == close(0.6)
    assert weighed(tail, [5 / 11, 3 / 11, 3 / 11, 4 / 11]).rho == close(7 / 11)  # BDX
    assert weighed(tail, [1 / 2, 1 / 3, 1 / 3, 1 / 3]).rho == close(3**-0.5)  # FDLA
    assert topology.from_graph(nx.Graph(k23), weights="best_constant").rho == close(3 / 7)  # BDX
    assert weighed(k23, [2 / 7] * 6).rho == close(3 / 7)
    assert topology.from_graph(nx.Graph(wheel), weights="best_constant").rho == close(1 / 4)
    zero_diagonal = [0.375 if 4 not in edge else 0.25 for edge in wheel]  # CVX fastest_mixing_MC
    assert weighed(wheel, zero_diagonal).rho == close(0.75)
    assert weighed(wheel, zero_diagonal).self_weight(4) == 0


@pytest.mark.parametrize(
    ("weights", "published", "value"),
    [
        ("metropolis_hastings_boyd", 0.7743, 0.774303488791),
        ("max_degree_boyd", 0.7793, 0.779254182750),
        ("best_constant", 0.7119, 0.711858015091),
        ("metropolis_hastings", None, 0.812554540779),
    ],
)
def test_cvx_graph_laplacian(weights, published, value):
    graph = nx.Graph([(int(a) - 1, int(b) - 1) for a, b in CVX_EDGES.split()])
    rho = topology.from_graph(graph, weights=weights).rho
    assert rho == close(value)
    assert published is None or rho == pytest.approx(published, abs=5e-5)


@pytest.mark.parametrize("n", [3, 4, 5, 7, 12, 25, 100])
def test_ring_and_path(n):
    c, half = np.cos(2 * np.pi / n), np.cos(np.pi / n)
    ring = topology.ring(n)
    modes = 1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)
    np.testing.assert_allclose(ring.eigenvalues, np.sort(modes)[::-1], atol=TIGHT)
    l_2, l_n = 2 - 2 * c, 4 if n % 2 == 0 else 2 + 2 * half
    assert topology.ring(n, weights="best_constant").rho == close((l_n - l_2) / (l_n + l_2))
    assert topology.path(n).rho == close(1 / 3 + 2 / 3 * half)
    for weights in ("metropolis_hastings_boyd", "max_degree_boyd", "best_constant"):
        # Boyd, Diaconis, Sun & Xiao, 2006: the fastest chain on a path.
        assert topology.path(n, weights=weights).rho == close(half)


@pytest.mark.parametrize("n", [3, 4, 9, 30])
def test_star(n):
    assert topology.star(n).rho == close(1 - 1 / n)
    assert topology.star(n, weights="metropolis_hastings_boyd").rho == close(1 - 1 / (n - 1))
    best = topology.star(n, weights="best_constant")
    assert best.rho == close((n - 1) / (n + 1))
    assert best.self_weight(0) == close((3 - n) / (n + 1))
    assert best.is_nonnegative == (n <= 3)


@pytest.mark.parametrize("m", [3, 4, 5, 6, 9])
def test_square_torus_and_grid(m):
    c = np.cos(2 * np.pi / m)
    expected = 3 / 5 + 2 / 5 * c
    # At odd m, the most negative mode is 1/5 + (4/5) cos(pi (m-1)/m), below 3/5 in modulus.
    lowest = 3 / 5 if m % 2 == 0 else -(1 / 5 + 4 / 5 * np.cos(np.pi * (m - 1) / m))
    assert topology.torus(m, m).rho == close(max(expected, lowest))
    grid = topology.grid(m, m, weights="max_degree")
    assert grid.rho == close(1 - 2 / 5 * (1 - np.cos(np.pi / m)))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7])
def test_hypercube(d):
    for weights in ("uniform", "best_constant"):
        assert topology.hypercube(d, weights=weights).rho == close((d - 1) / (d + 1))


def test_named_graphs():
    petersen = nx.petersen_graph()
    assert topology.from_graph(petersen).rho == close(1 / 2)
    assert topology.from_graph(petersen, weights="best_constant").rho == close(3 / 7)
    for m in (2, 3, 6):
        bipartite = nx.complete_bipartite_graph(m, m)
        assert topology.from_graph(bipartite, weights="best_constant").rho == close(1 / 3)
    four, cube = topology.torus(4, 4), topology.torus(2, 4)
    assert nx.is_isomorphic(four.graph, topology.hypercube(4).graph)
    assert nx.is_isomorphic(cube.graph, topology.hypercube(3).graph)
    assert nx.is_isomorphic(topology.torus(2, 2).graph, nx.cycle_graph(4))


@pytest.mark.parametrize("n", [4, 6, 8, 16, 32, 64, 128])
def test_static_exponential_even(n):
    tau = (n - 1).bit_length()
    t = topology.exponential(n)
    assert t.is_normal
    assert (t.rho, t.slem) == (close((tau - 1) / (tau + 1)),) * 2  # Ying, prop. 1


def test_static_exponential_odd():
    t = topology.exponential(25)
    assert t.rho == close(0.510860870884)
    assert t.rho < 2 / 3  # Ying, prop. 1, strict for odd n


def test_random_regular_nears_friedman():
    d = 4
    bound = (1 + 2 * np.sqrt(d - 1)) / (d + 1)
    assert topology.random_regular(2000, d).rho == pytest.approx(bound, abs=0.02)


@pytest.mark.parametrize(("k", "tau"), [(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 3)])
def test_de_bruijn_tells_slem_from_rho(k, tau):
    n = k**tau
    W = np.zeros((n, n))
    for i in range(n):
        W[i, [(k * i + c) % n for c in range(k)]] = 1 / k
    t = topology.from_matrix(W)
    np.testing.assert_allclose(np.linalg.matrix_power(W, tau), 1 / n, atol=1e-15)
    assert t.slem == 0
    assert t.rho == close(1)
    assert not t.is_normal
    assert t.is_doubly_stochastic


def test_push_sum_digraph():
    # 8-ring with three chords: limit weights to six digits, |lambda_2| from a dense spectrum.
    graph = nx.DiGraph([(i, (i + 1) % 8) for i in range(8)] + [(0, 3), (2, 6), (5, 1)])
    t = topology.from_graph(graph, weights="uniform_push")
    low, high = 0.827586, 1.103448
    expected = [low, high, low, high, high, low, high, high]
    np.testing.assert_allclose(t.perron, expected, atol=5e-7)
    assert t.slem == close(0.763762615826)
