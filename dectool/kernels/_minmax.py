"""Codes of 8 bits between the least and the greatest number of a chunk.

The format is that of :class:`dectool.compression.MinMax8`. Everything is elementwise in the type
of the numbers, each operation rounded on its own and ``rint`` to even, so that C without
contraction (``-ffp-contract=off``) gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dectool.kernels import _extension
from dectool.kernels._casts import narrow, widen
from dectool.kernels._extension import KINDS, Array, contiguous, real_kind
from dectool.kernels._room import empty
from dectool.kernels._tiles import TILE, tiles

_LEVELS = 255
_HEADER = 32
_ALIGN = 32


def minmax8_size(count: int, block: int) -> int:
    """Return the bytes of ``count`` numbers in chunks of ``block``.

    Example:
        >>> minmax8_size(100, 100), minmax8_size(100, 64)
        (160, 192)
    """
    return sum((stop - start) // b * _stride(b) for start, stop, b in minmax8_parts(count, block))


def minmax8_parts(count: int, block: int) -> Iterator[tuple[int, int, int]]:
    """Yield where the full chunks begin and end, and their length; then the shorter one."""
    full = count // block * block
    if full:
        yield 0, full, block
    if full < count:
        yield full, count, count - full


def minmax8_encode(x: Array, block: int, dtype: str) -> Array:
    """Return the chunks of each row as bytes.

    Args:
        x: Shape (n, count) with count > 0, float32 or float64.
        block: Numbers in a chunk; the last may be shorter.
        dtype: Dtype of the numbers in the headers, which holds them exactly.

    Returns:
        ``uint8`` of shape (n, :func:`minmax8_size`).

    Example:
        >>> minmax8_encode(np.array([[0.0, 0.25, 1.0]], np.float32), 3, "float32")[0, 32:35]
        array([  0,  64, 255], dtype=uint8)
    """
    n, count = x.shape
    out = empty((n, minmax8_size(count, block)), np.uint8)
    if _extension.native is None:
        _encode_by_numpy(x, out, block, dtype)
    else:
        real_kind(x)
        _extension.native.minmax_encode(KINDS[dtype], contiguous(x), out, n, count, block)
    return out


def minmax8_decode(data: Array, count: int, block: int, dtype: str) -> Array:
    """Undo :func:`minmax8_encode`, into float64 for float64 and float32 for all else.

    Args:
        data: Shape (n, bytes).
        count: Numbers in a row.
        block: Numbers in a chunk.
        dtype: Dtype of the numbers in the headers.

    Example:
        >>> x = np.array([[0.0, 0.25, 1.0]], np.float32)
        >>> minmax8_decode(minmax8_encode(x, 3, "float32"), 3, 3, "float32")
        array([[0.     , 0.25098, 1.     ]], dtype=float32)
    """
    out = empty((len(data), count), np.float64 if dtype == "float64" else np.float32)
    if _extension.native is None:
        _decode_by_numpy(data, out, block, dtype, None)
    else:
        _extension.native.minmax_decode(
            KINDS[dtype], contiguous(data), out, len(data), count, block, None
        )
    return out


def minmax8_add(data: Array, total: Array, block: int, dtype: str, weight: float) -> None:
    """Add ``weight`` times the decoded numbers to ``total``, without an array of them.

    The weight is rounded to the type of ``total``, and each product before it is added.

    Args:
        data: Shape (n, bytes).
        total: Shape (n, count), contiguous, float64 for float64 and float32 for all else; changed.
        block: Numbers in a chunk.
        dtype: Dtype of the numbers in the headers.
        weight: The weight.
    """
    n, count = total.shape
    if not total.flags.c_contiguous or (total.dtype == np.float64) != (dtype == "float64"):
        raise TypeError("total must be contiguous, float64 for float64 and float32 for all else")
    if _extension.native is None:
        _decode_by_numpy(data, total, block, dtype, weight)
    else:
        real_kind(total)
        _extension.native.minmax_decode(
            KINDS[dtype], contiguous(data), total, n, count, block, float(weight)
        )


def minmax8_steps(x: Array) -> Array:
    """Return the distance between neighbouring codes of each chunk; infinity if not finite.

    Args:
        x: Shape (chunks, length).

    Returns:
        Shape (chunks, 1).
    """
    by = _scales(*_ranges(x))
    with np.errstate(all="ignore"):
        distance: Any = 1.0 / by.scale.astype(np.float64) / by.shift
    return np.where(by.finite, np.where(by.constant, 0.0, distance), np.inf)


def _stride(block: int) -> int:
    return _HEADER + -(-block // _ALIGN) * _ALIGN


class _Scale(NamedTuple):
    """What turns the numbers of each chunk into codes; arrays of shape (chunks, 1).

    ``code = rint(x * shift * scale) - lower``, kept within 0 and 255. ``shift`` is a power of
    two, and 1 but for chunks whose range under- or overflows. Chunks that are not finite count as
    constant, NaN all over.
    """

    scale: Array
    upper: Array
    lower: Array
    shift: Array
    constant: Array
    finite: Array


def _ranges(x: Array) -> tuple[Array, Array]:
    """Return the least and the greatest number of each chunk of ``x`` (chunks, length).

    Zeros are +0.0: which of two zeros is less would depend on the loop.
    """
    low = x[:, :TILE].min(axis=1, keepdims=True)
    high = x[:, :TILE].max(axis=1, keepdims=True)
    for start in range(TILE, x.shape[1], TILE):
        tile = x[:, start : start + TILE]
        np.minimum(low, tile.min(axis=1, keepdims=True), out=low)
        np.maximum(high, tile.max(axis=1, keepdims=True), out=high)
    zero = x.dtype.type(0.0)
    return low + zero, high + zero


def _scales(low: Array, high: Array) -> _Scale:
    """Return the scale of each chunk, from the least and greatest number alone.

    ``scale = 255 / (high - low + e)`` with e = 1e-7, or high - low where that is smaller.
    """
    kind = low.dtype.type
    exponent = 126 if kind is np.float32 else 1022
    finite = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(finite, low, kind(0)), np.where(finite, high, kind(0))
    constant = low == high
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        width = high - low
    shift = np.ones_like(low)
    shift[largest >= kind(2.0**exponent)] = 2.0**-8
    small = ~constant & (width < kind(2.0) ** kind(100 - exponent - 74))
    shift[small] = kind(2.0) ** kind(exponent - 26)
    low, high = low * shift, high * shift
    width = high - low
    epsilon = np.where(constant, kind(1e-7), np.minimum(kind(1e-7), width))
    scale = (float(_LEVELS) / (width + epsilon).astype(np.float64)).astype(kind)
    with np.errstate(over="ignore"):
        upper = np.rint(high * scale)
    return _Scale(scale, upper, upper - kind(_LEVELS), shift, constant, finite)


def _encode_by_numpy(x: Array, out: Array, block: int, dtype: str) -> None:
    n, at = len(x), 0
    out[...] = 0
    for start, stop, b in minmax8_parts(x.shape[1], block):
        chunks = (stop - start) // b
        part = x[:, start:stop].reshape(n, chunks, b)
        sent = out[:, at : at + chunks * _stride(b)].reshape(n, chunks, _stride(b))
        at += chunks * _stride(b)
        for r, c in tiles(n, chunks, max(1, TILE // b)):
            tile = part[r, c].reshape(-1, b)
            low, high = _ranges(tile)
            by = _scales(low, high)
            target = sent[r, c, _HEADER : _HEADER + b]
            codes = target.reshape(-1, b)
            _quantise(tile, by, codes)
            if not np.may_share_memory(codes, target):
                target[...] = codes.reshape(target.shape)
            header = np.where(by.finite, np.concatenate([low, high], axis=1), np.nan)
            ends = narrow(header.astype(low.dtype), dtype)
            raw = ends.astype(ends.dtype.newbyteorder("<")).view(np.uint8)
            sent[r, c, : raw.shape[1]] = raw.reshape(*target.shape[:2], -1)


def _decode_by_numpy(data: Array, out: Array, block: int, dtype: str, weight: float | None) -> None:
    n, at = len(data), 0
    stored = np.dtype("<u2") if dtype == "bfloat16" else np.dtype(dtype).newbyteorder("<")
    for start, stop, b in minmax8_parts(out.shape[1], block):
        chunks = (stop - start) // b
        sent = data[:, at : at + chunks * _stride(b)].reshape(n, chunks, _stride(b))
        at += chunks * _stride(b)
        x = out[:, start:stop].reshape(n, chunks, b)
        for r, c in tiles(n, chunks, max(1, TILE // b)):
            head = sent[r, c, : 2 * stored.itemsize].reshape(-1, 2 * stored.itemsize)
            header = widen(np.ascontiguousarray(head).view(stored), dtype)
            low, high = header[:, :1], header[:, 1:]
            target = x[r, c]
            codes = sent[r, c, _HEADER : _HEADER + b].reshape(-1, b)
            _dequantise(codes, _scales(low, high), low, target, weight)
        if not np.may_share_memory(x, out):
            out[:, start:stop] = x.reshape(n, -1)


def _quantise(x: Array, by: _Scale, codes: Array) -> None:
    """Write the code of each number of ``x`` (chunks, length) to ``codes`` (uint8)."""
    shifted = bool((by.shift != 1).any())
    for rows, columns in tiles(*x.shape):
        t = x[rows, columns]
        if shifted:
            t = t * by.shift[rows]
        level = t * by.scale[rows]
        np.rint(level, out=level)
        level -= by.lower[rows]
        np.clip(level, 0, _LEVELS, out=level)
        wrong = ~(by.finite[rows] & np.isfinite(by.upper[rows]))
        if wrong.any():
            level[wrong[:, 0]] = 0
        codes[rows, columns] = level


def _dequantise(codes: Array, by: _Scale, low: Array, out: Array, weight: float | None) -> None:
    """Write the numbers that codes stand for to ``out``, or add ``weight`` times them."""
    target = out.reshape(-1, out.shape[-1])
    plain = bool(((by.shift == 1) & ~by.constant).all())
    largest = np.finfo(out.dtype).max
    for rows, columns in tiles(*codes.shape):
        t = codes[rows, columns].astype(out.dtype)
        t += by.lower[rows]
        t /= by.scale[rows]
        if not plain:
            shift = by.shift[rows]
            np.clip(t, -largest * np.minimum(shift, 1), largest * np.minimum(shift, 1), out=t)
            t /= shift
            np.copyto(t, low[rows], where=by.constant[rows])
        if weight is None:
            target[rows, columns] = t
        else:
            t *= out.dtype.type(weight)
            target[rows, columns] += t
    if not np.may_share_memory(target, out):
        out[...] = target.reshape(out.shape)
