"""One-sided windows in virtual time: what is written arrives later, and is seen from then on."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

from dectool.communicator import Channel, Parcel, Pending
from dectool.communicator._cells import Cell, Opening, Remote, Store, apply, look
from dectool.communicator._missing import Missing
from dectool.communicator._parcel import Buffer, own
from dectool.sim._mailbox import MISSING, Receipt
from dectool.sim._mass import Mass

if TYPE_CHECKING:
    from dectool.sim._communicator import SimCommunicator
    from dectool.sim._engine import Engine

_CHECK_EVERY = 64
"""Operations of each rank, on average, between two looks at the accounts of mass."""


@final
class WindowParts:
    """All ranks' parts of one window.

    Args:
        name: Of the window.
        mass: Accounts of push-sum, or ``None`` without it.
    """

    def __init__(self, name: str, mass: Mass | None) -> None:
        self.name = name
        self.mass = mass
        self.parts: dict[int, SimStore] = {}
        self.numbers = itertools.count()
        self._operations = 0

    def count(self) -> None:
        """Count an operation, and look at the accounts now and then."""
        self._operations += 1
        if self._operations % (_CHECK_EVERY * len(self.parts)) == 0:
            self.check()

    def check(self) -> None:
        """Look at the accounts of mass.

        Raises:
            WindowError: Mass was made or lost.
        """
        if self.mass is not None:
            there = [part for part in self.parts.values() if part.gone is None]
            cells = [cell for part in there for cell in part.cells]
            self.mass.check(self.name, cells)

    def lose(self, rank: int, words: str, told: float) -> None:
        """Let the part of a rank that has crashed be gone, and tell those who wait for it.

        Args:
            rank: Its number in the world.
            words: What became of it.
            told: When the others notice, in seconds.
        """
        lost = self.parts.get(rank)
        if lost is None or lost.gone is not None:
            return
        lost.go(words, told)
        for part in self.parts.values():
            part.do_without(lost, told)


@final
class SimStore(Store):
    """One simulated rank's part of a window.

    Args:
        comm: The rank's communicator.
        opening: What the window is made of.
        channel: Tells windows apart.
        window: All ranks' parts.
    """

    def __init__(
        self, comm: SimCommunicator, opening: Opening, channel: Channel, window: WindowParts
    ) -> None:
        self._comm = comm
        self._engine = comm._engine
        self._channel = channel
        self._window = window
        self._state = comm._strand.state
        self._peers: dict[int, SimStore] = {}
        self._inbox: list[tuple[float, int, int, Remote, Parcel]] = []
        self._newest: dict[int, float] = {}
        self._waiting: Receipt | None = None
        self._waits_for: Sequence[SimStore] = ()
        self._holder: SimStore | None = None
        self._queue: deque[tuple[SimStore, Receipt]] = deque()
        self.gone: tuple[str, float] | None = None
        weight = 1.0 if opening.push_sum else 0.0
        self.own = Cell(opening.buffers, weight)
        self.slots = {source: Cell(opening.first_slot(), 0.0) for source in opening.sources}
        self.layout = opening.layout
        self.decode = opening.decode
        window.parts[self._state.rank] = self
        if window.mass is not None:
            window.mass.join(opening.buffers)

    @property
    def invitation(self) -> bytes:
        """Nothing: all parts are in one process."""
        return b""

    def connect(self, invitations: dict[int, bytes]) -> None:
        """Look the neighbours' parts up."""
        self._peers = {rank: self._window.parts[self._comm._world(rank)] for rank in invitations}
        self._peers[self._comm.rank] = self

    # -- what arrives --------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until everybody has come to this rank's time; then take in what has arrived."""
        strand = self._comm._strand
        self._engine.catch_up(strand)
        self._drain(strand.clock)

    def _drain(self, until: float) -> None:
        inbox = self._inbox
        while inbox and inbox[0][0] <= until:
            _, source, number, remote, parcel = heapq.heappop(inbox)
            slot, buffers = self.slots[source], self.decode(parcel)
            apply(self.own, slot, remote, buffers, self.layout.dtypes)
            if self._window.mass is not None:
                self._window.mass.land(number)

    def _push(
        self, arrival: float, source: int, number: int, remote: Remote, parcel: Parcel
    ) -> None:
        heapq.heappush(self._inbox, (arrival, source, number, remote, parcel))
        if self._waiting is not None:
            self._engine.at(arrival, self._wake(arrival))

    def _wake(self, arrival: float) -> Callable[[], None]:
        def wake() -> None:
            waiting = self._waiting
            if waiting is not None and waiting.content is MISSING:
                self._engine.complete(waiting, None, arrival)

        return wake

    # -- operations ----------------------------------------------------------------------------

    def send(
        self, parcel: Parcel, shares: Sequence[tuple[int, Remote]], extra: int
    ) -> list[Pending]:
        """Send the value to each destination in turn; complete when it has arrived there."""
        kept, window = Parcel(own(parcel.buffers), parcel.layout), self._window
        numbers = [next(window.numbers) for _ in shares]
        if window.mass is not None:
            # All at once: others may look at the accounts while one after the other sets out.
            for number, (_, remote) in zip(numbers, shares, strict=True):
                window.mass.leave(number, remote, kept.buffers)
        pending: list[Pending] = [
            self._send_one(kept, dest, remote, number, kept.nbytes + extra)
            for number, (dest, remote) in zip(numbers, shares, strict=True)
        ]
        window.count()
        return pending

    def _send_one(
        self, parcel: Parcel, dest: int, remote: Remote, number: int, nbytes: int
    ) -> Receipt:
        target, source, mass = self._peers[dest], self._comm.rank, self._window.mass
        receipt = Receipt((target._state.rank, self._state.rank, self._channel), 0.0)

        def come(arrival: float) -> None:
            if target.gone is not None:
                lost(*target.gone)
                return
            # What goes from one rank to another on one window does not overtake.
            arrival = max(arrival, target._newest.get(source, 0.0))
            target._newest[source] = arrival
            target._push(arrival, source, number, remote, parcel)
            self._engine.complete(receipt, None, arrival)

        def lost(words: str, told: float) -> None:
            if mass is not None:
                mass.lose(number)
            target.slots[source].received += 1
            self._miss(receipt, words, told)

        dest_rank = target._state.rank
        self._engine.carry(self._comm._strand, dest_rank, nbytes, self._channel, come, lost)
        return receipt

    def _miss(self, receipt: Receipt, words: str, told: float) -> None:
        """Give a receipt what says that nothing will come."""
        target, me, channel = receipt.key
        missing = Missing((target, me, channel), words, told, peer=False)
        self._engine.complete(receipt, missing, max(told, receipt.arrival))

    def read(self, sources: Sequence[int]) -> list[Pending]:
        """Ask each source in turn; its value is that of the time when the question arrives."""
        return [self._read_one(self._peers[source]) for source in sources]

    def _read_one(self, source: SimStore) -> Receipt:
        engine = self._engine
        nbytes = sum(buffer.nbytes for buffer in source.own.buffers)

        def answer(receipt: Receipt, at: float) -> None:
            source._drain(at)
            source._reply(self, receipt, look(source.own), nbytes, at)

        return self._ask(source, answer, engine, counted=nbytes)

    def _ask(
        self,
        target: SimStore,
        answer: Callable[[Receipt, float], None],
        engine: Engine,
        counted: int | None,
        *what: str,
    ) -> Receipt:
        """Send a question; ``answer`` gets the receipt, and the time at which it arrives."""
        rank = target._state.rank
        receipt = Receipt((rank, self._state.rank, (*self._channel, *what)), 0.0)

        def lost(words: str, told: float) -> None:
            self._miss(receipt, words, told)

        def come(arrival: float) -> None:
            if target.gone is not None:
                lost(*target.gone)
            else:
                engine.at(arrival, lambda: answer(receipt, arrival))

        engine.carry(self._comm._strand, rank, 0, self._channel, come, lost, counted)
        return receipt

    def _reply(self, to: SimStore, receipt: Receipt, content: Any, nbytes: int, at: float) -> None:
        """Answer a question at a time."""
        engine = self._engine
        engine.reply(
            self._state.rank,
            to._state.rank,
            nbytes,
            at,
            self._channel,
            lambda arrival: engine.complete(receipt, content, arrival),
            lambda words, told: to._miss(receipt, words, told),
        )

    def wait(self, done: Callable[[], bool], sources: Sequence[int]) -> Missing | None:
        """Wait from one arrival to the next until it is done, or one of the sources is gone."""
        strand, peers = self._comm._strand, [self._peers[source] for source in sources]
        while True:
            self.settle()
            if done():
                return None
            first = peers[0] if peers else self
            receipt = Receipt((first._state.rank, self._state.rank, self._channel), 0.0)
            self._waiting, self._waits_for = receipt, peers
            for peer in peers:
                if peer.gone is not None:
                    self._miss(receipt, peer.gone[0], max(strand.clock, peer.gone[1]))
                    break
            if self._inbox:
                arrival = self._inbox[0][0]
                self._engine.at(arrival, self._wake(arrival))
            try:
                (content,) = self._engine.wait(strand, [receipt])
            finally:
                self._waiting, self._waits_for = None, ()
            if isinstance(content, Missing):
                return content

    # -- mutex ---------------------------------------------------------------------------------

    def acquire(self, owner: int) -> Missing | None:
        """Ask the owner's part, and wait for its answer."""
        target, engine = self._peers[owner], self._engine
        self.settle()

        def asked(receipt: Receipt, at: float) -> None:
            if target._holder is None:
                target._grant(self, receipt, at)
            else:
                target._queue.append((self, receipt))

        receipt = self._ask(target, asked, engine, None, "lock")
        (content,) = engine.wait(self._comm._strand, [receipt])
        return content if isinstance(content, Missing) else None

    def release(self, owner: int) -> None:
        """Tell the owner's part."""
        target = self._peers[owner]
        self.settle()
        self._ask(target, lambda receipt, at: target._returned(self, at), self._engine, None)

    def _returned(self, who: SimStore, at: float) -> None:
        if self._holder is who:
            self._holder = None
            if self._queue:
                self._grant(*self._queue.popleft(), at)

    def _grant(self, who: SimStore, receipt: Receipt, at: float) -> None:
        self._holder = who
        self._reply(who, receipt, None, 0, at)

    # -- faults --------------------------------------------------------------------------------

    @property
    def cells(self) -> tuple[Cell, ...]:
        """This rank's value and slots."""
        return (self.own, *self.slots.values())

    def go(self, words: str, told: float) -> None:
        """Be gone: what is here, and what is on its way here, is lost."""
        self.gone = (words, told)
        mass = self._window.mass
        if mass is not None:
            for _, _, number, _, _ in self._inbox:
                mass.lose(number)
            mass.bury(self.cells)
        self._inbox.clear()
        for who, receipt in self._queue:
            who._miss(receipt, words, told)

    def do_without(self, lost: SimStore, told: float) -> None:
        """Wait no more for a part that is gone; take the mutex back when that is noticed."""
        waiting = self._waiting
        if waiting is not None and waiting.content is MISSING and lost in self._waits_for:
            assert lost.gone is not None
            self._miss(waiting, *lost.gone)
        self._queue = deque(entry for entry in self._queue if entry[0] is not lost)
        if self._holder is lost:
            self._engine.at(told, lambda: self._returned(lost, told))

    def absent(self) -> dict[int, Missing]:
        """Return what says so of each neighbour whose crash has been noticed by now."""
        self.settle()
        clock, me = self._comm._strand.clock, self._state.rank
        return {
            rank: Missing((part._state.rank, me, self._channel), *part.gone, peer=True)
            for rank, part in self._peers.items()
            if part.gone is not None and part.gone[1] <= clock
        }

    # -- accounts ------------------------------------------------------------------------------

    def injected(self, old: Sequence[Buffer], new: Sequence[Buffer]) -> None:
        """Count what the program has put in."""
        if self._window.mass is not None:
            self._window.mass.inject(old, new)

    def moved(self) -> None:
        """Count the roundings of a collection."""
        if self._window.mass is not None:
            self._window.mass.move(len(self.slots) + 1)
        self._window.count()

    def used(self, ages: dict[int, float]) -> None:
        """Record how old what was used is."""
        trace = self._engine.trace
        if trace is not None:
            rank, now = self._state.rank, self._comm.now()
            for source, age in ages.items():
                if age < math.inf:
                    trace.use(rank, self._comm._world(source), now, age, self._window.name)

    def close(self) -> None:
        """Nothing is held that others could need; what arrives later stays where it is."""
