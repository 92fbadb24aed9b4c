"""Checks of hyper-parameters: messages name the algorithm, the parameter, value and rule."""

from __future__ import annotations

import math
import numbers
from typing import Any

from dectool.errors import ArgumentError, ArgumentTypeError


def check_number(
    who: str,
    name: str,
    value: Any,
    most: float = math.inf,
    *,
    finite: bool = True,
    advice: str = "such as 0.1",
) -> None:
    """Refuse what is no number above 0 and at most ``most``.

    Args:
        who: The algorithm.
        name: The parameter.
        value: Its value.
        most: The largest that is allowed.
        finite: Whether infinity is refused.
        advice: What to give, where it is no number.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: It is out of range.
    """
    _check_real(who, name, value, advice)
    if not 0.0 < float(value) <= most or (finite and math.isinf(value)):
        bound = "finite and above 0" if finite else "above 0"
        if math.isfinite(most):
            bound = f"above 0 and at most {most:g}"
        raise ArgumentError(f"{who}: {name}={value} must be {bound}")


def check_at_least(who: str, name: str, value: Any, least: float, hint: str = "") -> None:
    """Refuse what is no finite number from ``least`` on.

    Args:
        who: The algorithm.
        name: The parameter.
        value: Its value.
        least: The smallest that is allowed.
        hint: What follows the rule in the message.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: It is out of range.
    """
    _check_real(who, name, value, f"such as {least + 1:g}")
    if not least <= float(value) < math.inf:
        raise ArgumentError(f"{who}: {name}={value} must be finite and at least {least:g}{hint}")


def check_below_one(who: str, name: str, value: Any) -> None:
    """Refuse what is no number from 0 to below 1.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: It is out of range.
    """
    _check_real(who, name, value, "such as 0.9")
    if not 0.0 <= float(value) < 1.0:
        raise ArgumentError(f"{who}: {name}={value} must be at least 0 and below 1")


def check_whole(who: str, name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from ``least`` on.

    Raises:
        ArgumentTypeError: It is no whole number.
        ArgumentError: It is too small.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"{who}: {name} is {value!r}; give a whole number")
    if int(value) < least:
        raise ArgumentError(f"{who}: {name}={value} must be at least {least}")


def check_steps(who: str, at_least: int = 0, **values: Any) -> None:
    """Refuse what is no whole number of steps or rounds, or too few.

    Raises:
        ArgumentError: Names the parameter, its value and the rule.
    """
    for name, value in values.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not whole or value < at_least:
            raise ArgumentError(f"{who}: {name}={value!r} must be an integer, at least {at_least}")


def _check_real(who: str, name: str, value: Any, advice: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentTypeError(f"{who}: {name} is {value!r}; give a number, {advice}")
