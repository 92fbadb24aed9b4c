"""Collective algorithms as rounds of messages, written once for one rank and for all at once.

Each function yields, for ``rank`` (an int, or the array of all ranks), what that rank does in each
round: whom it sends which segment, from whom it receives which segment, and whether the received
segment is added to its own or takes its place. Segments are positions in a buffer of ``cuts[-1]``
elements. Ranks without a partner in a round have -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Round(NamedTuple):
    """One round; every field but ``reduces`` is an int, or an array with one entry per rank.

    Attributes:
        dest: Rank to send to, or -1.
        source: Rank to receive from, or -1.
        send: First and last-plus-one element sent.
        receive: First and last-plus-one element received.
        reduces: Whether what is received is combined with one's own (else it replaces it).
    """

    dest: Any
    source: Any
    send: tuple[Any, Any]
    receive: tuple[Any, Any]
    reduces: bool


Rounds = Callable[[Any, int, Any], Iterator[Round]]


def blocks(elements: int, size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the ``size + 1`` positions that cut ``elements`` into nearly equal blocks."""
    return np.arange(size + 1, dtype=np.int64) * elements // size


def _either(condition: Any, yes: Any, no: Any) -> Any:
    if isinstance(condition, (bool, np.bool_)):
        return yes if condition else no
    return np.where(condition, yes, no)


def ring_reduce_scatter(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Pass partial sums round the ring; rank i ends with the sum of block i + 1."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        out, into = (rank - step) % size, (rank - step - 1) % size
        yield Round(right, left, (cuts[out], cuts[out + 1]), (cuts[into], cuts[into + 1]), True)


def ring_allgather(rank: Any, size: int, cuts: Any, first: int = 0) -> Iterator[Round]:
    """Pass complete blocks round the ring; rank i starts with block i + ``first``."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        out, into = (rank - step + first) % size, (rank - step - 1 + first) % size
        yield Round(right, left, (cuts[out], cuts[out + 1]), (cuts[into], cuts[into + 1]), False)


def ring(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Ring all-reduce: time 2(n-1)·latency + 2(n-1)/n·bytes/bandwidth. Patarasuk & Yuan (2009)."""
    yield from ring_reduce_scatter(rank, size, cuts)
    yield from ring_allgather(rank, size, cuts, first=1)


def _fold(rank: Any, size: int) -> tuple[int, int, Any]:
    """Return the power of two below ``size``, the rest, and each rank's number among the power.

    The first 2·rest ranks pair up; the odd one of a pair works for both, the even one sits out
    (number -1). Thakur, Rabenseifner & Gropp (2005), section 4.3.
    """
    power = 1 << (size.bit_length() - 1)
    rest = size - power
    number = _either(rank < 2 * rest, _either(rank % 2 == 1, rank // 2, -1), rank - rest)
    return power, rest, number


def _unfold(number: Any, rest: int) -> Any:
    return _either(number < rest, 2 * number + 1, number + rest)


def _fold_in(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    _, rest, _ = _fold(rank, size)
    if rest:
        folds = rank < 2 * rest
        odd = rank % 2 == 1
        dest = _either(folds, _either(odd, -1, rank + 1), -1)
        source = _either(folds, _either(odd, rank - 1, -1), -1)
        yield Round(dest, source, (cuts[0], cuts[-1]), (cuts[0], cuts[-1]), True)


def _fold_out(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    _, rest, _ = _fold(rank, size)
    if rest:
        folds = rank < 2 * rest
        odd = rank % 2 == 1
        dest = _either(folds, _either(odd, rank - 1, -1), -1)
        source = _either(folds, _either(odd, -1, rank + 1), -1)
        yield Round(dest, source, (cuts[0], cuts[-1]), (cuts[0], cuts[-1]), False)


def recursive_doubling(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Recursive doubling all-reduce: time log2(n)·(latency + bytes/bandwidth)."""
    yield from _fold_in(rank, size, cuts)
    power, rest, number = _fold(rank, size)
    distance = 1
    while distance < power:
        peer = _either(number >= 0, _unfold(number ^ distance, rest), -1)
        yield Round(peer, peer, (cuts[0], cuts[-1]), (cuts[0], cuts[-1]), True)
        distance *= 2
    yield from _fold_out(rank, size, cuts)


def rabenseifner(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Recursive halving, then doubling: time 2·log2(n)·latency + 2(n-1)/n·bytes/bandwidth.

    Rabenseifner (2004); ranks beyond a power of two are folded in first.
    """
    yield from _fold_in(rank, size, cuts)
    power, rest, number = _fold(rank, size)
    inner = blocks(int(cuts[-1]), power)
    active = number >= 0
    low, width = number * 0, power
    kept = []
    while width > 1:
        half = width // 2
        upper = (number & half) != 0
        mine = _either(upper, low + half, low)
        theirs = _either(upper, low, low + half)
        peer = _either(active, _unfold(number ^ half, rest), -1)
        yield Round(
            peer,
            peer,
            (inner[theirs], inner[theirs + half]),
            (inner[mine], inner[mine + half]),
            True,
        )
        kept.append((peer, mine, theirs, half))
        low, width = mine, half
    for peer, mine, theirs, half in reversed(kept):
        yield Round(
            peer,
            peer,
            (inner[mine], inner[mine + half]),
            (inner[theirs], inner[theirs + half]),
            False,
        )
    yield from _fold_out(rank, size, cuts)


def binomial_reduce(rank: Any, size: int, cuts: Any, root: int = 0) -> Iterator[Round]:
    """Reduce to ``root`` along a binomial tree: time ceil(log2 n)·(latency + bytes/bandwidth)."""
    number = (rank - root) % size
    distance = 1
    while distance < size:
        sends = number % (2 * distance) == distance
        receives = _both(number % (2 * distance) == 0, number + distance < size)
        yield Round(
            _either(sends, (number - distance + root) % size, -1),
            _either(receives, (number + distance + root) % size, -1),
            (cuts[0], cuts[-1]),
            (cuts[0], cuts[-1]),
            True,
        )
        distance *= 2


def binomial_broadcast(rank: Any, size: int, cuts: Any, root: int = 0) -> Iterator[Round]:
    """Broadcast from ``root`` along a binomial tree: time ceil(log2 n)·(latency + bytes/B)."""
    number = (rank - root) % size
    distance = 1 << max(size - 1, 0).bit_length()
    while distance > 1:
        distance //= 2
        sends = _both(number % (2 * distance) == 0, number + distance < size)
        receives = number % (2 * distance) == distance
        yield Round(
            _either(sends, (number + distance + root) % size, -1),
            _either(receives, (number - distance + root) % size, -1),
            (cuts[0], cuts[-1]),
            (cuts[0], cuts[-1]),
            False,
        )


def _both(first: Any, second: Any) -> Any:
    return first & second


def tree(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Binomial reduce and broadcast: time 2·ceil(log2 n)·(latency + bytes/bandwidth)."""
    yield from binomial_reduce(rank, size, cuts)
    yield from binomial_broadcast(rank, size, cuts)


def dissemination(rank: Any, size: int, cuts: Any) -> Iterator[Round]:
    """Barrier in ceil(log2 n) rounds of empty messages. Hensgen, Finkel & Manber (1988)."""
    distance = 1
    while distance < size:
        empty = (cuts[0], cuts[0])
        yield Round((rank + distance) % size, (rank - distance) % size, empty, empty, False)
        distance *= 2


def pairwise(rank: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """Yield the (destination, source) of each round of an all-to-all."""
    for step in range(1, size):
        yield (rank + step) % size, (rank - step) % size


ALLREDUCE: dict[str, Rounds] = {
    "ring": ring,
    "recursive_doubling": recursive_doubling,
    "rabenseifner": rabenseifner,
    "tree": tree,
}
"""The all-reduce algorithms by name."""

_SMALL = 64 * 1024


def choose_allreduce(nbytes: int, size: int) -> str:
    """Return the all-reduce algorithm for a size, as MPI libraries choose it.

    Up to 64 KiB latency decides: recursive doubling. Above, bandwidth decides: Rabenseifner for a
    power of two, where it folds nothing, else the ring.
    """
    if nbytes <= _SMALL:
        return "recursive_doubling"
    return "rabenseifner" if size & (size - 1) == 0 else "ring"
