"""Faults of links: messages that are lost, links that are down or slow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from dectool.errors import ArgumentError
from dectool.sim._numbers import check_number
from dectool.sim.faults._fault import (
    Fault,
    checked_ends,
    checked_factor,
    checked_mean,
    checked_period,
    checked_rank,
)


@final
@dataclass(frozen=True)
class MessageLoss(Fault):
    """Each message is lost with a probability, independently of all others.

    Args:
        probability: From 0 to 1.
        source: Whose messages; default: everybody's.
        dest: To whom; default: to all.
        both: Whether the k-th messages of two ranks to each other are lost together, so that in
            a synchronous program both of them know.

    Raises:
        ArgumentError: ``probability`` is not in [0, 1], or a rank is negative.
        ArgumentTypeError: One of them is no number.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.Gossip(), problems.Averaging([[0.0], [1.0], [2.0]]),
        ...                   topology=topology.ring(3), steps=50, backend="sim",
        ...                   faults=[dectool.sim.MessageLoss(0.2)], missing="self")
        >>> h.faults.messages_lost > 0, float(h.last["consensus_error"]) < 1e-6
        (True, True)
    """

    probability: float
    source: int | None = None
    dest: int | None = None
    both: bool = False

    def _check(self) -> None:
        check_number("MessageLoss", "probability", self.probability)
        if not 0.0 <= self.probability <= 1.0:
            raise ArgumentError(f"MessageLoss: probability={self.probability} must be from 0 to 1")
        checked_rank(self, "source", "dest", optional=True)
        checked_ends(self)


@final
@dataclass(frozen=True)
class LinkDown(Fault):
    """A link carries nothing for a time; what is under way when it fails is lost too.

    Args:
        source: One end.
        dest: The other end.
        start: When it fails, in seconds.
        stop: When it works again, in seconds.
        both: Whether messages from ``dest`` to ``source`` are lost too.

    Raises:
        ArgumentError: ``start`` is not below ``stop``, or a rank is negative.

    Example:
        >>> LinkDown(0, 1, start=2.0, stop=3.0)
        LinkDown(source=0, dest=1, start=2.0, stop=3.0, both=True)
    """

    source: int
    dest: int
    start: float = 0.0
    stop: float = math.inf
    both: bool = True

    def _check(self) -> None:
        checked_rank(self, "source", "dest")
        checked_ends(self)
        checked_period(self)


@final
@dataclass(frozen=True)
class RandomLinkDown(Fault):
    """Every link fails and works again, for exponentially distributed times.

    Links fail independently of each other; the two directions of one fail together.

    Args:
        mean_up: Mean time that a link works, in seconds.
        mean_down: Mean time that it does not, in seconds.
        source: One end; default: any.
        dest: The other end; default: any.

    Raises:
        ArgumentError: A mean is not finite and above 0.

    Example:
        >>> RandomLinkDown(mean_up=10.0, mean_down=0.5, source=3)
        RandomLinkDown(mean_up=10.0, mean_down=0.5, source=3, dest=None)
    """

    mean_up: float
    mean_down: float
    source: int | None = None
    dest: int | None = None

    def _check(self) -> None:
        checked_mean(self, "mean_up", "mean_down")
        checked_rank(self, "source", "dest", optional=True)
        checked_ends(self)


@final
@dataclass(frozen=True)
class SlowLink(Fault):
    """Messages that leave in a period take longer: latency and transfer times a factor.

    Args:
        factor: At least 1.
        source: Whose messages; default: everybody's.
        dest: To whom; default: to all.
        start: When it begins, in seconds.
        stop: When it ends, in seconds.

    Raises:
        ArgumentError: ``factor`` is below 1, or ``start`` not below ``stop``.

    Example:
        >>> SlowLink(10.0, source=0, dest=1, start=1.0, stop=2.0).factor
        10.0
    """

    factor: float
    source: int | None = None
    dest: int | None = None
    start: float = 0.0
    stop: float = math.inf

    def _check(self) -> None:
        checked_factor(self)
        checked_rank(self, "source", "dest", optional=True)
        checked_ends(self)
        checked_period(self)
