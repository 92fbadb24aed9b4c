"""Codes of a few bits each, one after the other without gaps."""

from __future__ import annotations

import numpy as np

from dectool.compression._formats import Array, tiles


def packed_size(count: int, bits: int) -> int:
    """Return the bytes of ``count`` codes."""
    return -(-count * bits // 8)


def pack(codes: Array, bits: int) -> Array:
    """Return codes (n, count), each below 2**bits, as bytes; the last byte ends in zeros.

    Bit i of code j is bit ``j * bits + i`` of the stream, and bit b of the stream is bit ``b % 8``
    of byte ``b // 8``, counted from the least significant.

    Example:
        >>> pack(np.array([[1, 2, 3]], np.uint8), bits=4)
        array([[33,  3]], dtype=uint8)
    """
    n, count = codes.shape
    out = np.empty((n, packed_size(count, bits)), np.uint8)
    for rows, columns in tiles(n, count):
        pack_into(out, rows, columns, codes[rows, columns], bits)
    return out


def pack_into(out: Array, rows: slice, columns: slice, codes: Array, bits: int) -> None:
    """Write the codes of a tile to where :func:`pack` has them; it begins at a multiple of 8."""
    first = columns.start * bits // 8
    packed = _pack_tile(codes, bits)
    out[rows, first : first + packed.shape[1]] = packed


def _pack_tile(codes: Array, bits: int) -> Array:
    if bits == 1:
        return np.packbits(codes.astype(np.uint8, copy=False), axis=1, bitorder="little")
    if bits in (2, 4, 8):
        return _join(codes.astype(np.uint8, copy=False), bits)
    words = np.ascontiguousarray(codes, "<u2")
    each = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    kept = each.reshape(*codes.shape, 16)[:, :, :bits].reshape(len(codes), -1)
    return np.packbits(kept, axis=1, bitorder="little")


def _join(codes: Array, bits: int) -> Array:
    """Pack codes of 2, 4 or 8 bits: of two neighbours, read as one word, the upper moves down."""
    while bits < 8:
        if codes.shape[1] % 2:
            codes = np.concatenate([codes, np.zeros((len(codes), 1), np.uint8)], axis=1)
        pairs = np.ascontiguousarray(codes).view("<u2")
        pairs = pairs | (pairs >> np.uint16(8 - bits))
        bits *= 2
        codes = (pairs & np.uint16((1 << bits) - 1)).astype(np.uint8)
    return codes


def unpack(data: Array, count: int, bits: int) -> Array:
    """Undo :func:`pack`; the codes are ``uint8``, or ``uint16`` for more than 8 bits.

    Example:
        >>> unpack(np.array([[33, 3]], np.uint8), count=3, bits=4)
        array([[1, 2, 3]], dtype=uint8)
    """
    out = np.empty((len(data), count), np.uint8 if bits <= 8 else np.uint16)
    for rows, columns in tiles(len(data), count):
        out[rows, columns] = unpack_from(data, rows, columns, bits)
    return out


def unpack_from(data: Array, rows: slice, columns: slice, bits: int) -> Array:
    """Return the codes of a tile of what :func:`pack` made; it begins at a multiple of 8."""
    first, last = columns.start * bits // 8, packed_size(columns.stop, bits)
    tile = np.ascontiguousarray(data[rows, first:last])
    return _unpack_tile(tile, columns.stop - columns.start, bits)


def _unpack_tile(data: Array, count: int, bits: int) -> Array:
    if bits == 8:
        return data
    if bits in (2, 4):
        codes: Array = _split(data, bits)[:, :count]
        return codes
    stream = np.unpackbits(data, axis=1, bitorder="little")[:, : count * bits]
    if bits == 1:
        return stream
    each = np.zeros((len(data), count, 16), np.uint8)
    each[:, :, :bits] = stream.reshape(len(data), count, bits)
    words = np.packbits(each, axis=2, bitorder="little").reshape(len(data), -1)
    return words.view("<u2").astype(np.uint16)


def _split(data: Array, bits: int) -> Array:
    """Undo :func:`_join`."""
    width = 8
    while width > bits:
        width //= 2
        pairs = data.astype("<u2")
        pairs |= pairs << np.uint16(8 - width)
        pairs &= np.uint16(((1 << width) - 1) * 0x101)
        data = pairs.view(np.uint8)
    return data


def padding_is_zero(row: Array, count: int, bits: int) -> bool:
    """Tell whether the bits behind the last code are zero, as :func:`pack` leaves them."""
    used = count * bits % 8
    return not used or not int(row[-1]) >> used
