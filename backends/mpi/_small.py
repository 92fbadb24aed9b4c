"""Collectives of one step, with everything prepared: where each call counts its microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool.backends.mpi._halls import Hall
from dectool.backends.mpi._moves import Moves, Read, Reduction, Rows
from dectool.backends.mpi._trees import value
from dectool.communicator._collectives import left_to_right

_Array = np.ndarray[Any, Any]
_Views = tuple[_Array, _Array]
Shapes = Sequence[tuple[tuple[int, ...], Any]]
"""Shape and dtype of each result."""

Small = Callable[[bytes, Sequence[_Array]], tuple[_Array, ...]]
"""Makes results of which buffer each rank has shown, and of this rank's own data."""


def small(
    plan: Moves | Reduction,
    buffers: Sequence[_Array],
    places: Sequence[int],
    me: int,
    hall: Hall,
    op: str | None,
    dtypes: Sequence[str],
    shapes: Shapes,
) -> Small | None:
    """Return what makes the results of a plan of one step, or ``None`` if it has more.

    Args:
        plan: What is done.
        buffers: What this rank gives, for shapes and dtypes.
        places: Numbers of the ranks in the hall.
        me: This rank.
        hall: Where they meet.
        op: How values are reduced.
        dtypes: Logical dtypes of the buffers.
        shapes: Of the results.
    """
    if isinstance(plan, Reduction):
        parts = [[part for part in plan.parts if part.buffer == b] for b in range(len(buffers))]
        if len(plan.writes) != 1 or any(len(each) != 1 for each in parts):
            return None
        assert op is not None
        pieces = {piece.buffer: piece for piece in plan.writes[0]}
        tables = [
            [_views(hall, place, pieces[b].offset, buffer.shape, buffer.dtype) for place in places]
            for b, buffer in enumerate(buffers)
        ]
        trees = [each[0].tree for each in parts]
        return _reduction(tables, trees, op, dtypes, me)
    if len(plan.reads) > 1:
        return None
    if isinstance(plan, Rows) and op is not None:
        if len(plan.pieces) != 1 or len(plan.pieces[0]) != len(buffers):
            return None
        tree = left_to_right(range(len(places)), lambda left, right: (left, right))
        tables = [
            [_views(hall, place, plan.pieces[0][b].offset, shape, dtype) for place in places]
            for b, (shape, dtype) in enumerate(shapes)
        ]
        reduce = _reduction(tables, [tree] * len(buffers), op, dtypes, me)
        return lambda shown, buffers: reduce(shown, [buffer[me] for buffer in buffers])
    reads = plan.reads[0] if plan.reads else []
    if len(buffers) == 1 and len(reads) == 1 and not plan.copies:
        return _one(reads[0], buffers[0], places, hall)
    if len(buffers) == 1 and not reads and [copy.target for copy in plan.copies] == [0]:
        return lambda shown, buffers: (buffers[0].copy(),)
    return _move(plan, [_row(hall, places, read) for read in reads], shapes)


def _reduction(
    tables: Sequence[Sequence[_Views]],
    trees: Sequence[Any],
    op: str,
    dtypes: Sequence[str],
    me: int,
) -> Small:
    work = list(zip(tables, trees, dtypes, strict=True))

    def reduce(shown: bytes, buffers: Sequence[_Array]) -> tuple[_Array, ...]:
        results = []
        for (table, tree, dtype), buffer in zip(work, buffers, strict=True):
            terms = [views[which] for views, which in zip(table, shown, strict=True)]
            terms[me] = buffer
            results.append(value(tree, terms, op, dtype))
        return tuple(results)

    return reduce


def _one(read: Read, buffer: _Array, places: Sequence[int], hall: Hall) -> Small:
    source = read.source
    views = _views(hall, places[source], read.offset, buffer.shape, buffer.dtype)
    return lambda shown, buffers: (views[shown[source]].copy(),)


_Row = tuple[int, _Views, int, slice]


def _row(hall: Hall, places: Sequence[int], read: Read) -> _Row:
    size = read.stop - read.start
    views = _views(hall, places[read.source], read.offset, (size,), np.dtype(np.uint8))
    return read.source, views, read.buffer, slice(read.start, read.stop)


def _move(plan: Moves, rows: Sequence[_Row], shapes: Shapes) -> Small:
    copies = [
        (buffer, slice(start, stop), slice(target, target + stop - start))
        for buffer, start, stop, target in plan.copies
    ]

    def move(shown: bytes, buffers: Sequence[_Array]) -> tuple[_Array, ...]:
        out = [np.empty(shape, dtype) for shape, dtype in shapes]
        flat = [result.reshape(-1).view(np.uint8) for result in out]
        for buffer, place, target in copies:
            flat[buffer][target] = buffers[buffer].reshape(-1).view(np.uint8)[place]
        for source, views, buffer, place in rows:
            flat[buffer][place] = views[shown[source]]
        return tuple(out)

    return move


def _views(hall: Hall, place: int, offset: int, shape: Any, dtype: np.dtype[Any]) -> _Views:
    """Return what a rank may have shown at an offset, in either of its buffers."""
    size = int(np.prod(shape)) * dtype.itemsize
    first, second = (
        whole[offset : offset + size].view(dtype).reshape(shape) for whole in hall.buffers[place]
    )
    return first, second
