"""Waiting: expected maxima, cycle times and laws, each against a published or closed value.

Tables of expected maxima are those of the order statistics' closed forms and quadrature to 12
digits. Cycle times with exponential computations are the stationary solutions of the Markov chain
of who is ahead, given as fractions or to 12 digits; that of the directed ring is the particle's
speed in the totally asymmetric exclusion process of n particles on 2n sites (Derrida et al., 1993).
"""

from decimal import Decimal
from fractions import Fraction
from math import comb, gamma

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from dectool import theory, topology

LAWS = [
    stats.expon(),
    stats.norm(),
    stats.lognorm(0.25),
    stats.lognorm(0.5),
    stats.lognorm(1.0),
    stats.pareto(2.0),
    stats.pareto(3.0),
]
# n: the expected maximum of n under each law; the normal one up to n = 20 also in Teichroew (1956).
MAXIMA = {
    4: "2.083333333333 1.029375373004 1.313839725756 1.782750020598 3.640583898625 "
    "3.657142857143 2.209090909091",
    8: "2.717857142857 1.423600306045 1.444529189801 2.138940484314 5.084405499500 "
    "5.092152292152 2.745826551965",
    16: "3.380728993229 1.765991393055 1.569756491137 2.513189751752 6.874653007174 "
    "7.145412439757 3.435855195118",
    64: "4.743890903706 2.343733465079 1.808404716837 3.315357097686 11.661504068361 "
    "14.207352179527 5.425875260217",
}
VARIANCES = {4: 1.423611111111, 8: 1.527422052154, 16: 1.584346533445, 64: 1.629430501409}
WEIBULL = {4: 1.388505243031, 8: 1.609208024072, 16: 1.809255111934}
LOCAL_SGD = {2: 2.75, 5: 6.23046875, 10: 11.761970520019}


def directed_ring(n):
    return topology.from_graph(nx.cycle_graph(n, create_using=nx.DiGraph), weights="uniform")


FRACTIONS = {
    "ring 4": (topology.ring(4), Fraction(47, 24)),
    "ring 5": (topology.ring(5), Fraction(6569, 3210)),
    "path 3": (topology.path(3), Fraction(45, 26)),
    "star 3": (topology.star(3), Fraction(45, 26)),
    "path 4": (topology.path(4), Fraction(4301, 2306)),
    "star 4": (topology.star(4), Fraction(175, 93)),
    "static exponential 4": (topology.exponential(4), Fraction(47, 24)),
    "directed ring 4": (directed_ring(4), Fraction(7, 4)),
    "complete 4": (topology.complete(4), Fraction(25, 12)),
}
DECIMALS = {
    "ring 6": (topology.ring(6), 2.100887763636),
    "ring 7": (topology.ring(7), 2.141804336634),
    "ring 8": (topology.ring(8), 2.171802522253),
    "path 5": (topology.path(5), 1.953404610896),
    "static exponential 8": (topology.exponential(8), 2.366834627987),
}
# By simulation, within 0.004.
MONTE_CARLO = {
    "one-peer exponential 4": (topology.one_peer_exponential(4), 1.783),
    "one-peer exponential 8": (topology.one_peer_exponential(8), 1.980),
    "static exponential 16": (topology.exponential(16), 2.728),
}


@pytest.mark.parametrize("n", MAXIMA)
def test_expected_maxima(n):
    found = [theory.expected_maximum(law, n) for law in LAWS]
    np.testing.assert_allclose(found, [float(x) for x in MAXIMA[n].split()], atol=6e-13, rtol=0)
    assert theory.variance_of_maximum(stats.expon(), n) == pytest.approx(VARIANCES[n], abs=6e-13)


@pytest.mark.parametrize("n", WEIBULL)
def test_expected_maximum_of_weibull(n):
    found = theory.expected_maximum(stats.weibull_min(2.0), n)
    assert found == pytest.approx(WEIBULL[n], abs=6e-13)
    terms = [(-1) ** (j + 1) * comb(n, j) / Decimal(j).sqrt() for j in range(1, n + 1)]
    assert found == pytest.approx(gamma(1.5) * float(sum(terms)), rel=1e-14)


def test_closed_forms_of_maxima():
    harmonic = sum(1.0 / k for k in range(1, 9))
    shifted = theory.expected_maximum(stats.expon(loc=3.0, scale=0.5), 8)
    assert shifted == pytest.approx(3.0 + harmonic / 2, rel=1e-14)
    assert theory.expected_maximum(stats.uniform(2.0, 3.0), 8) == pytest.approx(2 + 3 * 8 / 9)
    backups = theory.expected_order_statistic(stats.expon(scale=2.0), n=8, k=6)
    assert backups == pytest.approx(2 * (harmonic - 1.5), rel=1e-14)
    ratio = gamma(9) * gamma(1 - 1 / 2.5) / gamma(9 - 1 / 2.5)
    assert theory.expected_maximum(stats.pareto(2.5, scale=4.0), 8) == pytest.approx(4 * ratio)


@pytest.mark.parametrize("steps", LOCAL_SGD)
def test_local_sgd_on_two_ranks(steps):
    assert theory.local_sgd_round_time(2, steps) == pytest.approx(LOCAL_SGD[steps], abs=6e-13)
    by_quadrature = theory.expected_maximum(stats.gamma(steps), 2)
    assert by_quadrature == pytest.approx(LOCAL_SGD[steps], abs=6e-13)


def exact(graph):
    """Solve the chain in rational numbers, by elimination; states are differences of counts."""
    n = graph.size

    def computes(x):
        return [i for i in range(n) if all(x[j] >= x[i] for j in graph.in_neighbors(i))]

    def after(x, i):
        counts = [*x[:i], x[i] + 1, *x[i + 1 :]]
        return tuple(count - min(counts) for count in counts)

    states = [(0,) * n]
    for x in states:
        states += {after(x, i) for i in computes(x)} - set(states)
    number = {x: k for k, x in enumerate(states)}
    # Columns balance what leaves a state with what comes; the last row sums to one.
    rows = [[Fraction(0)] * (len(states) + 1) for _ in states]
    for x, k in number.items():
        for i in computes(x):
            rows[k][k] -= 1
            rows[number[after(x, i)]][k] += 1
    rows[-1] = [Fraction(1)] * (len(states) + 1)
    for k in range(len(states)):
        pivot = next(r for r in range(k, len(states)) if rows[r][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for r in range(len(states)):
            if r != k and rows[r][k]:
                factor = rows[r][k]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[k], strict=True)]
    return n / sum(row[-1] * len(computes(x)) for row, x in zip(rows, states, strict=True))


@pytest.mark.parametrize("name", FRACTIONS)
def test_exponential_cycle_times_that_are_fractions(name):
    graph, fraction = FRACTIONS[name]
    assert exact(graph) == fraction
    assert theory.exponential_cycle_time(graph) == pytest.approx(float(fraction), abs=1e-12)


@pytest.mark.parametrize("name", DECIMALS)
def test_exponential_cycle_times(name):
    graph, value = DECIMALS[name]
    assert theory.exponential_cycle_time(graph) == pytest.approx(value, abs=6e-13)


@pytest.mark.parametrize("n", range(2, 9))
def test_cycle_times_with_closed_forms(n):
    on_ring = theory.exponential_cycle_time(directed_ring(n), mean=0.5)
    assert on_ring == pytest.approx(0.5 * (2 - 1 / n), abs=1e-12)
    on_complete = theory.exponential_cycle_time(topology.complete(n))
    assert on_complete == pytest.approx(theory.expected_maximum(stats.expon(), n), abs=1e-12)


@pytest.mark.parametrize("name", MONTE_CARLO)
def test_exponential_cycle_times_known_from_simulation(name):
    graph, value = MONTE_CARLO[name]
    assert theory.exponential_cycle_time(graph) == pytest.approx(value, abs=0.004)


def test_waiting_for_neighbors_does_not_hide_a_slow_rank():
    c = [1.0, 2.0, 5.0, 1.5, 1.0, 3.0, 2.5, 1.0]
    for graph in (topology.ring(8), topology.exponential(8), topology.one_peer_exponential(8)):
        assert theory.cycle_time(graph, c) == 5.0


def test_circuit_of_two_ranks():
    c, d = [1.0, 2.0, 3.0], 10.0
    assert theory.cycle_time(topology.path(3), c, delay=d) == (2.0 + 3.0 + 2 * d) / 2
    assert theory.critical_circuit(topology.path(3), c, delay=d) == (1, 2)


def test_law_of_one_slow_worker():
    for slowdown, share in ((2.0, 0.501961), (1290 / 585, 0.455433)):
        assert 1 / theory.asynchronous_speedup(128, slowdown) == pytest.approx(share, abs=6e-7)
    # BAGUA's asynchronous averaging cut epochs by 30 to 50 %.
    assert 1 / theory.asynchronous_speedup(128, 1.43) == pytest.approx(0.7, abs=1e-3)
    times = [1.0] * 7 + [4.0]
    assert theory.asynchronous_throughput(times) == 7.25
    assert theory.synchronous_throughput(times) == 2.0
    assert theory.asynchronous_speedup(8, 4.0) == pytest.approx(4 * (7 + 1 / 4) / 8)
