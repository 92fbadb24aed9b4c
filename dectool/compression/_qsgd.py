"""Stochastic quantisation to a few levels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from dectool._text import nearest
from dectool.compression import _elias, _norms
from dectool.compression._checks import check_count
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, raw, tiles, unraw, working
from dectool.compression._packing import (
    pack_into,
    packed_size,
    padding_is_zero,
    unpack,
    unpack_from,
)
from dectool.errors import ArgumentError
from dectool.kernels import dequantise_levels, quantise_levels

_NORMS = {"l2": _norms.norm, "max": _norms.largest}


@final
@dataclass(frozen=True)
class QSGD(Compressor):
    r"""QSGD: each number becomes one of s levels of the norm, by chance, so that it is unbiased.

    .. math:: C(x)_j = \|x\|\,\mathrm{sign}(x_j)\,\xi_j / s, \qquad
       \xi_j = \lfloor a \rfloor + [u_j < a - \lfloor a \rfloor], \quad a = s |x_j| / \|x\|

    with :math:`u_j` uniform in [0, 1), drawn in the order of the elements in the type of the
    arithmetic. Variance min(d/(4s²), √d/s); the paper's Lemma 3.1 has d/s² for the first.

    Wire, for m blocks, f m + ceil(c d / 8) bytes:

    * 0 .. f m - 1: the norm of each block, little-endian, float32 (f = 4), or float64 (f = 8) for
      float64,
    * f m ..: the code :math:`s + \mathrm{sign}(x_j)\,\xi_j` of each number in
      c = ceil(log2(2s + 1)) bits, one after the other, from the least significant bit on.

    With ``elias`` the size depends on the data, and in place of the codes there are:

    * f m ..: how many numbers are not zero, in as few bytes as hold d,
    * then a stream of bits, from the most significant on: for each of them its distance to the one
      before in Elias omega code, its sign (1 below zero), its level in Elias omega code; zeros fill
      the last byte.

    A block that holds infinity or NaN comes back as NaN. A norm that overflows is the largest
    finite number, which keeps C unbiased.

    Args:
        levels: s, the levels above zero; at most 32767.
        norm: "l2", or "max" for the largest absolute value.
        block: Numbers that share a norm; all of them unless given.
        elias: Whether to use Elias coding, as the paper does; short where few numbers are not
            zero, so for few levels and the norm "l2".

    Example:
        >>> c = QSGD(levels=4)
        >>> c.decompress(c.compress(np.array([3.0, -4.0]), np.random.default_rng(0)))
        array([ 2.5 , -3.75])
        >>> c.wire_bytes(1000), c.variance(1000)
        (504, 7.9057)

    References:
        D. Alistarh, D. Grubic, J. Li, R. Tomioka & M. Vojnovic, QSGD, NeurIPS 2017, Lemma 3.1;
        Elias coding in Section 3.1 and Appendix A.
    """

    levels: int = 4
    norm: str = "l2"
    block: int | None = None
    elias: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_count("QSGD", "levels", self.levels)
        check_count("QSGD", "block", self.block, optional=True)
        if self.levels > 32767:
            raise ArgumentError(
                f"QSGD(levels={self.levels}): at most 32767, since a code has 16 bits; "
                "for more use compression.Cast('float16')"
            )
        if self.norm not in _NORMS:
            raise ArgumentError(f"QSGD(norm={self.norm!r}): {nearest(str(self.norm), _NORMS)}")

    @property
    def fixed_size(self) -> bool:
        """Not with Elias coding."""
        return not self.elias

    @property
    def uses_rng(self) -> bool:
        """Always."""
        return True

    @property
    def unbiased(self) -> bool:
        """Always."""
        return True

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return (2 * self.levels).bit_length()

    def variance(self, count: int) -> float:
        """Return min(b/(4s²), √b/s) for blocks of b numbers."""
        length = min(count, self.block or count)
        return min(length / (4 * self.levels**2), math.sqrt(length) / self.levels)

    def bound(self, x: Array) -> Array:
        """Return norm / s of each element's block."""
        rows = x.reshape(-1, x.shape[-1])
        each = self._spread(self._norms(rows), rows.shape[1])
        return (each / self.levels).reshape(*x.shape[:-1], each.shape[1])

    def _blocks(self, count: int) -> int:
        return -(-count // self.block) if self.block else 1

    def _size(self, count: int, dtype: str) -> int:
        return self._blocks(count) * working(dtype).itemsize + packed_size(count, self.bits)

    def _norms(self, rows: Array) -> Array:
        """Return the norm of each block of each row."""
        n, count = rows.shape
        block = min(self.block or count, count)
        full = count // block * block
        of = _NORMS[self.norm]
        norms = of(rows[:, :full].reshape(-1, block)).reshape(n, -1)
        return norms if full == count else np.concatenate([norms, of(rows[:, full:])], axis=1)

    def _spread(self, norms: Array, count: int, start: int = 0) -> Array:
        """Return the norm of every element from ``start`` on; one column where all share it."""
        if norms.shape[1] == 1:
            return norms
        return norms[:, np.arange(start, start + count) // (self.block or count)]

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array | list[Array]:
        n, count = rows.shape
        norms = self._norms(rows)
        head = raw(norms)
        if self.elias:
            signed = np.empty((n, count), np.int32)
            for r, c, codes in self._codes(rows, norms, draw):
                signed[r, c] = codes
            signed -= self.levels
            return [np.concatenate([head[i], _elias.encode(signed[i])]) for i in range(n)]
        out = np.empty((n, self._size(count, dtype)), np.uint8)
        out[:, : head.shape[1]] = head
        for r, c, codes in self._codes(rows, norms, draw):
            pack_into(out[:, head.shape[1] :], r, c, codes, self.bits)
        return out

    def _codes(self, rows: Array, norms: Array, draw: Draw) -> Iterator[tuple[slice, slice, Array]]:
        """Yield tiles and their codes."""
        for r, c, u in draw.uniform(rows.shape[1], rows.dtype):
            each = self._spread(norms[r], c.stop - c.start, c.start)
            yield r, c, quantise_levels(rows[r, c], each, self.levels, u)

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        kind = working(dtype)
        head = self._blocks(count) * kind.itemsize
        norms = unraw(data[:, :head], kind)
        out = np.empty((len(data), count), kind)
        signed = _elias.decode(data[0, head:], count)[None] if self.elias else None
        for r, c in tiles(len(data), count):
            if signed is None:
                codes = unpack_from(data[:, head:], r, c, self.bits)
            else:
                codes = signed[r, c] + self.levels
            each = self._spread(norms[r], c.stop - c.start, c.start)
            dequantise_levels(codes, each, self.levels, out[r, c])
        return out

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        kind = working(dtype)
        head = self._blocks(count) * kind.itemsize
        if len(row) < head:
            return f"{len(row)} bytes are fewer than the {head} of the norms"
        norms = unraw(row[:head], kind)
        for norm in norms[(norms < 0) | np.isinf(norms)][:1]:
            return f"a norm is {norm}"
        if self.elias:
            return _elias.wrong(row[head:], count, self.levels)
        if not padding_is_zero(row, count, self.bits):
            return "a bit is set behind the last code"
        codes = unpack(row[None, head:], count, self.bits)
        return "" if codes.max() <= 2 * self.levels else f"a code is above {2 * self.levels}"
