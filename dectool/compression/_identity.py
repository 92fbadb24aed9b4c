"""No compression, with the same interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import ITEMSIZE, Array, from_bytes, to_bytes


@final
@dataclass(frozen=True)
class Identity(Compressor):
    """Sends every number as it is: C(x) = x.

    Wire: number j at byte i·j, little-endian, in the dtype of x, which has i bytes. Infinity and
    NaN pass unchanged.

    Example:
        >>> c = Identity()
        >>> c.wire_bytes(10, "float64"), c.contraction(10), c.variance(10)
        (80, 1.0, 0.0)
    """

    @property
    def unbiased(self) -> bool:
        """Always."""
        return True

    def variance(self, count: int) -> float:
        """Return 0."""
        del count
        return 0.0

    def bound(self, x: Array) -> Array:
        """Return 0."""
        return np.zeros((*x.shape[:-1], 1))

    def _size(self, count: int, dtype: str) -> int:
        return count * ITEMSIZE[dtype]

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        del draw
        return to_bytes(rows, dtype).copy()

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del count, reference
        return from_bytes(data, dtype).copy()
