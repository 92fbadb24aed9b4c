"""Powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, tiles, working
from dectool.compression._packing import pack_into, packed_size, padding_is_zero, unpack_from


@final
@dataclass(frozen=True)
class Natural(Compressor):
    r"""Natural compression: each number becomes one of the two powers of two around it.

    .. math:: C(x)_j = \mathrm{sign}(x_j)\,2^{e} \text{ or } \mathrm{sign}(x_j)\,2^{e+1},
       \qquad 2^e \le |x_j| < 2^{e+1}

    the greater one with probability :math:`|x_j| / 2^e - 1`, which is drawn exactly: a uniform
    integer of as many bits as the mantissa is added to it, and its carry decides. Unbiased, with
    variance 1/8. Numbers below the smallest normal one become that or zero, still unbiased, though
    with more variance; numbers above the greatest power of two of their dtype become that power.

    Wire, d + ceil(d/8) bytes, or d + ceil(d/2) for float64:

    * 0 .. d - 1: of each number the low 8 bits of the exponent field, as IEEE 754 has it,
    * d ..: of each number the sign, 1 below zero; for float64 4 bits, the 3 high bits of the
      exponent field and the sign above them; from the least significant bit on.

    Exponent zero with a sign is NaN.

    Infinity stays infinity, NaN stays NaN; -0 comes back as +0.

    Example:
        >>> c = Natural()
        >>> c.decompress(c.compress(np.array([4.0, -0.5, 0.0]), np.random.default_rng(0)))
        array([ 4. , -0.5,  0. ])
        >>> c.wire_bytes(1000), c.variance(1000)
        (1125, 0.125)

    References:
        S. Horváth et al., Natural compression for distributed deep learning, MSML 2022,
        Definition 1 and Theorem 1.
    """

    @property
    def uses_rng(self) -> bool:
        """Always."""
        return True

    @property
    def unbiased(self) -> bool:
        """Always."""
        return True

    def variance(self, count: int) -> float:
        """Return 1/8."""
        del count
        return 0.125

    def bound(self, x: Array) -> Array:
        """Return the size of each number, and the smallest normal number where it is below."""
        size = np.abs(x)
        tiny = np.finfo(x.dtype).smallest_normal
        return np.where((size > 0) & (size < tiny), tiny, size)

    def _size(self, count: int, dtype: str) -> int:
        return count + packed_size(count, 4 if dtype == "float64" else 1)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        n, count = rows.shape
        high = 4 if dtype == "float64" else 1
        out = np.empty((n, self._size(count, dtype)), np.uint8)
        for r, c, u in draw.uniform(count, rows.dtype):
            codes = exponents(np.ascontiguousarray(rows[r, c]), u, _most(dtype))
            out[r, c] = codes & 0xFF
            pack_into(out[:, count:], r, c, codes >> 8, high)
        return out

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        out = np.empty((len(data), count), working(dtype))
        for r, c in tiles(len(data), count):
            high = unpack_from(data[:, count:], r, c, 4 if dtype == "float64" else 1)
            codes = data[r, c].astype(np.uint16) | (high.astype(np.uint16) << np.uint16(8))
            out[r, c] = powers(codes, out.dtype)
        return out

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        good = padding_is_zero(row, count, 4 if dtype == "float64" else 1)
        return "" if good else "a bit is set behind the last number"


def _layout(kind: np.dtype[Any]) -> tuple[np.dtype[Any], int, int]:
    """Return the unsigned type of a float, the bits of its mantissa and those of its exponent."""
    return (np.dtype("<u8"), 52, 11) if kind.itemsize == 8 else (np.dtype("<u4"), 23, 8)


def _most(dtype: str) -> int:
    """Return the exponent field of the greatest power of two that a dtype holds."""
    return {"float64": 2046, "float16": 127 + 15}.get(dtype, 254)


def exponents(x: Array, uniform: Array, most: int) -> Array:
    """Return sign and exponent (uint16) of each number, rounded to a power of two by ``uniform``.

    The low 23 (52) bits of the numbers are kept of uniform ones, so the probability is exact.
    Exponent zero with a sign stands for NaN.
    """
    kind, mantissa, width = _layout(x.dtype)
    bits = x.view(kind)
    drawn = (uniform * x.dtype.type(2.0**mantissa)).astype(kind)
    sign = bits >> kind.type(mantissa + width)
    size = bits & kind.type((1 << (mantissa + width)) - 1)
    special = (1 << width) - 1
    exponent = np.minimum((size + drawn) >> kind.type(mantissa), kind.type(most))
    infinite = kind.type(special << mantissa)
    exponent = np.where(size >= infinite, kind.type(special), exponent)
    code: Array = (exponent | (sign << kind.type(width))).astype(np.uint16)
    code[exponent == 0] = 0
    code[size > infinite] = 1 << width
    return code


def powers(codes: Array, kind: np.dtype[Any]) -> Array:
    """Return the numbers that codes of :func:`exponents` stand for."""
    word, mantissa, width = _layout(kind)
    values: Array = (codes.astype(word) << word.type(mantissa)).view(kind)
    values[codes == 1 << width] = np.nan
    return values
