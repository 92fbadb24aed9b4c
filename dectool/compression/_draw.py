"""Random draws in one defined order, the same for a rank alone and for all ranks together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dectool.compression._formats import TILE, Array, tiles
from dectool.errors import ArgumentError, ContractError

_TOGETHER = 1 << 22
"""Numbers drawn at a time for all ranks: each call loops over their generators in Python."""


class Draw:
    """What a compressor draws while it compresses ``rows`` vectors.

    A ``numpy.random.Generator`` serves the rows one after the other, at each draw. What
    ``comm.rng`` gives in the stacked backend draws for all of them at once, each from its own
    generator. The numbers that a row gets do not depend on how it is cut into tiles.

    Args:
        rng: The generator, or ``None``.
        rows: Number of vectors.
        who: Name of the compressor, for messages.
    """

    def __init__(self, rng: Any, rows: int, who: str) -> None:
        self._rng = rng
        self._rows = rows
        self._who = who
        self._alone = isinstance(rng, np.random.Generator)

    def uniform(self, columns: int, dtype: np.dtype[Any]) -> Iterator[tuple[slice, slice, Array]]:
        """Yield tiles that cover (rows, columns), and uniform numbers in [0, 1) for each.

        One number of ``dtype`` for each element, in the order of the elements. Tiles begin at
        multiples of 64 columns.
        """
        if self._alone:
            for row, column in tiles(self._rows, columns):
                shape = (row.stop - row.start, column.stop - column.start)
                yield row, column, self._rng.random(shape, dtype=dtype.type)
            return
        width = max(64, max(TILE, _TOGETHER) // max(1, self._rows) // 64 * 64)
        for start in range(0, columns, width):
            stop = min(start + width, columns)
            drawn = self._draw("random", stop - start, dtype=dtype.type)
            yield slice(0, self._rows), slice(start, stop), drawn

    def seeds(self) -> Array:
        """Return one seed of 64 bits for each row."""
        if self._alone:
            return self._rng.integers(0, 2**64, size=self._rows, dtype=np.uint64)  # type: ignore[no-any-return]
        return self._draw("integers", 0, 2**64, dtype=np.uint64)

    def normal(self, count: int) -> Array:
        """Return ``count`` standard normal numbers (float64) for each row."""
        if self._alone:
            return self._rng.standard_normal((self._rows, count))  # type: ignore[no-any-return]
        return self._draw("standard_normal", count)

    def _draw(self, method: str, *args: Any, **options: Any) -> Array:
        if self._rng is None:
            raise ArgumentError(
                f"{self._who} draws at random: pass rng, such as numpy.random.default_rng(0), "
                "or comm.rng('compression') in an algorithm"
            )
        drawn = np.asarray(getattr(self._rng, method)(*args, **options))
        if drawn.shape[:1] != (self._rows,):
            raise ContractError(
                f"{self._who}: rng drew an array of shape {drawn.shape} for {self._rows} rows; "
                "pass a numpy.random.Generator, or comm.rng(...) with one row of x for each rank"
            )
        return drawn
