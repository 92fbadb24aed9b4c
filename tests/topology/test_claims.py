"""Every constructor at random sizes gives what it claims."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.topology import Schedule, Topology

SEEDS = st.integers(0, 1000)
STEPS = 12


@dataclass(frozen=True)
class Claim:
    """What a constructor says of each of its matrices, and of its steps together.

    Attributes:
        make: Strategy of topologies or schedules.
        symmetric: W = Wᵀ.
        connected: Each W is connected.
        nonnegative: No weight is below 0.
        degree: Most neighbors, if it promises a number.
        exact: The product over a period is J.
    """

    make: st.SearchStrategy[Topology | Schedule]
    symmetric: bool = True
    connected: bool = False
    nonnegative: bool = True
    degree: int | None = None
    exact: bool = False


def of(make, *arguments, **named):
    return st.builds(make, *arguments, **named)


def fixed(make, *arguments, symmetric=True, **named):
    return Claim(of(make, *arguments, **named), symmetric=symmetric, connected=True)


sizes = st.integers(1, 24)
even = st.integers(1, 12).map(lambda half: 2 * half)
bases = st.one_of(
    of(topology.ring, st.integers(1, 12)),
    of(topology.tree, st.integers(1, 12)),
    of(topology.complete, st.integers(1, 6)),
    of(topology.erdos_renyi, st.integers(1, 12), st.just(0.7), seed=SEEDS),
)
digraphs = of(topology.random_digraph, st.integers(1, 10), st.just(0.7), seed=SEEDS)


@st.composite
def equistatic(draw):
    n, directed = draw(st.integers(2, 24)), draw(st.booleans())
    degrees = [
        d for d in range(1, n) if directed or ((d % 2 == 0 or n % 2 == 0) and (d > 1 or n == 2))
    ]
    t = topology.equistatic(n, draw(st.sampled_from(degrees)), directed=directed, seed=draw(SEEDS))
    assert set(t.in_degrees.tolist()) == set(t.out_degrees.tolist()) == {t.max_degree}
    assert t.is_symmetric or directed
    return t


@st.composite
def smooth(draw):
    k = draw(st.integers(1, 4))
    factors = draw(st.lists(st.integers(2, k + 1), max_size=3))
    return topology.hyper_hypercube(math.prod(factors), k)


CLAIMS = {
    "directed_ring": fixed(topology.directed_ring, sizes, symmetric=False),
    "de_bruijn": fixed(topology.de_bruijn, sizes, st.integers(2, 5), symmetric=False),
    "random_digraph, sinkhorn": fixed(
        topology.random_digraph,
        st.integers(1, 12),
        st.just(0.6),
        seed=SEEDS,
        weights=st.just("sinkhorn"),
        symmetric=False,
    ),
    "named": fixed(topology.named, st.sampled_from(topology.NAMED)),
    "petersen": fixed(topology.petersen),
    "complete_bipartite": fixed(topology.complete_bipartite, st.integers(1, 9), st.integers(1, 9)),
    "barbell": fixed(topology.barbell, st.integers(2, 8), st.integers(0, 5)),
    "tree": fixed(topology.tree, sizes, st.integers(1, 4)),
    "margulis": fixed(topology.margulis, st.integers(1, 7)),
    "paley": fixed(topology.paley, st.sampled_from([5, 13, 17, 29, 37])),
    "random_lift": fixed(
        topology.random_lift, st.just(nx.complete_graph(4)), st.integers(1, 8), seed=SEEDS
    ),
    "barabasi_albert": fixed(
        topology.barabasi_albert, st.integers(5, 30), st.integers(1, 4), seed=SEEDS
    ),
    "watts_strogatz": fixed(
        topology.watts_strogatz, st.integers(6, 30), st.just(4), st.floats(0, 0.5), seed=SEEDS
    ),
    "stochastic_block": fixed(
        topology.stochastic_block,
        st.lists(st.integers(1, 8), min_size=1, max_size=3),
        st.just(0.9),
        st.just(0.5),
        seed=SEEDS,
    ),
    "equistatic": Claim(equistatic(), symmetric=False, connected=True),
    "equidyn, directed": Claim(
        of(topology.equidyn, st.integers(2, 24), directed=st.just(True), seed=SEEDS),
        symmetric=False,
        degree=1,
    ),
    "equidyn": Claim(of(topology.equidyn, st.integers(2, 24), seed=SEEDS), degree=1),
    "base_k": Claim(of(topology.base_k, st.integers(1, 60), st.integers(1, 5)), exact=True),
    "simple_base_k": Claim(
        of(topology.simple_base_k, st.integers(1, 60), st.integers(1, 5)), exact=True
    ),
    "hyper_hypercube": Claim(smooth(), exact=True),
    "one_peer_hypercube": Claim(
        of(topology.one_peer_hypercube, st.integers(0, 6)), degree=1, exact=True
    ),
    "alternating_ring": Claim(of(topology.alternating_ring, even), degree=1),
    "shift_one": Claim(of(topology.shift_one, even), degree=1),
    "inner_outer_ring": Claim(
        of(topology.inner_outer_ring, st.integers(2, 6), st.integers(3, 6)),
        symmetric=False,
        degree=1,
    ),
    "inner_outer_exponential": Claim(
        of(topology.inner_outer_exponential, st.integers(2, 6), st.integers(3, 6)),
        symmetric=False,
        degree=1,
    ),
    "random_pair": Claim(of(topology.random_pair, bases, seed=SEEDS), degree=1),
    "random_one_peer": Claim(
        of(topology.random_one_peer, st.integers(1, 24), seed=SEEDS), symmetric=False, degree=1
    ),
    "geographic_gossip": Claim(
        of(topology.geographic_gossip, st.integers(2, 24), st.just(0.8), seed=SEEDS), degree=1
    ),
    "matcha": Claim(
        of(topology.matcha, bases, st.sampled_from([0.2, 0.5, 1.0]), seed=SEEDS), nonnegative=False
    ),
    "b_connected": Claim(of(topology.b_connected, bases, st.integers(1, 4), seed=SEEDS)),
    "laplacian_sequence": Claim(
        of(topology.laplacian_sequence, bases), connected=True, nonnegative=False, exact=True
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_constructor(name, data):
    claim = CLAIMS[name]
    made = data.draw(claim.make)
    schedule = topology.as_schedule(made)
    steps = schedule.period or STEPS
    for t in map(schedule.at, range(steps)):
        W = t.to_dense()
        np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-12)
        np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-12)
        assert t.size == schedule.size
        assert t.is_doubly_stochastic
        assert not claim.symmetric or np.array_equal(W, W.T)
        assert not claim.connected or t.is_connected
        assert not claim.nonnegative or t.is_nonnegative
        assert claim.degree is None or t.max_degree <= claim.degree
    if claim.exact:
        product = np.eye(schedule.size)
        for k in range(steps):
            product = schedule.at(k).W @ product
        np.testing.assert_allclose(product, 1 / schedule.size, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CLAIMS if name not in ("named", "petersen")])
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_any_step_can_be_asked_for_first(name, data):
    made = topology.as_schedule(data.draw(CLAIMS[name].make))
    again = pickle.loads(pickle.dumps(made))
    forward = [made.at(k).W for k in range(STEPS)]
    for k in reversed(range(STEPS)):
        assert (forward[k] != again.at(k).W).nnz == 0


@given(digraphs, st.integers(1, 4), SEEDS)
@settings(max_examples=20, deadline=None)
def test_b_connected_over_every_window(base, window, seed):
    schedule = topology.b_connected(base, window, seed=seed)
    edges = sorted(base.graph.to_directed().edges)
    for start in (0, window, 5 * window):
        steps = [schedule.at(k) for k in range(start, start + window)]
        assert sorted(e for t in steps for e in t.graph.to_directed().edges) == edges
        assert all(t.is_column_stochastic or t.is_row_stochastic for t in steps)
