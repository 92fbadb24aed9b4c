"""The discrete-event engine: ranks as greenlets over one SimPy environment.

A rank's clock runs ahead of the environment's until the rank must wait, so sending and computing
cost no event. The invariant behind that: a rank that is running has a clock at or after the
environment's, and nothing it does takes effect before its clock.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable, Sequence
from typing import Any

import greenlet
import simpy

from dectool.communicator import Channel, Observer, Parcel, StopRun
from dectool.errors import BackendError, DeadlockError, LivelockError
from dectool.sim._deadlock import describe
from dectool.sim._gathering import Gathering
from dectool.sim._mailbox import MISSING, Key, Mailbox, Receipt
from dectool.sim._strand import Call, RankState, Strand
from dectool.sim.compute import ComputeTimes
from dectool.sim.network import NetworkModel
from dectool.sim.trace import Trace

_MOST_POLLS = 10_000


class Engine:
    """Runs the programs of all ranks in virtual time.

    Args:
        size: Number of ranks.
        network: When messages arrive.
        compute: How long computations take.
        trace: Where to record what happens, or ``None``.
        observer: Who takes the records of steps, or ``None``.
    """

    def __init__(
        self,
        size: int,
        network: NetworkModel,
        compute: ComputeTimes,
        trace: Trace | None,
        observer: Observer | None,
    ) -> None:
        self.size = size
        self.network = network
        self.compute = compute
        self.trace = trace
        self._observer = observer
        self.env = simpy.Environment()
        self.ranks = [RankState(rank) for rank in range(size)]
        self._mailbox = Mailbox(network.receive_overhead)
        self.expect = self._mailbox.take
        self._transfer = network.transfer
        self._serial_send = network.serial_send
        self._serial_receive = network.serial_receive
        self._send_overhead = network.send_overhead
        self._strands: set[Strand] = set()
        self._main_left = 0
        self._finished = self.env.event()
        self._failure: tuple[Strand, BaseException] | None = None
        self._closed = False
        self._observations: dict[int, Gathering] = {}
        self._incoming: dict[int, Callable[[], None]] = {}
        self.windows: dict[Channel, Any] = {}
        self._messages_taken = 0
        self._stopped = False
        self._grad = True
        self._latest: Call | None = None
        self._latest_at = 0.0
        self._hub = greenlet.getcurrent()

    # -- running -------------------------------------------------------------------------------

    def run(self, programs: Sequence[Callable[[Strand], Any]]) -> list[Any]:
        """Run one program per rank to the end; return their values.

        Raises:
            DeadlockError: Ranks wait for what can never come.
            BaseException: Whatever a program raised, with a note that names the rank.
        """
        self._hub = greenlet.getcurrent()
        torch = sys.modules.get("torch")
        self._grad = torch is None or torch.is_grad_enabled()
        self._main_left = len(programs)
        values: list[Any] = [None] * len(programs)
        for state, program in zip(self.ranks, programs, strict=True):
            self._begin(state, program, values)
        try:
            self.env.run(until=self._finished)
        except RuntimeError as error:
            if self._finished.triggered or self.env.peek() != float("inf"):
                raise
            raise DeadlockError(describe(self._blocked(), self.size)) from error
        finally:
            self._close()
        if self._failure is not None:
            strand, exception = self._failure
            where = f"rank {strand.state.rank} of {self.size}{strand.name}"
            exception.add_note(f"raised by {where} at t = {strand.clock:.9g} s of virtual time")
            raise exception
        return values

    def _begin(self, state: RankState, program: Callable[[Strand], Any], values: list[Any]) -> None:
        """Start the program of a rank; where faults are, it may start later, and again."""
        strand = Strand(state, 0.0, "")
        self._launch(strand, self._main_body(strand, program, values))

    def _launch(self, strand: Strand, body: Callable[[Any], None]) -> None:
        strand.greenlet = greenlet.greenlet(body, parent=self._hub)
        # Without a copy, what the caller set with np.errstate would not hold in the programs.
        strand.greenlet.gr_context = contextvars.copy_context()
        strand.resume = strand.greenlet.switch
        strand.wake = Call(self.env, [])
        strand.state.strands += 1
        self._strands.add(strand)
        self._schedule(strand, strand.clock)

    def _main_body(
        self, strand: Strand, program: Callable[[Strand], Any], values: list[Any]
    ) -> Callable[[Any], None]:
        def finish(value: Any) -> None:
            values[strand.state.rank] = value
            strand.state.finished_at = max(strand.state.finished_at, strand.clock)
            self._main_left -= 1
            if not self._main_left and not self._finished.triggered:
                self._finished.succeed()

        return self._body(strand, lambda: program(strand), finish)

    def _body(
        self, strand: Strand, work: Callable[[], Any], finish: Callable[[Any], None]
    ) -> Callable[[Any], None]:
        def body(event: Any) -> None:
            try:
                value = work()
            except (greenlet.GreenletExit, StopRun):
                return
            except BaseException as exception:  # handed to the hub, which raises it
                if self._failure is None and not self._closed:
                    self._failure = (strand, exception)
                    if not self._finished.triggered:
                        self._finished.succeed()
                return
            self._strands.discard(strand)
            strand.state.strands -= 1
            finish(value)

        return body

    def _close(self) -> None:
        """End the strands that are left, rank by rank, so that their ``finally`` blocks run."""
        self._closed = True
        for strand in self._blocked():
            if strand.greenlet and not strand.greenlet.dead:
                strand.greenlet.throw(greenlet.GreenletExit)
        self._strands.clear()

    def _blocked(self) -> list[Strand]:
        return sorted(self._strands, key=lambda strand: (strand.state.rank, strand.name))

    # -- waiting -------------------------------------------------------------------------------

    def _schedule(self, strand: Strand, at: float) -> None:
        latest = self._latest
        if at == self._latest_at and latest is not None and latest.callbacks is not None:
            # Ranks in step wake at one time: SimPy's queue need not sort them.
            latest.callbacks.append(strand.resume)
            return
        # A strand waits for one thing at a time, so its event is free again.
        self._latest, self._latest_at = strand.wake, at
        strand.wake.callbacks = [strand.resume]
        delay = at - self.env.now
        self.env.schedule(strand.wake, delay=delay if delay > 0.0 else 0.0)

    def _suspend(self) -> None:
        if self._closed:
            raise BackendError("the run is over: no communication is possible any more")
        torch = sys.modules.get("torch")
        if torch is None or torch.is_grad_enabled() is self._grad:
            self._hub.switch()
            return
        # One rank's torch.no_grad() must not hold for the others, which share the thread.
        torch.set_grad_enabled(self._grad)
        self._hub.switch()
        torch.set_grad_enabled(not self._grad)

    def wait(self, strand: Strand, pending: Sequence[Any]) -> list[Any]:
        """Block a strand until all receipts are complete; advance its clock; return contents."""
        missing = 0
        for receipt in pending:
            if receipt.content is MISSING:
                receipt.waiter = strand
                missing += 1
        before = strand.clock
        if missing:
            strand.missing = missing
            strand.wake_at = before
            strand.waits = pending
            self._suspend()
            strand.waits = None
        clock = before
        contents = []
        for receipt in pending:
            if receipt.arrival > clock:
                clock = receipt.arrival
            clock += receipt.overhead
            contents.append(receipt.content)
        if clock > before:
            strand.clock = clock
            strand.polls = 0
            if self.trace is not None:
                kind = "background" if strand.name else "wait"
                self.trace.span(strand.state.rank, kind, before, clock, _label(pending))
        return contents

    def ready(self, strand: Strand, pending: Sequence[Any]) -> bool:
        """Let the other ranks catch up with the strand's clock; tell if all is complete by then."""
        self.catch_up(strand)
        for receipt in pending:
            if receipt.content is MISSING or receipt.arrival > strand.clock:
                strand.polls += 1
                if strand.polls > _MOST_POLLS:
                    raise LivelockError(
                        f"rank {strand.state.rank} called test() {_MOST_POLLS} times at "
                        f"t = {strand.clock:.9g} s: virtual time does not pass while polling. "
                        "Call comm.elapse(seconds) between polls, or wait()"
                    )
                return False
        strand.polls = 0
        return True

    def catch_up(self, strand: Strand) -> None:
        """Hold a strand until everything before its clock has happened."""
        self._schedule(strand, strand.clock)
        self._suspend()

    def elapse(self, strand: Strand, seconds: float, kind: str) -> None:
        """Advance a strand's clock."""
        before = strand.clock
        strand.clock = before + seconds
        strand.polls = 0
        if self.trace is not None and seconds > 0.0:
            self.trace.span(strand.state.rank, kind, before, strand.clock, kind)

    # -- messages ------------------------------------------------------------------------------

    def post(self, strand: Strand, parcel: Parcel, keys: Sequence[Key]) -> None:
        """Send a parcel from a strand's rank to others in turn, starting at the strand's clock."""
        state = strand.state
        source, nbytes = state.rank, parcel.nbytes
        for key in keys:
            dest = key[1]
            if state.strands > 1:
                self.catch_up(strand)
            if self._send_overhead:
                strand.clock += self._send_overhead
            start = strand.clock
            if self._serial_send and state.send_port > start:
                start = state.send_port
            state.send_port, arrival = self._transfer(source, dest, nbytes, start)
            state.messages += 1
            state.bytes += nbytes
            if self._serial_receive:
                self._take_in(key, nbytes, start, arrival, self._for_mailbox(key, parcel))
                continue
            if self.trace is not None:
                self.trace.message(source, dest, nbytes, start, arrival, key[2])
            receipt = self._mailbox.put(key, parcel, arrival)
            if receipt is not None:
                self.complete(receipt, parcel, arrival)

    def carry(
        self,
        strand: Strand,
        dest: int,
        nbytes: int,
        channel: Channel,
        come: Callable[[float], None],
        lost: Callable[[str, float], None],
        counted: int | None = -1,
    ) -> None:
        """Send what is no parcel from a strand's rank, starting at the strand's clock.

        Args:
            strand: Whose rank sends.
            dest: Rank to send to.
            nbytes: Bytes that travel.
            channel: Named in the trace.
            come: Called with the arrival in seconds as soon as that is known, at the latest then.
            lost: Called in its place where faults are, with the reason, in words, and the time at
                which the sender notices.
            counted: Bytes that the rank's counters grow by, beside one message; -1 for
                ``nbytes``, ``None`` for neither.
        """
        state = strand.state
        if state.strands > 1:
            self.catch_up(strand)
        if self._send_overhead and dest != state.rank:
            strand.clock += self._send_overhead
        if counted is not None:
            state.messages += 1
            state.bytes += nbytes if counted < 0 else counted
        self.reply(state.rank, dest, nbytes, strand.clock, channel, come, lost)

    def reply(
        self,
        source: int,
        dest: int,
        nbytes: int,
        at: float,
        channel: Channel,
        come: Callable[[float], None],
        lost: Callable[[str, float], None],
    ) -> None:
        """Send what is no parcel at a time, without a strand; nothing is counted.

        Args:
            source: Rank that sends.
            dest: Rank to send to.
            nbytes: Bytes that travel.
            at: When they are ready, in seconds.
            channel: Named in the trace.
            come: As in :meth:`carry`.
            lost: As in :meth:`carry`.
        """
        if dest == source:
            come(at)
            return
        key = (source, dest, channel)
        start, released, arrival = self._set_out(source, dest, nbytes, at)
        if self._goes_astray(key, nbytes, start, released, arrival, lost):
            return
        if self._serial_receive:
            self._take_in(key, nbytes, start, arrival, self._if_there(key, nbytes, come, lost))
            return
        if self.trace is not None:
            self.trace.message(source, dest, nbytes, start, arrival, channel)
        come(arrival)

    def _set_out(
        self, source: int, dest: int, nbytes: int, at: float
    ) -> tuple[float, float, float]:
        """Return when a message leaves the port, is gone from it, and arrives."""
        state = self.ranks[source]
        start = state.send_port if self._serial_send and state.send_port > at else at
        state.send_port, arrival = self._transfer(source, dest, nbytes, start)
        return start, state.send_port, arrival

    def _goes_astray(
        self,
        key: Key,
        nbytes: int,
        start: float,
        released: float,
        arrival: float,
        lost: Callable[[str, float], None],
    ) -> bool:
        """Tell whether a message never arrives, and its sender that; where faults are, some do."""
        del key, nbytes, start, released, arrival, lost
        return False

    def _if_there(
        self,
        key: Key,
        nbytes: int,
        come: Callable[[float], None],
        lost: Callable[[str, float], None],
    ) -> Callable[[float], None]:
        """Return ``come``, or where ranks may be gone, ``lost`` if the receiver is."""
        del key, nbytes, lost
        return come

    def _for_mailbox(self, key: Key, parcel: Parcel) -> Callable[[float], None]:
        def come(arrival: float) -> None:
            receipt = self._mailbox.put(key, parcel, arrival)
            if receipt is not None:
                self.complete(receipt, parcel, arrival)

        return come

    def _take_in(
        self, key: Key, nbytes: int, start: float, first: float, come: Callable[[float], None]
    ) -> None:
        """Queue a message at the receiver's port when its first byte comes in."""
        source, dest, channel = key
        port = self.ranks[dest]
        number = self._messages_taken = self._messages_taken + 1

        def come_in(event: Any = None) -> None:
            del self._incoming[number]
            occupied, gap = self.network.intake(nbytes)
            begin = port.receive_port if port.receive_port > first else first
            complete = begin + occupied
            port.receive_port = complete + gap
            if self.trace is not None:
                self.trace.message(source, dest, nbytes, start, complete, channel)
            come(complete)

        self._incoming[number] = come_in
        self.at(first, come_in)

    def at(self, time: float, call: Callable[[], None]) -> None:
        """Call something when everything before a time has happened."""
        self._latest = None  # what is scheduled from here on comes after it
        delay = time - self.env.now
        wake = Call(self.env, [lambda event: call()])
        self.env.schedule(wake, delay=delay if delay > 0.0 else 0.0)

    def complete(self, receipt: Receipt, content: Any, arrival: float) -> None:
        """Give a receipt what it awaits, and wake the strand that waits for nothing else."""
        receipt.content = content
        receipt.arrival = arrival
        strand = receipt.waiter
        if strand is not None:
            if arrival > strand.wake_at:
                strand.wake_at = arrival
            strand.missing -= 1
            if not strand.missing:
                self._schedule(strand, strand.wake_at)

    def background(self, parent: Strand, name: str, work: Callable[[Strand], Any]) -> Receipt:
        """Start a strand beside its parent; the receipt completes with its result."""
        strand = Strand(parent.state, parent.clock, f" (background {name})")
        receipt = Receipt((parent.state.rank, parent.state.rank, (name,)), 0.0)

        def finish(value: Any) -> None:
            self.complete(receipt, value, strand.clock)
            strand.state.finished_at = max(strand.state.finished_at, strand.clock)

        self._launch(strand, self._body(strand, lambda: work(strand), finish))
        return receipt

    # -- observing -----------------------------------------------------------------------------

    def observe(self, strand: Strand, step: int, value: Any) -> None:
        """Add one rank's value to the observation of a step; hand it over when it is complete."""
        gathering = self._observations.get(step)
        if gathering is None:
            gathering = self._observations[step] = Gathering(self.size, self._expected(step))
        gathering.add(strand, value)
        if not gathering.left and self._hand_over(step):
            raise StopRun

    def _expected(self, step: int) -> int:
        """Return how many ranks will come by a step that is new."""
        del step
        return self.size

    def _hand_over(self, step: int) -> bool:
        """Give a complete observation to the observer; tell whether that ends the run."""
        observation = self._observations.pop(step).observation(step)
        if self._observer is None or not self._observer.collect(observation):
            return False
        self._stopped = True
        if not self._finished.triggered:
            self._finished.succeed()
        return True

    # -- accounts ------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """Messages sent so far."""
        return sum(state.messages for state in self.ranks)

    @property
    def bytes(self) -> int:
        """Payload bytes sent so far."""
        return sum(state.bytes for state in self.ranks)

    @property
    def times(self) -> list[float]:
        """When each rank finished, in seconds."""
        return [state.finished_at for state in self.ranks]

    def unreceived(self) -> list[tuple[int, int, Channel]]:
        """Return (source, destination, channel) of every message that nobody received."""
        if self._stopped:
            return []
        for come_in in list(self._incoming.values()):
            come_in()
        return sorted(self._mailbox.unexpected(), key=lambda key: key[1])


def _label(pending: Sequence[Any]) -> str:
    return f"wait for {pending[0].key[0]}" if len(pending) == 1 else f"wait for {len(pending)}"
