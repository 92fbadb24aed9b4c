"""Elias omega coding of the numbers that are not zero: how many, then distance, sign, level."""

from __future__ import annotations

import numpy as np

from dectool.compression._formats import Array
from dectool.compression._select import place_size, read_places, write_places


def omega(numbers: Array) -> tuple[Array, Array]:
    """Return the Elias omega code of each number >= 1: the bits as an integer, and how many.

    Example:
        >>> bits, lengths = omega(np.array([1, 2, 17]))
        >>> [f"{b:0{n}b}" for b, n in zip(bits.tolist(), lengths.tolist())]
        ['0', '100', '10100100010']
    """
    rest = numbers.astype(np.uint64)
    bits = np.zeros_like(rest)
    lengths = np.ones(rest.shape, np.int64)
    while (more := rest > 1).any():
        width = np.where(more, _width(rest), 0)
        bits |= np.where(more, rest << lengths.astype(np.uint64), 0)
        lengths += width
        rest = np.where(more, width.astype(np.uint64) - np.uint64(1), rest)
    return bits, lengths


def _width(numbers: Array) -> Array:
    """Return the binary digits of each number; exact below 2**53."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def encode(values: Array) -> Array:
    """Return the stream of bytes for integers, most of them zero; most significant bit first."""
    places = np.flatnonzero(values)
    gaps = np.diff(places, prepend=-1)
    signed = values[places]
    gap_bits, gap_lengths = omega(gaps)
    level_bits, level_lengths = omega(np.abs(signed))
    words = np.stack([gap_bits, (signed < 0).astype(np.uint64), level_bits], axis=1).ravel()
    ones = np.ones_like(gap_lengths)
    lengths = np.stack([gap_lengths, ones, level_lengths], axis=1).ravel()
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    stream = np.zeros(-(-total // 8) * 8, np.uint8)
    owner = np.repeat(np.arange(len(words)), lengths)
    shift = (np.repeat(ends, lengths) - 1 - np.arange(total)).astype(np.uint64)
    stream[:total] = (words[owner] >> shift) & np.uint64(1)
    many = write_places(np.array([[len(places)]]), len(values) + 1)[0]
    return np.concatenate([many, np.packbits(stream)])


def _read(data: Array, count: int) -> tuple[list[tuple[int, int]], str]:
    """Return the (distance, signed level) pairs of a stream, and what is wrong with it or ""."""
    width = place_size(count + 1)
    if len(data) < width:
        return [], "the stream of bits is missing"
    many = int(read_places(data[None, :width], count + 1)[0, 0])
    text = "".join(f"{byte:08b}" for byte in data[width:].tobytes())
    pairs: list[tuple[int, int]] = []
    at = 0
    for _ in range(many):
        gap, after = _omega_at(text, at)
        level, end = _omega_at(text, after + 1) if 0 <= after < len(text) else (0, -1)
        if end < 0:
            return pairs, "the stream of bits breaks off"
        pairs.append((gap, -level if text[after] == "1" else level))
        at = end
    good = len(text) - at < 8 and "1" not in text[at:]
    return pairs, "" if good else "the stream of bits goes on behind its end"


def _omega_at(text: str, at: int) -> tuple[int, int]:
    """Return the number whose omega code begins at a position, and where it ends; -1 if cut."""
    number = 1
    while at < len(text):
        if text[at] == "0":
            return number, at + 1
        end = at + number + 1
        if end > len(text):
            break
        number, at = int(text[at:end], 2), end
    return 0, -1


def decode(data: Array, count: int) -> Array:
    """Return the ``count`` integers (int32) of a stream that :func:`encode` made."""
    values = np.zeros(count, np.int32)
    pairs, _ = _read(data, count)
    if pairs:
        gaps, levels = np.array(pairs, np.int64).T
        values[np.cumsum(gaps) - 1] = levels
    return values


def wrong(data: Array, count: int, most: int) -> str:
    """Return what is wrong with a stream, or ""."""
    pairs, fault = _read(data, count)
    if fault:
        return fault
    if sum(gap for gap, _ in pairs) > count:
        return f"a number lies beyond the {count} that there are"
    if any(abs(level) > most for _, level in pairs):
        return f"a level is above {most}"
    return ""
