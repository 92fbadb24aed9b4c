"""The communicator of one process of an MPI job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from dectool.backends.mpi._arriving import SMALLEST, ArrivingAverage
from dectool.backends.mpi._boards import DONE, WAITING, describe
from dectool.backends.mpi._collectives import NearCollectives
from dectool.backends.mpi._engine import Engine, Receipt
from dectool.backends.mpi._in_place import Exchange, exchange_of
from dectool.backends.mpi._records import Records
from dectool.backends.mpi._window import MPIStore
from dectool.communicator import Channel, NeighborPlan, Parcel, Pending
from dectool.communicator._cells import Opening, Store
from dectool.communicator._parcel import Buffer, Layout
from dectool.kernels import empty, empty_like


@final
class MPICommunicator(NearCollectives):
    """A rank that is a process; time is real.

    Args:
        engine: Sends and receives.
        start: Reading of ``time.perf_counter`` that counts as time 0.
        local_size: Ranks on one node.
        seed: Seed of the run.
        compute: Draws the seconds of this rank's next computation, or ``None``.
        records: Takes what is recorded.
    """

    backend: ClassVar[str] = "mpi"
    _has_windows: ClassVar[bool] = True

    def __init__(
        self,
        engine: Engine,
        *,
        start: float,
        local_size: int,
        seed: int,
        compute: Callable[[float | None], float] | None,
        records: Records,
    ) -> None:
        super().__init__(engine.comm.rank, engine.comm.size, seed=seed, local_size=local_size)
        self._engine = engine
        self._start = start
        self._seconds = compute
        self._records = records

    @property
    def bytes_sent(self) -> int:
        """Payload bytes that this rank has sent."""
        return self._engine.bytes

    @property
    def _waits_for_each(self) -> bool:
        # Blocking averages read the neighbours' memory; what is started goes by message.
        return self.num_nodes == 1

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        self._engine.post(parcel, self._world(dest), channel)

    def _expect(self, source: int, channel: Channel) -> Pending:
        return self._engine.expect(self._world(source), channel)

    def _average(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: NeighborPlan,
        channel: Channel,
        number: int,
    ) -> Sequence[Buffer]:
        engine = self._engine
        # The first call goes by message: many operations are called only once.
        if number and not engine.in_background:
            exchange = self._exchange(plan, layout, buffers, channel)
            if exchange is not None and not engine.expects(exchange.sources, channel):
                out = _room_for(cast("tuple[np.ndarray[Any, Any], ...]", buffers))
                state = exchange.start(engine, number, buffers, out)
                if state == DONE:
                    return out
                if state == WAITING:
                    return self._await_exchange(exchange, buffers, layout, number, plan, out)
        if self._arrives_in_pieces(buffers, plan):
            return self._average_arriving(buffers, layout, plan, channel, number)
        return super()._average(buffers, layout, plan, channel, number)

    def _arrives_in_pieces(self, buffers: tuple[Buffer, ...], plan: NeighborPlan) -> bool:
        near = self._engine.boards.near
        return (
            len(buffers) == 1
            and isinstance(buffers[0], np.ndarray)
            and buffers[0].nbytes >= SMALLEST
            and bool(plan.weights)
            and not self._engine.in_background
            and any(self._world(source) not in near for source in plan.sources)
        )

    def _average_arriving(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: NeighborPlan,
        channel: Channel,
        number: int,
    ) -> Sequence[Buffer]:
        engine = self._engine
        (own,) = buffers
        assert isinstance(own, np.ndarray)
        mine = Parcel((empty(own.shape, own.dtype),), layout, number)
        engine.post_in_turn(mine, own, [self._world(dest) for dest in plan.destinations], channel)
        receipts = [engine.expect(self._world(source), channel) for source in plan.sources]
        average = ArrivingAverage(engine, mine, receipts, plan, layout.dtypes[0])
        engine.block(average.step, average.missing)
        if average.agree:
            return (average.result,)
        return self._reduce(mine, [receipt.content for receipt in receipts], plan)

    def _exchange(
        self, plan: NeighborPlan, layout: Layout, buffers: tuple[Buffer, ...], channel: Channel
    ) -> Exchange | None:
        """Return how to average in shared memory, if all neighbours can."""
        known = cast("Exchange | None", plan.route)
        if known is not None and known.is_for(layout, channel):
            return known
        described = describe(layout, buffers)
        if described.kinds is None:
            return None
        if known is None or not known.prepare(layout, described, buffers, channel):
            world = replace(
                plan,
                destinations=tuple(map(self._world, plan.destinations)),
                sources=tuple(map(self._world, plan.sources)),
            )
            size = described.room(buffers)
            plan.route = known = exchange_of(self._engine, world, channel, size)
            if known is not None:
                known.prepare(layout, described, buffers, channel)
        return known

    def _await_exchange(
        self,
        exchange: Exchange,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        number: int,
        plan: NeighborPlan,
        out: tuple[Buffer, ...],
    ) -> Sequence[Buffer]:
        mine = Parcel(buffers, layout, number)
        agree, by_message = exchange.go_on(self._engine, mine)
        if agree:
            return out
        try:
            return self._reduce(mine, exchange.received(by_message), plan)
        finally:
            exchange.end()

    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        return self._engine.wait(pending)

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return self._engine.ready(pending)

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin, _ = self._twin()
        return self._engine.background(lambda: operation(twin))

    def _open_store(self, opening: Opening) -> Store:
        assert self._engine.windows is not None
        return MPIStore(self, opening, self._engine.windows)

    def _arrived(self, pending: Pending) -> bool:
        return cast(Receipt, pending).complete

    def now(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._start

    def elapse(self, seconds: float) -> None:
        """Sleep, and take in meanwhile what arrives."""
        self._engine.sleep(self._checked_seconds(seconds))

    def _compute(self, flops: float | None = None) -> None:
        if self._seconds is not None:
            self._engine.sleep(self._seconds(flops))

    def _observe(self, step: int, value: Any) -> None:
        self._records.take(step, value, self.now(), self._forget)

    def _forget(self, seconds: float) -> None:
        self._start += seconds


def _room_for(buffers: tuple[np.ndarray[Any, Any], ...]) -> tuple[np.ndarray[Any, Any], ...]:
    return (empty_like(buffers[0]),) if len(buffers) == 1 else tuple(map(empty_like, buffers))
