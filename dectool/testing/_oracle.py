"""What operations must return, from their definitions alone: loops over ranks and entries.

Nothing here uses the kernels or the communicator, so that a mistake there cannot hide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool.testing._compare import to_numpy

Array = np.ndarray[Any, Any]


def weighted_sum(weights: Sequence[float], arrays: Sequence[Any]) -> Array:
    """Return the weighted sum, entry by entry: from +0.0, left to right, rounded at each step.

    Half precision is summed in float32 and rounded at the end; complex numbers by parts.
    """
    columns = [to_numpy(x) for x in arrays]
    dtype = columns[0].dtype
    if dtype.kind == "c":
        real = weighted_sum(weights, [x.real for x in columns])
        imag = weighted_sum(weights, [x.imag for x in columns])
        together = np.empty(columns[0].shape, dtype)
        together.real, together.imag = real, imag
        return together
    wide = np.float32 if dtype.itemsize == 2 else dtype.type
    result = np.empty(columns[0].shape, dtype)
    with np.errstate(all="ignore"):
        for index in np.ndindex(result.shape):
            total = wide(0.0)
            for weight, x in zip(weights, columns, strict=True):
                total = wide(total + wide(wide(weight) * wide(x[index])))
            result[index] = np.asarray(total).astype(dtype)
    return result


def scaled(factor: float, x: Any) -> Array:
    """Return the factor times the array, rounded once."""
    array = to_numpy(x)
    wide = np.dtype(np.float32 if array.dtype.itemsize == 2 else array.real.dtype)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c":
            parts = np.empty(array.shape, array.dtype)
            parts.real, parts.imag = array.real * wide.type(factor), array.imag * wide.type(factor)
            return parts
        return np.asarray(array.astype(wide) * wide.type(factor)).astype(array.dtype)


def neighbor_average(W: Array, xs: Sequence[Any], rank: int) -> Array:
    """Return row ``rank`` of W X: the sum over the ranks of non-zero weight, ascending."""
    sources = [j for j in range(len(xs)) if W[rank, j] != 0.0]
    return weighted_sum([float(W[rank, j]) for j in sources], [xs[j] for j in sources])


def in_neighbors(W: Array, rank: int) -> list[int]:
    """Return the ranks that ``rank`` hears, ascending, itself left out."""
    return [j for j in range(len(W)) if j != rank and W[rank, j] != 0.0]


def out_neighbors(W: Array, rank: int) -> list[int]:
    """Return the ranks that hear ``rank``, ascending, itself left out."""
    return in_neighbors(W.T, rank)


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: a + b,
    "max": lambda a, b: a if a >= b else b,
    "min": lambda a, b: a if a <= b else b,
    "prod": lambda a, b: a * b,
}
"""The reductions of two numbers (a mean is divided in the end)."""


def reduced(op: str, xs: Sequence[Any]) -> Array:
    """Return the reduction over all arrays, entry by entry, of numbers whose sums are exact."""
    columns = [to_numpy(x) for x in xs]
    result = np.empty(columns[0].shape, columns[0].dtype)
    for index in np.ndindex(result.shape):
        total = columns[0][index].item()
        for x in columns[1:]:
            total = REDUCTIONS[op](total, x[index].item())
        if op == "mean":
            total = _divided(total, len(columns), result.dtype)
        result[index] = total
    return result


def _divided(total: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """Divide in the arithmetic of the dtype, so that it rounds once there."""
    if isinstance(total, complex):
        parts = np.dtype(f"f{dtype.itemsize // 2}").type
        return complex(parts(total.real) / parts(count), parts(total.imag) / parts(count))
    wide = np.float32 if dtype.itemsize == 2 else dtype.type
    return np.asarray(wide(total) / wide(count)).astype(dtype)
