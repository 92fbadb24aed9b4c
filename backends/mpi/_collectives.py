"""Blocking collectives of ranks on one node, in shared memory.

Background operations go by message, and so does everything that the ranks do not agree about: the
errors and reports are those of the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dectool.backends.mpi import _order, _wire
from dectool.backends.mpi._engine import Engine
from dectool.backends.mpi._halls import ROOM
from dectool.backends.mpi._meeting import Meeting, arrays_of
from dectool.backends.mpi._moves import Moves, Reduction, Rows, plan_of, rows_plan
from dectool.backends.mpi._small import Shapes, Small
from dectool.communicator import OneRankCommunicator, _rounds
from dectool.communicator._digest import digest_numbers
from dectool.communicator._parcel import Buffer, Layout, Phantom
from dectool.kernels import divide, empty

_MOST = 1024
_ALLGATHER = "allgather"


@dataclass
class _Known:
    """What is kept of an operation on buffers of some shapes.

    Attributes:
        digest: Equal on ranks that do the same.
        shapes: Of the results.
        plan: How it is carried out, ``None`` for by message.
        messages: Messages that it counts for.
        bytes: Payload bytes that it counts for.
        small: Makes the results where one step is enough.
        offsets: Where buffers go in the first step, if all go there whole.
    """

    digest: tuple[int, int]
    shapes: Shapes
    plan: Moves | Reduction | None
    messages: int
    bytes: int
    small: Small | None = None
    offsets: tuple[int, ...] | None = None


class NearCollectives(OneRankCommunicator):
    """A rank whose collectives go through shared memory where they can."""

    _engine: Engine

    def _reset(self) -> None:
        super()._reset()
        self._known: dict[Any, _Known] = {}
        self._meetings: list[Meeting | None] = []

    def _meeting(self) -> Meeting | None:
        """Return where the ranks of this communicator meet, if they can."""
        if not self._meetings:
            self._meetings.append(self._found_meeting())
        return self._meetings[0]

    def _found_meeting(self) -> Meeting | None:
        hall = self._engine.hall
        if hall is None or self.size == 1 or "background" in self._base:
            return None
        members = [self._world(rank) for rank in range(self.size)]
        number = hall.meeting(self._base, members)
        if number < 0:
            return None
        return Meeting(self._engine, hall, number, members, self.rank)

    def _run_rounds(
        self,
        rounds: _rounds.Rounds,
        buffers: Sequence[Buffer],
        dtypes: Sequence[str],
        op: str | None,
        operation: str,
        layout: Layout | None = None,
        cuts: Sequence[Any] | None = None,
    ) -> tuple[Buffer, ...]:
        # What `_allgather` could not do together goes by message.
        meeting = self._meeting() if operation != _ALLGATHER else None
        if meeting is not None:
            key = _key(operation, buffers, layout)
            known = self._known.get(key)
            if known is None:
                known = self._by_rounds(key, rounds, buffers, op, cuts)
                self._keep(key, known, meeting, buffers, op, dtypes)
            done = self._together(meeting, known, operation, buffers, dtypes, op)
            if done is not None:
                return done
        return super()._run_rounds(rounds, buffers, dtypes, op, operation, layout, cuts)

    def _allgather(self, buffers: Sequence[Buffer], layout: Layout) -> tuple[Buffer, ...]:
        meeting = self._meeting()
        if meeting is not None:
            key = _key(_ALLGATHER, buffers, layout)
            known = self._known.get(key)
            if known is None:
                known = self._gathering(key, buffers)
                self._keep(key, known, meeting, buffers, None, ())
            done = self._together(meeting, known, _ALLGATHER, buffers, (), None)
            if done is not None:
                return done
        return super()._allgather(buffers, layout)

    def _alltoall(self, buffers: Sequence[Buffer], layout: Layout) -> tuple[Buffer, ...]:
        rows = self._traded(buffers, layout, "alltoall", None)
        return super()._alltoall(buffers, layout) if rows is None else rows

    def _reduce_scatter(
        self, buffers: Sequence[Buffer], layout: Layout, op: str
    ) -> tuple[Buffer, ...]:
        totals = self._traded(buffers, layout, f"reduce_scatter({op})", op)
        if totals is None:
            return super()._reduce_scatter(buffers, layout, op)
        if op != "mean":
            return totals
        return tuple(
            divide(total, self.size, dtype)  # type: ignore[arg-type]
            for total, dtype in zip(totals, layout.dtypes, strict=True)
        )

    def _traded(
        self, buffers: Sequence[Buffer], layout: Layout, operation: str, op: str | None
    ) -> tuple[Buffer, ...] | None:
        """Return what each rank has in its row for this one, reduced if there is an operator.

        ``None`` stands for an operation that goes by message.
        """
        meeting = self._meeting()
        if meeting is None:
            return None
        key = _key(operation, buffers, layout)
        known = self._known.get(key)
        if known is None:
            rows = [int(buffer.shape[-1]) * buffer.itemsize for buffer in buffers]
            plan = rows_plan(rows, self.rank, self.size, ROOM) if _plain(buffers) else None
            dests = sum(1 for _ in _rounds.pairwise(self.rank, self.size))
            shapes = _shapes(buffers)
            if op is not None:
                shapes = [(shape[1:], dtype) for shape, dtype in shapes]
            known = _Known(digest_numbers(key), shapes, plan, dests, dests * sum(rows))
            self._keep(key, known, meeting, buffers, op, layout.dtypes)
        return self._together(meeting, known, operation, buffers, layout.dtypes, op)

    def _gathering(self, key: Any, buffers: Sequence[Buffer]) -> _Known:
        whole = [Phantom((b.size * self.size,), b.itemsize) for b in buffers]
        cuts = [np.arange(self.size + 1) * b.size for b in buffers]
        known = self._by_rounds(key, _rounds.ring_allgather, whole, None, cuts, _plain(buffers))
        known.shapes = [((self.size, *shape), dtype) for shape, dtype in _shapes(buffers)]
        if isinstance(known.plan, Moves):
            known.plan = known.plan.from_part([self.rank * b.nbytes for b in buffers])
        return known

    def _by_rounds(
        self,
        key: Any,
        rounds: _rounds.Rounds,
        buffers: Sequence[Buffer],
        op: str | None,
        cuts: Sequence[Any] | None,
        plain: bool | None = None,
    ) -> _Known:
        """Return what is to be known of rounds on such buffers."""
        steps = [list(self._steps(rounds, rank, buffers, cuts)) for rank in range(self.size)]
        sent = [step for step in steps[self.rank] if step[0].dest >= 0]
        items = [buffer.itemsize for buffer in buffers]
        nbytes = sum(
            (int(one.send[1]) - int(one.send[0])) * item
            for step in sent
            for one, item in zip(step, items, strict=True)
        )
        plan: Moves | Reduction | None = None
        if _plain(buffers) if plain is None else plain:
            found = _order.segments(steps, [int(b.shape[-1]) for b in buffers], op is not None)
            if found is not None:
                plan = plan_of(found, self.rank, self.size, items, ROOM)
        return _Known(digest_numbers(key), _shapes(buffers), plan, len(sent), nbytes)

    def _keep(
        self,
        key: Any,
        known: _Known,
        meeting: Meeting,
        buffers: Sequence[Any],
        op: str | None,
        dtypes: Sequence[str],
    ) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = known
        if known.plan is not None:
            known.small = meeting.small(known.plan, buffers, op, dtypes, known.shapes)
            first = known.plan.writes[0] if known.plan.writes else []
            spans = [(piece.buffer, piece.start, piece.stop) for piece in first]
            if known.small and spans == [(i, 0, b.nbytes) for i, b in enumerate(buffers)]:
                known.offsets = tuple(piece.offset for piece in first)

    def _together(
        self,
        meeting: Meeting,
        known: _Known,
        operation: str,
        buffers: Sequence[Buffer],
        dtypes: Sequence[str],
        op: str | None,
    ) -> tuple[Buffer, ...] | None:
        """Carry out an operation in shared memory; return ``None`` if it must go by message."""
        plan = known.plan
        channel = (*self._context, operation)
        if plan is None:
            # All ranks must come by, or they would not agree on the number of the next slot.
            if meeting.arrive(known.digest, channel, (), ()):
                meeting.leave()
            return None
        arrays = tuple([np.ascontiguousarray(buffer) for buffer in buffers])
        flat: list[Any] = []
        if known.offsets is not None:
            first = arrays, known.offsets
        else:
            flat = [_wire.as_bytes(array) for array in arrays]
            first = arrays_of(plan.writes[0] if plan.writes else (), flat)
        if not meeting.arrive(known.digest, channel, *first):
            return None
        if known.small is not None:
            results = meeting.results(known.small, arrays)
        else:
            results = tuple([empty(shape, dtype) for shape, dtype in known.shapes])
            try:
                if isinstance(plan, Rows) and op is not None:
                    meeting.reduce_rows(plan, op, arrays, results, dtypes, channel)
                elif isinstance(plan, Reduction):
                    assert op is not None
                    meeting.reduce(plan, op, arrays, results, dtypes, channel)
                else:
                    meeting.move(plan, flat, list(map(_wire.as_bytes, results)), channel)
            finally:
                meeting.leave()
        self._engine.messages += known.messages
        self._engine.bytes += known.bytes
        return results


def _plain(buffers: Sequence[Buffer]) -> bool:
    return all(
        isinstance(buffer, np.ndarray) and _wire.ALIGNED % buffer.itemsize == 0
        for buffer in buffers
    )


def _shapes(buffers: Sequence[Buffer]) -> Shapes:
    return [(buffer.shape, getattr(buffer, "dtype", None)) for buffer in buffers]


def _key(operation: str, buffers: Sequence[Buffer], layout: Layout | None) -> Any:
    kinds = tuple((b.shape, b.dtype if isinstance(b, np.ndarray) else b.itemsize) for b in buffers)
    return operation, kinds, None if layout is None else layout.signature
