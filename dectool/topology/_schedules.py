"""Constructors of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._convert import undirected_base
from dectool.topology._edges import Ints, count
from dectool.topology._law import Law
from dectool.topology._matching_law import matching_law
from dectool.topology._schedule import Schedule
from dectool.topology._steps import Cycle, greedy_matching, half, members_of, need_member
from dectool.topology._topology import Topology

if TYPE_CHECKING:
    import networkx as nx


def static(topology: Topology) -> Schedule:
    """Return the schedule that uses one topology at every step.

    Args:
        topology: The topology.

    Raises:
        ArgumentTypeError: Not a Topology.

    Example:
        >>> from dectool import topology
        >>> static(topology.ring(4)).at(10**9).name
        'ring of 4'
    """
    need_member("topology", topology)
    return Schedule(Cycle((topology,)), size=topology.size, period=1, name=topology.name)


def periodic(topologies: Sequence[Topology]) -> Schedule:
    """Return the schedule that goes through a list of topologies again and again.

    Members need not be connected by themselves: build them with
    ``from_matrix(W, require_connected=False)``.

    Args:
        topologies: At least one Topology, all of one size.

    Raises:
        ArgumentError: The list is empty.
        ArgumentTypeError: A member is not a Topology.
        TopologyError: The sizes differ.

    Example:
        >>> from dectool import topology
        >>> periodic([topology.ring(4), topology.star(4)])
        <Schedule: ring of 4 / star of 4, period 2>
    """
    members = members_of(topologies)
    names = [member.name for member in members]
    shown = " / ".join(names if len(names) <= 3 else [*names[:2], f"... ({len(names)} in all)"])
    return Schedule(Cycle(members), size=members[0].size, period=len(members), name=shown)


def one_peer_exponential(n: int, *, symmetric: bool = False) -> Schedule:
    r"""Return the one-peer exponential graph: at step k, hop :math:`2^{k \bmod \tau}`.

    :math:`W = \frac12 I + \frac12 \Pi`, where Π sends from i to i + 2^t (mod n), or to i XOR 2^t
    if ``symmetric``, and :math:`\tau = \lceil \log_2 n \rceil`. If n is a power of two, any τ
    consecutive steps average exactly.

    Args:
        n: Number of ranks, at least 1; a power of two if ``symmetric``.
        symmetric: Exchange with the partner i XOR 2^t.

    Raises:
        ArgumentError: n is below 1, or not a power of two where it must be.

    Example:
        >>> s = one_peer_exponential(16)
        >>> s.period, s.at(2).out_neighbors(0)
        (4, (4,))

    References:
        B. Ying et al., Exponential graph is provably efficient for decentralized deep training,
        NeurIPS 2021.
    """
    n = count("n", n, 1)
    if symmetric and n & (n - 1):
        low = 1 << (n.bit_length() - 1)
        raise ArgumentError(
            f"n must be a power of two for symmetric=True, since i XOR 2^t must be a rank, got {n};"
            f" use n={low} or n={2 * low}, symmetric=False, or random_matching(complete({n}))"
        )
    kind = "symmetric one-peer" if symmetric else "one-peer"
    period = max(1, (n - 1).bit_length())
    name = f"{kind} exponential graph of {n}"
    return Schedule(_OnePeer(n, symmetric, name), size=n, period=period, name=name)


def shift_one(n: int) -> Schedule:
    r"""Return the schedule of pairs in which each half of the ranks goes round the other half.

    At step t, rank r < n/2 averages with rank :math:`n/2 + (r + t) \bmod n/2`, weights 1/2; after
    n/2 steps each rank of one half has met each of the other.

    Args:
        n: Number of ranks, even and at least 2.

    Raises:
        ArgumentError: n is odd or below 2.

    Example:
        >>> s = shift_one(8)
        >>> s.period, s.at(1).out_neighbors(0)
        (4, (5,))

    References:
        S. Gan et al., BAGUA: scaling up distributed learning with system relaxations, VLDB 2021
        (its peer selection "shift_one").
    """
    n = count("n", n, 2)
    if n % 2:
        raise ArgumentError(f"n must be even, so that all ranks have a partner, got {n}")
    name = f"shift-one pairs of {n}"
    return Schedule(_ShiftOne(n, name), size=n, period=n // 2, name=name)


def random_matching(graph: nx.Graph[Any] | Topology, *, seed: int = 0) -> Schedule:
    """Return the schedule that pairs ranks at random along edges, anew at every step.

    Step k shuffles the edges with ``numpy.random.default_rng([seed, k])`` and keeps each edge whose
    ends are both free: a maximal matching. Pairs average with weights 1/2; the others wait. Any
    step can be asked for directly, and gives the same matching everywhere. The ``law`` is known
    for complete graphs, and for those with at most 20,000 matchings (a ring of 20 has 15,127).

    Args:
        graph: Connected undirected networkx graph, or Topology.
        seed: Non-negative integer.

    Raises:
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> s = random_matching(topology.ring(6), seed=1)
        >>> s.period is None, s.at(5).is_symmetric, s.at(5).max_degree
        (True, True, 1)

    References:
        S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, Randomized gossip algorithms, IEEE Trans. Inf.
        Theory 52(6), 2006.
    """
    base = undirected_base(graph, "random_matching")
    seed = count("seed", seed, 0)
    once = base.edges.receivers < base.edges.senders
    name = f"random matching of {base.name}"
    make = _Matching(base, base.edges.receivers[once], base.edges.senders[once], seed, name)
    return Schedule(make, size=base.size, period=None, name=name, law=make.law)


def as_schedule(topology: Topology | Schedule) -> Schedule:
    """Return a schedule as it is, and a topology as the schedule that always uses it.

    Args:
        topology: Topology or Schedule.

    Raises:
        ArgumentTypeError: Neither.

    Example:
        >>> from dectool import topology
        >>> as_schedule(topology.ring(4)).period
        1
    """
    return topology if isinstance(topology, Schedule) else static(topology)


@dataclass(frozen=True)
class _OnePeer:
    size: int
    symmetric: bool
    name: str

    def __call__(self, k: int) -> Topology:
        ranks = np.arange(self.size)
        if self.size == 1:
            sources = ranks
        elif self.symmetric:
            sources = ranks ^ (1 << k)
        else:
            sources = (ranks - (1 << k)) % self.size
        return half(sources, f"{self.name}, hop {1 << k}")


@dataclass(frozen=True)
class _ShiftOne:
    size: int
    name: str

    def __call__(self, k: int) -> Topology:
        middle = self.size // 2
        ranks = np.arange(middle)
        up = middle + (ranks + k) % middle
        down = (ranks - k) % middle
        return half(np.concatenate([up, down]), f"{self.name}, shift {k}")


@dataclass(frozen=True)
class _Matching:
    base: Topology
    first: Ints
    second: Ints
    seed: int
    name: str

    def __call__(self, k: int) -> Topology:
        order = np.random.default_rng([self.seed, k]).permutation(self.first.size)
        pairs = greedy_matching(self.base.size, self.first[order], self.second[order])
        return half(pairs, self.name)

    def law(self) -> Law:
        return matching_law(self.base, self.name)
