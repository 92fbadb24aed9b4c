"""Signs, with one scale for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dectool.compression import _norms
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, raw, unraw, working
from dectool.compression._packing import packed_size, padding_is_zero
from dectool.kernels import pack_signs, unpack_signs


@final
@dataclass(frozen=True)
class ScaledSign(Compressor):
    r"""One bit for each number and one scale, the mean absolute value.

    .. math:: C(x) = \frac{\|x\|_1}{d}\,\mathrm{sign}(x)

    where sign(0) is 1, so that :math:`\|C(x) - x\|^2 = \|x\|^2 - \|x\|_1^2 / d` for every x.
    Biased; for convergence it needs :class:`ErrorFeedback`.

    Wire, f + ceil(d/8) bytes:

    * 0 .. f - 1: the scale, little-endian, float32 (f = 4), or float64 (f = 8) for float64,
    * f ..: a bit for each number, 1 where it is below zero; that of number j is bit j % 8, counted
      from the least significant, of byte f + j // 8. The bits behind the last are 0.

    If x holds infinity or NaN, all of it comes back as NaN.

    Example:
        >>> c = ScaledSign()
        >>> c.decompress(c.compress(np.array([1.0, -2.0, 6.0]))), c.wire_bytes(1000)
        (array([ 3., -3.,  3.]), 129)

    References:
        S. P. Karimireddy, Q. Rebjock, S. Stich & M. Jaggi, Error feedback fixes SignSGD, ICML
        2019, Algorithm 1.
    """

    def contraction(self, count: int) -> float:
        """Return 1/d; x with a single non-zero element has no more."""
        return 1.0 / max(1, count)

    def bound(self, x: Array) -> Array:
        """Return the error itself: how far each size is from the mean size."""
        rows = x.reshape(-1, x.shape[-1])
        return np.reshape(np.abs(np.abs(rows) - _norms.mean_abs(rows)), x.shape)

    def _size(self, count: int, dtype: str) -> int:
        return working(dtype).itemsize + packed_size(count, 1)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        del draw
        head, unit = working(dtype).itemsize, _norms.units(rows)
        out, total = pack_signs(rows, unit, head)
        out[:, :head] = raw(_norms.mean_of(total, unit, rows))
        return out

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        return unpack_signs(data, count, working(dtype).name)

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        kind = working(dtype)
        scale = float(unraw(row[: kind.itemsize], kind)[0])
        if scale < 0 or scale == np.inf:
            return f"the scale is {scale}"
        return "" if padding_is_zero(row, count, 1) else "a bit is set behind the last sign"
