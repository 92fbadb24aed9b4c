"""Memory that ranks of a node share: one maps what another has made.

It has no name in any file system, so nothing can be left behind: it is reached through the
descriptor of the process that made it, and is gone with the last process that maps it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from functools import cache
from typing import Any, NamedTuple


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
            self.map = _mapped(self._descriptor, size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.place = Place(os.getpid(), self._descriptor, size)

    def __del__(self) -> None:
        """Let go of the descriptor; who has mapped the memory keeps it."""
        if hasattr(self, "place"):
            os.close(self._descriptor)


def attach(place: Place) -> Any:
    """Map the memory of another process.

    Raises:
        OSError: It is not to be had: the process is gone, or not ours.
    """
    descriptor = os.open(f"/proc/{place.process}/fd/{place.descriptor}", os.O_RDWR)
    try:
        if os.fstat(descriptor).st_size != place.size:
            raise OSError("the memory is gone, and its descriptor is that of something else")
        return _mapped(descriptor, place.size)
    finally:
        os.close(descriptor)


@cache
def _system() -> ctypes.CDLL:
    system = ctypes.CDLL(None, use_errno=True)
    number, size, address = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    system.mmap.argtypes = [address, size, number, number, number, ctypes.c_long]
    system.mmap.restype = address
    system.munmap.argtypes = [address, size]
    return system


def _mapped(descriptor: int, size: int) -> Any:
    """Return a buffer; Python's own would keep a descriptor for as long as it lives."""
    how = mmap.PROT_READ | mmap.PROT_WRITE
    address = _system().mmap(None, size, how, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    buffer = (ctypes.c_char * size).from_address(address)
    weakref.finalize(buffer, _system().munmap, address, size).atexit = False
    return buffer
