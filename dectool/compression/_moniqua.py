"""Moniqua's quantiser: what is sent is taken modulo a range that the receiver can unwrap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from dectool.compression._checks import check_count, check_positive
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, tiles, working
from dectool.compression._packing import pack_into, packed_size, padding_is_zero, unpack_from
from dectool.errors import ArgumentError

_FAR = 2.0**40


@final
@dataclass(frozen=True)
class Moniqua(Compressor):
    r"""Quantises x modulo a range; the receiver finds x by a vector y of its own that is near.

    .. math:: c_j = \mathrm{round}(2^b x_j / B) \bmod 2^b, \qquad
       C(x)_j = y_j + B\,\Big(\frac{c_j}{2^b} - \frac{y_j}{B}\Big)_{[-1/2, 1/2)}, \qquad
       B = \frac{2\theta}{1 - 2\delta}

    where the index takes a number modulo 1 into that interval, and δ is what rounding errs by:
    :math:`2^{-b-1}` to nearest, :math:`2^{-b}` by chance. If :math:`|x_j - y_j| < \theta` then
    :math:`|C(x)_j - x_j| \le \delta B`, with no scale, norm or memory sent or kept. If a number is
    farther away, the result is off by a multiple of B, and nothing can tell: θ must be known.

    Wire, ceil(b d / 8) bytes: code j has bits b j to b j + b - 1 of the stream, of which bit t is
    bit t % 8, counted from the least significant, of byte t // 8. All is computed in float64. A
    code has no room for infinity and NaN, so they are refused, and so is what exceeds 2^40 B, where
    the remainder would lose too many digits.

    Args:
        theta: θ > 0, a bound on the distance in each coordinate.
        bits: b, from 1 (2 if by chance) to 16.
        stochastic: Whether to round up or down by chance, in proportion.

    Example:
        >>> c = Moniqua(theta=0.5)
        >>> x, y = np.array([100.3, -7.0]), np.array([100.0, -6.6])
        >>> c.decompress(c.compress(x), reference=y).round(2), c.wire_bytes(2)
        (array([100.3,  -7. ]), 2)

    References:
        Y. Lu & C. De Sa, Moniqua: Modulo quantized communication in decentralized SGD, ICML
        2020, Algorithm 1 and Lemma 1.
    """

    theta: float
    bits: int = 8
    stochastic: bool = False

    needs_reference: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_positive("Moniqua", "theta", self.theta)
        check_count("Moniqua", "bits", self.bits)
        if self.bits > 16 or self.rounding >= 0.5:
            least = 2 if self.stochastic else 1
            raise ArgumentError(f"Moniqua(bits={self.bits}): bits must be from {least} to 16")

    @property
    def uses_rng(self) -> bool:
        """Only if stochastic."""
        return self.stochastic

    @property
    def rounding(self) -> float:
        """The δ of the paper: what rounding errs by, as a part of the range."""
        return 2.0 ** -(self.bits + (not self.stochastic))

    @property
    def range(self) -> float:
        """B."""
        return 2.0 * self.theta / (1.0 - 2.0 * self.rounding)

    @property
    def error(self) -> float:
        """The most that an element can be off by, δ B."""
        return self.rounding * self.range

    def bound(self, x: Array) -> Array:
        """Return δ B, if the reference is nearer than θ."""
        return np.full((*x.shape[:-1], 1), self.error)

    def _size(self, count: int, dtype: str) -> int:
        del dtype
        return packed_size(count, self.bits)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        del dtype
        n, count = rows.shape
        self._refuse(rows)
        out = np.empty((n, packed_size(count, self.bits)), np.uint8)
        if self.stochastic:
            for r, c, u in draw.uniform(count, rows.dtype):
                pack_into(out, r, c, self._codes(rows[r, c], u), self.bits)
        else:
            for r, c in tiles(n, count):
                pack_into(out, r, c, self._codes(rows[r, c], None), self.bits)
        return out

    def _codes(self, x: Array, uniform: Array | None) -> Array:
        part = x.astype(np.float64)
        part /= self.range
        part -= np.floor(part)
        part *= 1 << self.bits
        level = np.rint(part) if uniform is None else np.floor(part)
        if uniform is not None:
            level += uniform < part - level
        kept: Array = level.astype(np.uint32) & np.uint32((1 << self.bits) - 1)
        return kept.astype(np.uint16)

    def _refuse(self, rows: Array) -> None:
        most = _FAR * self.range
        for r, c in tiles(*rows.shape):
            wrong = np.argwhere(~(np.abs(rows[r, c]) <= most))
            if len(wrong):
                row, column = wrong[0] + [r.start, c.start]
                raise ArgumentError(
                    f"Moniqua: x has {rows[row, column]} at position {column} of row {row}, which "
                    f"has no remainder modulo {self.range:.3g} that could be sent; check the "
                    "iteration for divergence, or choose a larger theta"
                )

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        if reference is None:
            raise ArgumentError("Moniqua: decompress(payload, reference) needs the reference")
        out = np.empty((len(data), count), working(dtype))
        for r, c in tiles(len(data), count):
            near = reference[r, c].astype(np.float64)
            apart = unpack_from(data, r, c, self.bits) * 2.0**-self.bits - near / self.range
            apart -= np.floor(apart + 0.5)
            out[r, c] = near + self.range * apart
        return out

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        del dtype
        good = padding_is_zero(row, count, self.bits)
        return "" if good else "a bit is set behind the last code"
