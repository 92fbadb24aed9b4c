"""Schedules: what step k is, and how well a stretch of steps averages."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import Schedule

POWERS = [1, 2, 4, 8, 16, 64]


@pytest.mark.parametrize("n", POWERS)
@pytest.mark.parametrize("symmetric", [False, True])
def test_one_peer_averages_exactly_from_every_start(n, symmetric):
    s = topology.one_peer_exponential(n, symmetric=symmetric)
    assert s.period == max(1, int(np.log2(n)))
    for start in range(s.period):
        product = np.eye(n)
        for k in range(start, start + s.period):
            product = s.at(k).W @ product
        np.testing.assert_array_equal(product, np.full((n, n), 1 / n))
        assert s.contraction(start) == 0


@pytest.mark.parametrize(
    # Ying et al., NeurIPS 2021, setting; values computed from dense products, 12 digits.
    ("n", "value"),
    [(6, 0.216506350946), (25, 0.192116154287)],
)
def test_one_peer_is_not_exact_off_powers_of_two(n, value):
    assert topology.one_peer_exponential(n).contraction() == pytest.approx(value, abs=1e-11, rel=0)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_one_peer_sends_to_the_peer(n):
    s = topology.one_peer_exponential(n)
    for k in range(2 * s.period):
        t = s.at(k)
        hop = 2 ** (k % s.period) % n
        assert all(t.out_neighbors(i) == ((i + hop) % n,) for i in range(n))
        assert all(t.in_neighbors(i) == ((i - hop) % n,) for i in range(n))
        assert set(t.W.data.tolist()) == {0.5}
        assert t.is_doubly_stochastic
    assert s.at(0) is s.at(s.period)


def test_one_peer_symmetric_is_xor():
    s = topology.one_peer_exponential(8, symmetric=True)
    assert [s.at(k).in_neighbors(5) for k in range(4)] == [(4,), (7,), (1,), (4,)]
    assert all(s.at(k).is_symmetric for k in range(3))


def test_sparse_contraction_equals_dense():
    n = 600
    s = topology.one_peer_exponential(n)
    product = np.eye(n)
    for k in range(3, 8):
        product = s.at(k).W @ product
    dense = np.linalg.norm(product - 1 / n, 2)
    assert s.contraction(3, 5) == pytest.approx(dense, abs=1e-10)
    assert topology.one_peer_exponential(1024).contraction() == pytest.approx(0, abs=1e-12)


def test_static_and_periodic():
    ring, star = topology.ring(4), topology.star(4)
    s = topology.periodic([ring, star])
    assert (s.size, s.period, s.name) == (4, 2, "ring of 4 / star of 4")
    assert [s.at(k) for k in range(4)] == [ring, star, ring, star]
    assert topology.static(ring).at(7) is ring
    assert topology.as_schedule(s) is s
    assert topology.as_schedule(ring).at(0) is ring
    assert topology.static(ring).contraction() == pytest.approx(ring.rho, abs=1e-12)
    assert topology.static(ring).contraction(length=3) == pytest.approx(ring.rho**3, abs=1e-12)
    assert topology.static(ring).contraction(length=0) == pytest.approx(1, abs=1e-12)
    assert topology.periodic([ring] * 5).name == "ring of 4 / ring of 4 / ... (5 in all)"


def test_members_of_a_schedule_may_be_disconnected():
    pairs = [nx.Graph([(0, 1), (2, 3)]), nx.Graph([(1, 2), (0, 3)])]
    halves = [topology.from_graph(g, require_connected=False) for g in pairs]
    s = topology.periodic(halves)
    assert not s.at(0).is_connected
    assert s.at(0).rho == pytest.approx(1)
    assert s.contraction() == pytest.approx(0, abs=1e-12)


def greedy(size, edges, order):
    """Return the matching that a plain loop makes."""
    partner = list(range(size))
    for e in order:
        i, j = edges[e]
        if partner[i] == i and partner[j] == j:
            partner[i], partner[j] = j, i
    return partner


@given(st.integers(2, 30), st.integers(0, 50), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_random_matching_is_the_greedy_one(n, seed, k):
    base = topology.erdos_renyi(n, 0.5 if n > 4 else 1.0, seed=seed)
    t = topology.random_matching(base, seed=seed).at(k)
    edges = sorted((min(e), max(e)) for e in base.graph.edges)
    order = np.random.default_rng([seed, k]).permutation(len(edges))
    partner = greedy(n, edges, order)
    for i in range(n):
        assert t.in_neighbors(i) == (() if partner[i] == i else (partner[i],))
        assert t.self_weight(i) == (1.0 if partner[i] == i else 0.5)
    assert t.is_symmetric
    assert t.is_doubly_stochastic


def test_random_matching_has_random_access():
    graph = nx.cycle_graph(10)
    forward, backward = (topology.random_matching(graph, seed=3) for _ in range(2))
    steps = range(200)
    first = {k: forward.at(k).to_dense().tobytes() for k in steps}
    second = {k: backward.at(k).to_dense().tobytes() for k in reversed(steps)}
    assert first == second
    assert forward.at(0).to_dense().tobytes() == first[0]
    # The cycle of 10 has 17 maximal matchings (Perrin's sequence, OEIS A001608): all turn up.
    assert len(set(first.values())) == 17
    assert len(forward._cache) <= 64
    assert forward.at(0) is forward.at(0)
    other = topology.random_matching(graph, seed=4)
    assert [other.at(k).to_dense().tobytes() for k in steps] != list(first.values())
    assert forward.period is None
    assert 0 < forward.contraction(0, 60) < 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_sizes(n):
    ring = topology.ring(n)
    for s in (
        topology.static(ring),
        topology.periodic([ring, ring]),
        topology.one_peer_exponential(n),
        topology.random_matching(ring),
    ):
        assert s.size == s.at(5).size == n
        assert 0 <= s.contraction(length=4) <= 1


@pytest.mark.parametrize("make", ["one_peer", "matching", "periodic"])
def test_schedules_pickle(make):
    s = {
        "one_peer": topology.one_peer_exponential(6),
        "matching": topology.random_matching(topology.ring(6), seed=2),
        "periodic": topology.periodic([topology.ring(6), topology.star(6)]),
    }[make]
    again = pickle.loads(pickle.dumps(s))
    for k in range(4):
        np.testing.assert_array_equal(again.at(k).to_dense(), s.at(k).to_dense())
    assert repr(again) == repr(s)


def test_own_schedule():
    ring = topology.ring(4)
    s = Schedule(lambda k: ring, size=4, period=None, name="mine")
    assert s.at(3) is ring
    wrong = Schedule(lambda k: ring, size=5, period=None, name="mine")
    with pytest.raises(TopologyError, match=r"mine has size 5.*step 2 is ring of 4, size 4"):
        wrong.at(2)
    with pytest.raises(ArgumentTypeError, match=r"step 0 must be a Topology, got int"):
        Schedule(lambda k: 3, size=4, period=1, name="mine").at(0)
    with pytest.raises(ArgumentError, match=r"period must be at least 1, got 0"):
        Schedule(lambda k: ring, size=4, period=0, name="mine")
    with pytest.raises(
        ArgumentTypeError, match=r"make must be a function .* got Topology;.*static"
    ):
        Schedule(ring, size=4, period=1, name="mine")


def test_a_law_must_be_that_of_the_schedule():
    ring = topology.ring(4)
    law = topology.Law.finite([topology.ring(5)])
    with pytest.raises(TopologyError, match=r"mine has size 4, but its law is of 5 ranks"):
        Schedule(lambda k: ring, size=4, period=None, name="mine", law=law)
    later = Schedule(lambda k: ring, size=4, period=None, name="mine", law=lambda: law)
    with pytest.raises(TopologyError, match=r"mine has size 4, but its law is of 5 ranks"):
        _ = later.law
    with pytest.raises(ArgumentTypeError, match=r"law of mine must be a Law.*Law.finite"):
        Schedule(lambda k: ring, size=4, period=None, name="mine", law=ring.to_dense())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.static(3), ArgumentTypeError, r"must be a Topology, got int.*ring\(n\)"),
        (lambda: topology.as_schedule("ring"), ArgumentTypeError, r"must be a Topology, got str"),
        (lambda: topology.periodic([]), ArgumentError, r"at least 1 Topology, got none"),
        (
            lambda: topology.periodic([topology.ring(4), topology.ring(5)]),
            TopologyError,
            r"topologies\[1\] is ring of 5 of size 5, but topologies\[0\] is ring of 4 of size 4",
        ),
        (
            lambda: topology.periodic([topology.ring(4), 1]),
            ArgumentTypeError,
            r"topologies\[1\] must be a Topology, got int",
        ),
        (
            lambda: topology.one_peer_exponential(6, symmetric=True),
            ArgumentError,
            r"power of two.*got 6; use n=4 or n=8, symmetric=False, or random_matching",
        ),
        (lambda: topology.one_peer_exponential(0), ArgumentError, r"n must be at least 1, got 0"),
        (
            lambda: topology.one_peer_exponential(4).at(-1),
            ArgumentError,
            r"step k must be at least 0, got -1",
        ),
        (
            lambda: topology.one_peer_exponential(4).at(0.5),
            ArgumentTypeError,
            r"step k must be an integer, got 0.5",
        ),
        (
            lambda: topology.random_matching(topology.exponential(8)),
            TopologyError,
            r"random_matching needs an undirected graph.*edge \d -> \d of exponential graph of 8",
        ),
        (
            lambda: topology.random_matching(topology.ring(4)).contraction(),
            ArgumentError,
            r"length must be given: random matching of ring of 4 has no period",
        ),
        (
            lambda: topology.random_matching(topology.ring(4), seed=-1),
            ArgumentError,
            r"seed must be at least 0, got -1",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
