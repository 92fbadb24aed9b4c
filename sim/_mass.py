"""Accounts of the mass in a push-sum window: what ranks hold, what is on its way, what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from dectool.communicator._cells import Cell, Remote
from dectool.communicator._parcel import Buffer, Layout, Phantom
from dectool.errors import WindowError
from dectool.kernels._casts import widen

_ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


@final
class Mass:
    """What all values and weights of a window must sum to, and what they do.

    What the programs put in counts as new mass. Sums are taken in float64; a difference is an
    error when it is more than the roundings so far can have made.

    Args:
        layout: What the values are.
    """

    def __init__(self, layout: Layout) -> None:
        self._dtypes = layout.dtypes
        self._expected: list[Any] = [0.0] * len(layout.dtypes)
        self._largest = 0.0
        self._roundings = 0
        self._members = 0
        self._flying: dict[int, tuple[Remote, Sequence[Buffer]]] = {}
        self.lost_weight = 0.0

    def join(self, buffers: Sequence[Buffer]) -> None:
        """Count a rank's first value, and its weight of 1."""
        self._members += 1
        self._add(buffers, 1.0)

    def inject(self, old: Sequence[Buffer], new: Sequence[Buffer]) -> None:
        """Count that a program has replaced a rank's value."""
        self._add(old, -1.0)
        self._add(new, 1.0)

    def _add(self, buffers: Sequence[Buffer], sign: float) -> None:
        for k, array in self._wide(buffers):
            self._expected[k] = self._expected[k] + sign * array
            self._largest = max(self._largest, float(np.abs(array).max(initial=0.0)))
        self._roundings += 1

    def leave(self, number: int, remote: Remote, buffers: Sequence[Buffer]) -> None:
        """Count what sets out."""
        self._flying[number] = (remote, buffers)
        self._roundings += 2

    def land(self, number: int) -> None:
        """Count what has arrived in a slot."""
        del self._flying[number]
        self._roundings += 1

    def lose(self, number: int) -> None:
        """Count what will never arrive: it is taken out of what must be there."""
        remote, buffers = self._flying.pop(number)
        self._add(buffers, -remote.factor)
        self.lost_weight += remote.weight

    def bury(self, cells: Iterable[Cell]) -> None:
        """Take what a rank held out of what must be there."""
        for cell in cells:
            self._add(cell.buffers, -1.0)
            self.lost_weight += cell.weight

    def move(self, terms: int) -> None:
        """Count the roundings of collecting so many values."""
        self._roundings += terms

    def check(self, name: str, cells: Iterable[Cell]) -> None:
        """Compare what must be there with what is.

        Raises:
            WindowError: They differ by more than the roundings so far can have made.
        """
        totals: list[Any] = [0.0] * len(self._dtypes)
        weight = self.lost_weight
        parts: list[tuple[float, float, Sequence[Buffer]]]
        parts = [(1.0, cell.weight, cell.buffers) for cell in cells]
        parts += [(r.factor, r.weight, buffers) for r, buffers in self._flying.values()]
        for factor, carried, buffers in parts:
            weight += carried
            for k, array in self._wide(buffers):
                totals[k] = totals[k] + factor * array
        bound = (self._roundings + len(parts)) * 2.0**-51
        if abs(weight - self._members) > bound * self._members:
            raise WindowError(
                f"window {name!r}: the weights of {self._members} ranks sum to {weight!r}; mass "
                "was made or lost"
            )
        for k, dtype in enumerate(self._dtypes):
            self._compare(name, totals[k], self._expected[k], bound * _rounding(dtype) / 2.0**-52)

    def _compare(self, name: str, total: Any, expected: Any, bound: float) -> None:
        off = float(np.abs(total - expected).max(initial=0.0))
        if off > bound * max(1.0, self._largest) and np.isfinite(self._largest):
            raise WindowError(
                f"window {name!r}: the values of all ranks, and what is on its way, sum to what "
                f"differs by {off:.3g} from what was put in; mass was made or lost"
            )

    def _wide(self, buffers: Sequence[Buffer]) -> Iterable[tuple[int, Any]]:
        for k, (buffer, dtype) in enumerate(zip(buffers, self._dtypes, strict=True)):
            if not isinstance(buffer, Phantom):
                wide = widen(buffer, dtype)
                yield k, wide.astype("complex128" if dtype.startswith("complex") else "float64")


def _rounding(dtype: str) -> float:
    half = _ROUNDING.get(dtype)
    return half if half is not None else float(np.finfo(dtype).eps)
