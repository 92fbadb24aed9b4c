"""The communicator of one simulated rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, cast

from dectool.communicator import (
    Channel,
    NeighborPlan,
    OneRankCommunicator,
    Parcel,
    Pending,
)
from dectool.communicator._cells import Opening, Store
from dectool.sim._engine import Engine
from dectool.sim._mailbox import MISSING, Receipt
from dectool.sim._mass import Mass
from dectool.sim._strand import Strand
from dectool.sim._window import SimStore, WindowParts


class SimCommunicator(OneRankCommunicator):
    """A rank of the discrete-event simulation; its clock is virtual.

    Simulations with faults have a communicator of their own, derived from this one.

    Args:
        engine: The run that it belongs to.
        strand: The line of execution that uses it.
        seed: Seed of the run.
        local_size: Ranks on one node.
    """

    backend: ClassVar[str] = "sim"
    _has_windows: ClassVar[bool] = True

    def __init__(self, engine: Engine, strand: Strand, *, seed: int, local_size: int) -> None:
        super().__init__(strand.state.rank, engine.size, seed=seed, local_size=local_size)
        self._engine = engine
        self._strand = strand

    @property
    def bytes_sent(self) -> int:
        """Payload bytes that this rank has sent."""
        return self._strand.state.bytes

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        key = (self._me, self._world(dest), channel)
        self._engine.post(self._strand, parcel, (key,))

    def _expect(self, source: int, channel: Channel) -> Pending:
        key = (self._world(source), self._me, channel)
        return self._engine.expect((key,))[0]

    def _trade(self, parcel: Parcel, plan: NeighborPlan, channel: Channel) -> list[Any]:
        route = plan.route
        if route is None or route[0] is not channel:
            me, world = self._me, self._world
            out = [(me, world(dest), channel) for dest in plan.destinations]
            into = [(world(source), me, channel) for source in plan.sources]
            route = plan.route = (channel, out, into)
        engine, strand = self._engine, self._strand
        engine.post(strand, parcel, route[1])
        return engine.wait(strand, engine.expect(route[2]))

    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        return self._engine.wait(self._strand, pending)

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return self._engine.ready(self._strand, pending)

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin, number = self._twin()

        def work(strand: Strand) -> Any:
            twin._strand = strand
            return operation(twin)

        return self._engine.background(self._strand, f"operation {number}", work)

    def _open_store(self, opening: Opening) -> Store:
        number = self._next_sequence(f"window {opening.name}")
        channel = (*self._base, "window", opening.name)
        windows = self._engine.windows
        window = windows.get((*channel, number))
        if window is None:
            mass = Mass(opening.layout) if opening.push_sum else None
            window = windows[*channel, number] = WindowParts(opening.name, mass)
        return SimStore(self, opening, channel, window)

    def _arrived(self, pending: Pending) -> bool:
        receipt = cast(Receipt, pending)
        return receipt.content is not MISSING and receipt.arrival <= self._strand.clock

    def _network_model(self) -> Any:
        return self._engine.network

    def now(self) -> float:
        """This rank's virtual time in seconds since the start."""
        return self._strand.clock

    def elapse(self, seconds: float) -> None:
        """Let ``seconds`` of work pass on this rank's clock."""
        self._engine.elapse(self._strand, self._checked_seconds(seconds), "compute")

    def _spend(self, what: str, nbytes: int) -> None:
        rate = getattr(self._engine.network.codec, what)
        if nbytes and rate < math.inf:
            self._engine.elapse(self._strand, nbytes / rate, what)

    def _compute(self, flops: float | None = None) -> None:
        state = self._strand.state
        number = state.computations
        state.computations = number + 1
        seconds = self._engine.compute.one_rank(state.rank, number, flops)
        self._engine.elapse(self._strand, seconds, "compute")

    def _observe(self, step: int, value: Any) -> None:
        self._engine.observe(self._strand, step, value)
