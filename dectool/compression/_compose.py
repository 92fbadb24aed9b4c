"""A sparsifier, and a compressor for the values that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, working
from dectool.compression._sparsifier import Sparsifier
from dectool.errors import ArgumentError, ArgumentTypeError


@final
@dataclass(frozen=True)
class Compose(Compressor):
    r"""Compresses with ``second`` the values that ``first`` keeps; written ``first | second``.

    With contractions δ₁ of d numbers and δ₂ of the k kept, it has δ₁ δ₂; with variances ω₁ and ω₂,
    (1 + ω₁)(1 + ω₂) - 1.

    Wire: from byte 0 on the head of ``first`` (the places, or their seed), then the payload of
    ``second`` for a vector of k numbers. NaN and infinity get what ``second`` does with them, if
    ``first`` keeps them.

    Args:
        first: :class:`TopK`, :class:`RandomK` or :class:`Threshold`.
        second: Any compressor that needs no reference; behind Threshold one of fixed size that
            draws nothing.

    Example:
        >>> from dectool import compression
        >>> c = compression.TopK(0.01) | compression.Cast("float16")
        >>> c, c.wire_bytes(10_000)
        (Compose(first=TopK(k=0.01), second=Cast(dtype='float16')), 400)
    """

    first: Sparsifier
    second: Compressor

    def __post_init__(self) -> None:
        """Check that the two fit."""
        first: Any = self.first
        second: Any = self.second
        if not isinstance(first, Sparsifier):
            raise ArgumentTypeError(
                f"Compose: {first!r} does not keep some of the numbers; begin with TopK, "
                "RandomK or Threshold"
            )
        if not isinstance(second, Compressor) or second.needs_reference or second.per_tensor:
            raise ArgumentTypeError(
                f"Compose: {second!r} cannot compress the values that {self.first.name} "
                "keeps; give a compressor such as QSGD(4)"
            )
        if not self.first.fixed_size and not (self.second.fixed_size and not self.second.uses_rng):
            raise ArgumentError(
                f"Compose: how many numbers {self.first.name} keeps depends on the data, so behind "
                f"it goes a compressor of fixed size without chance, and not {self.second.name}"
            )

    @property
    def fixed_size(self) -> bool:
        """Whether both are."""
        return self.first.fixed_size and self.second.fixed_size

    @property
    def uses_rng(self) -> bool:
        """Whether either does."""
        return self.first.uses_rng or self.second.uses_rng

    @property
    def unbiased(self) -> bool:
        """Whether both are."""
        return self.first.unbiased and self.second.unbiased

    @property
    def name(self) -> str:
        """Both names, with | between."""
        return f"{self.first.name}|{self.second.name}"

    def contraction(self, count: int) -> float | None:
        """Return δ₁ δ₂ where ``first`` keeps values as they are."""
        if self.first.factor(count) != 1.0:
            return super().contraction(count)
        one = self.first.contraction(count)
        two = self.second.contraction(self.first.kept(count))
        return None if one is None or two is None else one * two

    def variance(self, count: int) -> float | None:
        """Return (1 + ω₁)(1 + ω₂) - 1."""
        one = self.first.variance(count)
        two = self.second.variance(self.first.kept(count))
        return None if one is None or two is None else (1.0 + one) * (1.0 + two) - 1.0

    def bound(self, x: Array) -> Array:
        """Return the size of what is lost, and the bound of ``second`` for what is kept.

        Infinity if ``first`` draws: what ``second`` is given is then not known.
        """
        if self.first.uses_rng:
            return np.full((*x.shape[:-1], 1), np.inf)
        rows = x.reshape(-1, x.shape[-1])
        out = np.abs(rows).astype(np.float64)
        _, places = self.first.choose(rows, Draw(None, len(rows), "Compose"))
        for each, row, where in zip(out, rows, places, strict=True):
            if len(where):
                each[where] = self.second.bound(row[where])
        return out.reshape(x.shape)

    def _size(self, count: int, dtype: str) -> int:
        many = self.first.kept(count)
        return self.first.head_size(count, many) + self.second._size(many, dtype)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array | list[Array]:
        heads, places = self.first.choose(rows, draw)
        bodies: Array | list[Array]
        if isinstance(heads, np.ndarray) and isinstance(places, np.ndarray):
            values = np.take_along_axis(rows, places, axis=1)
            bodies = self.second._encode(values, dtype, draw)
            if isinstance(bodies, np.ndarray):
                return np.concatenate([heads, bodies], axis=1)
        else:
            bodies = [
                np.asarray(self.second._encode(row[None, where], dtype, draw))[0]
                if len(where)
                else np.empty(0, np.uint8)
                for row, where in zip(rows, places, strict=True)
            ]
        return [np.concatenate(pair) for pair in zip(heads, bodies, strict=True)]

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        many = self.first.many(data[0], count) if len(data) else 0
        head = self.first.head_size(count, many)
        if not many:
            return self.first.spread(np.zeros((len(data), 0), working(dtype)), data[:, :0], count)
        values = self.second._decode(data[:, head:], many, dtype, None)
        return self.first.spread(values, data[:, :head], count)

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        many = self.first.many(row, count)
        head = self.first.head_size(count, many)
        if many > count or len(row) < head:
            return f"{len(row)} bytes are fewer than {many} places take"
        if self.second.fixed_size:
            want = self.second._size(many, dtype) if many else 0
            if len(row) != head + want:
                return f"{len(row)} bytes are not what {many} places and values take"
        fault = self.first.wrong_places(row[:head], count, many)
        return fault or (self.second._wrong(row[head:], many, dtype) if many else "")
