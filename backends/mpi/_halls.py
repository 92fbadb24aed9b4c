"""Where the ranks of a node meet for blocking collectives. `_hall.c` has the memory's layout."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.backends.mpi._shared_memory import Place, SharedMemory, attach
from dectool.communicator import Channel
from dectool.communicator._digest import digest

if TYPE_CHECKING:
    from mpi4py import MPI

native: Any
try:
    from dectool.backends.mpi import _hall

    native = _hall
except ImportError:  # it was installed without a C compiler
    native = None

AGREED, WAITING, BY_MESSAGE, BUSY = range(4)

ROOM = 1 << 22
"""Bytes of a buffer: what a rank writes in one step."""

PATIENCE, CROWDED_PATIENCE = 50_000, 5_000
"""Nanoseconds that a call may spin before everything else goes on; with more ranks than cores."""


GIVES_WAY = 5e-3
"""Seconds after which a rank that waits no longer keeps up the collectives of others."""

FORGETS = 1.0
"""Seconds between questions after which they are not those of one wait."""


class Hall:
    """The memory in which ranks of a node meet.

    Args:
        ranks: Those ranks, ascending, by number in the world.
        me: Position of this rank among them.
        own: Memory of this rank.
        maps: Memory of each of them.
        start: Where the buffers begin.
    """

    def __init__(
        self, ranks: Sequence[int], me: int, own: SharedMemory, maps: Sequence[Any], start: int
    ) -> None:
        self._own = own
        self.place = {rank: position for position, rank in enumerate(ranks)}
        crowded = len(ranks) > len(os.sched_getaffinity(0))
        self.patience = CROWDED_PATIENCE if crowded else PATIENCE
        self.native = native.Hall(tuple(maps), me, crowded)
        self._since = self._asked = -FORGETS
        self.buffers = [
            [np.frombuffer(each, np.uint8, ROOM, start + number * ROOM) for number in range(2)]
            for each in maps
        ]

    def meeting(self, context: Channel, members: Sequence[int]) -> int:
        """Return the number of a communicator, or -1 if its ranks cannot meet."""
        if not self.place.keys() >= set(members):
            return -1
        key = digest((context, list(members)), 8)
        places = tuple(self.place[member] for member in members)
        number: int = self.native.meeting(int.from_bytes(key, "little") or 1, places)
        return number

    def give_way_between_calls(self) -> None:
        """Give up what others wait for, once a rank has asked in vain for long enough.

        A program may ask again and again whether a request is complete, and wait for nothing else.
        """
        now = time.monotonic()
        if self._asked + FORGETS < now:
            self._since = now
        self._asked = now
        if now - self._since > GIVES_WAY:
            self.native.give_way()


def open_hall(node: MPI.Comm, ranks: Sequence[int]) -> Hall | None:
    """Return a hall of the ranks of a node, who all call this, or ``None`` if they have none.

    Args:
        node: A communicator of the ranks.
        ranks: Their numbers in the world.
    """
    if len(ranks) == 1:
        return None
    own: SharedMemory | None = None
    start = 0

    def make() -> Place:
        nonlocal own, start
        size, start = native.memory(len(ranks), ROOM)
        own = SharedMemory(size)
        return own.place

    place = _or_none(make if native is not None else None)
    places = node.allgather(place)
    maps: list[Any] | None = None
    if None not in places:
        maps = _or_none(lambda: [attach(Place(*each)) for each in places])
    if not all(node.allgather(maps is not None)):
        return None
    assert own is not None
    assert maps is not None
    return Hall(ranks, node.rank, own, maps, start)


def _or_none(get: Callable[[], Any] | None) -> Any:
    try:
        return None if get is None else get()
    except OSError:
        return None
