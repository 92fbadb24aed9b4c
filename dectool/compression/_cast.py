"""Casts to a shorter floating-point format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool._text import nearest
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, tiles, unraw, working
from dectool.errors import ArgumentError, MissingDependencyError
from dectool.kernels import (
    bfloat16_to_float32,
    empty,
    float16_to_float32,
    float32_to_bfloat16,
    float32_to_float16,
)

# Bits of precision with the hidden one, smallest subnormal, and largest finite number.
_FORMATS = {
    "float16": (11, 2.0**-24, 65504.0),
    "bfloat16": (8, 2.0**-133, (2.0 - 2.0**-7) * 2.0**127),
    "float8_e4m3fn": (4, 2.0**-9, 448.0),
    "float8_e5m2": (3, 2.0**-16, 57344.0),
}

_HALVES = {
    "float16": (float32_to_float16, float16_to_float32),
    "bfloat16": (float32_to_bfloat16, bfloat16_to_float32),
}


@final
@dataclass(frozen=True)
class Cast(Compressor):
    """Rounds each number to a shorter format, to nearest and ties to even.

    Wire: number j at byte 2j, little-endian, or at byte j in the 8-bit formats; no header, no
    scale. For each number with a normal result
    ``|C(x) - x| <= 2**-p |x|``, p the bits of precision: 11 (float16), 8 (bfloat16),
    4 (float8_e4m3fn), 3 (float8_e5m2).

    NaN stays NaN. What is too large for the format, infinity included, becomes infinity with its
    sign, and NaN in float8_e4m3fn, which has no infinity. A float64 is rounded to float32 first.

    Args:
        dtype: "float16", "bfloat16", "float8_e4m3fn" or "float8_e5m2"; the last two need the
            package ml-dtypes.

    Example:
        >>> c = Cast("bfloat16")
        >>> c.decompress(c.compress(np.array([1.0, 3.14159], np.float32)))
        array([1.      , 3.140625], dtype=float32)

    References:
        P. Micikevicius et al., FP8 formats for deep learning, 2022 (the two 8-bit formats).
    """

    dtype: str

    def __post_init__(self) -> None:
        """Check the format, and that it is there."""
        if self.dtype not in _FORMATS:
            raise ArgumentError(f"Cast(dtype={self.dtype!r}): {nearest(str(self.dtype), _FORMATS)}")
        _numpy_format(self.dtype)

    def contraction(self, count: int) -> float:
        """Return 1 - 4**-p."""
        del count
        return 1.0 - 4.0 ** -_FORMATS[self.dtype][0]

    def bound(self, x: Array) -> Array:
        """Return half a unit in the last place of the format; infinity where x is too large."""
        precision, tiny, largest = _FORMATS[self.dtype]
        size = np.abs(x.astype(np.float64))
        rounding = np.maximum(size * (2.0**-precision + 2.0**-24), tiny / 2)
        return np.where(size <= largest, rounding, np.inf)

    def _size(self, count: int, dtype: str) -> int:
        del dtype
        return count * _itemsize(self.dtype)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        del dtype, draw
        n, count = rows.shape
        out = empty((n, count * _itemsize(self.dtype)), np.uint8)
        shorter = out.view(_numpy_format(self.dtype))
        if self.dtype in _HALVES and rows.dtype == np.float32:
            _HALVES[self.dtype][0](rows, shorter)
            return out
        for r, c in tiles(n, count):
            shorten(rows[r, c], self.dtype, shorter[r, c])
        return out

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        shorter = unraw(data, _numpy_format(self.dtype))
        if self.dtype in _HALVES:
            return _HALVES[self.dtype][1](shorter).astype(working(dtype), copy=False)
        out = np.empty((len(data), count), working(dtype))
        for r, c in tiles(len(data), count):
            out[r, c] = shorter[r, c]
        return out


def shorten(x: Array, format_: str, out: Array) -> None:
    """Write the numbers of ``x`` to ``out`` in a shorter format."""
    single = x.astype(np.float32, copy=False)
    if format_ in _HALVES:
        out[...] = _HALVES[format_][0](single)
    else:
        out[...] = single.astype(out.dtype)


def _itemsize(format_: str) -> int:
    return 1 if format_.startswith("float8") else 2


def _numpy_format(format_: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a format; for bfloat16 that of its bits."""
    if format_ == "bfloat16":
        return np.dtype("<u2")
    if format_ == "float16":
        return np.dtype("<f2")
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingDependencyError(
            f"Cast({format_!r}) needs ml_dtypes, which is not installed. "
            "Install it with: pip install ml-dtypes"
        ) from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, format_))
    return found
