"""Room for large results, used again once the program has dropped them.

Fresh memory of many megabytes costs more than to fill it: the system clears each page first.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np

from dectool.kernels._extension import Array

SMALLEST = 1 << 18
"""Bytes from which results are kept; smaller ones cost nothing to allocate."""

MOST, LARGEST = 8, 1 << 30
"""How many results are kept, and how many bytes together."""


class _Room:
    """A few large arrays of bytes; one is free when no array that shows it is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Array] = [np.empty(0, np.uint8)]
        self._unused = -1
        # Counted by the same code as later, so that it holds for any version of Python.
        self._unused = self._search(0)[1]
        self._kept.clear()

    def _search(self, size: int) -> tuple[Array | None, int]:
        """Return memory of this size that is free, and the references to what was seen last."""
        count = 0
        for memory in self._kept:
            if memory.nbytes == size:
                count = sys.getrefcount(memory)
                if count == self._unused:
                    return memory, count
        return None, count

    def find(self, shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> Array:
        """Return an array of ``size`` bytes."""
        memory, _ = self._search(size)
        if memory is None:
            memory = np.empty(size, np.uint8)
            self._kept.append(memory)
            while len(self._kept) > MOST or sum(m.nbytes for m in self._kept) > LARGEST:
                del self._kept[0]
        shown: Array = memory.view(kind)
        return shown if len(shape) == 1 else shown.reshape(shape)

    def empty(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        """Return an array, from the memory that is kept unless another thread is at it."""
        size = math.prod(shape) * kind.itemsize
        if size < SMALLEST or not self._lock.acquire(blocking=False):
            return np.empty(shape, kind)
        try:
            return self.find(shape, kind, size)
        finally:
            self._lock.release()


_ROOM = _Room()


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array with any content, as ``np.empty`` does.

    Example:
        >>> first = empty((1000, 1000), "float32")
        >>> address = first.ctypes.data
        >>> del first
        >>> empty((1000, 500), "float64").ctypes.data == address
        True
    """
    return _ROOM.empty(shape, np.dtype(dtype))


def empty_like(x: Array) -> Array:
    """Return an array of the shape and dtype of another, with any content.

    Example:
        >>> empty_like(np.ones((2, 3), np.float32)).shape
        (2, 3)
    """
    shape, kind = x.shape, x.dtype
    return np.empty(shape, kind) if x.nbytes < SMALLEST else _ROOM.empty(shape, kind)
