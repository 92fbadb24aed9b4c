"""Schedules in which ranks average by twos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._circulant import is_circulant
from dectool.topology._convert import from_graph, undirected_base
from dectool.topology._edges import Floats, Ints, count, real
from dectool.topology._law import Few, Law
from dectool.topology._random import draw_graph, geometric_draw
from dectool.topology._schedule import Schedule
from dectool.topology._schedules import one_peer_exponential
from dectool.topology._steps import Cycle, half, partners
from dectool.topology._topology import Topology

if TYPE_CHECKING:
    import networkx as nx


def alternating_ring(n: int) -> Schedule:
    r"""Return the ring whose ranks average with one neighbor, then with the other.

    Pairs (0, 1), (2, 3), ... at even steps, (1, 2), (3, 4), ..., (n - 1, 0) at odd ones, weights
    1/2: half the messages of a ring in each step.

    Args:
        n: Number of ranks, even and at least 2.

    Raises:
        ArgumentError: n is odd or below 2.

    Example:
        >>> s = alternating_ring(6)
        >>> s.period, s.at(0).in_neighbors(0), s.at(1).in_neighbors(0)
        (2, (1,), (5,))
    """
    n = count("n", n, 2)
    if n % 2:
        raise ArgumentError(
            f"n must be even, so that all ranks have a partner, got {n}; use ring({n}), "
            f"base_k({n}) or random_matching(ring({n}))"
        )
    name = f"alternating ring of {n}"
    even = np.arange(0, n, 2)
    members = tuple(
        half(partners(n, first, (first + 1) % n), f"{name}, {side} pairs")
        for side, first in (("even", even), ("odd", even + 1))
    )
    return Schedule(Cycle(members), size=n, period=2, name=name)


def one_peer_hypercube(dimension: int) -> Schedule:
    r"""Return the one-peer hypercube: at step k, i averages with i XOR :math:`2^{k \bmod d}`.

    Any d consecutive steps average exactly. The same as
    ``one_peer_exponential(2**dimension, symmetric=True)``.

    Args:
        dimension: Number of bits d, at least 0; :math:`2^d` ranks.

    Raises:
        ArgumentError: The dimension is negative.

    Example:
        >>> s = one_peer_hypercube(3)
        >>> [s.at(k).in_neighbors(5) for k in range(3)], s.contraction()
        ([(4,), (7,), (1,)], 0.0)
    """
    return one_peer_exponential(1 << count("dimension", dimension, 0), symmetric=True)


def random_pair(graph: nx.Graph[Any] | Topology, *, seed: int = 0) -> Schedule:
    r"""Return randomized gossip: at each step one rank wakes and averages with a neighbor.

    The rank is drawn uniformly, then one of its neighbors, from
    ``numpy.random.default_rng([seed, k])``. Each W is a projection, so
    :math:`\mathbb E[W^T W] = \mathbb E[W] = I - \frac{1}{2n} (D - P - P^T)` with
    :math:`P_{ij} = 1/d_i` on edges and D the diagonal of the sums of P + Pᵀ.

    Args:
        graph: Connected undirected networkx graph, or Topology.
        seed: Non-negative integer.

    Raises:
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> s = random_pair(topology.ring(8))
        >>> s.at(3).edges.senders.size
        2

    References:
        S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, Randomized gossip algorithms, IEEE Trans. Inf.
        Theory 52(6), 2006.
    """
    base = undirected_base(graph, "random_pair")
    seed = count("seed", seed, 0)
    name = f"random pair of {base.name}"
    make = _RandomPair(base, seed, name)
    return Schedule(make, size=base.size, period=None, name=name, law=make.law)


def geographic_gossip(n: int, radius: float, *, seed: int = 0) -> Schedule:
    r"""Return geographic gossip: one rank averages with a far one, reached over several hops.

    At each step a random rank of ``geometric(n, radius, seed=seed)`` sends towards the place of
    another one, each rank handing on to its neighbor nearest to that place; where nobody is
    nearer, the two ends average. If every message arrives, each pair is equally likely, so
    :math:`\mathbb E \lVert W e \rVert^2 = (1 - \frac1{n-1}) \lVert e \rVert^2` for every e that
    sums to 0, as if the graph were complete. The name of a step says how many hops each way it
    takes. Step k draws from ``numpy.random.default_rng([seed, k])``.

    Args:
        n: Number of ranks, at least 2.
        radius: Ranks at most this far apart are neighbors (unit: side of the square), above 0.
        seed: Non-negative integer, of the places too.

    Raises:
        ArgumentError: n or radius is wrong.
        TopologyError: None of 100 draws of the places was connected.

    Example:
        >>> geographic_gossip(50, 0.3).at(0).name
        'geographic gossip of 50 (radius=0.3), 42 and 24 over 3 hops'

    References:
        A. Dimakis, A. Sarwate, M. Wainwright, Geographic gossip: efficient averaging for sensor
        networks, IEEE Trans. Signal Processing 56(3), 2008.
    """
    n, radius, seed = count("n", n, 2), real("radius", radius), count("seed", seed, 0)
    graph = draw_graph(*geometric_draw(n, radius, seed))
    places = np.array([graph.nodes[rank]["pos"] for rank in range(n)])
    name = f"geographic gossip of {n} (radius={radius:g})"
    make = _Geographic(from_graph(graph, weights="uniform"), places, seed, name)
    return Schedule(make, size=n, period=None, name=name, law=make.law)


@dataclass(frozen=True)
class _RandomPair:
    base: Topology
    seed: int
    name: str

    def __call__(self, k: int) -> Topology:
        rng = np.random.default_rng([self.seed, k])
        rank = int(rng.integers(self.base.size))
        near = self.base.in_neighbors(rank)
        other = near[rng.integers(len(near))] if near else rank
        return _pair(self.base.size, rank, other, f"{self.name}, {rank} and {other}")

    def law(self) -> Law:
        n, edges = self.base.size, self.base.edges
        once = edges.receivers < edges.senders
        first, second = edges.receivers[once], edges.senders[once]
        degrees = edges.in_degrees
        few = Few.pairs(n, first, second, (1.0 / degrees[first] + 1.0 / degrees[second]) / n)
        return Law(few.mean, few.forward, projections=True, rotations=is_circulant(edges))


@dataclass(frozen=True)
class _Geographic:
    base: Topology
    places: Floats
    seed: int
    name: str

    def __call__(self, k: int) -> Topology:
        rng = np.random.default_rng([self.seed, k])
        n = self.base.size
        rank = int(rng.integers(n))
        target = self.places[(rank + 1 + rng.integers(n - 1)) % n]
        at, hops = rank, 0
        while (nearer := self._nearest(at, target)) != at:
            at, hops = nearer, hops + 1
        return _pair(n, rank, at, f"{self.name}, {rank} and {at} over {hops} hops")

    def law(self) -> Law:
        """Return the law, by walking from every rank to every other at once."""
        n = self.base.size
        ranks = np.arange(n)
        onward = np.empty((n, n), np.int64)
        for rank in range(n):
            near = np.array([rank, *self.base.in_neighbors(rank)])
            away = np.linalg.norm(self.places[near][:, None] - self.places, axis=2)
            onward[rank] = near[away.argmin(axis=0)]
        at = np.tile(ranks[:, None], (1, n))
        while not np.array_equal(further := onward[at, ranks], at):
            at = further
        source, target = np.nonzero(~np.eye(n, dtype=bool))
        ends = np.sort([source, at[source, target]], axis=0)
        codes, times = np.unique(ends[0] * n + ends[1], return_counts=True)
        first, second = np.divmod(codes, n)
        moved = first != second
        few = Few.pairs(n, first[moved], second[moved], times[moved] / (n * (n - 1)))
        return Law(few.mean, few.forward, projections=True)

    def _nearest(self, rank: int, target: Floats) -> int:
        near = np.array([rank, *self.base.in_neighbors(rank)])
        away = np.linalg.norm(self.places[near] - target, axis=1)
        return int(near[away.argmin()])


def _pair(n: int, first: int, second: int, name: str) -> Topology:
    ends: Ints = np.array([first])
    return half(partners(n, ends, np.array([second])), name)
