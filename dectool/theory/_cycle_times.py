"""Cycle time of ranks that wait for their neighbors, with constant times: max-plus algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dectool.errors import ArgumentError
from dectool.theory._arguments import Floats, floats, seconds_of, whole
from dectool.theory._waits import Ints, waits
from dectool.topology import Schedule, Topology, as_schedule


def cycle_time(
    topology: Topology | Schedule,
    seconds: float | Sequence[float] | Floats,
    *,
    delay: Any = 0.0,
    staleness: int = 0,
) -> float:
    r"""Return the seconds per step, in the long run, of ranks that wait for their neighbors.

    Rank i begins its next computation, of :math:`c_i` seconds, when it has the last value of each
    in-neighbor j, which takes :math:`d_{ji}` seconds to come:

    .. math:: T_i(k + 1) = \max_{j \in N_i \cup \{i\}} (T_j(k) + d_{ji}) + c_i, \qquad d_{ii} = 0

    By max-plus spectral theory all :math:`T_i(k) / k` tend to the maximum cycle mean: over the
    circuits of the graph, the largest sum of c + d over the number of steps that it spans. Without
    delays this is the slowest rank's time, in any connected graph.

    Args:
        topology: Whom each rank waits for: strongly connected, or a periodic schedule that is so
            over its period.
        seconds: Computation time c, above 0: one number for all ranks or one for each.
        delay: d, at least 0, from the end of the sender's computation to the arrival: a number,
            or an array (n, n) whose entry [i, j] holds for messages from rank i to rank j.
        staleness: Steps s that a rank may be ahead: it waits for :math:`T_j(k - s)` instead.

    Returns:
        Seconds per step of every rank. The value is the mean of a circuit that exists, and no
        circuit has a larger one but for rounding.

    Raises:
        ArgumentError: Times, delays or staleness are out of range, or the schedule has no period.
        TopologyError: The graph is not strongly connected.

    Example:
        >>> from dectool import topology
        >>> ring, seconds = topology.ring(4), [1.0, 3.0, 1.0, 1.0]
        >>> cycle_time(ring, seconds), cycle_time(ring, seconds, delay=2.0)
        (3.0, 4.0)

    References:
        F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, Synchronization and Linearity, Wiley,
        1992, sections 2.5 and 3.2.
        J. Cochet-Terrasson et al., Numerical computation of spectral elements in max-plus
        algebra, IFAC Conference on System Structure and Control, 1998 (Howard's algorithm).
    """
    return _solve(topology, seconds, delay, staleness)[0]


def critical_circuit(
    topology: Topology | Schedule,
    seconds: float | Sequence[float] | Floats,
    *,
    delay: Any = 0.0,
    staleness: int = 0,
) -> tuple[int, ...]:
    """Return the ranks of a circuit that sets the pace of :func:`cycle_time`, the lowest first.

    Each rank waits for the one before it, and the first for the last. A single rank is limited by
    its own computations. On a schedule the circuit spans whole periods, and a rank stands in it
    once for each step that it makes.

    Args:
        topology: As for :func:`cycle_time`.
        seconds: As there.
        delay: As there.
        staleness: As there.

    Example:
        >>> from dectool import topology
        >>> critical_circuit(topology.ring(4), [1.0, 3.0, 2.0, 1.0], delay=5.0)
        (1, 2)
    """
    ranks = _solve(topology, seconds, delay, staleness)[1]
    first = ranks.index(min(ranks))
    return ranks[first:] + ranks[:first]


def _solve(
    topology: Topology | Schedule, seconds: Any, delay: Any, staleness: int
) -> tuple[float, tuple[int, ...]]:
    n = as_schedule(topology).size
    ahead = whole("staleness", staleness, 0)
    steps = waits(topology, ahead)
    c = seconds_of("seconds", seconds, n)
    d = _delays(delay, n)
    ranks = np.arange(n)
    tails, heads, weights, spans = [], [], [], []
    for k, (receivers, senders) in enumerate(steps):
        now, after = k * n, (k + 1) % len(steps) * n
        tails += [ranks + now, senders + now]
        heads += [ranks + after, receivers + after]
        weights += [c, d[senders, receivers] + c[receivers]]
        spans += [np.ones(n), np.full(len(senders), 1.0 + ahead)]
    arcs = _Arcs(*(np.concatenate(part) for part in (tails, heads, weights, spans)))
    mean, circuit = _howard(arcs)
    return mean, tuple(int(node) % n for node in circuit)


def _delays(delay: Any, n: int) -> Floats:
    array = floats("delay", delay)
    if array.shape not in ((), (n, n)):
        raise ArgumentError(f"delay must be a number or of shape {(n, n)}, got {array.shape}")
    if not ((array >= 0.0) & (array < math.inf)).all():
        raise ArgumentError("delay must be finite and at least 0 seconds")
    return np.broadcast_to(array, (n, n))


@dataclass
class _Arcs:
    """A graph in which every node has an arc to it, sorted by the nodes that arcs lead to."""

    tail: Ints
    head: Ints
    weight: Floats
    span: Floats

    def __post_init__(self) -> None:
        order = np.argsort(self.head, kind="stable")
        for name in ("tail", "head", "weight", "span"):
            setattr(self, name, getattr(self, name)[order])
        self.starts = np.flatnonzero(np.r_[True, self.head[1:] != self.head[:-1]])
        self.size = len(self.starts)
        self.doublings = range(self.size.bit_length())

    def best(self, values: Floats) -> tuple[Floats, Ints]:
        """Return the largest value among the arcs to each node, and the first arc that has it."""
        largest = np.maximum.reduceat(values, self.starts)
        attained = np.flatnonzero(values == largest[self.head])
        first = np.unique(self.head[attained], return_index=True)[1]
        return largest, attained[first]

    def tree(self, root: int) -> Ints:
        """Return the arc by which a search in breadth from the root reaches each node."""
        numbers = np.arange(1, len(self.tail) + 1)
        graph = sparse.csr_array((numbers, (self.tail, self.head)), (self.size,) * 2)
        before = csgraph.breadth_first_order(graph, root)[1]
        before[root] = self.tail[self.starts[root]]
        return np.asarray(graph[before, np.arange(self.size)] - 1, np.int64)


def _howard(arcs: _Arcs) -> tuple[float, list[int]]:
    """Return the maximum cycle ratio of weight to span, and a circuit that has it.

    A policy gives each node the one arc that it listens to. Its best circuit is a lower bound, and
    potentials that no arc improves prove that it is the largest.
    """
    policy = arcs.best(arcs.weight)[1]
    while True:
        circuit = _best_circuit(arcs, policy)
        ratio = math.fsum(arcs.weight[circuit]) / math.fsum(arcs.span[circuit])
        root = int(arcs.head[circuit[0]])
        reduced = arcs.weight - ratio * arcs.span
        potential, reached = _potentials(arcs, policy, reduced, root)
        if not reached.all():
            policy = np.where(reached, policy, arcs.tree(root))
            potential, _ = _potentials(arcs, policy, reduced, root)
        largest, better = arcs.best(potential[arcs.tail] + reduced)
        scale = max(float(np.abs(potential).max()), float(np.abs(reduced).max()))
        improved = largest > potential + 1e-14 * scale
        if not improved.any():
            return ratio, [int(node) for node in arcs.head[circuit]]
        policy = np.where(improved, better, policy)


def _best_circuit(arcs: _Arcs, policy: Ints) -> Ints:
    """Return the arcs of the policy's circuit with the largest ratio, in the order of waiting."""
    before = arcs.tail[policy]
    name, jump = np.arange(arcs.size), before
    for _ in arcs.doublings:
        name, jump = np.minimum(name, name[jump]), jump[jump]
    on = np.unique(jump)
    weight = np.bincount(name[on], arcs.weight[policy[on]], arcs.size)
    span = np.bincount(name[on], arcs.span[policy[on]], arcs.size)
    ratio = np.divide(weight, span, out=np.full(arcs.size, -np.inf), where=span > 0.0)
    node = root = int(np.argmax(ratio))
    nodes = [root]
    while (node := int(before[node])) != root:
        nodes.append(node)
    return policy[nodes[::-1]]


def _potentials(
    arcs: _Arcs, policy: Ints, reduced: Floats, root: int
) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return each node's reduced weight from the root along the policy, and who leads there."""
    jump, sums = arcs.tail[policy], reduced[policy]
    jump[root], sums[root] = root, 0.0
    for _ in arcs.doublings:
        sums, jump = sums + sums[jump], jump[jump]
    return sums, jump == root
