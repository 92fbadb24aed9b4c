"""Memory that ranks of a node share: one maps what another has made.

It has no name in any file system, so nothing can be left behind: it is reached through the
descriptor of the process that made it, and is gone with the last process that maps it.
"""

from __future__ import annotations

import mmap
import os
import sys
from typing import NamedTuple


class Place(NamedTuple):
    """Where another process finds shared memory."""

    process: int
    descriptor: int
    size: int


class SharedMemory:
    """Memory of this process that others can map.

    Args:
        size: Bytes; pages that are never touched take no memory.

    Raises:
        OSError: The system has none to give, or no such thing.
    """

    def __init__(self, size: int) -> None:
        if sys.platform != "linux":
            raise OSError("memory without a name is made on Linux only")
        self._descriptor = os.memfd_create("dectool")
        try:
            os.ftruncate(self._descriptor, size)
            self.map = mmap.mmap(self._descriptor, size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.place = Place(os.getpid(), self._descriptor, size)

    def __del__(self) -> None:
        """Let go of the descriptor; who has mapped the memory keeps it."""
        if hasattr(self, "place"):
            os.close(self._descriptor)


def attach(place: Place) -> mmap.mmap:
    """Map the memory of another process.

    Raises:
        OSError: It is not to be had: the process is gone, or not ours.
    """
    descriptor = os.open(f"/proc/{place.process}/fd/{place.descriptor}", os.O_RDWR)
    try:
        return mmap.mmap(descriptor, place.size)
    finally:
        os.close(descriptor)
