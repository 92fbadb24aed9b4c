"""Chance that depends on what it decides alone, never on the order of events."""

from __future__ import annotations

import bisect
import hashlib
import math
from typing import Any, final


def uniform(*key: Any) -> float:
    """Return the number in [0, 1) that belongs to a key.

    Example:
        >>> uniform(0, "loss", 1, 2) == uniform(0, "loss", 1, 2) != uniform(0, "loss", 1, 3)
        True
    """
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def exponential(mean: float, *key: Any) -> float:
    """Return the exponentially distributed number of a mean that belongs to a key."""
    return -mean * math.log1p(-uniform(*key))


@final
class Periods:
    """Periods that come and go for exponentially distributed times, worked out as far as asked.

    Args:
        mean_off: Mean time before and between periods, in seconds.
        mean_on: Mean length of a period, in seconds.
        key: What the times are drawn from.
    """

    def __init__(self, mean_off: float, mean_on: float, *key: Any) -> None:
        self._means = (mean_off, mean_on)
        self._key = key
        # Begins and ends of periods in turn, after the time 0.
        self._changes: list[float] = [0.0]

    def _extend(self, time: float) -> None:
        changes = self._changes
        while changes[-1] <= time:
            number = len(changes)
            mean = self._means[(number - 1) % 2]
            changes.append(changes[-1] + exponential(mean, *self._key, number))

    def next_change(self, time: float) -> tuple[bool, float]:
        """Return whether a period covers a time, and when that changes."""
        self._extend(time)
        place = bisect.bisect_right(self._changes, time)
        return place % 2 == 0, self._changes[place]

    def meets(self, start: float, stop: float) -> bool:
        """Tell whether a period covers any time from ``start`` to ``stop``, both included."""
        inside, change = self.next_change(start)
        return inside or change <= stop
