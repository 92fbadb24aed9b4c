"""What every fault is, and how its arguments are checked."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.sim._numbers import check_number


class Fault(abc.ABC):
    """Something that goes wrong in a simulated run; see ``run(..., faults=[...])``."""

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check()

    @abc.abstractmethod
    def _check(self) -> None:
        """Refuse arguments that break a rule."""

    def check_size(self, size: int) -> None:
        """Refuse ranks that a run of ``size`` ranks does not have.

        Raises:
            ArgumentError: Names the argument, the rank and the size.
        """
        for name in ("rank", "source", "dest"):
            rank = getattr(self, name, None)
            if rank is not None and rank >= size:
                raise ArgumentError(
                    f"{type(self).__name__}: {name}={rank}, but the ranks are 0 to {size - 1}"
                )


def checked_seconds(fault: Fault, name: str, *, endless: bool = False) -> None:
    """Refuse what is no time of at least 0 seconds."""
    value = getattr(fault, name)
    _check_number(fault, name, value)
    if value < 0.0 or (value == math.inf and not endless):
        bound = "at least 0 seconds" + (" (inf allowed)" if endless else " and finite")
        raise ArgumentError(f"{type(fault).__name__}: {name}={value} must be {bound}")


def checked_mean(fault: Fault, *names: str) -> None:
    """Refuse what is no mean duration, finite and above 0."""
    for name in names:
        value = getattr(fault, name)
        _check_number(fault, name, value)
        if not 0.0 < value < math.inf:
            raise ArgumentError(
                f"{type(fault).__name__}: {name}={value} must be finite and above 0 seconds"
            )


def checked_period(fault: Any) -> None:
    """Refuse a period that ends before it begins."""
    checked_seconds(fault, "start")
    checked_seconds(fault, "stop", endless=True)
    if not fault.start < fault.stop:
        raise ArgumentError(
            f"{type(fault).__name__}: start={fault.start} must be below stop={fault.stop}"
        )


def checked_factor(fault: Any) -> None:
    """Refuse a factor by which nothing gets slower."""
    _check_number(fault, "factor", fault.factor)
    if not 1.0 <= fault.factor < math.inf:
        raise ArgumentError(
            f"{type(fault).__name__}: factor={fault.factor} must be finite and at least 1 (4 takes "
            "four times as long)"
        )


def checked_rank(fault: Fault, *names: str, optional: bool = False) -> None:
    """Refuse what is no number of a rank."""
    for name in names:
        rank = getattr(fault, name)
        if rank is None and optional:
            continue
        if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)):
            every = ", or None for every one" if optional else ""
            raise ArgumentTypeError(
                f"{type(fault).__name__}: {name}={rank!r} must be the number of a rank{every}"
            )
        if rank < 0:
            raise ArgumentError(f"{type(fault).__name__}: {name}={rank} must be at least 0")


def checked_ends(fault: Any) -> None:
    """Refuse a link from a rank to itself."""
    if fault.source is not None and fault.source == fault.dest:
        raise ArgumentError(
            f"{type(fault).__name__}: source and dest are both {fault.dest}; a link joins two ranks"
        )


def _check_number(fault: Fault, name: str, value: Any) -> None:
    check_number(type(fault).__name__, name, value)
    if math.isnan(value):
        raise ArgumentError(f"{type(fault).__name__}: {name} is NaN; it must be a number")
