"""Cycle time of ranks that wait for their neighbors, with exponential times: a Markov chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError
from dectool.theory._arguments import Floats, seconds_of, whole
from dectool.theory._waits import Ints, waits
from dectool.topology import Schedule, Topology, as_schedule

Keys = np.ndarray[Any, np.dtype[np.bytes_]]
_AHEAD = 250
_SWEEPS = 20_000


def exponential_cycle_time(
    topology: Topology | Schedule,
    mean: float | Sequence[float] | Floats = 1.0,
    *,
    staleness: int = 0,
    max_states: int = 500_000,
) -> float:
    r"""Return the exact mean seconds per step of ranks that wait for their neighbors.

    Each rank computes for an exponential time, independent of all others, as soon as it has the
    last value of each in-neighbor; messages take no time. By how many computations the ranks are
    ahead of the last one, :math:`x_i`, is a Markov chain: rank i computes, at rate
    :math:`\mu_i`, while :math:`x_j \ge x_i - s` for all in-neighbors j. In the long run every rank
    makes :math:`\mu_i \mathrm{P}(\text{i computes})` steps per second.

    Waiting for neighbors alone hides most of the random delays that a barrier, with
    :math:`H_n / \mu`, suffers from: on the directed ring a step takes :math:`(2 - 1/n)/\mu`,
    however many ranks there are. Slowness for good is not hidden: see :func:`cycle_time`.

    Args:
        topology: Whom each rank waits for: strongly connected, or a periodic schedule that is so
            over its period.
        mean: Mean seconds of a computation, above 0: one number for all ranks or one for each.
        staleness: Steps s that a rank may be ahead of its in-neighbors.
        max_states: Largest number of states to enumerate; 500,000 take some seconds and less
            than 1 GiB. Where turning all ranks by one changes nothing, as on a ring, states that
            differ by a turn are one.

    Returns:
        Seconds per step of every rank, to 12 digits.

    Raises:
        ArgumentError: There are more states than ``max_states``, the start is forgotten too
            slowly (with a large staleness), or the schedule has no period.
        TopologyError: The graph is not strongly connected.

    Example:
        >>> from dectool import topology
        >>> exponential_cycle_time(topology.ring(4))  # 47/24
        1.95833333333

    References:
        B. Derrida, M. R. Evans, V. Hakim, V. Pasquier, J. Phys. A 26, 1993: the directed ring of n
        is the totally asymmetric exclusion process of n particles on 2n sites.
        D. P. Bertsekas, J. N. Tsitsiklis, Parallel and Distributed Computation, 1989, section 1.4.
    """
    n = as_schedule(topology).size
    ahead = whole("staleness", staleness, 0)
    steps = waits(topology, ahead)
    rates = 1.0 / seconds_of("mean", mean, n)
    turns = n if np.ptp(rates) == 0.0 and all(_turns(n, *step) for step in steps) else 1
    most = whole("max_states", max_states, 1)
    return _Chain(topology.name, n, steps, rates, ahead, turns, most).cycle_time()


def _turns(n: int, receivers: Ints, senders: Ints) -> bool:
    """Return whether the edges stay the same when each rank becomes the next."""
    edges = np.sort(receivers * n + senders)
    moved = np.sort((receivers + 1) % n * n + (senders + 1) % n)
    return np.array_equal(edges, moved)


@dataclass
class _Chain:
    """The chain of who is ahead, seen when computations end.

    A state is the phase of the schedule, at the count of the last rank, and the counts above that;
    it is kept as n + 1 bytes. After n ends of each phase the chain is back in the class of states
    where it began, so classes are numbered by the ends so far.
    """

    name: str
    size: int
    steps: list[tuple[Ints, Ints]]
    rates: Floats
    staleness: int
    turns: int
    max_states: int

    def cycle_time(self) -> float:
        """Return the expected time of one end for each rank, once the start is forgotten.

        Sweeps through the classes instead of a linear solve: the chain forgets within a few, while
        a sparse factorization fills up.
        """
        classes = self._classes()
        stages = [self._stage(c, classes[(k + 1) % len(classes)]) for k, c in enumerate(classes)]
        begin = np.zeros(len(classes[0]))
        begin[0] = 1.0
        for _ in range(_SWEEPS):
            p, total = begin, 0.0
            for jumps, holding in stages:
                total += float(p @ holding)
                p = jumps @ p
            p /= p.sum()
            if np.abs(p - begin).sum() <= 1e-14:
                return total / len(self.steps)
            begin = p
        raise ArgumentError(
            f"{self.name} with staleness={self.staleness} forgets its start too slowly: not within "
            f"{_SWEEPS * len(self.steps):,} steps. Simulate instead"
        )

    def _classes(self) -> list[Keys]:
        """Return the states that can be reached, class by class, each in ascending order."""
        if (2**self.size - 1) // self.turns > self.max_states:
            raise self._too_many(f"at least {(2**self.size - 1) // self.turns:.3g}")
        front = self._keys(np.zeros((1, self.size), np.int64), np.zeros(1, np.int64))
        classes = [front[:0]] * (self.size * len(self.steps))
        classes[0] = front
        found, k = 1, 0
        while len(front):
            k = (k + 1) % len(classes)
            reached = np.unique(np.concatenate([keys for _, _, keys in self._ends(front)]))
            front = np.setdiff1d(reached, classes[k], assume_unique=True)
            classes[k] = np.union1d(classes[k], front)
            found += len(front)
            if found > self.max_states:
                raise self._too_many(f"more than {self.max_states:,}")
        return classes

    def _stage(self, states: Keys, following: Keys) -> tuple[Any, Floats]:
        """Return the matrix that moves probabilities on by one end, and the mean times until it."""
        total = np.zeros(len(states))
        rows, columns, rates = [], [], []
        for rank, which, keys in self._ends(states):
            total[which] += self.rates[rank]
            rows.append(np.searchsorted(following, keys))
            columns.append(which)
            rates.append(np.full(len(which), self.rates[rank]))
        column = np.concatenate(columns)
        shares = np.concatenate(rates) / total[column]
        shape = (len(following), len(states))
        return sparse.csr_array((shares, (np.concatenate(rows), column)), shape), 1.0 / total

    def _ends(self, states: Keys) -> list[tuple[int, Ints, Keys]]:
        """Return for each rank the states in which it computes, and those that follow its end."""
        table = np.frombuffer(states.tobytes(), np.uint8).reshape(-1, self.size + 1)
        phase, x = table[:, 0].astype(np.int64), table[:, 1:].astype(np.int64)
        found = []
        for rank in range(self.size):
            which = np.flatnonzero(self._computes(rank, x, phase))
            after = x[which]
            after[:, rank] += 1
            found.append((rank, which, self._keys(after, phase[which])))
        return found

    def _computes(self, rank: int, x: Ints, phase: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return in which states a rank has all that it waits for."""
        at = (phase + x[:, rank]) % len(self.steps)
        may = np.ones(len(x), bool)
        for k, (receivers, senders) in enumerate(self.steps):
            sources = senders[receivers == rank]
            if len(sources):
                ready = x[:, sources].min(axis=1) >= x[:, rank] - self.staleness
                may &= ready | (at != k)
        return may

    def _keys(self, x: Ints, phase: Ints) -> Keys:
        """Return states as bytes, the smallest among the turns of each."""
        least = x.min(axis=1)
        counts = x - least[:, None]
        if max(int(counts.max(initial=0)), len(self.steps)) > _AHEAD:
            raise self._too_many("very many")
        first = (phase + least) % len(self.steps)
        best: Keys | None = None
        for turn in range(self.turns):
            table = np.column_stack([first, np.roll(counts, turn, axis=1)]).astype(np.uint8)
            keys = np.ascontiguousarray(table).view(f"S{self.size + 1}").ravel()
            best = keys if best is None else np.where(keys < best, keys, best)
        assert best is not None
        return best

    def _too_many(self, count: str) -> ArgumentError:
        return ArgumentError(
            f"{self.name} has {count} states, above max_states={self.max_states:,}. Simulate "
            "instead: dectool.run(program, backend='stacked', compute=dectool.sim.Exponential("
            "mean)), where the program computes, then averages; for all to all, expected_maximum "
            "is exact"
        )
