"""The engine of a run in which things go wrong.

What goes wrong is known beforehand (see ``_plan``), so whether a message arrives is decided when it
is sent, whatever the order of events. A message that is lost leaves a :class:`Missing` in its
place, which its receiver takes in its turn; whoever waits for a rank that is not there is given
one too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, final

import greenlet

from dectool.communicator import Channel, Parcel
from dectool.communicator._missing import Missing
from dectool.errors import MessageLostError
from dectool.fault_report import FaultReport
from dectool.sim._mailbox import MISSING, Key, Receipt
from dectool.sim._strand import Strand
from dectool.sim.faults._mortal import MortalEngine
from dectool.sim.faults._plan import Loss


@final
class FaultyEngine(MortalEngine):
    """Runs the programs of all ranks while a plan of faults takes its course.

    It is made of what :class:`MortalEngine` is made of.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.expect = self._expect
        self._sent: Counter[tuple[int, int]] = Counter()

    # -- what strands do -----------------------------------------------------------------------

    def wait(self, strand: Strand, pending: Sequence[Any]) -> list[Any]:
        """Block a strand as ever; raise what has ended a background operation."""
        self._stay(strand)
        contents = super().wait(strand, pending)
        self._stay(strand)
        for content in contents:
            if isinstance(content, MessageLostError):
                raise content
        return contents

    def ready(self, strand: Strand, pending: Sequence[Any]) -> bool:
        """Let the others catch up, and tell whether all is complete."""
        self._stay(strand)
        return super().ready(strand, pending)

    def catch_up(self, strand: Strand) -> None:
        """Hold a strand until everything before its clock has happened."""
        self._stay(strand)
        super().catch_up(strand)

    def elapse(self, strand: Strand, seconds: float, kind: str) -> None:
        """Advance a strand's clock, more so while its rank is slow."""
        self._stay(strand)
        delay = self.plan.delay(strand.state.rank, strand.clock, seconds)
        if delay:
            self.account.slow(strand.state.rank, delay)
        super().elapse(strand, seconds + delay, kind)
        self._stay(strand)

    def background(self, parent: Strand, name: str, work: Callable[[Strand], Any]) -> Receipt:
        """Start a strand beside its parent; a lost message is an error of whoever waits."""

        def guarded(strand: Strand) -> Any:
            try:
                return work(strand)
            except MessageLostError as error:
                return error
            finally:
                life = self._life(strand)
                life.finished_at = max(life.finished_at, strand.clock)
                self._maybe_silent(life)

        self._stay(parent)
        return super().background(parent, name, guarded)

    # -- messages ------------------------------------------------------------------------------

    def post(self, strand: Strand, parcel: Parcel, keys: Sequence[Key]) -> None:
        """Send a parcel as ever, unless its fate is another."""
        self._stay(strand)
        state, nbytes = strand.state, parcel.nbytes
        for key in keys:
            source, dest, channel = key
            if state.strands > 1:
                self.catch_up(strand)
            if self._send_overhead:
                strand.clock += self._send_overhead
                self._stay(strand)
            start, released, arrival = self._set_out(source, dest, nbytes, strand.clock)
            state.messages += 1
            state.bytes += nbytes
            loss = self._fate(source, dest, start, released, arrival)
            if loss is not None and loss.told and channel[-2:-1] == ("window",):
                loss = None  # neighbours greet until they hear each other; here, in one message
            if loss is not None:
                self._lose(key, nbytes, loss, arrival)
            elif self._serial_receive:
                self._flying[key] += 1
                self._take_in(key, nbytes, start, arrival, self._for_mailbox(key, parcel))
            else:
                if self.trace is not None:
                    self.trace.message(source, dest, nbytes, start, arrival, channel)
                self._deliver_to_its_life(key, parcel, arrival, arrival)

    def _for_mailbox(self, key: Key, parcel: Parcel) -> Callable[[float], None]:
        def come(arrival: float) -> None:
            self._flying[key] -= 1
            if not self._flying[key]:
                del self._flying[key]
            if self.plan.gap(key[1], arrival) is None:
                self._deliver_to_its_life(key, parcel, arrival, arrival)
            else:
                self.account.lose(key[0], key[1], "receiver crashed", parcel.nbytes)

        return come

    def _deliver(self, key: Key, content: Any, arrival: float) -> None:
        """Bring in a parcel, or what says that it was lost."""
        receipt = self._mailbox.put(key, content, arrival)
        if receipt is not None:
            self.account.received += isinstance(content, Parcel)
            self._awaited[key[0]] -= 1
            self.complete(receipt, content, arrival)

    def _deliver_to_its_life(self, key: Key, content: Any, arrival: float, seen: float) -> None:
        """Bring it in now, or if the receiver is to crash and come back first, when it is back.

        Args:
            key: Source, destination and channel.
            content: A parcel, or what says that it was lost.
            arrival: When the message arrives, or would have.
            seen: When the receiver may see it.
        """
        dest = key[1]
        if arrival < self.lives[dest].dies_at:
            self._deliver(key, content, seen)
            return
        number = self._messages_taken = self._messages_taken + 1

        def come() -> None:
            del self._incoming[number]
            self._deliver(key, content, seen)

        self._incoming[number] = come
        self.at(max(gap.stop for gap in self.plan.gaps[dest] if gap.stop <= arrival), come)

    def _expect(self, keys: Sequence[Key]) -> list[Receipt]:
        """Return the next message with each of the keys, or what says that none will come."""
        clock = self._by_greenlet[greenlet.getcurrent()].clock
        return [self._expect_one(key, clock) for key in keys]

    def _expect_one(self, key: Key, clock: float) -> Receipt:
        source, _, channel = key
        waiting = self._mailbox.waiting(key)
        if waiting >= self._flying[key]:
            gap, life = self.plan.gap(source, clock), self.lives[source]
            # A clock runs ahead: until the crash has happened, the other may still send.
            if gap is not None and life.over and life.dies_at == gap.start:
                return self._told(key, gap.words, max(clock, gap.start + self._detection))
            if life.silent:
                told = max(clock, life.finished_at + self._detection)
                return self._told(key, life.words, told)
            if life.came_after(channel):
                return self._told(key, life.words, clock)
        (receipt,) = self._mailbox.take((key,))
        if receipt.content is MISSING:
            self._awaited[source] += 1
            receipt.arrival = clock  # since when it waits, until something comes
        elif isinstance(receipt.content, Parcel):
            self.account.received += 1
        return receipt

    def _told(self, key: Key, words: str, told: float) -> Receipt:
        return Receipt(key, 0.0, Missing(key, words, told, peer=True), told)

    def _lose(self, key: Key, nbytes: int, loss: Loss, arrival: float) -> None:
        source, dest, _ = key
        self.account.lose(source, dest, loss.kind, nbytes)
        if loss.told:
            told = arrival + self._detection
            missing = Missing(key, loss.words, told, peer=False)
            self._deliver_to_its_life(key, missing, arrival, told)

    def _fate(
        self, source: int, dest: int, start: float, released: float, arrival: float
    ) -> Loss | None:
        number = self._sent[source, dest]
        self._sent[source, dest] = number + 1
        return self.plan.loss(source, dest, number, start, released, arrival)

    def _set_out(
        self, source: int, dest: int, nbytes: int, at: float
    ) -> tuple[float, float, float]:
        """Return when a message leaves the port, is gone from it, and would arrive."""
        start, released, arrival = super()._set_out(source, dest, nbytes, at)
        factor = self.plan.slowness(source, dest, start)
        if factor != 1.0:
            released = start + (released - start) * factor
            arrival = start + (arrival - start) * factor
            self.ranks[source].send_port = released
        return start, released, arrival

    def _goes_astray(
        self,
        key: Key,
        nbytes: int,
        start: float,
        released: float,
        arrival: float,
        lost: Callable[[str, float], None],
    ) -> bool:
        source, dest, _ = key
        loss = self._fate(source, dest, start, released, arrival)
        if loss is None:
            return False
        self.account.lose(source, dest, loss.kind, nbytes)
        lost(loss.words, arrival + self._detection)
        return True

    def _if_there(
        self,
        key: Key,
        nbytes: int,
        come: Callable[[float], None],
        lost: Callable[[str, float], None],
    ) -> Callable[[float], None]:
        def taken_in(arrival: float) -> None:
            gap = self.plan.gap(key[1], arrival)
            if gap is None:
                come(arrival)
            else:
                self.account.lose(key[0], key[1], "receiver crashed", nbytes)
                lost(gap.words, arrival + self._detection)

        return taken_in

    def unreceived(self) -> list[tuple[int, int, Channel]]:
        """Return what nobody received; where faults have struck, that is lost and no mistake."""
        if self._stopped:
            return []
        for come_in in list(self._incoming.values()):
            come_in()
        self._mailbox.sweep(lambda one: isinstance(one.content, Missing))
        if not self.account.struck:
            return super().unreceived()
        for receipt in self._mailbox.sweep(lambda one: one.content is not MISSING):
            source, dest, channel = receipt.key
            life = self.lives[dest]
            reason = "receiver crashed" if life.gone else "not received"
            if not life.gone and life.came_after(channel):
                reason = "not taking part yet"
            self.account.lose(source, dest, reason, receipt.content.nbytes)
        return []

    @property
    def report(self) -> FaultReport:
        """What went wrong so far."""
        return self.account.report(self.messages, self.bytes)
