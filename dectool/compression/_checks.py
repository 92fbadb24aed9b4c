"""Checks of parameters, with one wording."""

from __future__ import annotations

import math
import numbers
from typing import Any

from dectool.errors import ArgumentError, ArgumentTypeError


def check_count(who: str, name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no whole number above zero.

    Raises:
        ArgumentTypeError: It is no integer.
        ArgumentError: It is below 1.
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"{who}({name}={value!r}): {name} is a whole number, such as 4")
    if int(value) < 1:
        raise ArgumentError(f"{who}({name}={value}): {name} must be at least 1")


def check_positive(who: str, name: str, value: Any) -> None:
    """Refuse what is no finite number above zero.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: It is not finite, or not above zero.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentTypeError(f"{who}({name}={value!r}): {name} is a number, such as 0.1")
    if not (float(value) > 0 and math.isfinite(value)):
        raise ArgumentError(f"{who}({name}={value}): {name} must be finite and above 0")


def check_share(who: str, value: Any) -> None:
    """Refuse a k that is neither a count nor a share.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: A count below 1, or a share that is not between 0 and 1.
    """
    if isinstance(value, numbers.Integral):
        check_count(who, "k", value)
        return
    if not isinstance(value, numbers.Real):
        raise ArgumentTypeError(
            f"{who}(k={value!r}): k is a whole number (how many) or a share below 1, such as 0.01"
        )
    if not 0 < float(value) < 1:
        raise ArgumentError(
            f"{who}(k={value}): a share must be above 0 and below 1; for a count give a whole "
            "number, and to send all use compression.Identity()"
        )


def kept(k: int | float, count: int) -> int:
    """Return how many of ``count`` numbers k stands for: at least 1, at most all.

    Example:
        >>> kept(5, 3), kept(0.01, 1000), kept(0.01, 10)
        (3, 10, 1)
    """
    many = round(k * count) if 0 < k < 1 else int(k)
    return min(count, max(1, many))
