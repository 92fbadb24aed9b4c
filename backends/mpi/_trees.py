"""Reductions in the order that a tree tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.backends.mpi._order import Tree
from dectool.kernels import combine

BLOCK = 1 << 17
"""Bytes that are reduced at a time, so that sums of sums stay in the cache."""

_Array = np.ndarray[Any, Any]


def value(tree: Tree, terms: Sequence[_Array], op: str, dtype: str) -> _Array:
    """Return what a tree makes of one term for each rank.

    Example:
        >>> terms = [np.array([1.0]), np.array([2.0]), np.array([4.0])]
        >>> value(((0, 2), 1), terms, "sum", "float64")
        array([7.])
    """
    if isinstance(tree, int):
        return terms[tree]
    left, right = tree
    return combine(op, value(left, terms, op, dtype), value(right, terms, op, dtype), dtype)


def reduce_into(out: _Array, tree: Tree, terms: Sequence[_Array], op: str, dtype: str) -> None:
    """Put what a tree makes of the terms into an array of their shape, block by block."""
    step = BLOCK // out.itemsize
    for low in range(0, len(out), step):
        place = slice(low, low + step)
        out[place] = value(tree, [term[place] for term in terms], op, dtype)
