"""A blocking collective of ranks that meet in shared memory, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool.backends.mpi._engine import Engine, Receipt
from dectool.backends.mpi._halls import AGREED, BUSY, BY_MESSAGE, WAITING, Hall
from dectool.backends.mpi._moves import Moves, Piece, Reduction, Rows
from dectool.backends.mpi._small import Shapes, Small, small
from dectool.backends.mpi._trees import reduce_into
from dectool.communicator import Channel
from dectool.communicator._collectives import left_to_right

ALONE = 1 << 13
"""Bytes up to which every rank reduces all by itself, which saves it waiting once more."""

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_Array = np.ndarray[Any, Any]


class Meeting:
    """The ranks of a communicator, in shared memory.

    Args:
        engine: That of this rank.
        hall: Where they meet.
        number: Of the communicator, in the hall.
        members: The ranks, in the communicator's order, by number in the world.
        me: This rank's number in the communicator.
    """

    def __init__(
        self, engine: Engine, hall: Hall, number: int, members: Sequence[int], me: int
    ) -> None:
        self._engine = engine
        self._hall = hall
        self._native = hall.native
        self._number = number
        self._members = members
        self._me = me
        self._size = len(members)
        self._places = tuple([hall.place[member] for member in members])
        self._ranks = dict(zip(self._places, members, strict=True))
        self._others = [rank for rank in range(self._size) if rank != me]
        self._there = tuple([place for place in self._places if place != self._places[me]])
        self._closed = False

    def small(
        self,
        plan: Moves | Reduction,
        buffers: Sequence[_Array],
        op: str | None,
        dtypes: Sequence[str],
        shapes: Shapes,
    ) -> Small | None:
        """Return what makes the results of a plan of one step; see :func:`small`."""
        if isinstance(plan, Reduction) and not self._alone(plan.writes[0] if plan.writes else ()):
            return None
        return small(plan, buffers, self._places, self._me, self._hall, op, dtypes, shapes)

    def results(self, make: Small, buffers: Sequence[_Array]) -> tuple[_Array, ...]:
        """Return the results of a plan of one step, and leave."""
        native, number = self._native, self._number
        results = make(native.buffers(number, self._places), buffers)
        native.leave(number)
        return results

    def arrive(
        self,
        digest: tuple[int, int],
        channel: Channel,
        arrays: tuple[_Array, ...],
        offsets: tuple[int, ...],
    ) -> bool:
        """Enter the next slot; tell whether all members have, and mean the same.

        If so, the operation must be carried out, and then :meth:`leave` be called; if not, the slot
        is left, and the operation goes by message.

        Args:
            digest: Equal on ranks that are about to do the same.
            channel: What the operation is called in reports.
            arrays: What this rank writes in the first step.
            offsets: And where to.
        """
        if self._closed:
            return False
        native, hall, number = self._native, self._hall, self._number
        state = native.arrive(number, *digest, arrays, offsets, hall.patience)
        if state == AGREED:
            return True
        entered = state != BUSY
        if state == BY_MESSAGE:
            native.leave(number)
            return False

        def step() -> bool:
            nonlocal state, entered
            if entered:
                state = native.look(number, hall.patience)
            else:
                state = native.arrive(number, *digest, arrays, offsets, hall.patience)
                entered = state != BUSY
            if state in (WAITING, BUSY) and self._one_has_ended():
                # It enters no further slot, so all members will go on by message.
                self._closed = True
                state = BY_MESSAGE
            return state in (AGREED, BY_MESSAGE)

        try:
            self._engine.block(step, lambda: self._missing(channel))
        finally:
            if state != AGREED and entered:
                native.leave(number)
        return bool(state == AGREED)

    def _one_has_ended(self) -> bool:
        """Tell whether a rank that is missing can no longer come."""
        ended = self._engine.ended
        if not ended:
            return False
        # Looked at in this order: a rank that has ended has shown before all that it ever will.
        gone = [rank for rank in self._members if rank in ended]
        missing = {self._ranks[place] for place in self._native.missing(self._number)}
        return any(rank in missing for rank in gone)

    def _missing(self, channel: Channel) -> list[Receipt]:
        return [
            Receipt(self._ranks[place], channel) for place in self._native.missing(self._number)
        ]

    def leave(self) -> None:
        """Be done with the slot."""
        self._native.leave(self._number)

    def move(
        self, plan: Moves, flat: Sequence[_Bytes], out: Sequence[_Bytes], channel: Channel
    ) -> None:
        """Carry out a collective that moves bytes."""
        for buffer, start, stop, target in plan.copies:
            out[buffer][target : target + stop - start] = flat[buffer][start:stop]
        for step, reads in enumerate(plan.reads):
            if step:
                sources = {self._places[read.source] for read in reads}
                self._write(plan.writes[step], flat, tuple(sources), channel)
            shown = self._shown()
            for source, offset, buffer, start, stop in reads:
                out[buffer][start:stop] = shown[source][offset : offset + stop - start]
            self._native.read(self._number)

    def reduce(
        self,
        plan: Reduction,
        op: str,
        buffers: Sequence[_Array],
        out: Sequence[_Array],
        dtypes: Sequence[str],
        channel: Channel,
    ) -> None:
        """Carry out a collective with one result for all ranks."""
        flat, results = _flat(buffers), _flat(out)
        for step, pieces in enumerate(plan.writes):
            if step:
                self._write(pieces, flat, self._there, channel)
            shown = self._shown()
            alone = self._alone(pieces)
            for buffer, start, stop, offset in pieces:
                item = buffers[buffer].itemsize
                first, last = start // item, stop // item
                terms = [
                    buffers[buffer][first:last]
                    if rank == self._me
                    else shown[rank][offset : offset + stop - start].view(buffers[buffer].dtype)
                    for rank in range(self._size)
                ]
                low, high = self._share(first, last, self._me) if not alone else (first, last)
                for part in plan.parts:
                    if part.buffer == buffer and part.start < high and part.stop > low:
                        begin, end = max(low, part.start), min(high, part.stop)
                        within = [term[begin - first : end - first] for term in terms]
                        reduce_into(out[buffer][begin:end], part.tree, within, op, dtypes[buffer])
                if not alone:
                    mine = results[buffer][low * item : high * item]
                    self._native.add(self._number, mine, offset + (low - first) * item)
            if not alone:
                self._native.show(self._number)
                self._wait(self._there, channel)
                self._take(pieces, shown, buffers, results)
            self._native.read(self._number)

    def _alone(self, pieces: Sequence[Piece]) -> bool:
        return self._size == 2 or sum(p.stop - p.start for p in pieces) <= ALONE

    def reduce_rows(
        self,
        plan: Rows,
        op: str,
        buffers: Sequence[_Array],
        out: Sequence[_Array],
        dtypes: Sequence[str],
        channel: Channel,
    ) -> None:
        """Carry out a collective in which each rank reduces the rows that are given to it."""
        flat = _flat(buffers)
        tree = left_to_right(range(self._size), lambda left, right: (left, right))
        for step, pieces in enumerate(plan.pieces):
            if step:
                self._write(plan.writes[step], flat, self._there, channel)
            shown = self._shown()
            for buffer, start, stop, offset in pieces:
                kind = buffers[buffer].dtype
                first, last = start // kind.itemsize, stop // kind.itemsize
                terms = [part[offset : offset + stop - start].view(kind) for part in shown]
                terms[self._me] = buffers[buffer][self._me][first:last]
                reduce_into(out[buffer][first:last], tree, terms, op, dtypes[buffer])
            self._native.read(self._number)

    def _take(
        self,
        pieces: Sequence[Piece],
        shown: Sequence[_Bytes],
        buffers: Sequence[_Array],
        results: Sequence[_Bytes],
    ) -> None:
        """Copy what the others have reduced."""
        for buffer, start, stop, offset in pieces:
            item = buffers[buffer].itemsize
            for rank in self._others:
                low, high = self._share(start // item, stop // item, rank)
                place = slice(offset + low * item - start, offset + high * item - start)
                results[buffer][low * item : high * item] = shown[rank][place]

    def _share(self, first: int, last: int, rank: int) -> tuple[int, int]:
        """Return which of the elements a rank reduces for all."""
        count = last - first
        return first + count * rank // self._size, first + count * (rank + 1) // self._size

    def _write(
        self,
        pieces: Sequence[Piece],
        flat: Sequence[_Bytes],
        sources: tuple[int, ...],
        channel: Channel,
    ) -> None:
        """Go on to the next step, and wait until the sources have, by number in the hall."""
        arrays, offsets = arrays_of(pieces, flat)
        if not self._native.write(self._number, arrays, offsets):
            self._block(lambda: self._native.write(self._number, arrays, offsets), channel)
        self._wait(sources, channel)

    def _wait(self, sources: tuple[int, ...], channel: Channel) -> None:
        native, number, patience = self._native, self._number, self._hall.patience
        if native.wait(number, sources, patience) == WAITING:
            self._block(lambda: native.wait(number, sources, patience) == AGREED, channel)

    def _block(self, done: Callable[[], bool], channel: Channel) -> None:
        self._engine.block(done, lambda: self._missing(channel))

    def _shown(self) -> list[_Bytes]:
        """Return the buffer that each rank has shown."""
        shown = self._native.buffers(self._number, self._places)
        buffers = self._hall.buffers
        return [buffers[place][which] for place, which in zip(self._places, shown, strict=True)]


def _flat(buffers: Sequence[_Array]) -> list[_Bytes]:
    return [buffer.reshape(-1).view(np.uint8) for buffer in buffers]


def arrays_of(
    pieces: Sequence[Piece], flat: Sequence[_Bytes]
) -> tuple[tuple[_Bytes, ...], tuple[int, ...]]:
    """Return what pieces of flat buffers hold, and where they go."""
    return (
        tuple(flat[buffer][start:stop] for buffer, start, stop, _ in pieces),
        tuple(piece.offset for piece in pieces),
    )
