"""Waiting for neighbours of a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from dectool.communicator._arrays import Leaf
from dectool.communicator._parcel import Layout, Parcel
from dectool.communicator._window_base import WindowBase
from dectool.errors import ArgumentError

_COUNT = Layout((Leaf("numpy", "int64", (1,)),), None)


class WindowMeeting(WindowBase):
    """Fences, mutexes, and waiting for what neighbours write."""

    def flush(self) -> None:
        """Wait until all that this rank has sent through the window is visible at its targets."""
        self._check_open()
        pending, self._outstanding = self._outstanding, []
        self._present(self._comm._await(pending))

    def fence(self) -> None:
        """Wait for the neighbours, and until all that they had sent before is visible here.

        All in-neighbours and out-neighbours must call it. A pattern that gives the same result on
        every backend is: put, fence, update, fence.

        Raises:
            DeadlockError: A neighbour never calls it.
            WindowError: The window was freed.
        """
        self._check_open()
        comm, plan = self._comm, self._plan
        peers = sorted({*plan.destinations, *plan.sources})
        number, self._fences = self._fences, self._fences + 1
        channel = (*self._channel, "fence")
        for peer in peers:
            count = np.array([self._sent.get(peer, 0)])
            comm._post(Parcel((count,), _COUNT, number), peer, channel)
        told = comm._await([comm._expect(peer, channel) for peer in peers])
        present = self._present(told)
        due = {
            peer: int(parcel.buffers[0][0])
            for peer, parcel, there in zip(peers, told, present, strict=True)
            if there and peer in self._store.slots
        }
        slots = self._store.slots
        gone = self._store.wait(
            lambda: all(slots[peer].received >= count for peer, count in due.items()), sorted(due)
        )
        self._present([gone])

    def wait(self, source: int, version: int) -> None:
        """Block until the slot of an in-neighbour was written at least ``version`` times.

        Bounded staleness in one line: ``win.wait(j, k - bound)`` in step k.

        Raises:
            ArgumentError: ``source`` is no in-neighbour.
            DeadlockError: It never writes so often.
        """
        cell = self._slot(source)
        gone = self._store.wait(lambda: cell.version >= version, [source])
        self._present([gone])

    @contextmanager
    def lock(self, ranks: Iterable[int] | None = None) -> Iterator[None]:
        """Hold the mutexes of some ranks' windows; nobody else gets them meanwhile.

        They keep out those who ask for them, and nobody else: use it where a get and a put must
        not be torn apart. What was sent meanwhile is visible before they are given back.

        Args:
            ranks: Whose; default: all out-neighbours. They are taken in ascending order, so that
                ranks which ask for several cannot block each other. A rank may name itself.

        Raises:
            ArgumentError: One of ``ranks`` is neither this rank nor a neighbour.
        """
        self._check_open()
        plan, me = self._plan, self._comm.rank
        near = {me, *plan.destinations, *plan.sources}
        wanted = sorted(set(plan.destinations if ranks is None else ranks))
        for rank in wanted:
            if rank not in near:
                raise ArgumentError(self._no_edge(rank, "neighbors", tuple(sorted(near))))
        with ExitStack() as held:
            for owner in wanted:
                if all(self._present([self._store.acquire(owner)])):
                    held.callback(self._store.release, owner)
            held.callback(self._flush_if_open)
            yield

    def _flush_if_open(self) -> None:
        if self._open:
            self.flush()
