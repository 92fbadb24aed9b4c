"""A neighbour average on one node: written once, and read where it was written."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dectool.backends.mpi._boards import (
    BUSY,
    DISAGREE,
    DONE,
    WAITING,
    Boards,
    Description,
    Outbox,
    native,
)
from dectool.backends.mpi._engine import Engine, Receipt
from dectool.communicator import Channel, NeighborPlan, Parcel
from dectool.communicator._parcel import Buffer, Layout

PATIENCE, CROWDED_PATIENCE = 50_000, 5_000
"""Nanoseconds that a call may spin before everything else goes on; with more ranks than cores."""

BUSY_LIMIT = 2e-3
"""Seconds of waiting for slow readers before their parcels go by message."""


class Exchange:
    """How one rank averages with its neighbours, all on its node, with one plan on one channel.

    Args:
        boards: Shared memory with the ranks of the node.
        box: The board of this rank.
        plan: Whom it sends to and what it sums, by number in the world.
        channel: Where the parcels travel.
    """

    __slots__ = (
        "_boards",
        "_box",
        "_bytes",
        "_channel",
        "_described",
        "_lanes",
        "_layout",
        "_messages",
        "_native",
        "_patience",
        "_version",
        "sources",
    )

    def __init__(self, boards: Boards, box: Outbox, plan: NeighborPlan, channel: Channel) -> None:
        self._boards = boards
        self._version = boards.version
        self._box = box
        self._channel = channel
        self.sources = plan.sources
        self._messages = len(plan.destinations)
        self._layout: Layout | None = None
        self._described: tuple[Any, ...] = ()
        self._bytes = 0
        self._patience = CROWDED_PATIENCE if boards.crowded else PATIENCE
        self._lanes = [boards.read[source, channel] for source in plan.sources]
        self._native = native.Exchange(
            box.board,
            tuple(boards.node[dest] for dest in plan.destinations),
            tuple(lane.board for lane in self._lanes),
            plan.weights,
            -1 if plan.place is None else plan.place,
            boards.crowded,
        )

    def is_for(self, layout: Layout, channel: Channel) -> bool:
        """Tell whether it was last prepared for this layout, and all boards are as they were."""
        return (
            self._layout is layout
            and self._channel is channel
            and self._version == self._boards.version
        )

    def prepare(
        self, layout: Layout, described: Description, buffers: tuple[Buffer, ...], channel: Channel
    ) -> bool:
        """Be ready for what has this layout; tell whether that can be."""
        if (
            self._channel is not channel
            or self._version != self._boards.version
            or self._box.board.capacity < described.room(buffers)
        ):
            return False
        self._layout = layout
        self._described = tuple(described)
        self._bytes = self._messages * sum(buffer.nbytes for buffer in buffers)
        return True

    def start(
        self, engine: Engine, number: int, buffers: tuple[Buffer, ...], out: tuple[Buffer, ...]
    ) -> int:
        """Write one's own value, and sum what is there.

        Returns:
            DONE, WAITING (then :meth:`go_on`), or BUSY: nothing was done, as readers are behind.
        """
        start, described, patience = self._native.start, self._described, self._patience
        state: int = start(number, *described, buffers, out, patience)
        if state == BUSY:
            until = time.monotonic() + BUSY_LIMIT
            engine.block(lambda: self._box.has_room or time.monotonic() > until, list)
            state = start(number, *described, buffers, out, patience)
        if state != BUSY:
            engine.messages += self._messages
            engine.bytes += self._bytes
        return WAITING if state == DISAGREE else state

    def go_on(self, engine: Engine, mine: Parcel) -> tuple[bool, dict[int, Parcel]]:
        """Wait for what is missing, on boards and by message.

        Returns:
            Whether the sums are there; if not, all parcels are, and must be compared. And the
            parcels that came by message, by position of their source.
        """
        by_message: dict[int, Parcel] = {}
        state = WAITING

        def step() -> bool:
            nonlocal state
            slots = self._native.slots()
            for position, lane in enumerate(self._lanes):
                if slots[position] < 0 and position not in by_message:
                    parcel = lane.from_queue()
                    if parcel is not None:
                        by_message[position] = parcel
                        self._native.give(position, _addresses(parcel, mine))
            state = self._native.go_on(self._patience)
            return bool(state != WAITING)

        def missing() -> list[Receipt]:
            slots = self._native.slots()
            absent = [p for p, slot in enumerate(slots) if slot < 0 and p not in by_message]
            return [
                Receipt(self.sources[position], self._channel)
                for position in absent or [self._native.missing]
            ]

        engine.block(step, missing)
        return state == DONE, by_message

    def received(self, by_message: dict[int, Parcel]) -> list[Parcel]:
        """Return the parcels of all sources, those on boards in place."""
        slots = self._native.slots()
        return [
            by_message[position] if position in by_message else lane.look(slots[position])
            for position, lane in enumerate(self._lanes)
        ]

    def end(self) -> None:
        """Let the sources write over what was received."""
        self._native.finish()


def exchange_of(engine: Engine, plan: NeighborPlan, channel: Channel, size: int) -> Exchange | None:
    """Return how to average on this channel, if all who take part share memory by now.

    Args:
        engine: That of this rank.
        plan: Whom it sends to and what it sums, by number in the world.
        channel: Where the parcels travel.
        size: Bytes of this rank's parcel.
    """
    boards = engine.boards
    if not plan.weights or not boards.node.keys() >= {*plan.destinations, *plan.sources}:
        return None
    box = boards.open(channel, size)
    if box is None or not all(map(box.reaches, plan.destinations)):
        return None
    lanes = [boards.read.get((source, channel)) for source in plan.sources]
    if any(lane is None or lane.board is None for lane in lanes):
        return None
    return Exchange(boards, box, plan, channel)


def _addresses(parcel: Parcel, mine: Parcel) -> tuple[int, ...]:
    """Return where the buffers of a parcel are; nothing if it does not agree with one's own."""
    if parcel.sequence != mine.sequence or parcel.layout is None or mine.layout is None:
        return ()
    if parcel.layout.signature != mine.layout.signature:
        return ()
    return tuple(b.ctypes.data for b in parcel.buffers if isinstance(b, np.ndarray))
