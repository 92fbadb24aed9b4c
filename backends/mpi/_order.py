"""What the rounds of a collective come to: where each element of each rank's result is from.

The rounds are carried out on names in place of numbers, so there is no second text of an algorithm:
whatever they do to the data, in which order, is read off.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

Tree = Any
"""A rank, for its element at the same place, or two trees that are combined, the left one first."""

Steps = Sequence[Sequence[Sequence[Any]]]
"""For each rank, round and buffer what is done; see :class:`dectool.communicator._rounds.Round`."""


class Segment(NamedTuple):
    """Elements of a buffer that are treated alike.

    Attributes:
        buffer: Number of the buffer.
        start: First element.
        stop: Last element plus one.
        trees: What each rank ends with.
    """

    buffer: int
    start: int
    stop: int
    trees: tuple[Tree, ...]


def segments(steps: Steps, sizes: Sequence[int], combines: bool) -> list[Segment] | None:
    """Return what the rounds come to, or ``None`` if they move elements to other places.

    Args:
        steps: What each rank does.
        sizes: Elements of each buffer.
        combines: Whether rounds that may combine do.

    Example:
        >>> from dectool.communicator._rounds import blocks, rabenseifner
        >>> cuts = blocks(4, 4)
        >>> steps = [[(step,) for step in rabenseifner(rank, 4, cuts)] for rank in range(4)]
        >>> [segment.trees[0] for segment in segments(steps, [4], True)][0]
        ((0, 2), (1, 3))
    """
    found: list[Segment] = []
    for buffer, size in enumerate(sizes):
        ranks = [[step[buffer] for step in rounds] for rounds in steps]
        mixed = {int(place) for rounds in ranks for r in rounds for place in (*r.send, *r.receive)}
        places = sorted({0, size} | mixed)
        trees = _carried_out(ranks, {place: i for i, place in enumerate(places)}, combines)
        if trees is None:
            return None
        for i, (start, stop) in enumerate(pairwise(places)):
            found.append(Segment(buffer, start, stop, tuple(mine[i] for mine in trees)))
    return found


def _carried_out(
    ranks: Sequence[Sequence[Any]], index: dict[int, int], combines: bool
) -> list[list[Tree]] | None:
    trees: list[list[Tree]] = [[rank] * (len(index) - 1) for rank in range(len(ranks))]
    for rounds in zip(*ranks, strict=True):
        sent = {}
        for rank, step in enumerate(rounds):
            if step.dest >= 0:
                start, stop = (index[int(place)] for place in step.send)
                sent[rank, int(step.dest)] = start, trees[rank][start:stop]
        for rank, step in enumerate(rounds):
            source = int(step.source)
            if source < 0:
                continue
            start, got = sent.get((source, rank), (-1, []))
            if (start, start + len(got)) != tuple(index[int(place)] for place in step.receive):
                return None
            for i, tree in enumerate(got, start):
                pair = (tree, trees[rank][i]) if source < rank else (trees[rank][i], tree)
                trees[rank][i] = pair if combines and step.reduces else tree
    return trees
