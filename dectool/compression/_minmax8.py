"""Min-max quantisation to 8 bits, as BAGUA sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dectool.compression._checks import check_count
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import ITEMSIZE, Array, from_bytes
from dectool.kernels import (
    minmax8_decode,
    minmax8_encode,
    minmax8_parts,
    minmax8_size,
    minmax8_steps,
)


@final
@dataclass(frozen=True)
class MinMax8(Compressor):
    r"""The range from minimum to maximum in 256 levels; BAGUA's MinMaxUInt8.

    .. math:: s = 255 / (\max x - \min x + \epsilon), \quad u = \mathrm{rint}(s \max x), \quad
       c_j = \min(\mathrm{rint}(s x_j), u) - (u - 255), \quad C(x)_j = (c_j + u - 255) / s

    with ε = 1e-7, in float32 (float64 for float64), each operation rounded on its own. The
    error is at most half a step, :math:`(\max x - \min x + \epsilon) / 510`. No randomness;
    biased.

    Wire, for each chunk of b numbers, 32 + b bytes, rounded up to a multiple of 32:

    ========  =====================================================
    bytes
    ========  =====================================================
    0         minimum, in the dtype of x, little-endian
    i         maximum (i = bytes of one number: 4 for float32)
    2i .. 31  zeros (BAGUA leaves them unwritten; they are not read)
    32 ..     b codes of one byte
    ..        zeros up to a multiple of 32
    ========  =====================================================

    Where BAGUA's arithmetic breaks, this is what happens, and the format stays the same:

    * Codes are kept within 0 and 255: where min = -max the least code can be -1, and where the
      range is small against the numbers the greatest can be 256, which BAGUA wraps to 0.
    * A chunk of equal numbers comes back exactly.
    * For a range below 1e-7, ε is the range itself, so 128 levels or more are always used.
    * A range that under- or overflows is scaled by a power of two first.
    * A chunk that holds infinity or NaN has NaN for minimum and maximum, and all of it comes
      back as NaN.

    Args:
        block: Numbers in a chunk; the last may be shorter. One chunk for all unless given.

    Example:
        >>> c = MinMax8()
        >>> p = c.compress(np.array([0.0, 0.25, 0.5, 1.0], np.float32))
        >>> p.data[0, 32:36]
        array([  0,  64, 127, 255], dtype=uint8)
        >>> c.decompress(p)
        array([0. , 0.25098, 0.498039, 1. ], dtype=float32)

    References:
        S. Gan et al., BAGUA: Scaling up distributed learning with system relaxations, PVLDB
        15(4), 2021; the kernels of its repository at version 0.9.2.
    """

    block: int | None = None

    def __post_init__(self) -> None:
        """Check the block."""
        check_count("MinMax8", "block", self.block, optional=True)

    def contraction(self, count: int) -> float | None:
        """Return 1 - 2b/255² for chunks of b numbers, which any range satisfies."""
        delta = 1.0 - 2.0 * min(count, self.block or count) / 255.0**2
        return delta if delta > 0 else None

    def bound(self, x: Array) -> Array:
        """Return half a step of each element's chunk."""
        rows = x.reshape(-1, x.shape[-1])
        out = np.zeros(rows.shape)
        for start, stop, length in minmax8_parts(x.shape[-1], self._length(x.shape[-1])):
            part = rows[:, start:stop].reshape(-1, length)
            half = minmax8_steps(part) / 2
            out[:, start:stop] = np.broadcast_to(half, part.shape).reshape(len(rows), -1)
        return out.reshape(x.shape)

    def _length(self, count: int) -> int:
        """Return the numbers in a full chunk."""
        return min(self.block or count, count)

    def _size(self, count: int, dtype: str) -> int:
        del dtype
        return minmax8_size(count, self._length(count))

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        del draw
        return minmax8_encode(rows, self._length(rows.shape[1]), dtype)

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        return minmax8_decode(data, count, self._length(count), dtype)

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        at, size, block = 0, 2 * ITEMSIZE[dtype], self._length(count)
        for start, stop, length in minmax8_parts(count, block):
            chunks = (stop - start) // length
            stride = minmax8_size(length, length)
            sent = row[at : at + chunks * stride].reshape(chunks, stride)
            at += chunks * stride
            low, high = from_bytes(sent[:, :size], dtype).T
            finite = np.isfinite(low) & np.isfinite(high)
            good = (np.isnan(low) & np.isnan(high)) | (finite & (low <= high))
            for chunk in np.flatnonzero(~good)[:1]:
                return f"a chunk has minimum {low[chunk]} and maximum {high[chunk]}"
        return ""
