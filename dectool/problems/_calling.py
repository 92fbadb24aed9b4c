"""One code path for the two calling conventions ``(x, 3)`` and ``(X, array of ranks)``.

A program asks for one rank at a time, a vectorised backend for many. Both are brought to the
same form: an array of shape (k, batch, dim) in C order, with k = 1 for a single rank. Every
problem computes on that form only, item by item, so both give the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems._arrays import FloatArray, IndexArray, Rows

Rank: TypeAlias = int | IndexArray

_HALF = np.dtype(np.float16)
_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


class Call(NamedTuple):
    """One request in the common form, and what is needed to give the answer its shape."""

    X: FloatArray
    rows: Rows
    lead: tuple[int, ...]
    dtype: np.dtype[Any]
    single: bool

    def answer(self, result: FloatArray, tail: tuple[int, ...]) -> Any:
        """Return ``result`` with the caller's leading axes and dtype."""
        shaped = result.reshape(self.lead + tail)
        if shaped.dtype != self.dtype:
            shaped = shaped.astype(self.dtype)
        return shaped if shaped.ndim else shaped[()]


def working_array(x: ArrayLike) -> tuple[FloatArray, np.dtype[Any]]:
    """Return x as a C-ordered array to compute with, and the dtype of the answer.

    Half precision is computed in single, integers in double.

    Raises:
        ArgumentTypeError: x does not hold real numbers.
    """
    raw = np.asarray(x)
    kind = raw.dtype.kind
    if kind == "f":
        work = _SINGLE if raw.dtype == _HALF else raw.dtype.newbyteorder("=")
        return np.ascontiguousarray(raw, dtype=work), raw.dtype
    if kind in "iu":
        return np.ascontiguousarray(raw, dtype=_DOUBLE), _DOUBLE
    raise ArgumentTypeError(f"x has dtype {raw.dtype}; it must hold real numbers, such as float64")


def select(rank: Rank | ArrayLike, ranks: IndexArray) -> tuple[Rows, int | None]:
    """Return the rows that ``rank`` asks for, and how many (None for a single rank).

    All ranks in order become ``slice(None)``, so that the data is not copied.

    Raises:
        ArgumentTypeError: rank is neither an integer nor a one-dimensional integer array.
        ArgumentError: A rank is out of range.

    Example:
        >>> select(2, np.arange(4)), select(np.arange(4), np.arange(4))
        ((slice(2, 3, None), None), (slice(None, None, None), 4))
    """
    size = ranks.size
    if rank is ranks:
        return slice(None), size
    if type(rank) is int:
        _check_range(rank, size)
        return slice(rank, rank + 1), None
    wanted: NDArray[Any] = np.asarray(rank)
    if wanted.dtype.kind not in "iu" or wanted.ndim > 1:
        raise ArgumentTypeError(
            f"rank={rank!r} must be an integer or a one-dimensional integer array"
        )
    if wanted.ndim == 0:
        return select(int(wanted), ranks)
    if wanted.size == size and (wanted == ranks).all():
        return slice(None), size
    if wanted.size:
        _check_range(int(wanted.min()), size)
        _check_range(int(wanted.max()), size)
    return wanted, wanted.size


def enter(x: ArrayLike, rank: Rank | ArrayLike, ranks: IndexArray, shape: tuple[int, ...]) -> Call:
    r"""Bring ``(x, rank)`` to the common form.

    Args:
        x: (\*batch, \*shape) for one rank, (k, \*batch, \*shape) for k of them.
        rank: An integer, or an integer array of shape (k,).
        ranks: All ranks in order.
        shape: The shape of one rank's variable.

    Raises:
        ArgumentError: x has another shape, or a rank is out of range.
        ArgumentTypeError: x or rank has a dtype that cannot be used.
    """
    rows, k = select(rank, ranks)
    flat, dtype = working_array(x)
    got = np.shape(x)
    lead = got[: len(got) - len(shape)]
    if got[len(lead) :] != shape or (k is not None and lead[:1] != (k,)):
        raise ArgumentError(_wrong_shape(got, shape, k))
    if k is None:
        items, batch = 1, math.prod(lead)
    else:
        items, batch = k, math.prod(lead[1:])
    # Two reshapes: the first drops whatever strides an axis of length one had, and with them
    # the chance that a matrix product takes another code path.
    X = flat.reshape(-1).reshape(items, batch, math.prod(shape))
    return Call(X, rows, lead, dtype, k is None)


def enter_point(x: ArrayLike, shape: tuple[int, ...]) -> Call:
    r"""Bring a point that is common to all ranks, (\*batch, \*shape), to the form (1, batch, dim).

    Raises:
        ArgumentError: x has another shape.
    """
    flat, dtype = working_array(x)
    got = np.shape(x)
    lead = got[: len(got) - len(shape)]
    if got[len(lead) :] != shape:
        raise ArgumentError(_wrong_shape(got, shape, None))
    X = flat.reshape(-1).reshape(1, math.prod(lead), math.prod(shape))
    return Call(X, slice(0, 1), lead, dtype, True)


def _check_range(rank: int, size: int) -> None:
    if not 0 <= rank < size:
        raise ArgumentError(f"rank={rank} is out of range: the ranks are 0 to {size - 1}")


def _wrong_shape(got: tuple[int, ...], shape: tuple[int, ...], k: int | None) -> str:
    if k is None:
        return f"x has shape {got}; expected {shape}, with any batch axes in front"
    return (
        f"x has shape {got}; expected {(k, *shape)} for {k} ranks: the rank axis in front, "
        "then any batch axes"
    )
