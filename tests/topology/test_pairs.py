"""Steps of schedules against loops over ranks that follow the published rules."""

import networkx as nx
import numpy as np
import pytest

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology._equi import _exchange


def outside(nodes, devices, rank, k, distance):
    node, device = divmod(rank, devices)
    return (node + distance) % nodes * devices + device


def bluefog_ring(nodes, devices, rank, k):
    """Whom a rank sends to by BlueFog's inner-outer ring, as its documentation describes it."""
    node, device = divmod(rank, devices)
    if device == k % devices:
        return outside(nodes, devices, rank, k, 1)
    ring = [d for d in range(devices) if d != k % devices]
    return node * devices + ring[(ring.index(device) + 1) % len(ring)]


def bluefog_exponential(nodes, devices, rank, k):
    """The same of its inner-outer exponential graph."""
    node, device = divmod(rank, devices)
    if device == k % devices:
        return outside(nodes, devices, rank, k, 2 ** (k % (int(np.log2(nodes - 1)) + 1)))
    hop = 2 ** (k % (int(np.log2(devices - 2)) + 1))
    if hop >= (k % devices - device) % devices:
        hop += 1
    return node * devices + (device + hop) % devices


@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
@pytest.mark.parametrize("devices", [3, 4, 8, 9])
@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (topology.inner_outer_ring, bluefog_ring),
        (topology.inner_outer_exponential, bluefog_exponential),
    ],
)
def test_inner_outer_graphs_are_those_of_bluefog(make, rule, nodes, devices):
    s = make(nodes=nodes, devices=devices)
    assert s.size == nodes * devices
    for k in range(s.period + 2):
        for rank in range(s.size):
            assert s.at(k).out_neighbors(rank) == (rule(nodes, devices, rank, k),)
        assert set(s.at(k).W.data.tolist()) == {0.5}


def test_inner_outer_graphs_average():
    assert topology.inner_outer_exponential(nodes=4, devices=8).contraction() < 0.25
    assert topology.inner_outer_ring(nodes=4, devices=8).contraction() < 0.8


def greedy(n, hop, start):
    partner = list(range(n))
    for step in range(n):
        i, j = (start + step) % n, (start + step + hop) % n
        if partner[i] == i and partner[j] == j and i != j:
            partner[i], partner[j] = j, i
    return partner


@pytest.mark.parametrize("n", range(2, 17))
def test_undirected_equidyn_pairs_greedily(n):
    for hop in range(1, n):
        ours = sorted(_exchange(n, hop, start).tolist() for start in range(n))
        assert ours == sorted(greedy(n, hop, start) for start in range(n))
        if hop <= n / 2:
            assert all(_exchange(n, hop, s).tolist() == greedy(n, hop, s) for s in range(n))


def test_equidyn_weights():
    for directed in (False, True):
        s = topology.equidyn(6, directed=directed, eta=0.3, hops=[1], seed=5)
        weights = set(np.round(s.at(2).W.data, 12).tolist())
        assert weights == {round(0.3 * 5 / 6, 12), round(1 - 0.3 * 5 / 6, 12)}
    hops = {topology.equidyn(9, directed=True).at(k).out_neighbors(0)[0] for k in range(200)}
    assert hops == set(range(1, 9))


def test_equistatic_is_the_mean_of_hops():
    t = topology.equistatic(10, 3, directed=True, seed=2)
    hops = t.out_neighbors(0)
    A = sum(np.roll(np.eye(10), hop, axis=0) for hop in hops) / 3
    np.testing.assert_allclose(t.to_dense(), 0.9 * A + 0.1 * np.eye(10), atol=1e-15)
    odd = topology.equistatic(10, 3, seed=2)
    assert 5 in odd.in_neighbors(0)
    assert odd.weight(0, 5) == pytest.approx(2 * odd.weight(0, odd.in_neighbors(0)[0]))


def test_alternating_ring():
    s = topology.alternating_ring(8)
    both = [tuple(sorted(e)) for k in (0, 1) for e in s.at(k).graph.edges]
    assert sorted(both) == sorted(tuple(sorted(e)) for e in topology.ring(8).graph.edges)
    assert topology.alternating_ring(2).contraction() == 0
    assert topology.alternating_ring(4).contraction() == pytest.approx(0, abs=1e-15)


def test_geographic_gossip_walks_towards_the_target():
    s = topology.geographic_gossip(60, 0.25, seed=2)
    near = topology.geometric(60, 0.25, seed=2)
    for k in range(40):
        t = s.at(k)
        ends = np.flatnonzero(t.in_degrees)
        hops = int(t.name.split(" over ")[1].split()[0])
        assert hops >= nx.shortest_path_length(near.graph, *ends.tolist()) if ends.size else True


PARTS = topology.from_graph(nx.Graph([(0, 1), (2, 3)]), name="two pairs", require_connected=False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.alternating_ring(5), ArgumentError, r"n must be even.*got 5; use ring"),
        (lambda: topology.one_peer_hypercube(-1), ArgumentError, r"dimension must be at least 0"),
        (lambda: topology.inner_outer_ring(1, 8), ArgumentError, r"got 1 x 8.*exponential\(8\)"),
        (lambda: topology.inner_outer_exponential(4, 2), ArgumentError, r"got 4 x 2"),
        (lambda: topology.equistatic(4, 4), ArgumentError, r"degree must be below n, got degree=4"),
        (lambda: topology.equistatic(9, 3), ArgumentError, r"both odd.*use degree=4 or degree=2"),
        (lambda: topology.equistatic(8, 1), ArgumentError, r"degree=1 cannot connect n=8"),
        (lambda: topology.equidyn(8, eta=0), ArgumentError, r"eta must be above 0"),
        (lambda: topology.equidyn(8, hops=[]), ArgumentError, r"from 1 to n - 1 = 7, at least one"),
        (lambda: topology.equidyn(8, hops=[3, 8]), ArgumentError, r"got \[3, 8\]"),
        (lambda: topology.equidyn(8, hops=3), ArgumentTypeError, r"got 3; use \[3\]"),
        (lambda: topology.hyper_hypercube(10, k=2), ArgumentError, r"above k \+ 1 = 3; use base_k"),
        (lambda: topology.base_k(5, k=0), ArgumentError, r"k must be at least 1, got 0"),
        *(
            (lambda make=make: make(PARTS), TopologyError, r"needs a connected graph, and two")
            for make in (
                topology.random_pair,
                topology.random_matching,
                topology.random_broadcast,
                lambda parts: topology.b_connected(parts, 2),
                lambda parts: topology.random_lift(parts, 3),
                lambda parts: topology.fastest_consensus(parts, np.ones((4, 4))),
            )
        ),
        (
            lambda: topology.random_pair(topology.exponential(8)),
            TopologyError,
            r"random_pair needs",
        ),
        (lambda: topology.geographic_gossip(8, -1), ArgumentError, r"radius must be above 0"),
        (lambda: topology.b_connected(topology.ring(4), 0), ArgumentError, r"window must be at"),
        (
            lambda: topology.b_connected(topology.ring(4), 2, weights="x"),
            ArgumentError,
            r"weights='x' is unknown",
        ),
        (
            lambda: topology.b_connected(topology.exponential(8), 2, weights="lazy"),
            TopologyError,
            r"weights='lazy' needs an undirected graph",
        ),
        (
            lambda: topology.laplacian_sequence(topology.exponential(8)),
            TopologyError,
            r"connected undirected graph, and exponential graph of 8 is not",
        ),
        (
            lambda: topology.laplacian_sequence(topology.ring(3001)),
            ArgumentError,
            r"up to size 3000",
        ),
        (lambda: topology.named("peterson"), ArgumentError, r"did you mean 'petersen'"),
        (lambda: topology.barbell(1), ArgumentError, r"clique must be at least 2"),
        (lambda: topology.paley(15), ArgumentError, r"a prime that is 1 modulo 4.*got 15"),
        (lambda: topology.paley(11), ArgumentError, r"a prime that is 1 modulo 4.*got 11"),
        (
            lambda: topology.random_lift(nx.path_graph(4), 3),
            TopologyError,
            r"none of 100 draws.*lifts of a tree fall apart",
        ),
        (
            lambda: topology.random_lift(topology.exponential(8), 3),
            TopologyError,
            r"random_lift needs an undirected graph",
        ),
        (lambda: topology.barabasi_albert(4, 4), ArgumentError, r"m must be below n, got m=4"),
        (lambda: topology.watts_strogatz(9, 3, 0.1), ArgumentError, r"neighbors must be even"),
        (lambda: topology.watts_strogatz(9, 4, 2), ArgumentError, r"p must be a probability"),
        (lambda: topology.stochastic_block([], 0.5, 0.5), ArgumentError, r"at least 1 community"),
        (lambda: topology.stochastic_block([3, 3], 0.5, 7), ArgumentError, r"p_out must be a prob"),
        (
            lambda: topology.stochastic_block([5, 5], 0.9, 0),
            TopologyError,
            r"5 \+ 5 \(p_in=0.9, p_out=0\): none of 100 draws.*raise p_in or p_out",
        ),
        (lambda: topology.random_digraph(9, -0.5), ArgumentError, r"p must be a probability"),
        (
            lambda: topology.random_digraph(30, 0.01),
            TopologyError,
            r"random digraph of 30 \(p=0.01\): none of 100 draws",
        ),
        (lambda: topology.de_bruijn(8, 1), ArgumentError, r"degree must be at least 2, got 1"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_seeds_matter():
    makers = [
        lambda seed: topology.barabasi_albert(20, 2, seed=seed),
        lambda seed: topology.watts_strogatz(20, 4, 0.3, seed=seed),
        lambda seed: topology.stochastic_block([10, 10], 0.6, 0.2, seed=seed),
        lambda seed: topology.random_digraph(20, 0.3, seed=seed),
        lambda seed: topology.random_lift(nx.complete_graph(4), 8, seed=seed),
        lambda seed: topology.equistatic(50, 6, seed=seed),
        lambda seed: topology.equidyn(50, seed=seed).at(7),
        lambda seed: topology.random_pair(topology.ring(50), seed=seed).at(7),
        lambda seed: topology.random_broadcast(topology.ring(50), seed=seed).at(7),
        lambda seed: topology.random_one_peer(1024, seed=seed).at(7),
        lambda seed: topology.b_connected(topology.ring(50), 3, seed=seed).at(7),
        lambda seed: topology.matcha(topology.grid(5, 5), 0.5, seed=seed).at(7),
    ]
    for make in makers:
        assert (make(3).W != make(3).W).nnz == 0
        assert len({make(seed).W.toarray().tobytes() for seed in range(8)}) > 1
