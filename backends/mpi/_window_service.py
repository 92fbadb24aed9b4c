"""Serving neighbours that share no memory with this rank.

Their messages go over a communicator of their own. While the program waits, it serves them itself;
while it computes, a thread does, which lives as long as a window with such neighbours is open and
looks every 50 microseconds to 1 millisecond. Without ``MPI_THREAD_MULTIPLE`` there is no thread,
and what neighbours ask waits until the program does. Whoever serves holds a lock, so messages are
handled and sent one after the other, and those of one rank in the order in which it sent them.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, final

from dectool.backends.mpi._engine import Engine, Receipt
from dectool.backends.mpi._window_cells import PATIENCE, Line, Part
from dectool.backends.mpi._window_messages import NOTHING, Answer, Freed, Order, Post
from dectool.communicator import Channel, Parcel
from dectool.communicator._cells import Snapshot, Store, apply, look

if TYPE_CHECKING:
    from mpi4py import MPI

_SHORTEST, _LONGEST = 50e-6, 1e-3
_SELDOM = 32
"""Looks of the engine per look for messages where all neighbours seem to share memory."""


class Stopped(BaseException):
    """The thread ends while a rank that may be dead holds a cell."""


class Served(NamedTuple):
    """An open window, for others to reach.

    Attributes:
        store: This rank's part.
        part: Its memory.
        waiting: (rank, ticket) of those who asked for the mutex and do not have it.
    """

    store: Store
    part: Part
    waiting: deque[tuple[int, int]]


@final
class WindowService:
    """The windows of one process, as others see them.

    Args:
        engine: That of this rank.
        comm: A communicator on which nobody else sends.
    """

    def __init__(self, engine: Engine, comm: MPI.Intracomm) -> None:
        from mpi4py import MPI

        self._engine = engine
        self._comm = comm
        self._post: Post | None = None
        self._threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._open: dict[int, Served] = {}
        self._far: set[int] = set()
        self._asked: dict[int, Answer] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._turn = 0
        self._every = _SELDOM
        self._pauses = 0

    # -- windows of this rank ------------------------------------------------------------------

    def number(self) -> int:
        """Return a number that no window of this rank had."""
        return next(self._numbers)

    def enter(self, number: int, store: Store, part: Part) -> None:
        """Serve a window from now on."""
        if self._post is None:
            self._post = Post(self._comm, self._engine.boards.near)
        self._open[number] = Served(store, part, deque())

    def reach_far(self, number: int) -> None:
        """Take note that a window has neighbours that share no memory with this rank."""
        self._far.add(number)
        self._every = 1
        if self._thread is None and self._threads:
            self._stop.clear()
            self._thread = threading.Thread(target=self._serve, name="dectool windows", daemon=True)
            self._thread.start()

    def leave(self, number: int) -> None:
        """Serve a window no more: what arrives for it is dropped."""
        with self._lock:
            served = self._open.pop(number, None)
            for rank, ticket in served.waiting if served is not None else ():
                self._answer(rank, Order("gone", 0, ticket))
        self._far.discard(number)
        if not self._far:
            self._end_thread()

    def drain(self) -> None:
        """Wait for the answers to all that was asked."""
        self._engine.block(
            lambda: not self._asked and (self._post is None or not self._post.sending),
            lambda: list(self._asked.values()),
        )

    def close(self, *, orderly: bool) -> None:
        """Let go of everything.

        Args:
            orderly: Whether every rank has drained, so that no message can be left.
        """
        for served in list(self._open.values()):
            served.store.close()
        self._end_thread()
        self._post = None
        if orderly:
            self._comm.Free()

    # -- questions and answers -----------------------------------------------------------------

    def ask(self, dest: int, order: Order, parcel: Parcel, channel: Channel) -> Answer:
        """Send a question to a rank of the world; complete when the answer has come.

        Args:
            dest: The rank.
            order: The question; its ticket is given here.
            parcel: Goes along; must not change any more.
            channel: For reports.
        """
        ticket = next(self._numbers)
        answer = self._asked[ticket] = Answer(dest, channel)
        with self._lock:
            self._answer(dest, order._replace(ticket=ticket), parcel)
        return answer

    def _answer(self, rank: int, order: Order, parcel: Parcel = NOTHING) -> None:
        assert self._post is not None
        self._post.send(rank, order, parcel)

    def _take(self, rank: int, order: Order, parcel: Parcel) -> None:
        """Take in what a rank answers, or do what it asks."""
        if order.kind == "done":
            self._asked.pop(order.ticket).content = Snapshot(parcel.buffers, order.time)
        elif order.kind == "gone":
            answer = self._asked.pop(order.ticket)
            name = answer.channel[answer.channel.index("window") + 1]
            answer.content = Freed(f"window {name!r} was freed by rank {rank}")
        else:
            self._obey(rank, order, parcel)

    def _obey(self, rank: int, order: Order, parcel: Parcel) -> None:
        served = self._open.get(order.window)
        done = Order("done", 0, order.ticket)
        if served is None:
            gone = order.kind in ("read", "lock")
            self._answer(rank, done._replace(kind="gone") if gone else done)
            return
        if order.window not in self._far:  # a neighbour could not map what we offered
            self.reach_far(order.window)
        store = served.store
        if order.kind == "write":
            assert order.remote is not None
            buffers, slot = store.decode(parcel), store.slots[order.source]
            apply(store.own, slot, order.remote, buffers, store.layout.dtypes)
            self._answer(rank, done)
        elif order.kind == "read":
            content = look(store.own)
            self._answer(rank, done._replace(time=content.time), Parcel(content.buffers, None))
        elif order.kind == "lock":
            served.waiting.append((rank, order.ticket))
        else:
            served.part.mutex.give_back()
            self._answer(rank, done)

    def _grant(self) -> bool:
        """Give mutexes that are free to those who wait for them."""
        moved = False
        for served in list(self._open.values()):
            while served.waiting and served.part.mutex_of(served.waiting[0][0]).take(0):
                rank, ticket = served.waiting.popleft()
                self._answer(rank, Order("done", 0, ticket))
                moved = True
        return moved

    # -- progress ------------------------------------------------------------------------------

    def progress(self) -> bool:
        """Serve, for the engine; tell whether anything was done."""
        if self._post is None or self._pauses:
            return False
        self._turn += 1
        return not self._turn % self._every and self.look()

    def look(self) -> bool:
        """Serve what has come, if nobody does so already; tell whether anything was done."""
        if self._error is not None:
            raise self._error
        if self._post is None or not self._lock.acquire(blocking=False):
            return False
        try:
            moved = self._post.take_in()
            for rank, order, parcel in self._post.arrived():
                self._take(rank, order, parcel)
                moved = True
            return self._grant() or moved
        finally:
            self._lock.release()

    def _serve(self) -> None:
        pause = _SHORTEST
        try:
            while not self._stop.wait(pause):
                moved = self.look()
                busy = moved or (self._post is not None and self._post.busy)
                pause = _SHORTEST if busy else min(1.5 * pause, _LONGEST)
        except BaseException as error:  # the program raises it where it waits
            self._error = error

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    # -- cells ---------------------------------------------------------------------------------

    def wait_for(self, line: Line, channel: Channel) -> None:
        """Wait until a cell that somebody holds is this rank's.

        A program that holds cells of its own meanwhile serves nobody: it could wait for itself.
        """
        if threading.current_thread() is self._thread:
            while not line.take(PATIENCE):
                if self._stop.is_set() and self._engine.failed:
                    raise Stopped
            return
        self._pauses += 1
        try:
            self.block_for(line, channel)
        finally:
            self._pauses -= 1

    def block_for(self, line: Line, channel: Channel) -> None:
        """Go on with everything else until a line is this rank's; report who holds it."""
        engine = self._engine

        def missing() -> list[Receipt]:
            return [Receipt((line.holder or engine.comm.rank + 1) - 1, channel)]

        engine.block(lambda: line.take(PATIENCE), missing)
