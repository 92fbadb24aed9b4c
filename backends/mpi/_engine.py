"""Progress of one process: its messages, its background operations, and its patience.

One thread calls MPI. While the program waits, the engine takes in whatever arrives, from any rank
and for any operation, and resumes background operations, which are greenlets. So operations that
ranks complete in different orders cannot block each other.

A rank's last message tells every other rank that it has ended, and how. Messages of one rank do
not overtake each other, so whoever has all of these has everything that was ever sent to it.
"""

from __future__ import annotations

import contextvars
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import greenlet
import numpy as np

from dectool.backends.mpi import _wire
from dectool.backends.mpi._boards import Boards
from dectool.backends.mpi._halls import GIVES_WAY, Hall
from dectool.backends.mpi._incoming import Incoming, begin
from dectool.communicator import Channel, Parcel, Pending
from dectool.errors import DeadlockError

if TYPE_CHECKING:
    from mpi4py import MPI

    from dectool.backends.mpi._window_service import WindowService

RETURNED, FAILED, STOPPED = 0, 1, 2
"""How a rank ends: by returning, by an error of its own, or because another one failed."""

GRACE = 2.0
"""Seconds that the other ranks have to end once one has failed."""

_FIRST, _DATA, _END = 1, 2, 3
_MISSING: Any = object()
_SPINS, _SPINNING = 2000, 0.05
"""How often a rank looks before it sleeps in between, and for how many seconds at most."""


class Ended(BaseException):
    """Another rank failed, so this one stops where it waits; never seen by programs."""


class StalledError(DeadlockError):
    """The wait of one rank that is an error; the message is that rank's line of the report."""


class Unsettled(BaseException):
    """A rank failed, and others do not stop."""


class Receipt(Pending):
    """A parcel that is awaited, or the result of a background operation."""

    __slots__ = ("channel", "content", "source", "strand")

    served: ClassVar[bool] = False
    """Whether it comes even after the program of its source has returned."""

    def __init__(self, source: int, channel: Channel, strand: Strand | None = None) -> None:
        self.source = source
        self.channel = channel
        self.strand = strand
        self.content: Any = _MISSING

    @property
    def complete(self) -> bool:
        """Whether what is awaited has come."""
        return self.content is not _MISSING


class Strand:
    """A background operation: a greenlet, and what it waits for."""

    __slots__ = ("greenlet", "waits")

    def __init__(self) -> None:
        self.greenlet: greenlet.greenlet
        self.waits: Sequence[Receipt] = ()


class Engine:
    """Sends, receives and waits for one rank.

    Args:
        comm: A communicator of its own, on which nobody else sends.
        stall_timeout: Seconds of waiting after which a report is printed once.
        timeout: Seconds of waiting after which a wait is an error.
        describe: Returns the words for a wait: of the receipts that are missing (of no receipts:
            for other ranks to return), and of the ranks among their sources that have returned.
        tell: Prints a report.
        boards: Shared memory with the ranks of the node.
        hall: Where they meet for collectives, if they can.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        stall_timeout: float,
        timeout: float,
        describe: Callable[[Sequence[Receipt], Sequence[int]], str],
        tell: Callable[[str], None],
        boards: Boards,
        hall: Hall | None = None,
    ) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self.comm = comm
        self._stall_timeout = stall_timeout
        self._timeout = timeout
        self._describe = describe
        self._tell = tell
        self.boards = boards
        self.hall = hall
        self.windows: WindowService | None = None
        self._status = MPI.Status()
        self._arrived: dict[Any, deque[Parcel]] = {}
        self._expected: dict[Any, deque[Receipt]] = {}
        self._incoming: dict[int, deque[Incoming]] = {}
        self._under_way: deque[tuple[Any, Any]] = deque()
        self._strands: list[Strand] = []
        self._hub = greenlet.getcurrent()
        self._current: Strand | None = None
        self._finishing = False
        self.ended: dict[int, int] = {}
        self.failed = False
        self.all_returned = False
        self.messages = 0
        self.bytes = 0

    # -- messages ------------------------------------------------------------------------------

    def post(self, parcel: Parcel, dest: int, channel: Channel, *, counted: bool = True) -> None:
        """Send a parcel; returns at once, and keeps it until it is sent."""
        if counted:
            self.messages += 1
            self.bytes += parcel.nbytes
        if dest == self.comm.rank:
            self._deliver(dest, channel, parcel)
            return
        box = self.boards.written.get(channel)
        near = dest in self.boards.near
        size = _wire.CUT if near else _wire.PIECE
        if box is None or not near:
            first, rest = _wire.encode(parcel, channel, size)
        elif box.put(parcel, dest):
            return
        else:
            first, rest = _wire.encode(parcel, channel, size, *box.by_message(dest))
        self._send(first, dest, _FIRST)
        for piece in rest:
            self._send(piece, dest, _DATA)
        self._forget_sent()

    def post_in_turn(
        self, parcel: Parcel, own: np.ndarray[Any, Any], dests: Sequence[int], channel: Channel
    ) -> None:
        """Copy an array into a parcel and send it to several ranks, a piece to each in turn.

        Ranks that would each send all to one and then all to the next would first crowd some
        links, then others. And links would be idle until all was copied.
        """
        (copied,) = parcel.buffers
        assert isinstance(copied, np.ndarray)
        far = [dest for dest in dests if dest not in self.boards.near]
        in_pieces = len(far) == len(dests) and own.flags.c_contiguous
        if not in_pieces:
            np.copyto(copied, own)
        for dest in dests:
            if dest in self.boards.near:
                self.post(parcel, dest, channel)
        self.messages += len(far)
        self.bytes += len(far) * parcel.nbytes
        first, rest = _wire.encode(parcel, channel, _wire.PIECE)
        for dest in far:
            self._send(first, dest, _FIRST)
        content = own if in_pieces else copied
        for piece, part in zip(rest, _wire.raw([content], _wire.PIECE), strict=True):
            if in_pieces:
                np.copyto(piece, part)
            for dest in far:
                self._send(piece, dest, _DATA)
        self._forget_sent()

    def _send(self, data: np.ndarray[Any, Any], dest: int, tag: int) -> None:
        request = self.comm.Isend([data, self._mpi.BYTE], dest, tag)
        self._under_way.append((request, data))

    def _forget_sent(self) -> None:
        while self._under_way and self._under_way[0][0].Test():
            self._under_way.popleft()

    def expect(self, source: int, channel: Channel) -> Receipt:
        """Match the next parcel from ``source`` on ``channel`` with a receipt."""
        receipt = Receipt(source, channel)
        key = (source, channel)
        arrived = self._arrived.get(key)
        if arrived:
            receipt.content = arrived.popleft()
            if not arrived:
                del self._arrived[key]
        else:
            self._expected.setdefault(key, deque()).append(receipt)
            if key in self.boards.read:
                self._take_from(key)
        return receipt

    def expects(self, sources: Sequence[int], channel: Channel) -> bool:
        """Tell whether a receipt waits for a parcel of one of the sources."""
        return bool(self._expected) and any((s, channel) in self._expected for s in sources)

    def arriving(self, receipt: Receipt) -> Incoming | None:
        """Return what is on its way for a receipt, if it is the first that waits for it."""
        expected = self._expected.get((receipt.source, receipt.channel))
        if expected is None or expected[0] is not receipt:
            return None
        for incoming in self._incoming.get(receipt.source, ()):
            if incoming.header.channel == receipt.channel:
                incoming.advance()
                return incoming
        return None

    def _deliver(self, source: int, channel: Channel, parcel: Parcel) -> None:
        key = (source, channel)
        if key in self._expected:
            self._give(key, parcel)
        else:
            self._arrived.setdefault(key, deque()).append(parcel)

    def _give(self, key: tuple[int, Channel], parcel: Parcel) -> None:
        expected = self._expected[key]
        expected.popleft().content = parcel
        if not expected:
            del self._expected[key]

    def _take_from(self, key: tuple[int, Channel]) -> bool:
        """Give what is on a board, and was counted, to those that expect it."""
        lane = self.boards.read[key]
        moved = False
        while key in self._expected and (parcel := lane.take()) is not None:
            self._give(key, parcel)
            moved = True
        return moved

    def _take_in(self) -> bool:
        """Receive one message if there is one; tell whether there was."""
        # Data messages have their receive posted with the first one, so a probe never sees them.
        message = self.comm.Improbe(status=self._status)
        if message is None:
            return False
        source = self._status.Get_source()
        ends = self._status.Get_tag() == _END
        first = np.empty(self._status.Get_count(self._mpi.BYTE), np.uint8)
        message.Recv([first, self._mpi.BYTE])
        if ends:
            self.ended[source] = int(first[0])
            self.failed = self.failed or first[0] != RETURNED
        else:
            self._take_parcel(source, first)
        return True

    def _take_parcel(self, source: int, first: np.ndarray[Any, Any]) -> None:
        """Deliver a parcel, or start receiving its data; parcels of a source keep their order."""
        incoming = begin(self.comm, source, first, _DATA)
        if incoming.requests or source in self._incoming:
            self._incoming.setdefault(source, deque()).append(incoming)
        else:
            self._arrive(source, incoming.header, incoming.parcel)

    def _arrive(self, source: int, header: _wire.Header, parcel: Parcel) -> None:
        channel = header.channel
        if header.number < 0:
            self._deliver(source, channel, parcel)
        else:
            self.boards.arrive(source, channel, header.number, parcel, header.ticket)
            self._take_from((source, channel))

    def _complete_incoming(self) -> bool:
        moved = False
        for source, queue in list(self._incoming.items()):
            while queue and queue[0].advance():
                first = queue.popleft()
                self._arrive(source, first.header, first.parcel)
                moved = True
            if not queue:
                del self._incoming[source]
        return moved

    # -- waiting -------------------------------------------------------------------------------

    def wait(self, pending: Sequence[Any]) -> list[Any]:
        """Block until all receipts are complete; return their contents.

        Raises:
            DeadlockError: Nothing came for ``timeout`` seconds, or nothing can come any more.
            Ended: Another rank failed meanwhile.
        """
        strand = self._current
        if strand is not None:
            while not all(receipt.complete for receipt in pending):
                strand.waits = pending
                self._hub.switch()
        else:
            self.block(
                lambda: all(receipt.complete for receipt in pending), lambda: _messages(pending)
            )
        return [receipt.content for receipt in pending]

    @property
    def in_background(self) -> bool:
        """Whether the line of execution is that of a background operation."""
        return self._current is not None

    def block(self, done: Callable[[], bool], missing: Callable[[], Sequence[Receipt]]) -> None:
        """Go on with everything else until ``done()``.

        Args:
            done: Does what it can without blocking; tells whether that was all.
            missing: Returns receipts for what has not come, for a report.

        Raises:
            DeadlockError: Nothing came for ``timeout`` seconds, or nothing can come any more.
            Ended: Another rank failed meanwhile.
        """
        idle = 0
        told = False
        began = since = spinning = 0.0
        while not done():
            if self.progress():
                idle = 0
                began = 0.0
                continue
            idle += 1
            if idle < _SPINS and not self.failed:
                if idle == 1:
                    spinning = time.monotonic()
                if self.boards.crowded or idle % 16 == 0:
                    os.sched_yield()
                    # With more processes than cores, to look may take milliseconds.
                    if time.monotonic() - spinning > _SPINNING:
                        idle = _SPINS
                continue
            now = time.monotonic()
            began = began or now
            since = since or now
            waited = now - began
            if now - since > GIVES_WAY and self.hall is not None:
                self.hall.native.give_way()
            if self.failed:
                if not self._finishing:
                    raise Ended(self._report(missing()))
                if waited > GRACE:
                    raise Unsettled
            elif waited > self._timeout or self._hopeless(missing()):
                raise StalledError(self._report(missing()))
            elif waited > self._stall_timeout and not told:
                told = True
                self._tell(f"after {waited:.1f} s {self._report(missing())}")
            time.sleep(2e-4 if waited < 1.0 else 5e-3)

    def _report(self, missing: Sequence[Receipt]) -> str:
        returned = {rank for rank, how in self.ended.items() if how == RETURNED}
        return self._describe(missing, sorted({r.source for r in missing} & returned))

    def _hopeless(self, missing: Sequence[Receipt]) -> bool:
        """Tell whether a message is awaited from a rank that has ended without sending it."""
        return any(
            r.source in self.ended and r.source not in self._incoming and not r.served
            for r in missing
        )

    def ready(self, pending: Sequence[Any]) -> bool:
        """Take in what has arrived; tell whether all receipts are complete."""
        while self.progress():
            pass
        if all(receipt.complete for receipt in pending):
            return True
        if self.failed and self._current is None:
            raise Ended(self._report(_messages(pending)))
        if self.hall is not None:
            self.hall.give_way_between_calls()
        return False

    def sleep(self, seconds: float) -> None:
        """Let time pass, and take in meanwhile what arrives."""
        until = time.perf_counter() + seconds
        left = seconds
        while left > 0.0:
            if not self.progress():
                time.sleep(min(left, 5e-3))
            if self.failed and self._current is None:
                raise Ended("")
            left = until - time.perf_counter()

    def progress(self) -> bool:
        """Do what can be done without blocking; tell whether anything was."""
        moved = self._take_in()
        if self._incoming:
            moved = self._complete_incoming() or moved
        if self._under_way:
            self._forget_sent()
        if self.windows is not None:
            moved = self.windows.progress() or moved
        for key in self.boards.read:
            if key in self._expected:
                moved = self._take_from(key) or moved
        for strand in list(self._strands):
            if all(receipt.complete for receipt in strand.waits):
                self._resume(strand)
                moved = True
        return moved

    # -- background operations -----------------------------------------------------------------

    def background(self, work: Callable[[], Any]) -> Receipt:
        """Start an operation beside the program; the receipt completes with its result."""
        strand = Strand()
        receipt = Receipt(self.comm.rank, ("background",), strand)

        def body() -> None:
            try:
                receipt.content = work()
            finally:
                self._strands.remove(strand)

        strand.greenlet = greenlet.greenlet(body)
        # Without a copy, what the program set with np.errstate would not hold in here.
        strand.greenlet.gr_context = contextvars.copy_context()
        self._strands.append(strand)
        self._resume(strand)
        return receipt

    def _resume(self, strand: Strand) -> None:
        before, self._current = self._current, strand
        outer, self._hub = self._hub, greenlet.getcurrent()
        strand.greenlet.parent = self._hub
        try:
            strand.greenlet.switch()
        finally:
            self._current, self._hub = before, outer

    # -- the end -------------------------------------------------------------------------------

    def complete_background(self) -> None:
        """Wait for the operations that the program did not wait for, while they can go on."""

        def missing() -> list[Receipt]:
            return [r for strand in self._strands for r in _messages(strand.waits)]

        self.block(lambda: not self._strands or self._hopeless(missing()), missing)
        self._strands = []

    def finish(self, how: int) -> list[tuple[int, Channel]]:
        """Tell the others that this rank has ended, and wait until all have.

        Returns:
            (source, channel) of each message that nobody received.

        Raises:
            DeadlockError: The others did not end within ``timeout``.
            Unsettled: A rank failed, and the others did not end within :data:`GRACE`.
        """
        self._finishing = True
        self.failed = self.failed or how != RETURNED
        self._strands = []
        others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]
        for rank in others:
            self._send(np.array([how], np.uint8), rank, _END)
        self.block(
            lambda: len(self.ended) == len(others) and not self._under_way and not self._incoming,
            tuple,
        )
        self.all_returned = not self.failed
        left = [(*key, len(parcels)) for key, parcels in self._arrived.items()]
        left += [(*key, lane.left) for key, lane in self.boards.read.items()]
        return [(source, channel) for source, channel, count in left for _ in range(count)]


def _messages(pending: Sequence[Receipt]) -> list[Receipt]:
    """Return the messages that are missing, those of background operations among them."""
    found: list[Receipt] = []
    for receipt in pending:
        if not receipt.complete:
            strand = receipt.strand
            found += [receipt] if strand is None else _messages(strand.waits)
    return found
