"""Schedules that draw every step anew from a known list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError
from dectool.topology._circulant import is_circulant
from dectool.topology._convert import undirected_base
from dectool.topology._edges import Floats, count, real
from dectool.topology._law import Few, Law, probabilities_of
from dectool.topology._schedule import Schedule
from dectool.topology._schedules import one_peer_exponential
from dectool.topology._steps import members_of
from dectool.topology._topology import Topology

if TYPE_CHECKING:
    import networkx as nx


def random_choice(
    topologies: Sequence[Topology], probabilities: Sequence[float] | None = None, *, seed: int = 0
) -> Schedule:
    """Return the schedule that draws one of a list of topologies at every step.

    Step k draws from ``numpy.random.default_rng([seed, k])``. Members need not be connected by
    themselves: build them with ``from_matrix(W, require_connected=False)``.

    Args:
        topologies: At least one Topology, all of one size.
        probabilities: Of each, at least 0, with sum 1; default all alike.
        seed: Non-negative integer.

    Raises:
        ArgumentError: The list is empty, or the probabilities do not fit it.
        ArgumentTypeError: A member is not a Topology.
        TopologyError: The sizes differ.

    Example:
        >>> from dectool import topology
        >>> s = random_choice([topology.ring(8), topology.star(8)], [0.9, 0.1])
        >>> s, s.at(0).name
        (<Schedule: random one of ring of 8, star of 8, no period>, 'ring of 8')
    """
    members = members_of(topologies)
    chances = probabilities_of(members, probabilities)
    names = [member.name for member in members]
    shown = ", ".join(names if len(names) <= 3 else [*names[:2], f"... ({len(names)} in all)"])
    return _drawn(members, chances, seed, f"random one of {shown}")


def random_one_peer(n: int, *, symmetric: bool = False, seed: int = 0) -> Schedule:
    r"""Return the one-peer exponential graph whose hop :math:`2^t` is drawn at every step.

    The steps are those of ``one_peer_exponential``, each drawn whatever the others were, so that
    no number of them is sure to average exactly. Step k draws from
    ``numpy.random.default_rng([seed, k])``.

    Args:
        n: Number of ranks, at least 1; a power of two if ``symmetric``.
        symmetric: Exchange with the partner i XOR 2^t.
        seed: Non-negative integer.

    Raises:
        ArgumentError: n is below 1, or not a power of two where it must be.

    Example:
        >>> from dectool import topology
        >>> s = random_one_peer(16)
        >>> s.at(0).out_neighbors(0)[0] in (1, 2, 4, 8)
        True
        >>> round(topology.mean_square_rate(s), 12)
        0.75

    References:
        B. Ying et al., Exponential graph is provably efficient for decentralized deep training,
        NeurIPS 2021.
    """
    cycle = one_peer_exponential(n, symmetric=symmetric)
    members = tuple(cycle.at(k) for k in range(cycle.period or 1))
    chances = np.full(len(members), 1.0 / len(members))
    return _drawn(members, chances, seed, f"random {cycle.name}")


def random_broadcast(
    graph: nx.Graph[Any] | Topology, *, gamma: float = 0.5, seed: int = 0
) -> Schedule:
    r"""Return broadcast gossip: at each step one rank sends its value to all its neighbors.

    The rank i is drawn uniformly, from ``numpy.random.default_rng([seed, k])``; each neighbor j
    takes :math:`x_j \leftarrow \gamma x_j + (1 - \gamma) x_i`. Nobody answers, so the mean is kept
    in expectation alone: :math:`\mathbb E[W] = I - \frac{1 - \gamma}{n} L`, L the Laplacian of the
    graph.

    Args:
        graph: Connected undirected networkx graph, or Topology.
        gamma: What a neighbor keeps of its own value, at least 0, below 1.
        seed: Non-negative integer.

    Raises:
        ArgumentError: gamma is out of range.
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> s = random_broadcast(topology.ring(16))
        >>> len(s.at(5).edges.senders), round(topology.expected_contraction(s), 12)
        (2, 0.995219836698)

    References:
        T. C. Aysal, M. E. Yildiz, A. D. Sarwate, A. Scaglione, Broadcast gossip algorithms for
        consensus, IEEE Trans. Signal Processing 57(7), 2009.
    """
    base, gamma = undirected_base(graph, "random_broadcast"), real("gamma", gamma)
    if not 0 <= gamma < 1:
        raise ArgumentError(f"gamma must be at least 0 and below 1, got {gamma:g}")
    name = f"random broadcast on {base.name}"
    make = _Broadcast(base, gamma, count("seed", seed, 0), name)
    return Schedule(make, size=base.size, period=None, name=name, law=make.law)


@dataclass(frozen=True)
class _Drawn:
    members: tuple[Topology, ...]
    chances: Floats
    seed: int

    def __call__(self, k: int) -> Topology:
        rng = np.random.default_rng([self.seed, k])
        return self.members[int(rng.choice(len(self.members), p=self.chances))]

    def law(self) -> Law:
        return Law.finite(self.members, self.chances.tolist())


@dataclass(frozen=True)
class _Broadcast:
    base: Topology
    gamma: float
    seed: int
    name: str

    def __call__(self, k: int) -> Topology:
        rank = int(np.random.default_rng([self.seed, k]).integers(self.base.size))
        return self._step(rank)

    def law(self) -> Law:
        n = self.base.size
        few = Few.of(n, [self._step(rank).W for rank in range(n)], np.full(n, 1.0 / n))
        turns = is_circulant(self.base.edges)
        return Law(few.mean, few.forward, few.backward, rotations=turns)

    def _step(self, rank: int) -> Topology:
        n, near = self.base.size, np.array(self.base.out_neighbors(rank), np.int64)
        weights = np.ones(n)
        weights[near] = self.gamma
        entries = np.concatenate([weights, np.full(len(near), 1.0 - self.gamma)])
        rows = np.concatenate([np.arange(n), near])
        columns = np.concatenate([np.arange(n), np.full(len(near), rank)])
        W = sparse.coo_array((entries, (rows, columns)), shape=(n, n))
        name = f"{self.name}, {rank} speaks"
        return Topology(W, name=name, weights="broadcast", require_connected=False)


def _drawn(members: tuple[Topology, ...], chances: Floats, seed: int, name: str) -> Schedule:
    make = _Drawn(members, chances, count("seed", seed, 0))
    return Schedule(make, size=members[0].size, period=None, name=name, law=make.law)
