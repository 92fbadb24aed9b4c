"""From the ``partition=`` argument of a problem to one index array per rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool._text import nearest
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems.partition import (
    ByClass,
    Contiguous,
    Dirichlet,
    Partitioner,
    Parts,
    Shuffled,
)


def split(
    how: str | Partitioner | Sequence[ArrayLike],
    labels: NDArray[Any],
    n: int | None,
    *,
    seed: int = 0,
    allow_empty: bool = False,
) -> Parts:
    """Return the shards for a name, a partitioner, or index arrays that are checked.

    Args:
        how: ``"contiguous"``, ``"shuffled"``, ``"by_class"``, ``"dirichlet"`` (alpha 1), a
            partitioner, or one index array per rank that together hold every sample once.
        labels: One label per sample.
        n: Number of ranks; may be None where ``how`` is a list.
        seed: Seed, for the names that are random.
        allow_empty: Let ranks have no sample; for names and lists.

    Raises:
        ArgumentError: An unknown name, a missing n, or lists that do not hold each sample once.
        ArgumentTypeError: ``how`` is none of these.

    Example:
        >>> split([[0, 2], [1]], np.zeros(3), None)
        [array([0, 2]), array([1])]
    """
    if isinstance(how, list | tuple):
        return _explicit(how, labels.size, n, allow_empty)
    if n is None:
        raise ArgumentError("n=None: give the number of ranks, as in n=16")
    if isinstance(how, str):
        named: dict[str, Partitioner] = {
            "contiguous": Contiguous(allow_empty=allow_empty),
            "shuffled": Shuffled(seed, allow_empty=allow_empty),
            "by_class": ByClass(allow_empty=allow_empty),
            "dirichlet": Dirichlet(seed=seed, allow_empty=allow_empty),
        }
        if how not in named:
            raise ArgumentError(f"partition={how!r} is not known; {nearest(how, named)}")
        how = named[how]
    if not isinstance(how, Partitioner):
        raise ArgumentTypeError(
            f"partition={how!r} must be a name, a partitioner or a list of index arrays"
        )
    return how(labels, n)


def _explicit(given: Sequence[ArrayLike], m: int, n: int | None, allow_empty: bool) -> Parts:
    if n is not None and n != len(given):
        raise ArgumentError(f"n={n} but partition holds {len(given)} index arrays; drop n")
    if not given:
        raise ArgumentError("partition is an empty list; give one index array per rank")
    parts = []
    for rank, values in enumerate(given):
        part = np.asarray(values)
        if part.size == 0:
            part = part.astype(np.intp)
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise ArgumentTypeError(
                f"partition[{rank}] must be a one-dimensional array of integers, "
                f"got shape {part.shape} and dtype {part.dtype}"
            )
        if part.size == 0 and not allow_empty:
            raise ArgumentError(
                f"partition[{rank}] is empty: rank {rank} has no sample; "
                "give it one, or allow_empty=True"
            )
        outside = part[(part < 0) | (part >= m)]
        if outside.size:
            raise ArgumentError(
                f"partition[{rank}] holds {int(outside[0])}; samples are 0 to {m - 1}"
            )
        parts.append(part.astype(np.intp))
    times = np.bincount(np.concatenate(parts), minlength=m)
    if (times != 1).any():
        sample = int(np.flatnonzero(times != 1)[0])
        raise ArgumentError(
            f"partition holds sample {sample} {int(times[sample])} times; every sample must be "
            "there exactly once (leave samples out with Dataset.take first)"
        )
    return parts
