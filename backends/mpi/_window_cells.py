"""A rank's part of a window in memory: its mutex, and cells that neighbours on the node map.

In the memory come, each at the next :data:`ALIGNED`: the mutex, which part it is and who has
slots in it, the rank's own value, the slots. A cell is a line (`_cell.c`) and its buffers.

Waits form no circle. An owner that mixes holds several cells of its part, and waits for no others.
Who writes to another part holds one cell there, and with it at most its own value, which it sends;
it takes that one first, and waits for nothing once it has both. All others hold one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, final

import numpy as np

from dectool.backends.mpi._wire import as_bytes
from dectool.communicator._cells import Cell
from dectool.communicator._parcel import Buffer

make_line: Callable[[Any, int, int], Line] | None
try:
    from dectool.backends.mpi._cell import Line as _Line

    make_line = _Line
except ImportError:  # it was installed without a C compiler
    make_line = None

ALIGNED = 64
LARGE = 4096
"""Bytes from which it matters how they are written."""

PATIENCE = 100_000
"""Nanoseconds of waiting for who holds a cell before everything else goes on."""


class Line(Protocol):
    """Who holds a cell, and what it counts; ranks count from 1, and 0 is nobody."""

    version: int
    received: int
    weight: float
    time: float

    def take(self, patience: int, /) -> bool:
        """Hold the cell, waiting for so many nanoseconds; tell whether it is held now."""

    def give_back(self) -> None:
        """Hold the cell no more."""

    def write(self, into: Any, source: Any, /) -> None:
        """Copy an array into the cell."""

    @property
    def holder(self) -> int:
        """Who holds the cell."""


@final
class LocalLine:
    """A line for the threads of one process.

    Args:
        lock: Keeps them apart.
        me: Number of the rank that takes it.
    """

    def __init__(self, lock: threading.Lock, me: int) -> None:
        self._lock = lock
        self._me = me
        self.version = 0
        self.received = 0
        self.weight = 0.0
        self.time = 0.0

    def take(self, patience: int, /) -> bool:
        """Hold the cell, waiting for so many nanoseconds; tell whether it is held now."""
        return self._lock.acquire(timeout=patience * 1e-9)

    def give_back(self) -> None:
        """Hold the cell no more."""
        self._lock.release()

    def write(self, into: Any, source: Any, /) -> None:
        """Copy an array into the cell."""
        np.copyto(into, source)

    @property
    def holder(self) -> int:
        """Who holds the cell, if it is held."""
        return self._me if self._lock.locked() else 0


@final
class SharedCell(Cell):
    """A cell in memory that other processes map.

    Args:
        line: Stands before it.
        buffers: Views of the memory.
        wait: Called with the line when somebody else holds it; returns when it is ours.
    """

    def __init__(
        self, line: Line, buffers: tuple[Buffer, ...], wait: Callable[[Line], None]
    ) -> None:
        self._line = line
        self._wait = wait
        self.buffers = buffers

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep everybody else from reading or writing the cell."""
        line = self._line
        if not line.take(PATIENCE):
            self._wait(line)
        try:
            yield
        finally:
            line.give_back()

    def fill(self, into: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
        """Copy an array into one of the buffers, in the way that is fast where it is read."""
        alike = into.shape == source.shape and into.dtype == source.dtype
        if alike and into.nbytes >= LARGE:
            self._line.write(as_bytes(into), as_bytes(source))
        else:
            np.copyto(into, source)

    @property
    def version(self) -> int:
        """How often it was written."""
        return self._line.version

    @version.setter
    def version(self, count: int) -> None:
        self._line.version = count

    @property
    def received(self) -> int:
        """How many remote operations have come to it."""
        return self._line.received

    @received.setter
    def received(self, count: int) -> None:
        self._line.received = count

    @property
    def weight(self) -> float:
        """What push-sum carries along."""
        return self._line.weight

    @weight.setter
    def weight(self, weight: float) -> None:
        self._line.weight = weight

    @property
    def time(self) -> float:
        """When what was written last was sent."""
        return self._line.time

    @time.setter
    def time(self, time: float) -> None:
        self._line.time = time


def part_size(buffers: Sequence[Buffer], slots: int) -> int:
    """Return the bytes of a part."""
    return ALIGNED + _aligned(8 * (slots + 2)) + (slots + 1) * _cell_size(buffers)


def write_sources(memory: Any, mark: int, sources: Sequence[int]) -> None:
    """Write down which part it is, and who has slots."""
    listed = np.ndarray(len(sources) + 2, np.int64, memory, ALIGNED)
    listed[:2] = mark, len(sources)
    listed[2:] = sources


def mark_of(memory: Any) -> int:
    """Return which part it is."""
    return int(np.ndarray(1, np.int64, memory, ALIGNED)[0])


@final
class Part:
    """A rank's part of a window, its own or one that it has mapped.

    Args:
        memory: Holds it; who has slots is written down there.
        me: Number of this rank in the world.
        like: Buffers of the shapes and dtypes of the window's.
        wait: What cells do when somebody else holds them.

    Attributes:
        mutex: What :meth:`Window.lock` takes.
        own: The owner's value.
        slots: By rank.
    """

    def __init__(
        self, memory: Any, me: int, like: Sequence[Buffer], wait: Callable[[Line], None]
    ) -> None:
        self._memory = memory
        self._make = make_line
        self._mutex = threading.Lock()
        self.mutex = self.mutex_of(me)
        count = int(np.ndarray(2, np.int64, memory, ALIGNED)[1])
        sources = np.ndarray(count + 2, np.int64, memory, ALIGNED)[2:].tolist()
        start, size = ALIGNED + _aligned(8 * (count + 2)), _cell_size(like)
        cells = []
        for offset in range(start, start + (count + 1) * size, size):
            line = self._line(offset, me, threading.Lock())
            cells.append(SharedCell(line, _views(memory, offset + ALIGNED, like), wait))
        self.own = cells[0]
        self.slots: dict[int, Cell] = dict(zip(sources, cells[1:], strict=True))

    def mutex_of(self, rank: int) -> Line:
        """Return the mutex, to be taken in the name of a rank."""
        return self._line(0, rank, self._mutex)

    def _line(self, offset: int, rank: int, lock: threading.Lock) -> Line:
        if self._make is None:
            return LocalLine(lock, rank + 1)
        return self._make(self._memory, offset, rank + 1)


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _cell_size(buffers: Sequence[Buffer]) -> int:
    arrays = (b for b in buffers if isinstance(b, np.ndarray))
    return ALIGNED + sum(_aligned(b.nbytes) for b in arrays)


def _views(memory: Any, offset: int, like: Sequence[Buffer]) -> tuple[Buffer, ...]:
    views: list[Buffer] = []
    for buffer in like:
        if not isinstance(buffer, np.ndarray):
            views.append(buffer)
            continue
        # A view of no bytes may not begin where the memory ends.
        place = offset if buffer.size else 0
        views.append(np.ndarray(buffer.shape, buffer.dtype, memory, place))
        offset += _aligned(buffer.nbytes)
    return tuple(views)
