"""The communicator of a simulated rank that may lose messages, and crash."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, final

from dectool.communicator import Channel, NeighborPlan, Parcel, Request
from dectool.communicator._missing import Missing, without
from dectool.communicator._parcel import Buffer, Layout, own, row
from dectool.sim._communicator import SimCommunicator
from dectool.sim.faults._engine import FaultyEngine
from dectool.sim.faults._life import STEP, Life, Numbered


@final
class FaultyCommunicator(SimCommunicator):
    """A rank of a simulation with faults.

    Neighbour operations are matched by their number, so that a rank that comes back takes part
    from a number on that nobody has begun; in a solve numbers belong to steps.
    """

    _origin = 0

    @property
    def restarts(self) -> int:
        """How often this rank has crashed and come back."""
        return self._life.restarts

    @property
    def gone(self) -> tuple[int, ...]:
        """Ranks that have not been there for as long as it takes to notice."""
        absent = self._world_engine.absent(self._strand.clock)
        if not absent:
            return ()
        return tuple(rank for rank in range(self.size) if self._world(rank) in absent)

    @property
    def _life(self) -> Life:
        return cast(Life, self._strand.state)

    @property
    def _world_engine(self) -> FaultyEngine:
        return cast(FaultyEngine, self._engine)

    def _enter(self, step: int) -> int:
        step = self._world_engine.enter(self._strand, step)
        self._origin = (step + 1) * STEP
        self._counters.clear()
        self._sequence.clear()
        return step

    def _next_sequence(self, operation: str) -> int:
        return self._origin + super()._next_sequence(operation)

    def _tolerating(self, plan: Any, missing: Any) -> Any:
        plan = super()._tolerating(plan, missing)
        return replace(plan, missing=missing if isinstance(missing, str) else own(missing))

    def _pair_channel(self, peer: int) -> Channel:
        pair = (min(self.rank, peer), max(self.rank, peer))
        return self._next_of("pair_gossip", pair)[0]

    def _numbered(self, operation: str) -> tuple[Channel, int]:
        return self._next_of(operation, ())

    def _next_of(self, operation: str, pair: tuple[int, ...]) -> tuple[Channel, int]:
        """Return the channel of an operation of all neighbours, or of a pair, and its number."""
        name = f"{operation} {pair}" if pair else operation
        counter = self._counters.get(name)
        if counter is None:
            channel = (*self._context, operation, *pair)
            first = self._life.first_number(channel)
            # A rank that does not know its step yet speaks to nobody.
            start = -STEP if first == math.inf else max(self._origin, int(first))
            counter = self._counters[name] = channel, itertools.count(start)
        channel, number = counter[0], next(counter[1])
        begun = self._world_engine.begun
        begun[channel] = max(number, begun.get(channel, number))
        return (*channel, Numbered(number)), number

    def _reduce(self, parcel: Parcel, received: Sequence[Any], plan: NeighborPlan) -> list[Buffer]:
        missing = [other for other in received if type(other) is Missing]
        if not missing:
            return super()._reduce(parcel, received, plan)
        policy = plan.missing or self._missing
        if policy == "error":
            raise missing[0].error()
        if plan.pair:
            return list(own(parcel.buffers))
        if policy == "self":
            filled = [parcel if type(other) is Missing else other for other in received]
            return super()._reduce(parcel, filled, plan)
        there = [type(other) is not Missing for other in received]
        place = plan.place
        terms = list(there)
        if place is not None:
            terms.insert(place, True)
        rest = replace(
            plan,
            sources=tuple(itertools.compress(plan.sources, there)),
            weights=without(plan.weights, terms, missing),
            place=None if place is None else sum(there[:place]),
            route=None,
        )
        return super()._reduce(parcel, list(itertools.compress(received, there)), rest)

    def _edge_array(
        self, mine: Parcel, received: Sequence[Any], layout: Layout, plan: NeighborPlan
    ) -> Any:
        policy = self._missing if plan.missing is None else plan.missing
        filled = []
        for index, other in enumerate(received):
            if type(other) is not Missing:
                filled.append(other)
            elif policy == "self":
                filled.append(mine)
            elif isinstance(policy, str):
                raise other.error()
            else:
                rows = tuple(row(buffer, index) for buffer in policy)
                filled.append(Parcel(rows, mine.layout, mine.sequence))
        return super()._edge_array(mine, filled, layout, plan)

    def _start_neighbor_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: NeighborPlan
    ) -> Request[Any]:
        # Nobody but the sender knows what its row would have been.
        strict = replace(plan, missing="error")
        return super()._start_neighbor_alltoall(buffers, layout, strict)
