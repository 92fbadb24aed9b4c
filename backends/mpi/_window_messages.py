"""Messages between ranks whose windows share no memory: what is asked, and what is answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from dectool.backends.mpi import _wire
from dectool.backends.mpi._engine import Receipt
from dectool.backends.mpi._incoming import Incoming, begin
from dectool.communicator import Parcel
from dectool.communicator._cells import Remote
from dectool.errors import WindowError

if TYPE_CHECKING:
    from mpi4py import MPI

_FIRST, _DATA = 1, 2

NOTHING = Parcel((), None)


class Answer(Receipt):
    """What is asked of a rank, which it answers even after its program has returned."""

    __slots__ = ()
    served = True


class Order(NamedTuple):
    """What a rank asks of another, or answers.

    Attributes:
        kind: "write", "read", "lock" or "unlock"; "done" or "gone" in answer.
        window: Number of the window at the rank that is asked.
        ticket: Number of the question at the rank that asks.
        source: Rank, in the window's communicator, that asks for a write.
        remote: What is to be done.
        time: When what is answered was sent.
    """

    kind: str
    window: int
    ticket: int
    source: int = 0
    remote: Remote | None = None
    time: float = 0.0


class Freed(NamedTuple):
    """What comes from a window that was freed."""

    message: str

    @property
    def buffers(self) -> Any:
        """There are none.

        Raises:
            WindowError: Always.
        """
        raise WindowError(self.message)


@final
class Post:
    """Sends and takes in; for one thread at a time.

    Args:
        comm: A communicator on which nobody else sends.
        near: Ranks on this node, to which large pieces may go.
    """

    def __init__(self, comm: MPI.Intracomm, near: frozenset[int]) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = comm
        self._near = near
        self._status = MPI.Status()
        self._incoming: dict[int, deque[Incoming]] = {}
        self._under_way: deque[tuple[Any, Any]] = deque()

    @property
    def sending(self) -> bool:
        """Whether something is not sent yet."""
        return bool(self._under_way)

    @property
    def busy(self) -> bool:
        """Whether data are on their way, of which MPI takes or sends a little with every call."""
        return bool(self._incoming or self._under_way)

    def send(self, dest: int, order: Order, parcel: Parcel) -> None:
        """Send; returns at once, and keeps the parcel until it is sent."""
        size = _wire.CUT if dest in self._near else _wire.PIECE
        first, rest = _wire.encode(parcel, tuple(order), size)
        for data, tag in ((first, _FIRST), *((piece, _DATA) for piece in rest)):
            request = self._comm.Isend([data, self._mpi.BYTE], dest, tag)
            self._under_way.append((request, data))

    def take_in(self) -> bool:
        """Receive a message, if there is one, or begin to; forget what is sent."""
        while self._under_way and self._under_way[0][0].Test():
            self._under_way.popleft()
        # Data messages have their receive posted with the first one, so a probe never sees them.
        message = self._comm.Improbe(status=self._status)
        if message is None:
            return False
        source = self._status.Get_source()
        first = np.empty(self._status.Get_count(self._mpi.BYTE), np.uint8)
        message.Recv([first, self._mpi.BYTE])
        incoming = begin(self._comm, source, first, _DATA)
        self._incoming.setdefault(source, deque()).append(incoming)
        return True

    def arrived(self) -> Iterator[tuple[int, Order, Parcel]]:
        """Yield whose, what and the data of all that has come whole, in order of each source."""
        for source, queue in list(self._incoming.items()):
            while queue and queue[0].advance():
                incoming = queue.popleft()
                yield source, Order(*incoming.header.channel), incoming.parcel
            if not queue:
                del self._incoming[source]
