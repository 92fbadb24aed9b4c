"""The communicator of one simulated rank."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, final

from dectool.communicator import (
    Channel,
    Communicator,
    NeighborPlan,
    Parcel,
    Pending,
    generator,
)
from dectool.sim._engine import Engine, Strand

_WORLD: Channel = ("world",)


@final
class SimCommunicator(Communicator):
    """A rank of the discrete-event simulation; its clock is virtual.

    Args:
        engine: The run that it belongs to.
        strand: The line of execution that uses it.
        seed: Seed of the run.
        local_size: Ranks on one node.
    """

    backend: ClassVar[str] = "sim"

    def __init__(self, engine: Engine, strand: Strand, *, seed: int, local_size: int) -> None:
        self._engine = engine
        self._strand = strand
        self._seed = seed
        self._local_size = local_size
        self._rank = strand.state.rank
        self._size = engine.size
        self._members: Sequence[int] | None = None
        self._base: Channel = _WORLD
        self._topology = None
        self._schedule = None
        self._reset()
        self._generators: dict[str, Any] = {}

    def _reset(self) -> None:
        self._sequence = {}
        self._counters = {}
        self._groups = {}
        self._plans = {}

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def local_size(self) -> int:
        """Number of ranks on one node."""
        return self._local_size

    @property
    def _context(self) -> Channel:
        return self._base

    def _world(self, rank: int) -> int:
        return rank if self._members is None else self._members[rank]

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        key = (self._strand.state.rank, self._world(dest), channel)
        self._engine.post(self._strand, parcel, (key,))

    def _expect(self, source: int, channel: Channel) -> Pending:
        key = (self._world(source), self._strand.state.rank, channel)
        return self._engine.expect((key,))[0]

    def _trade(self, parcel: Parcel, plan: NeighborPlan, channel: Channel) -> list[Any]:
        route = plan.route
        if route is None or route[0] is not channel:
            me, world = self._world(self._rank), self._world
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
        twin = copy.copy(self)
        number = self._next_sequence("background")
        twin._reset()
        twin._base = (*self._base, "background", number)
        twin._topology = self._topology

        def work(strand: Strand) -> Any:
            twin._strand = strand
            return operation(twin)

        return self._engine.background(self._strand, f"operation {number}", work)

    def _subgroup(self, members: Sequence[int], context: Channel) -> Self:
        group = copy.copy(self)
        group._reset()
        group._members = [self._world(member) for member in members]
        group._rank = list(members).index(self._rank)
        group._size = len(members)
        group._base = context
        group._topology = None
        group._schedule = None
        group._local_size = 1
        return group

    def now(self) -> float:
        """This rank's virtual time in seconds since the start."""
        return self._strand.clock

    def elapse(self, seconds: float) -> None:
        """Let ``seconds`` of work pass on this rank's clock."""
        self._engine.elapse(self._strand, self._checked_seconds(seconds), "compute")

    def _compute(self, flops: float | None = None) -> None:
        state = self._strand.state
        number = state.computations
        state.computations = number + 1
        seconds = self._engine.compute.one_rank(state.rank, number, flops)
        self._engine.elapse(self._strand, seconds, "compute")

    def rng(self, purpose: str, number: int | None = None) -> Any:
        """Return the generator of (seed, this rank, ``purpose``), or a fresh numbered one."""
        if number is not None:
            return generator(self._seed, self._strand.state.rank, purpose, number)
        if purpose not in self._generators:
            self._generators[purpose] = generator(self._seed, self._strand.state.rank, purpose)
        return self._generators[purpose]

    def _observe(self, step: int, value: Any) -> None:
        self._engine.observe(self._strand, step, value)
