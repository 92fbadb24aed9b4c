"""Compressors that keep some of the numbers: what they have in common."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np

from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import ITEMSIZE, Array, from_bytes, to_bytes
from dectool.compression._select import place_size, read_places

Rows = Array | list[Array]
"""One row for each vector: an array, or a list of flat arrays of different sizes."""


@dataclass(frozen=True)
class Sparsifier(Compressor):
    """Keeps the numbers at some places and makes the others zero.

    The payload is a head that tells the places, then the values kept. :class:`Compose` sends the
    values through another compressor.
    """

    @abc.abstractmethod
    def choose(self, rows: Array, draw: Draw) -> tuple[Rows, Rows]:
        """Return the head (bytes) and the ascending places kept, for each row.

        Two arrays, or two lists of flat arrays where the number kept depends on the data.
        """

    @abc.abstractmethod
    def kept(self, count: int) -> int:
        """Return how many of ``count`` numbers are kept, at most."""

    def many(self, data: Array, count: int) -> int:
        """Return how many numbers the payload of a row holds; above ``count`` if it is cut."""
        del data
        return self.kept(count)

    @abc.abstractmethod
    def head_size(self, count: int, many: int) -> int:
        """Return the bytes of the head where ``many`` of ``count`` numbers are kept."""

    @abc.abstractmethod
    def places(self, head: Array, count: int, many: int) -> Array:
        """Return the places that the heads (n, bytes) tell, shape (n, many)."""

    def factor(self, count: int) -> float:
        """Return what the receiver multiplies the values by."""
        del count
        return 1.0

    def wrong_places(self, head: Array, count: int, many: int) -> str:
        """Return what is wrong with the head of a row, or ""."""
        del head, count, many
        return ""

    def spread(self, values: Array, head: Array, count: int) -> Array:
        """Return rows of ``count`` numbers with the values at the places that the heads tell."""
        out = np.zeros((len(values), count), values.dtype)
        factor = self.factor(count)
        scaled = values if factor == 1.0 else values * values.dtype.type(factor)
        np.put_along_axis(out, self.places(head, count, values.shape[1]), scaled, axis=1)
        return out

    def _size(self, count: int, dtype: str) -> int:
        many = self.kept(count)
        return self.head_size(count, many) + many * ITEMSIZE[dtype]

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array | list[Array]:
        heads, places = self.choose(rows, draw)
        if isinstance(heads, np.ndarray) and isinstance(places, np.ndarray):
            values = np.take_along_axis(rows, places, axis=1)
            return np.concatenate([heads, to_bytes(values, dtype)], axis=1)
        return [
            np.concatenate([head, to_bytes(row[where], dtype)])
            for row, head, where in zip(rows, heads, places, strict=True)
        ]

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        many = self.many(data[0], count) if len(data) else 0
        head = self.head_size(count, many)
        values = from_bytes(data[:, head:], dtype)
        return self.spread(values, data[:, :head], count)

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        many = self.many(row, count)
        head = self.head_size(count, many)
        if many > count or head + many * ITEMSIZE[dtype] != len(row):
            return f"{len(row)} bytes are not what {many} places and values take"
        return self.wrong_places(row[:head], count, many)


@dataclass(frozen=True)
class WithPlaces(Sparsifier):
    """A sparsifier whose head lists the places, ascending."""

    def head_size(self, count: int, many: int) -> int:
        """Return the bytes of the places."""
        return many * place_size(count)

    def places(self, head: Array, count: int, many: int) -> Array:
        """Return the places that the heads list."""
        del many
        return read_places(head, count)

    def wrong_places(self, head: Array, count: int, many: int) -> str:
        """Return whether places lie beyond the end or do not ascend."""
        if not many:
            return ""
        found = read_places(head[None], count)[0]
        if found[-1] >= count:
            return f"place {found[-1]} is beyond the {count} numbers"
        return "" if (np.diff(found) > 0).all() else "the places do not ascend"
