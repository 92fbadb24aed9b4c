"""Numbers of places on the wire."""

from __future__ import annotations

import numpy as np

from dectool.compression._formats import Array, unraw


def place_size(count: int) -> int:
    """Return the bytes of one place among ``count``: as few as hold ``count - 1``.

    Example:
        >>> [place_size(d) for d in (1, 256, 257, 1 << 24)]
        [1, 1, 2, 3]
    """
    return max(1, ((count - 1).bit_length() + 7) // 8)


def write_places(places: Array, count: int) -> Array:
    """Return places (n, k) as little-endian integers of :func:`place_size` bytes."""
    width = place_size(count)
    each = np.ascontiguousarray(places, "<u8").view(np.uint8)
    return each.reshape(*places.shape, 8)[..., :width].reshape(len(places), -1)


def read_places(data: Array, count: int) -> Array:
    """Undo :func:`write_places`; int64."""
    width = place_size(count)
    n, many = len(data), data.shape[1] // width
    each = np.zeros((n, many, 8), np.uint8)
    each[..., :width] = data.reshape(n, many, width)
    return unraw(each.reshape(n, -1), np.dtype("<u8")).astype(np.int64)
