"""Large arrays piece by piece, so that temporaries of NumPy stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

TILE = 1 << 16
"""Numbers that a hot loop handles at a time; the order of sums depends on it."""


def tiles(rows: int, columns: int, size: int = TILE) -> Iterator[tuple[slice, slice]]:
    """Yield slices of rows and of columns that cover an array, row by row, ``size`` at a time.

    Example:
        >>> [(r.start, r.stop, c.start, c.stop) for r, c in tiles(2, 5, size=3)]
        [(0, 1, 0, 3), (0, 1, 3, 5), (1, 2, 0, 3), (1, 2, 3, 5)]
    """
    if not columns:
        return
    height = max(1, size // columns)
    for row in range(0, rows, height):
        for column in range(0, columns, size):
            yield (
                slice(row, min(row + height, rows)),
                slice(column, min(column + size, columns)),
            )
