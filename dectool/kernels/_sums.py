"""Sums of each row in one defined order, and a bit for each sign.

A row is cut into tiles of 65536 numbers; in a tile, number j is added to lane j mod 64, left to
right, in float64; tiles are added in order, then the numbers behind the last multiple of 64, and
at the end the lanes by halves. So a row has the same sum alone and among others, whatever the
width of vectors and the number of threads.
"""

from __future__ import annotations

import numpy as np

from dectool.kernels import _extension
from dectool.kernels._extension import Array, contiguous, real_kind
from dectool.kernels._room import empty
from dectool.kernels._tiles import TILE, tiles

_LANES = 64


def row_sums(x: Array, units: Array, *, square: bool) -> Array:
    """Return the sum of ``|unit x|``, or of its square, of each row.

    Args:
        x: Shape (n, count), float32 or float64.
        units: Shape (n, 1), float64: powers of two against overflow.
        square: Whether to add squares.

    Returns:
        Shape (n, 1), float64.

    Example:
        >>> row_sums(np.array([[3.0, -4.0]]), np.ones((1, 1)), square=True)
        array([[25.]])
    """
    if _extension.native is None or not x.size:
        return _sums_by_numpy(x, units, square)
    totals = np.empty((len(x), 1))
    _extension.native.sums(
        real_kind(x), contiguous(x), *x.shape, square, contiguous(units), totals, None, 0
    )
    return totals


def pack_signs(x: Array, units: Array, head: int) -> tuple[Array, Array]:
    """Return a bit for each number, 1 where it is below zero, and the sums of the sizes.

    Args:
        x: Shape (n, count), float32 or float64.
        units: As in :func:`row_sums`.
        head: Bytes to leave free before the bits of a row.

    Returns:
        ``uint8`` of shape (n, head + ceil(count / 8)), the first number in the least significant
        bit; and the sums as in :func:`row_sums`.

    Example:
        >>> pack_signs(np.array([[1.0, -2.0]]), np.ones((1, 1)), head=0)
        (array([[2]], dtype=uint8), array([[3.]]))
    """
    n, count = x.shape
    out = empty((n, head + -(-count // 8)), np.uint8)
    if _extension.native is None or not x.size:
        for r, c in tiles(n, count):
            packed = np.packbits(x[r, c] < 0, axis=1, bitorder="little")
            first = head + c.start // 8
            out[r, first : first + packed.shape[1]] = packed
        return out, _sums_by_numpy(x, units, False)
    totals = np.empty((n, 1))
    _extension.native.sums(
        real_kind(x), contiguous(x), n, count, False, contiguous(units), totals, out, head
    )
    return out, totals


def unpack_signs(data: Array, count: int, dtype: str) -> Array:
    """Return numbers of one size, each with its sign.

    Args:
        data: Shape (n, bytes): the size, little-endian, then a bit for each number.
        count: Numbers in a row.
        dtype: "float32" or "float64".

    Example:
        >>> unpack_signs(np.array([[0, 0, 128, 63, 2]], np.uint8), 2, "float32")
        array([[ 1., -1.]], dtype=float32)
    """
    out = empty((len(data), count), dtype)
    if _extension.native is not None and out.size:
        _extension.native.spread_signs(real_kind(out), contiguous(data), out, len(data), count)
        return out
    size = out.dtype.itemsize
    word = np.dtype(f"<u{size}")
    scale = np.ascontiguousarray(data[:, :size]).view(word)
    for r, c in tiles(len(data), count):
        bits = data[r, size + c.start // 8 : size + -(-c.stop // 8)]
        each = np.unpackbits(bits, axis=1, bitorder="little", count=c.stop - c.start).astype(word)
        each <<= word.type(8 * size - 1)
        each |= scale[r]
        out[r, c] = each.view(out.dtype.newbyteorder("<"))
    return out


def _sums_by_numpy(x: Array, units: Array, square: bool) -> Array:
    term = np.square if square else np.abs
    lanes = np.zeros((len(x), _LANES))
    whole = x.shape[1] // _LANES * _LANES
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, columns in tiles(len(x), whole, TILE):
            tile = x[rows, columns].astype(np.float64) * units[rows]
            lanes[rows] += term(tile).reshape(len(tile), -1, _LANES).sum(axis=1)
        rest = x.shape[1] - whole
        lanes[:, :rest] += term(x[:, whole:].astype(np.float64) * units)
        width = _LANES
        while width > 1:
            width //= 2
            lanes[:, :width] += lanes[:, width : 2 * width]
    return lanes[:, :1]
