"""All faults of a run, as answers to questions about a time: is it dead, is it lost, is it slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from dectool.sim.faults._chance import Periods, exponential, uniform
from dectool.sim.faults._fault import Fault
from dectool.sim.faults._messages import LinkDown, MessageLoss, RandomLinkDown, SlowLink
from dectool.sim.faults._ranks import (
    Crash,
    LateJoin,
    RandomCrashes,
    RandomSlowPeriods,
    SlowPeriod,
)


class Gap(NamedTuple):
    """A time in which a rank is not there, from ``start`` to before ``stop`` (seconds)."""

    start: float
    stop: float
    crashed: bool

    @property
    def words(self) -> str:
        """What follows "rank 3"."""
        if self.crashed:
            return f"which crashed at t = {self.start:.9g} s"
        return f"which joins at t = {self.stop:.9g} s only"


class Loss(NamedTuple):
    """Why a message is lost: the kind for reports, and words for the receiver, who may be told."""

    kind: str
    words: str
    told: bool


@final
class FaultPlan:
    """What goes wrong in a run; every answer depends on seed, ranks, number and time alone.

    Args:
        faults: As given to ``run``.
        size: Number of ranks.
        seed: Seed of the run.

    Raises:
        ArgumentError: A fault names a rank that there is not.
    """

    def __init__(self, faults: Sequence[Fault], size: int, seed: int) -> None:
        for fault in faults:
            fault.check_size(size)
        self._seed = seed
        self._faults = list(enumerate(faults))
        self.gaps = [self._gaps_of(rank) for rank in range(size)]
        every = [(rank, gap.start, gap.stop) for rank in range(size) for gap in self.gaps[rank]]
        self._all_gaps = np.array(every).reshape(-1, 3)
        self._links: dict[tuple[int, int], _Link] = {}
        self._slow = [self._slow_of(rank) for rank in range(size)]

    # -- ranks ---------------------------------------------------------------------------------

    def gap(self, rank: int, time: float) -> Gap | None:
        """Return the time around ``time`` in which a rank is not there, if it is not."""
        for gap in self.gaps[rank]:
            if gap.start <= time < gap.stop:
                return gap
        return None

    def absent(self, time: float, noticed: float) -> frozenset[int]:
        """Return the ranks that are not there at a time, and have not been for some seconds."""
        start, stop = self._all_gaps[:, 1], self._all_gaps[:, 2]
        which = (start + noticed <= time) & (time < stop)
        return frozenset(self._all_gaps[which, 0].astype(int).tolist())

    def next_death(self, rank: int, time: float) -> float:
        """Return when a rank crashes next, from a time on; ``inf`` for never."""
        return next((gap.start for gap in self.gaps[rank] if gap.start >= time), math.inf)

    def delay(self, rank: int, start: float, seconds: float) -> float:
        """Return how much longer a computation takes that begins at ``start``, in seconds."""
        slow = self._slow[rank]
        time, left, delay = start, seconds, 0.0
        while slow and left > 0.0:
            factor, change = _product(slow, time)
            done = min(left, (change - time) / factor)
            delay += done * (factor - 1.0)
            left -= done
            time = change
        return delay

    def _gaps_of(self, rank: int) -> list[Gap]:
        found = []
        for index, fault in self._faults:
            if isinstance(fault, LateJoin) and fault.rank == rank:
                found.append(Gap(0.0, fault.at, crashed=False))
            elif isinstance(fault, Crash) and fault.rank == rank:
                found.append(Gap(fault.at, _after(fault.at, fault.restart_after), crashed=True))
            elif isinstance(fault, RandomCrashes) and fault.rank in (None, rank):
                time = 0.0
                for number in range(fault.most):
                    key = (self._seed, "crash", index, rank, number)
                    time += exponential(fault.mean_uptime, *key)
                    found.append(Gap(time, _after(time, fault.restart_after), crashed=True))
                    time = found[-1].stop
                    if time == math.inf:
                        break
        gaps: list[Gap] = []
        for gap in sorted(found):
            if not gaps or gap.start >= gaps[-1].stop:
                gaps.append(gap)
        return gaps

    def _slow_of(self, rank: int) -> list[tuple[float, Any]]:
        slow: list[tuple[float, Any]] = []
        for index, fault in self._faults:
            if isinstance(fault, SlowPeriod) and fault.rank == rank:
                slow.append((fault.factor, _Once(fault.start, fault.stop)))
            elif isinstance(fault, RandomSlowPeriods) and fault.rank in (None, rank):
                key = (self._seed, "slow", index, rank)
                periods = Periods(fault.mean_between, fault.mean_length, *key)
                slow.append((fault.factor, periods))
        return slow

    # -- messages ------------------------------------------------------------------------------

    def slowness(self, source: int, dest: int, start: float) -> float:
        """Return by what factor a message takes longer that leaves at ``start``."""
        link = self._link(source, dest)
        return _product(link.slow, start)[0] if link.slow else 1.0

    def loss(
        self, source: int, dest: int, number: int, start: float, released: float, arrival: float
    ) -> Loss | None:
        """Return why a message does not arrive, or ``None`` if it does.

        Args:
            source: Rank that sends.
            dest: Rank to send to.
            number: Which message from one to the other this is, from 0.
            start: When the sender's port begins with it, in seconds.
            released: When it has left the port.
            arrival: When it arrives.
        """
        death = self.next_death(source, start)
        if self.gap(source, start) is not None or released > death:
            return Loss("sender crashed", "which crashed", told=False)
        gap = self.gap(dest, arrival)
        if gap is not None:
            kind = "receiver crashed" if gap.crashed else "receiver not there yet"
            return Loss(kind, gap.words, told=False)
        link = self._link(source, dest)
        if any(period.meets(start, arrival) for period in link.down):
            return Loss("link down", f"as the link was down (sent at t = {start:.9g} s)", told=True)
        for key, probability in link.losses:
            if uniform(*key, number) < probability:
                words = f"whose message was lost (sent at t = {start:.9g} s)"
                return Loss("lost at random", words, told=True)
        return None

    def _link(self, source: int, dest: int) -> _Link:
        link = self._links.get((source, dest))
        if link is None:
            link = self._links[source, dest] = self._new_link(source, dest)
        return link

    def _new_link(self, source: int, dest: int) -> _Link:
        link = _Link([], [], [])
        ends = (source, dest)
        for index, fault in self._faults:
            if isinstance(fault, MessageLoss):
                back = fault.both and _matches(fault, dest, source)
                if back or _matches(fault, source, dest):
                    who = (min(ends), max(ends)) if fault.both else ends
                    link.losses.append(((self._seed, "loss", index, *who), fault.probability))
            elif isinstance(fault, LinkDown):
                named = (fault.source, fault.dest)
                if ends == named or (fault.both and ends == named[::-1]):
                    link.down.append(_Once(fault.start, fault.stop))
            elif isinstance(fault, RandomLinkDown):
                if _matches(fault, source, dest) or _matches(fault, dest, source):
                    key = (self._seed, "link", index, min(ends), max(ends))
                    link.down.append(Periods(fault.mean_up, fault.mean_down, *key))
            elif isinstance(fault, SlowLink) and _matches(fault, source, dest):
                link.slow.append((fault.factor, _Once(fault.start, fault.stop)))
        return link


class _Link(NamedTuple):
    """What goes wrong from one rank to another."""

    losses: list[tuple[tuple[Any, ...], float]]
    down: list[Any]
    slow: list[tuple[float, Any]]


class _Once(NamedTuple):
    """One period, with the questions of :class:`Periods`."""

    start: float
    stop: float

    def next_change(self, time: float) -> tuple[bool, float]:
        """Return whether the period covers a time, and when that changes."""
        if time < self.start:
            return False, self.start
        return (True, self.stop) if time < self.stop else (False, math.inf)

    def meets(self, start: float, stop: float) -> bool:
        """Tell whether it covers any time from ``start`` to ``stop``."""
        return start < self.stop and stop >= self.start


def _product(slow: Sequence[tuple[float, Any]], time: float) -> tuple[float, float]:
    """Return the product of the factors that hold at a time, and until when it holds."""
    product, until = 1.0, math.inf
    for factor, periods in slow:
        inside, change = periods.next_change(time)
        product *= factor if inside else 1.0
        until = min(until, change)
    return product, until


def _matches(fault: Any, source: int, dest: int) -> bool:
    return fault.source in (None, source) and fault.dest in (None, dest)


def _after(time: float, seconds: float | None) -> float:
    return math.inf if seconds is None else time + seconds
