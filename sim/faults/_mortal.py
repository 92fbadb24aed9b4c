"""The life and death of ranks: crashes, restarts, late starts, and who is told.

When a rank dies is known beforehand. Its strands end when their clocks come to that time, since
clocks run ahead; the crash itself is an event at that time, which ends those that wait.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import greenlet

from dectool.communicator import Channel, Observer, Parcel
from dectool.communicator._missing import Missing
from dectool.sim._engine import Engine
from dectool.sim._mailbox import MISSING, Key, Receipt
from dectool.sim._strand import RankState, Strand
from dectool.sim.compute import ComputeTimes
from dectool.sim.faults._account import Account
from dectool.sim.faults._life import STEP, Life
from dectool.sim.faults._plan import FaultPlan, Gap
from dectool.sim.network import NetworkModel
from dectool.sim.trace import Trace


class MortalEngine(Engine):
    """Runs programs of ranks that crash and come back.

    Args:
        size: Number of ranks.
        network: When messages arrive.
        compute: How long computations take.
        trace: Where to record what happens, or ``None``.
        observer: Who takes the records of steps, or ``None``.
        plan: What goes wrong.
        detection: Seconds after which a rank notices that nothing comes.
    """

    def __init__(
        self,
        size: int,
        network: NetworkModel,
        compute: ComputeTimes,
        trace: Trace | None,
        observer: Observer | None,
        plan: FaultPlan,
        detection: float,
    ) -> None:
        super().__init__(size, network, compute, trace, observer)
        self.plan = plan
        self.account = Account()
        self.begun: dict[Channel, int] = {}
        self._detection = detection
        self.lives = [Life(rank, plan.next_death(rank, 0.0)) for rank in range(size)]
        self.ranks = list[RankState](self.lives)
        self._flying: Counter[Key] = Counter()
        self._awaited: Counter[int] = Counter()
        self._by_greenlet: weakref.WeakKeyDictionary[Any, Strand] = weakref.WeakKeyDictionary()
        self._programs: dict[int, tuple[Callable[[Strand], Any], list[Any]]] = {}

    # -- life and death ------------------------------------------------------------------------

    def _begin(self, state: RankState, program: Callable[[Strand], Any], values: list[Any]) -> None:
        rank = state.rank
        self._programs[rank] = (program, values)
        for gap in self.plan.gaps[rank]:
            if gap.start > 0.0 or gap.crashed:
                self.at(gap.start, self._calling(self._crash, rank, gap))
            if gap.stop < math.inf:
                self.at(gap.stop, self._calling(self._revive, rank, gap))
        absent = self.plan.gap(rank, 0.0)
        if absent is None:
            super()._begin(state, program, values)
        else:
            self.lives[rank].dies_at = 0.0
            self.lives[rank].over = True
            self._leave(self.lives[rank], absent)

    def _calling(self, act: Callable[[int, Gap], None], rank: int, gap: Gap) -> Callable[[], None]:
        return lambda: act(rank, gap)

    def _launch(self, strand: Strand, body: Callable[[Any], None]) -> None:
        super()._launch(strand, body)
        self._by_greenlet[strand.greenlet] = strand

    def _main_body(
        self, strand: Strand, program: Callable[[Strand], Any], values: list[Any]
    ) -> Callable[[Any], None]:
        def whole(strand: Strand) -> Any:
            value = program(strand)
            self._stay(strand)
            life = self._life(strand)
            life.finished = True
            life.finished_at = max(life.finished_at, strand.clock)
            self._maybe_silent(life)
            return value

        return super()._main_body(strand, whole, values)

    def _life(self, strand: Strand) -> Life:
        life = strand.state
        assert isinstance(life, Life)
        return life

    def _maybe_silent(self, life: Life) -> None:
        """Tell those who wait for a rank whose last strand is about to return."""
        if not life.finished or life.strands > 1:
            return
        life.silent = True
        if not self._awaited[life.rank]:
            return
        for receipt in self._mailbox.sweep(self._waits_for(life.rank, math.inf)):
            self._tell(receipt, life.words, life.finished_at + self._detection)

    def _waits_for(self, rank: int, before: float) -> Callable[[Receipt], bool]:
        """Return what tells who waits for a rank, since before a time, for what is not under way.

        What was under way when its sender stopped still arrives.
        """
        seen: Counter[Key] = Counter()

        def waits(receipt: Receipt) -> bool:
            if receipt.key[0] != rank or receipt.content is not MISSING:
                return False
            seen[receipt.key] += 1
            return seen[receipt.key] > self._flying[receipt.key] and receipt.arrival < before

        return waits

    def _stay(self, strand: Strand) -> None:
        """End a strand whose clock has come to the crash of its rank."""
        life = self._life(strand)
        if strand.clock >= life.dies_at:
            self._end(strand, life)
            raise greenlet.GreenletExit

    def _end(self, strand: Strand, life: Life) -> None:
        if strand in self._strands:
            self._strands.discard(strand)
            life.strands -= 1
            if not strand.name and not life.gone:
                gap = self.plan.gap(life.rank, life.dies_at)
                assert gap is not None
                self._leave(life, gap)

    def _leave(self, life: Life, gap: Gap) -> None:
        """Count with a rank no more whose program has been ended."""
        life.gone = True
        if gap.crashed:
            self.account.event(life.rank, "crash", gap.start)
            life.finished_at = max(life.finished_at, gap.start)
        for step in sorted(self._observations):
            gathering = self._observations.get(step)
            if gathering is None or gathering.values[life.rank] is not None:
                continue
            if life.comes_to(step):
                gathering.left -= 1
                if not gathering.left and self._hand_over(step):
                    return
        if gap.stop == math.inf:
            self._main_left -= 1
            if not self._main_left and not self._finished.triggered:
                self._finished.succeed()

    def _crash(self, rank: int, gap: Gap) -> None:
        """Make a rank's crash happen: end it, and tell those who wait for it."""
        life = self.lives[rank]
        life.over = True
        if life.finished and life.dies_at == gap.start:
            self.account.event(rank, "crash", gap.start)
        own = [strand for strand in self._strands if strand.state is life]
        for strand in sorted(own, key=lambda strand: strand.name):
            strand.clock = max(strand.clock, gap.start)
            self._end(strand, life)
            strand.greenlet.throw(greenlet.GreenletExit)
        for receipt in self._mailbox.sweep(lambda one: self._dies_with(one, rank, gap)):
            source, _, _ = receipt.key
            if receipt.content is MISSING:
                self._awaited[source] -= 1
            elif isinstance(receipt.content, Parcel):
                self.account.lose(source, rank, "receiver crashed", receipt.content.nbytes)
        for receipt in self._mailbox.sweep(self._waits_for(rank, gap.stop)):
            self._tell(receipt, gap.words, gap.start + self._detection)
        for window in self.windows.values():
            window.lose(rank, gap.words, gap.start + self._detection)

    def _dies_with(self, receipt: Receipt, rank: int, gap: Gap) -> bool:
        """Tell whether something in the mailbox was for the life that has ended."""
        if receipt.key[1] != rank:
            return False
        late = self._detection if isinstance(receipt.content, Missing) else 0.0
        return receipt.content is MISSING or receipt.arrival - late < gap.stop

    def _revive(self, rank: int, gap: Gap) -> None:
        """Start a rank's program, again or late."""
        old = self.lives[rank]
        if old.finished:
            return
        self.account.event(rank, "restart" if gap.crashed else "join", gap.stop)
        life = old.successor(self.plan.next_death(rank, gap.stop), crashed=gap.crashed)
        if any(other.step >= 0 for other in self.lives):
            life.first_step = life.floor = math.inf
        else:
            life.joins = {channel: number + 1 for channel, number in self.begun.items()}
        self.lives[rank] = self.ranks[rank] = life
        self._skip(life)
        program, values = self._programs[rank]
        strand = Strand(life, gap.stop, "")
        self._launch(strand, self._main_body(strand, program, values))

    def _skip(self, life: Life) -> None:
        """Tell those who wait for a rank in operations before its first one."""
        waits = self._waits_for(life.rank, math.inf)
        for receipt in self._mailbox.sweep(lambda one: waits(one) and life.came_after(one.key[2])):
            self._tell(receipt, life.words, receipt.arrival)

    def enter(self, strand: Strand, step: int) -> int:
        """Begin a step; return it, or for a rank that has come back the next that is new to all."""
        life = self._life(strand)
        if not life.joined:
            self.catch_up(strand)
            step = max(step, *(1 + other.step for other in self.lives))
            life.joined = True
            life.first_step = step + 1
        if life.step < 0:
            # What came before the steps is over, also for those who are still at it.
            life.floor = (step + 1) * STEP
            if self._awaited[life.rank]:
                self._skip(life)
        life.step = step
        return step

    def _tell(self, receipt: Receipt, words: str, told: float) -> None:
        told = max(told, receipt.arrival)
        self._awaited[receipt.key[0]] -= 1
        self.complete(receipt, Missing(receipt.key, words, told, peer=True), told)

    def absent(self, clock: float) -> frozenset[int]:
        """Return the ranks that a rank whose clock says so knows not to be there."""
        return self.plan.absent(clock, self._detection)

    # -- observing -----------------------------------------------------------------------------

    def observe(self, strand: Strand, step: int, value: Any) -> None:
        """Add one rank's value to the observation of a step."""
        self._stay(strand)
        super().observe(strand, step, value)

    def _expected(self, step: int) -> int:
        return sum(not life.gone and life.comes_to(step) for life in self.lives)

    def _hand_over(self, step: int) -> bool:
        gathering = self._observations[step]
        for rank, value in enumerate(gathering.values):
            if value is None:
                gathering.messages += self.ranks[rank].messages
                gathering.bytes += self.ranks[rank].bytes
        return super()._hand_over(step)
