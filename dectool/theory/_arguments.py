"""Checks of arguments that the predictions share."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems import Problem

Floats = np.ndarray[Any, np.dtype[np.float64]]
_NUMBERS = (int, float, np.integer, np.floating)


def whole(name: str, value: Any, least: int) -> int:
    """Return an integer argument of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name} must be an integer, got {value!r}") from None
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an integer, got {value!r}")
    if number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}")
    return number


def real(name: str, value: Any) -> float:
    """Return a real number."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ArgumentTypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def floats(name: str, value: Any) -> Floats:
    """Return an argument as an array of float64."""
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be numbers, got {value!r}") from None


def seconds_of(name: str, value: float | Sequence[float] | Floats, n: int | None = None) -> Floats:
    """Return times above 0 of n ranks, from one number for all or a number for each."""
    times = floats(name, value)
    if n is not None and times.ndim == 0:
        times = np.full(n, times)
    if times.ndim != 1 or not len(times) or n not in (None, len(times)):
        needed = "one number for each rank" if n is None else f"one number, or {n} for {n} ranks"
        raise ArgumentError(f"{name} must be {needed}, got shape {times.shape}")
    bad = np.flatnonzero(~((times > 0.0) & (times < math.inf)))
    if len(bad):
        raise ArgumentError(
            f"{name} must be finite and above 0 seconds, got {times[bad[0]]} for rank {bad[0]}"
        )
    return times


def need_algorithm(algorithm: object) -> None:
    """Refuse what is no algorithm, such as its class."""
    if not isinstance(algorithm, Algorithm):
        raise ArgumentTypeError(
            f"algorithm is {algorithm!r}; make an instance, such as algorithms.EXTRA(lr=0.1)"
        )


def need_problem(problem: object) -> None:
    """Refuse what is no problem."""
    if not isinstance(problem, Problem):
        raise ArgumentTypeError(
            f"problem is a {type(problem).__name__}; give one of dectool.problems"
        )
