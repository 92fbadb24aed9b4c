"""Plans of a collective in shared memory: who writes what in which step, and who reads it.

A step is as much as a rank's buffer in shared memory holds. Positions are in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dectool.backends.mpi._order import Segment, Tree
from dectool.backends.mpi._wire import ALIGNED


class Piece(NamedTuple):
    """Bytes of a buffer that a rank writes at an offset in shared memory."""

    buffer: int
    start: int
    stop: int
    offset: int


class Read(NamedTuple):
    """Bytes that lie at an offset in the memory of a rank, and go to a place of the result."""

    source: int
    offset: int
    buffer: int
    start: int
    stop: int


class Copy(NamedTuple):
    """Bytes of this rank's own buffer that go to a place of its result."""

    buffer: int
    start: int
    stop: int
    target: int


class Part(NamedTuple):
    """Elements of a buffer with one order of reduction."""

    buffer: int
    start: int
    stop: int
    tree: Tree


@dataclass(frozen=True)
class Moves:
    """A collective that moves bytes as they are.

    Attributes:
        writes: Pieces that this rank writes, by step.
        reads: What it takes from others, by step.
        copies: What it has itself.
    """

    writes: list[list[Piece]]
    reads: list[list[Read]]
    copies: list[Copy]

    def from_part(self, start: Sequence[int]) -> Moves:
        """Return the plan of a rank that holds its buffers from these positions on alone."""
        return Moves(
            [
                [
                    Piece(b, first - start[b], last - start[b], offset)
                    for b, first, last, offset in step
                ]
                for step in self.writes
            ],
            self.reads,
            [
                Copy(b, first - start[b], last - start[b], target)
                for b, first, last, target in self.copies
            ],
        )


@dataclass(frozen=True)
class Rows(Moves):
    """A collective in which every rank gives a row to each.

    Attributes:
        pieces: What each rank gives this one, by step; positions are those in a row.
    """

    pieces: list[list[Piece]]


@dataclass(frozen=True)
class Reduction:
    """A collective whose result is the same on all ranks.

    Attributes:
        writes: Pieces that every rank writes, by step.
        parts: How the elements are reduced.
    """

    writes: list[list[Piece]]
    parts: list[Part]


def plan_of(
    found: Sequence[Segment], me: int, size: int, itemsizes: Sequence[int], room: int
) -> Moves | Reduction | None:
    """Return how rounds are carried out that come to these segments, or ``None`` if they are not.

    Args:
        found: What each rank ends with.
        me: This rank.
        size: Number of ranks.
        itemsizes: Bytes of an element of each buffer.
        room: Bytes of a step.
    """
    if all(isinstance(tree, int) for segment in found for tree in segment.trees):
        return _moves(found, me, size, itemsizes, room)
    if all(tree == segment.trees[0] for segment in found for tree in segment.trees):
        spans = [
            (s.buffer, s.start * itemsizes[s.buffer], s.stop * itemsizes[s.buffer]) for s in found
        ]
        parts = [Part(s.buffer, s.start, s.stop, s.trees[0]) for s in found]
        return Reduction(list(_cut(_merged(spans), room)), parts)
    return None


def _moves(
    found: Sequence[Segment], me: int, size: int, itemsizes: Sequence[int], room: int
) -> Moves:
    streams: list[list[tuple[int, int, int]]] = [[] for _ in range(size)]
    wanted: list[list[tuple[int, int, int]]] = [[] for _ in range(size)]
    for segment in found:
        item = itemsizes[segment.buffer]
        span = (segment.buffer, segment.start * item, segment.stop * item)
        wanted[segment.trees[me]].append(span)
        for source in {tree for rank, tree in enumerate(segment.trees) if tree != rank}:
            streams[source].append(span)
    pieces = [list(_cut(_merged(stream), room)) for stream in streams]
    reads: list[list[Read]] = [[] for _ in range(max(map(len, pieces)))]
    for source in range(size):
        for step, written in enumerate(pieces[source] if source != me else ()):
            for piece in written:
                reads[step] += _overlaps(source, piece, wanted[source])
    copies = [Copy(buffer, start, stop, start) for buffer, start, stop in _merged(wanted[me])]
    writes = pieces[me] + [[] for _ in range(len(reads) - len(pieces[me]))]
    return Moves(writes, reads, copies)


def _overlaps(source: int, piece: Piece, wanted: Sequence[tuple[int, int, int]]) -> Iterator[Read]:
    for buffer, start, stop in wanted:
        if buffer == piece.buffer:
            first, last = max(start, piece.start), min(stop, piece.stop)
            if first < last:
                yield Read(source, piece.offset + first - piece.start, buffer, first, last)


def rows_plan(rows: Sequence[int], me: int, size: int, room: int) -> Rows:
    """Return how each rank gives row i of its buffers to rank i.

    Args:
        rows: Bytes of a row of each buffer.
        me: This rank.
        size: Number of ranks.
        room: Bytes of a step.
    """
    share = room // size // ALIGNED * ALIGNED
    spans = list(_cut([(buffer, 0, row) for buffer, row in enumerate(rows)], share))
    place = {rank: rank * share for rank in range(size)}
    others = [rank for rank in range(size) if rank != me]
    writes, reads = [], []
    for step in spans:
        writes.append(
            [
                Piece(b, rank * rows[b] + start, rank * rows[b] + stop, place[rank] + offset)
                for rank in others
                for b, start, stop, offset in step
            ]
        )
        reads.append(
            [
                Read(rank, place[me] + offset, b, rank * rows[b] + start, rank * rows[b] + stop)
                for rank in others
                for b, start, stop, offset in step
            ]
        )
    copies = [Copy(b, me * row, (me + 1) * row, me * row) for b, row in enumerate(rows)]
    pieces = [
        [Piece(b, start, stop, place[me] + offset) for b, start, stop, offset in step]
        for step in spans
    ]
    return Rows(writes, reads, copies, pieces)


def _merged(spans: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for buffer, start, stop in spans:
        if start == stop:
            continue
        if merged and merged[-1][0] == buffer and merged[-1][2] == start:
            merged[-1] = (buffer, merged[-1][1], stop)
        else:
            merged.append((buffer, start, stop))
    return merged


def _cut(spans: Sequence[tuple[int, int, int]], room: int) -> Iterator[list[Piece]]:
    """Cut spans into steps of pieces that fit beside each other, of nearly equal size."""
    total = sum(stop - start for _, start, stop in spans)
    steps = max(1, math.ceil(total / room))
    step: list[Piece] = []
    used = 0
    target = -(-total // steps // ALIGNED) * ALIGNED + ALIGNED
    target = min(target, room)
    for buffer, start, stop in spans:
        while start < stop:
            if target - used < ALIGNED:
                yield step
                step, used = [], 0
            end = min(stop, start + (target - used) // ALIGNED * ALIGNED)
            step.append(Piece(buffer, start, end, used))
            used += -(-(end - start) // ALIGNED) * ALIGNED
            start = end
    if step:
        yield step
