"""Faults of ranks: slow periods, crashes and restarts, late starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.errors import ArgumentError
from dectool.sim.faults._fault import (
    Fault,
    checked_factor,
    checked_mean,
    checked_period,
    checked_rank,
    checked_seconds,
)


@final
@dataclass(frozen=True)
class SlowPeriod(Fault):
    """A rank computes slower for a time; a computation that reaches in or out is slow in part.

    Args:
        rank: Who.
        factor: By how much, at least 1.
        start: From when, in seconds.
        stop: Until when, in seconds.

    Raises:
        ArgumentError: ``factor`` is below 1, or ``start`` not below ``stop``.

    Example:
        >>> import dectool
        >>> slow = dectool.sim.SlowPeriod(rank=0, factor=4.0, start=1.0, stop=3.0)
        >>> dectool.run(lambda comm: (comm.elapse(2.0), comm.now())[1], 2, faults=[slow]).values
        [3.5, 2.0]
    """

    rank: int
    factor: float
    start: float = 0.0
    stop: float = math.inf

    def _check(self) -> None:
        checked_rank(self, "rank")
        checked_factor(self)
        checked_period(self)


@final
@dataclass(frozen=True)
class RandomSlowPeriods(Fault):
    """Ranks are slow now and then, for exponentially distributed times.

    Args:
        factor: By how much, at least 1.
        mean_between: Mean time between two slow periods of a rank, in seconds.
        mean_length: Mean length of one, in seconds.
        rank: Who; default: every rank, independently.

    Raises:
        ArgumentError: ``factor`` is below 1, or a mean is not finite and above 0.

    Example:
        >>> RandomSlowPeriods(factor=5.0, mean_between=10.0, mean_length=1.0).rank is None
        True
    """

    factor: float
    mean_between: float
    mean_length: float
    rank: int | None = None

    def _check(self) -> None:
        checked_factor(self)
        checked_mean(self, "mean_between", "mean_length")
        checked_rank(self, "rank", optional=True)


@final
@dataclass(frozen=True)
class Crash(Fault):
    """A rank stops at a time, and may start anew later.

    Nothing that the rank would have done from then on happens; what it had sent still arrives.
    A rank that comes back has lost all memory: its program is called again, with
    ``comm.restarts`` one higher. A program that has returned keeps its value, and is not called
    again.

    Args:
        rank: Who.
        at: When, in seconds.
        restart_after: Seconds until it starts anew; default: never.

    Raises:
        ArgumentError: A time is negative, or ``restart_after`` is 0.

    Example:
        >>> import dectool
        >>> def program(comm):
        ...     comm.elapse(2.0)
        ...     return comm.restarts, comm.now()
        >>> crash = dectool.sim.Crash(rank=1, at=1.0, restart_after=0.5)
        >>> dectool.run(program, 2, backend="sim", faults=[crash]).values
        [(0, 2.0), (1, 3.5)]
    """

    rank: int
    at: float
    restart_after: float | None = None

    def _check(self) -> None:
        checked_rank(self, "rank")
        checked_seconds(self, "at")
        if self.restart_after is not None:
            checked_mean(self, "restart_after")


@final
@dataclass(frozen=True)
class RandomCrashes(Fault):
    """Ranks crash after exponentially distributed times.

    Args:
        mean_uptime: Mean time from a start to a crash, in seconds.
        restart_after: Seconds until a rank starts anew; default: never.
        most: Crashes of one rank at most.
        rank: Who; default: every rank, independently.

    Raises:
        ArgumentError: A time is not finite and above 0, or ``most`` is below 1.

    Example:
        >>> RandomCrashes(mean_uptime=100.0, restart_after=5.0, most=3).most
        3
    """

    mean_uptime: float
    restart_after: float | None = None
    most: int = 1
    rank: int | None = None

    def _check(self) -> None:
        checked_mean(self, "mean_uptime")
        if self.restart_after is not None:
            checked_mean(self, "restart_after")
        checked_rank(self, "rank", optional=True)
        most: Any = self.most
        if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
            raise ArgumentError(f"RandomCrashes: most={most!r} must be an integer, at least 1")


@final
@dataclass(frozen=True)
class LateJoin(Fault):
    """A rank starts later than the others; before, it is missing like one that has crashed.

    Args:
        rank: Who.
        at: When it starts, in seconds, above 0.

    Raises:
        ArgumentError: ``at`` is not finite and above 0.

    Example:
        >>> import dectool
        >>> late = dectool.sim.LateJoin(rank=1, at=2.5)
        >>> dectool.run(lambda comm: comm.now(), 2, backend="sim", faults=[late]).values
        [0.0, 2.5]
    """

    rank: int
    at: float

    def _check(self) -> None:
        checked_rank(self, "rank")
        checked_mean(self, "at")
