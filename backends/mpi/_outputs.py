"""Room for results, used again once the program has dropped them.

Fresh memory of many megabytes costs more than to fill it: the system clears each page first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

SMALLEST = 1 << 18
"""Bytes from which results are kept; smaller ones cost nothing to allocate."""

MOST = 4


class Outputs:
    """A few large arrays of bytes; one is free when no array that shows it is left."""

    def __init__(self) -> None:
        self._kept: list[np.ndarray[Any, Any]] = [np.empty(0, np.uint8)]
        # Counted in the same way as below, so that it holds for any version of Python.
        self._unused = self._references(0)
        self._kept.clear()

    def like(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return an array of the shape and dtype of a contiguous one, with any content."""
        size = buffer.nbytes
        if size < SMALLEST:
            return np.empty_like(buffer)
        for index in range(len(self._kept)):
            if self._kept[index].nbytes == size and self._references(index) == self._unused:
                break
        else:
            index = len(self._kept)
            self._kept.append(np.empty(size, np.uint8))
            if index == MOST:
                index -= 1
                del self._kept[0]
        memory: np.ndarray[Any, Any] = self._kept[index].view(buffer.dtype)
        return memory.reshape(buffer.shape)

    def _references(self, index: int) -> int:
        return sys.getrefcount(self._kept[index])
