"""The places of the largest numbers.

Magnitudes are compared as the bits of the absolute value, which order as the numbers do, with
infinity above all numbers and NaN above infinity. Of equal magnitudes the first come first.
"""

from __future__ import annotations

import numpy as np

from dectool.kernels import _extension
from dectool.kernels._extension import Array, contiguous, real_kind
from dectool.kernels._tiles import TILE, tiles

_SAMPLE = 1 << 14

_SHORT = 1 << 10
"""Numbers in a row up to which NumPy, which takes all rows at once, is faster."""


def magnitudes(x: Array) -> Array:
    """Return unsigned integers that order as the absolute values of ``x`` do.

    Example:
        >>> magnitudes(np.array([-0.0, 1.0], np.float32))
        array([         0, 1065353216], dtype=uint32)
    """
    kind = np.dtype(f"u{x.dtype.itemsize}")
    bits = np.ascontiguousarray(x).view(kind)
    size: Array = np.bitwise_and(bits, kind.type((1 << (8 * x.dtype.itemsize - 1)) - 1))
    return size


def largest_places(rows: Array, k: int) -> Array:
    """Return the places of the k largest magnitudes of each row, ascending, shape (n, k).

    Example:
        >>> largest_places(np.array([[1.0, -3.0, 3.0, 2.0, 3.0]]), 2)
        array([[1, 2]])
    """
    n, count = rows.shape
    places = np.empty((n, k), np.int64)
    if k == count:
        places[:] = np.arange(count)
    elif k and (_extension.native is None or count <= _SHORT):
        _by_numpy(rows, places)
    elif k:
        _extension.native.largest(real_kind(rows), contiguous(rows), places, n, count, k)
    return places


def at_least(x: Array, least: np.unsignedinteger) -> tuple[Array, Array]:
    """Return the places and magnitudes of the numbers whose magnitude is not below ``least``.

    Example:
        >>> x = np.array([1.0, -3.0, 2.0])
        >>> at_least(x, magnitudes(x)[2])[0]
        array([1, 2])
    """
    places, sizes = [], []
    for start in range(0, len(x), TILE):
        size = magnitudes(x[start : start + TILE])
        found = np.flatnonzero(size >= least)
        places.append(found + start)
        sizes.append(size[found])
    return np.concatenate(places), np.concatenate(sizes)


def _by_numpy(rows: Array, places: Array) -> None:
    n, count = rows.shape
    k = places.shape[1]
    if count <= TILE:
        for r, _ in tiles(n, count):
            places[r] = _of_tile(magnitudes(rows[r]), k)
    else:
        for index in range(n):
            places[index] = _of_row(rows[index], k)


def _of_tile(size: Array, k: int) -> Array:
    """Return the places for each row of a tile of magnitudes."""
    last = size.shape[1] - k
    least = np.partition(size, last, axis=1)[:, last, None]
    chosen = size > least
    equal = size == least
    missing = k - chosen.sum(axis=1, keepdims=True)
    chosen |= equal & (np.cumsum(equal, axis=1) <= missing)
    return np.nonzero(chosen)[1].reshape(len(size), k)


def _of_row(x: Array, k: int) -> Array:
    """Return the places for one long row, looking closely only at what a sample leaves."""
    sample = magnitudes(x[:: max(1, len(x) // _SAMPLE)])
    expected = len(sample) * k / len(x)
    rank = int(expected + 4.0 * np.sqrt(expected) + 4.0)
    if rank < len(sample):
        last = len(sample) - rank
        least = np.partition(sample, last)[last]
        where, sizes = at_least(x, least)
        if len(where) == k:
            return where
        if len(where) > k:
            best: Array = where[_of_tile(sizes[None], k)[0]]
            return best
    places: Array = _of_tile(magnitudes(x)[None], k)[0]
    return places
