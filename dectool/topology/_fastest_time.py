"""The weights and edges that average in the least time, where edges take different times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dectool._text import nearest
from dectool.errors import ArgumentError, TopologyError
from dectool.topology._convert import undirected_base
from dectool.topology._edge_seconds import EdgeSeconds, seconds_of_edges
from dectool.topology._edges import Edges, Floats, Ints
from dectool.topology._fastest import fastest
from dectool.topology._guards import fraction
from dectool.topology._quantities import rounds_within
from dectool.topology._topology import Topology
from dectool.topology._weights import FASTEST

if TYPE_CHECKING:
    import networkx as nx


@final
@dataclass(frozen=True)
class ConsensusPlan:
    """What ``fastest_consensus`` chooses: a mixing matrix, the edges it uses, and the time.

    Attributes:
        topology: The chosen W; its ``certified_gap`` is about W on the edges that it uses.
        eps: Share of the distance to the mean that may remain.
        port: "parallel" or "serial", how ranks send.
        rounds: Steps of averaging until then, ``consensus_rounds(topology, eps)``.
        seconds_per_round: Time of a step.
        bound: Certified: no symmetric W of the kind on the graph is done in fewer seconds.
        dropped: The edges (i, j), i < j, of the graph that W does not use, as ranks.
    """

    topology: Topology
    eps: float
    port: str
    rounds: int
    seconds_per_round: float
    bound: float
    dropped: tuple[tuple[int, int], ...]

    @property
    def seconds(self) -> float:
        """Predicted time until at most eps times the distance to the mean remains."""
        return self.rounds * self.seconds_per_round

    @property
    def certified_gap(self) -> float:
        """How many seconds, at most, another choice is faster."""
        return max(0.0, self.seconds - self.bound)

    def __repr__(self) -> str:
        return (
            f"<ConsensusPlan: {self.topology.name}, {self.rounds} rounds of "
            f"{self.seconds_per_round:g} s>"
        )


def fastest_consensus(
    graph: nx.Graph[Any] | Topology,
    edge_seconds: EdgeSeconds,
    *,
    eps: float = 1e-6,
    port: str = "parallel",
    weights: str = "fastest_mixing",
) -> ConsensusPlan:
    r"""Return the edges and weights that average in the least time, not the fewest rounds.

    A round over the edges E takes :math:`T(E)`, and :math:`\lceil \log \epsilon / \log \rho
    \rceil` rounds are needed, at least one; the product is minimised. A slow edge is worth its
    place only if it saves more rounds than it prolongs.

    With port="parallel" the messages of a rank travel at the same time, and T is the time of the
    slowest edge in use. Then the best E is all edges up to some time, and it is found among those,
    each with its optimal weights; what their dual bounds exclude is not solved.

    With port="serial" a rank sends one message after the other, and receives so; T is the largest
    sum of the times at a rank. The choice is then combinatorial, and this one a heuristic: from
    the rank with the largest sum it removes, time and again, the edge with the least weight per
    second, and takes the best graph on the way. ``bound`` holds, but may be far.

    Args:
        graph: Connected undirected networkx graph, or Topology.
        edge_seconds: Seconds that a message takes, at least 0, ``inf`` for an edge not to be used:
            a mapping {(u, v): seconds} or a function of u and v, nodes as the graph names them; an
            array (n, n) over ranks; or the name of an edge attribute. Of the two directions of an
            edge, the slower counts.
        eps: Share of the distance to the mean that may remain, above 0, below 1.
        port: "parallel" or "serial".
        weights: "fastest_mixing" or "fastest_averaging".

    Raises:
        ArgumentTypeError: ``edge_seconds`` is of no known kind.
        ArgumentError: An edge has no time or a wrong one, or another argument is out of range.
        TopologyError: The graph is directed, or not connected by edges of finite time.

    Example:
        >>> from dectool import topology
        >>> ring = topology.ring(6)
        >>> def seconds(i, j):
        ...     return 5.0 if {i, j} == {0, 5} else 1.0
        >>> plan = fastest_consensus(ring, seconds)
        >>> plan
        <ConsensusPlan: ring of 6 without 1 edge, 97 rounds of 1 s>
        >>> plan.dropped, plan.seconds, plan.certified_gap
        (((0, 5),), 97.0, 0.0)
        >>> 5.0 * topology.consensus_rounds(topology.ring(6, weights="fastest_mixing"), 1e-6)
        140.0

    References:
        S. Boyd, P. Diaconis, L. Xiao, Fastest mixing Markov chain on a graph, SIAM Review 46(4),
        2004 (the weights); T. Gonzalez, S. Sahni, Open shop scheduling to minimize finish time,
        J. ACM 23(4), 1976 (that ports which take messages in turn need no more than the largest
        sum, if messages may be split).
    """
    base = undirected_base(graph, "fastest_consensus")
    eps = fraction("eps", eps)
    if weights not in FASTEST:
        raise ArgumentError(f"weights={weights!r} is not optimal; {nearest(weights, FASTEST)}")
    if port not in ("parallel", "serial"):
        raise ArgumentError(f"port={port!r} is unknown; use 'parallel' or 'serial'")
    once = base.edges.receivers < base.edges.senders
    first, second = base.edges.receivers[once], base.edges.senders[once]
    times = seconds_of_edges(graph, base, first, second, edge_seconds)
    search = _Search(base, first, second, times, eps, port, weights)
    if not search.connected(np.isfinite(times)):
        raise TopologyError(
            f"fastest_consensus needs a graph that is connected by edges of finite time, and "
            f"{base.name} is not; give another edge a time below inf"
        )
    return search.parallel() if port == "parallel" else search.serial()


@dataclass
class _Search:
    """Plans for sets of edges, each a mask over all; the best so far."""

    base: Topology
    first: Ints
    second: Ints
    times: Floats
    eps: float
    port: str
    weights: str
    best: ConsensusPlan | None = field(default=None, init=False)

    def connected(self, used: Any) -> bool:
        """Say whether some edges connect all ranks."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        n = self.base.size
        entries = (np.ones(int(used.sum())), (self.first[used], self.second[used]))
        links = sparse.coo_array(entries, shape=(n, n))
        return int(connected_components(links.tocsr(), directed=False)[0]) == 1

    def round_time(self, used: Any) -> float:
        """Return the seconds of a round over some edges."""
        if not used.any():
            return 0.0
        if self.port == "parallel":
            return float(self.times[used].max())
        return float(self.at_ranks(used).max())

    def at_ranks(self, used: Any) -> Floats:
        """Return the sum of the times at each rank."""
        n, times = self.base.size, self.times[used]
        sums = np.bincount(self.first[used], times, n) + np.bincount(self.second[used], times, n)
        return np.asarray(sums, dtype=np.float64)

    def solve(self, used: Any) -> tuple[Topology, float]:
        """Return the optimal weights on some edges, and the bound on their ρ; keep the best."""
        base = self.base
        receivers = np.concatenate([self.first[used], self.second[used]])
        senders = np.concatenate([self.second[used], self.first[used]])
        W, bound = fastest(Edges(base.size, receivers, senders), self.weights)
        if used.any():
            used = used & (np.asarray(W[self.first, self.second]) != 0)
        gone = int(np.count_nonzero(~used))
        without = f" without {gone} edge{'s' if gone > 1 else ''}" if gone else ""
        topology = Topology(
            W,
            name=base.name + without,
            weights=self.weights,
            labels=None if base.labels == tuple(range(base.size)) else base.labels,
            rho_bound=bound,
        )
        rounds, seconds = self.rounds(topology.rho), self.round_time(used)
        if self.best is None or rounds * seconds < self.best.seconds:
            dropped = zip(self.first[~used].tolist(), self.second[~used].tolist(), strict=True)
            self.best = ConsensusPlan(
                topology, self.eps, self.port, rounds, seconds, 0.0, tuple(dropped)
            )
        return topology, 0.0 if bound is None else bound

    def rounds(self, rho: float) -> int:
        """Return the rounds that a matrix of this ρ needs."""
        return rounds_within(min(rho, 1.0 - 1e-15), self.eps, self.base.name)

    def finish(self, bound: float) -> ConsensusPlan:
        """Return the best plan, with a bound on all others."""
        best = self.best
        assert best is not None
        return replace(best, bound=min(bound, best.seconds))

    def parallel(self) -> ConsensusPlan:
        """Search the levels of time: edges up to a higher level have a smaller ρ."""
        levels = np.unique(self.times[np.isfinite(self.times)])
        if levels.size == 0:
            self.solve(np.ones(0, dtype=bool))
            return self.finish(0.0)
        low, high = 0, levels.size - 1
        while low < high:
            middle = (low + high) // 2
            if self.connected(self.times <= levels[middle]):
                high = middle
            else:
                low = middle + 1
        last = int(levels.size) - 1
        _, rho = self.solve(self.times <= levels[last])
        bound = float(levels[last]) * self.rounds(rho)
        # Ranges of levels not yet solved, each with a number that ρ is not below there.
        ranges = [(low, last - 1, rho)]
        while ranges:
            start, end, rho = ranges.pop()
            assert self.best is not None
            least = levels[start : end + 1] * self.rounds(rho)
            kept = int(np.searchsorted(least, self.best.seconds))
            # What is not kept is no faster than the best, however good its weights.
            if kept == 0:
                continue
            middle = start + kept // 2
            _, found = self.solve(self.times <= levels[middle])
            bound = min(bound, float(levels[middle]) * self.rounds(found))
            ranges += [(middle + 1, start + kept - 1, rho), (start, middle - 1, found)]
        return self.finish(bound)

    def serial(self) -> ConsensusPlan:
        """Thin the graph at its busiest rank; keep the best on the way."""
        used = np.isfinite(self.times)
        topology, rho = self.solve(used)
        bound = self._least_round(used) * self.rounds(rho)
        solved = self.round_time(used)
        while self._thin(used, topology):
            seconds = self.round_time(used)
            assert self.best is not None
            if seconds < solved and seconds * self.rounds(rho) < self.best.seconds:
                topology, rho = self.solve(used)
                solved = seconds
        return self.finish(bound)

    def _thin(self, used: Any, topology: Topology) -> bool:
        """Take from a busiest rank the edge of least weight per second, if one can go."""
        sums = self.at_ranks(used)
        busiest = int(sums.argmax())
        edges = np.flatnonzero(used & ((self.first == busiest) | (self.second == busiest)))
        worth = [
            topology.weight(int(self.first[e]), int(self.second[e])) / self.times[e]
            if self.times[e] > 0
            else math.inf
            for e in edges
        ]
        for e in edges[np.argsort(worth, kind="stable")]:
            used[e] = False
            if self.connected(used):
                return True
            used[e] = True
        return False

    def _least_round(self, used: Any) -> float:
        """Return a time that no round of a connected graph is below: every rank has an edge."""
        least = np.full(self.base.size, math.inf)
        for ends in (self.first[used], self.second[used]):
            np.minimum.at(least, ends, self.times[used])
        finite = least[np.isfinite(least)]
        return float(finite.max()) if finite.size else 0.0
