"""Boards: how neighbours on one node hand parcels over through shared memory.

The first parcel from a rank to another goes by message, with a ticket: where to map the sender's
board. Once the receiver has mapped it, parcels go through the board while one of its two slots is
free, and by message otherwise, so that sending never blocks. All are counted, which keeps them in
order. `_slots.h` has the memory's layout.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dectool.backends.mpi import _wire
from dectool.backends.mpi._shared_memory import Place, SharedMemory, attach
from dectool.communicator import Channel, Parcel
from dectool.communicator._digest import digest_numbers
from dectool.communicator._parcel import Layout

native: Any
try:
    from dectool.backends.mpi import _board

    native = _board
except ImportError:  # it was installed without a C compiler
    native = None

DONE, WAITING, BUSY, DISAGREE = range(4)
SMALLEST = 1 << 16
KINDS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3, "complex128": 0, "complex64": 1}


class Ticket(NamedTuple):
    """What a rank must know to read another's board."""

    place: Place
    readers: int
    me: int


class Description(NamedTuple):
    """What a board says of the buffers in a slot.

    Attributes:
        low: Half of a digest: equal digests mean that two ranks agree.
        high: The other half.
        packed: What the buffers are, for a rank that does not agree.
        kinds: How each buffer is summed, or ``None`` where that is left to NumPy.
    """

    low: int
    high: int
    packed: bytes
    kinds: tuple[int, ...] | None

    def room(self, buffers: Sequence[Any]) -> int:
        """Return the bytes of a slot that the buffers and their description take."""
        if len(buffers) == 1:
            return int(buffers[0].nbytes) + _wire.ALIGNED + len(self.packed)
        return sum(int(buffer.nbytes) + _wire.ALIGNED for buffer in buffers) + len(self.packed)


_DESCRIBED: dict[int, tuple[Layout, Description]] = {}


def describe(layout: Layout, buffers: tuple[Any, ...]) -> Description:
    """Return the description of what has this layout."""
    known = _DESCRIBED.get(id(layout))
    if known is not None and known[0] is layout:
        return known[1]
    kinds = tuple(KINDS.get(dtype, -1) for dtype in layout.dtypes)
    whole = all(isinstance(buffer, np.ndarray) and buffer.size for buffer in buffers)
    description = Description(
        *digest_numbers(layout.signature),
        _wire.pack_layout(layout, buffers),
        kinds if whole and 0 < len(kinds) <= 16 and min(kinds) >= 0 else None,
    )
    if len(_DESCRIBED) > 4096:
        _DESCRIBED.clear()
    _DESCRIBED[id(layout)] = (layout, description)
    return description


class Outbox:
    """The board of this rank for one channel.

    Args:
        node: Number, on this node, of each of its ranks.
        capacity: Bytes of a slot.
        before: What it replaces, whose counts go on.
    """

    def __init__(self, node: Mapping[int, int], capacity: int, before: Outbox | None) -> None:
        self._node = node
        size = native.memory(len(node), capacity)
        self._memory = SharedMemory(size)
        self.board = native.Board(self._memory.map, len(node), -1)
        if before is not None:
            self.board.go_on(before.board.counts())
        self._told: set[int] = set()
        self._last: tuple[Parcel, int] | None = None

    def reaches(self, dest: int) -> bool:
        """Tell whether a rank has mapped the board."""
        return bool(self.board.attached(self._node[dest]))

    def put(self, parcel: Parcel, dest: int) -> bool:
        """Hand a parcel over; tell whether there was room."""
        if not self.reaches(dest):
            return False
        if self._last is None or self._last[0] is not parcel:
            slot = self._write(parcel)
            if slot < 0:
                return False
            self._last = (parcel, slot)
        self.board.post(self._last[1], self._node[dest])
        return True

    def _write(self, parcel: Parcel) -> int:
        arrays = [buffer for buffer in parcel.buffers if isinstance(buffer, np.ndarray)]
        if parcel.layout is None or len(arrays) < len(parcel.buffers):
            return -1
        described = describe(parcel.layout, parcel.buffers)
        flat = tuple(map(_wire.as_bytes, arrays))
        slot: int = self.board.write(
            parcel.sequence, described.low, described.high, described.packed, flat
        )
        return slot

    @property
    def has_room(self) -> bool:
        """Whether the next slot may be written."""
        return bool(self.board.free())

    def forget(self) -> None:
        """Let go of the parcel that was put last: no further rank gets it."""
        self._last = None

    def by_message(self, dest: int) -> tuple[int, Ticket | None]:
        """Count a parcel that goes by message; return its number, and the ticket if it is due."""
        reader = self._node[dest]
        ticket = None
        if dest not in self._told:
            self._told.add(dest)
            ticket = Ticket(self._memory.place, len(self._node), reader)
        return self.board.count(reader), ticket


class Lane:
    """What one rank sends to this one on one channel, since it has a board for it.

    Args:
        changed: Called when the parcels that follow come through another board.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.board: Any = None
        self._map: Any = None
        self._received = 0
        self._queue: deque[tuple[int, Parcel, tuple[Any, Any] | None]] = deque()

    def arrive(self, number: int, parcel: Parcel, ticket: Ticket | None) -> None:
        """Take a parcel that came by message; the ticket holds from the next one on."""
        attached = None
        if ticket is not None and native is not None:
            try:
                memory = attach(Place(*ticket.place))
                attached = (native.Board(memory, ticket.readers, ticket.me), memory)
            except OSError:
                attached = None  # the sender will go on with messages
        self._queue.append((number, parcel, attached))

    @property
    def received(self) -> int:
        """How many parcels were taken."""
        return self._received if self.board is None else int(self.board.received)

    def from_queue(self) -> Parcel | None:
        """Take the next parcel, if it came by message."""
        if not self._queue or self._queue[0][0] != self.received:
            return None
        _, parcel, attached = self._queue.popleft()
        if self.board is None:
            self._received += 1
        else:
            self.board.take(-1)
        if attached is not None:
            attached[0].received = self.received
            self.board, self._map = attached
            self._changed()
        return parcel

    def take(self) -> Parcel | None:
        """Take the next parcel, as a copy, if it has come."""
        parcel = self.from_queue()
        if parcel is None and self.board is not None:
            slot = self.board.next()
            if slot >= 0:
                seen = self.look(slot)
                parcel = Parcel(tuple(_copy(b) for b in seen.buffers), seen.layout, seen.sequence)
                self.board.take(slot)
        return parcel

    def look(self, slot: int) -> Parcel:
        """Return what is in a slot, without a copy."""
        number, packed, offset = self.board.content(slot)
        layout, buffers = _wire.unpack_layout(packed, self._map, offset)
        return Parcel(buffers, layout, number)

    @property
    def left(self) -> int:
        """How many parcels came that nobody took."""
        newest = next((board for _, _, board in reversed(self._queue) if board), None)
        board = newest[0] if newest is not None else self.board
        return len(self._queue) if board is None else int(board.sent()) - self.received


def _copy(buffer: Any) -> Any:
    return buffer.copy() if isinstance(buffer, np.ndarray) else buffer


class Boards:
    """The boards that a rank writes and reads.

    Args:
        node: Number, on this node, of each of its ranks, by rank in the world.

    Attributes:
        near: The ranks on this node.
        node: Those that may share memory, with their numbers.
        version: Grows whenever a board is replaced.
    """

    def __init__(self, node: Mapping[int, int]) -> None:
        self.near = frozenset(node)
        self.node = node if native is not None and len(node) > 1 else {}
        self.crowded = len(node) > len(os.sched_getaffinity(0)) if self.node else False
        self.version = 0
        self.written: dict[Channel, Outbox] = {}
        self.read: dict[tuple[int, Channel], Lane] = {}

    def open(self, channel: Channel, size: int) -> Outbox | None:
        """Return the outbox of a channel with room for ``size`` bytes, if there can be one."""
        box = self.written.get(channel)
        if box is not None and box.board.capacity >= size:
            return box
        if not self.node:
            return None
        capacity = max(SMALLEST, 1 << (size - 1).bit_length() if size < 1 << 26 else size)
        try:
            box = Outbox(self.node, capacity, box)
        except OSError:
            self.node = {}
            return None
        self.written[channel] = box
        self._change()
        return box

    def arrive(
        self, source: int, channel: Channel, number: int, parcel: Parcel, ticket: Ticket | None
    ) -> None:
        """Take a counted parcel that came by message."""
        lane = self.read.get((source, channel))
        if lane is None:
            lane = self.read[source, channel] = Lane(self._change)
        lane.arrive(number, parcel, ticket)

    def close(self) -> None:
        """Let go of all boards."""
        self.written.clear()
        self.read.clear()
        self.node = {}

    def _change(self) -> None:
        self.version += 1
