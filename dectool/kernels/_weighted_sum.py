"""Weighted sums with one defined order and rounding, so that every backend gives the same bits.

The sum starts from +0.0 and runs left to right; weight times value is rounded before it is added.
Weights are rounded to the type of the arithmetic (float32 for half precision).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from dectool.kernels._casts import narrow, widen

_csr_matvecs: Callable[..., None] | None
try:
    from scipy.sparse import _sparsetools

    _csr_matvecs = _sparsetools.csr_matvecs
except (ImportError, AttributeError):  # it is private, so it may go
    _csr_matvecs = None

_native: Callable[..., None] | None
try:
    from dectool.kernels._native import weighted_sum as _extension

    _native = _extension
except ImportError:  # it was installed without a C compiler
    _native = None

_Array = np.ndarray[Any, Any]

_KINDS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3, "complex128": 0, "complex64": 1}
"""What the C kernels know, by the number they give it; a complex number is two reals."""

_MOST_TERMS = 64

_PLAIN = frozenset({"float64", "float32", "float128", "longdouble"})


def weighted_sum(weights: Sequence[float], buffers: Sequence[_Array], dtype: str) -> _Array:
    r"""Return :math:`\sum_k w_k b_k`, in the order given.

    Args:
        weights: Python floats, one per buffer; at least one.
        buffers: Arrays of one shape.
        dtype: The logical dtype of the buffers ("bfloat16" for uint16 bits).

    Returns:
        A new array of the buffers' shape and dtype.

    Example:
        >>> weighted_sum([0.5, 0.5], [np.array([1.0]), np.array([4.0])], "float64")
        array([2.5])
    """
    if len(weights) != len(buffers):
        raise ValueError(f"{len(weights)} weights were given for {len(buffers)} buffers")
    kind = _KINDS.get(dtype)
    if _native is not None and kind is not None and len(buffers) <= _MOST_TERMS:
        contiguous = True
        for buffer in buffers:
            contiguous = contiguous and buffer.flags.c_contiguous
        if contiguous:
            total = np.empty_like(buffers[0])
            _native(kind, total, tuple(weights), list(buffers))
            return total
    return _by_numpy(weights, buffers, dtype)


def _by_numpy(weights: Sequence[float], buffers: Sequence[_Array], dtype: str) -> _Array:
    """Return the same bits as the C kernel, for any dtype and memory order."""
    plain = dtype in _PLAIN
    first = buffers[0] if plain else widen(buffers[0], dtype)
    factors, zero = _scalars(tuple(weights), first.dtype)
    total = first * factors[0]
    total += zero
    product: _Array | None = None
    for index in range(1, len(buffers)):
        buffer = buffers[index] if plain else widen(buffers[index], dtype)
        if product is None:
            product = buffer * factors[index]
        else:
            np.multiply(buffer, factors[index], product)
        total += product
    return total if plain else narrow(total, dtype)


@lru_cache(maxsize=4096)
def _scalars(weights: tuple[float, ...], dtype: np.dtype[Any]) -> tuple[list[_Array], _Array]:
    """Return the weights and zero as 0-d arrays: a float would be converted in every product."""
    return [np.array(weight, dtype) for weight in weights], np.array(0.0, dtype)


def scale(buffer: _Array, weight: float | _Array, dtype: str) -> _Array:
    """Return ``weight`` times the buffer, rounded once to its dtype.

    Args:
        buffer: Array of shape (..., m).
        weight: A number, or an array that broadcasts against the buffer from the front.
        dtype: Logical dtype of the buffer.

    Example:
        >>> scale(np.array([2.0]), 0.5, "float64")
        array([1.])
    """
    wide = widen(buffer, dtype)
    factor = weight if isinstance(weight, float) else np.asarray(weight, wide.dtype)
    return narrow(wide * factor, dtype)


def add_scaled(into: _Array, buffer: _Array, weight: float, dtype: str) -> None:
    """Add ``weight`` times the buffer to ``into``, in place; the product is rounded first.

    Args:
        into: Array of shape (m,).
        buffer: Array of shape (m,).
        weight: A Python float.
        dtype: Logical dtype of both; halves are added in float32 and rounded once.

    Example:
        >>> total = np.array([1.0])
        >>> add_scaled(total, np.array([4.0]), 0.5, "float64")
        >>> total
        array([3.])
    """
    if dtype.startswith("complex"):
        into, buffer, dtype = _parts(into), _parts(buffer), "float64"
    if dtype not in _PLAIN:
        wide = widen(buffer, dtype)
        np.copyto(into, narrow(widen(into, dtype) + wide * np.array(weight, wide.dtype), dtype))
    elif weight == 1.0:
        into += buffer
    else:
        into += buffer * np.array(weight, buffer.dtype)


def _parts(buffer: _Array) -> _Array:
    """Return the real and imaginary parts one after the other; a view where memory allows."""
    return np.ascontiguousarray(buffer).view(buffer.real.dtype)


def divide(buffer: _Array, count: int, dtype: str) -> _Array:
    """Return the buffer divided by ``count``, rounded once to its dtype.

    Example:
        >>> divide(np.array([3.0]), 2, "float64")
        array([1.5])
    """
    if dtype in _PLAIN:
        return buffer / count
    return narrow(widen(buffer, dtype) / count, dtype)


_COMBINE: dict[str, Callable[..., _Array]] = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}


def combine(op: str, left: _Array, right: _Array, dtype: str) -> _Array:
    """Return ``left`` and ``right`` reduced element by element; halves are added in float32.

    Args:
        op: "sum", "mean" (the sum; the caller divides), "max", "min" or "prod".
        left: Array.
        right: Array of the same shape.
        dtype: Logical dtype of both.

    Example:
        >>> combine("max", np.array([1, 5]), np.array([2, 3]), "int64")
        array([2, 5])
    """
    if dtype in _PLAIN:
        return _COMBINE[op](left, right)
    if op == "prod" and dtype.startswith("complex"):
        return _complex_product(left, right)
    return narrow(_COMBINE[op](widen(left, dtype), widen(right, dtype)), dtype)


def _complex_product(left: _Array, right: _Array) -> _Array:
    """Multiply with every product rounded; NumPy's own may fuse some, depending on position."""
    product = np.empty_like(left)
    product.real = left.real * right.real - left.imag * right.imag
    product.imag = left.real * right.imag + left.imag * right.real
    return product


def sparse_product(matrix: sp.csr_array, stacked: _Array, dtype: str) -> _Array:
    """Return ``matrix @ stacked`` with the bits that :func:`weighted_sum` gives for each row.

    Args:
        matrix: Shape (n, k), float; each row's entries are summed in the order they are stored.
        stacked: Shape (k, m).
        dtype: Logical dtype of ``stacked``.

    Returns:
        Array of shape (n, m) and the dtype of ``stacked``.

    Example:
        >>> sparse_product(sp.csr_array([[0.5, 0.5]]), np.array([[1.0], [4.0]]), "float64")
        array([[2.5]])
    """
    plain = dtype in _PLAIN
    wide = stacked if plain else widen(stacked, dtype)
    if not wide.flags.c_contiguous:
        wide = np.ascontiguousarray(wide)
    if matrix.dtype != wide.dtype:
        matrix = sp.csr_array(
            (matrix.data.astype(wide.dtype), matrix.indices, matrix.indptr), shape=matrix.shape
        )
    product: _Array = _times(matrix, wide) if _rounds_products() else _by_columns(matrix, wide)
    return product if plain else narrow(product, dtype)


def _times(matrix: sp.csr_array, wide: _Array) -> _Array:
    """Return ``matrix @ wide`` without SciPy's checks, which take longer than a small product."""
    if _csr_matvecs is None:
        checked: _Array = matrix @ wide
        return checked
    (rows, columns), (given, width) = matrix.shape, wide.shape
    if given != columns:
        raise ValueError(f"matrix has {columns} columns, but the array {given} rows")
    product = np.zeros((rows, width), wide.dtype)
    _csr_matvecs(
        rows, columns, width, matrix.indptr, matrix.indices, matrix.data, wide.ravel(),
        product.ravel(),
    )  # fmt: skip
    return product


@cache
def _rounds_products() -> bool:
    """Tell whether SciPy was compiled without fused multiply-add, which would skip a rounding."""
    tiny = 2.0**-30
    matrix = sp.csr_array(np.array([[1.0, 1.0 + tiny]]))
    inexact = np.array([[-(1.0 + 2 * tiny)] * 8, [1.0 + tiny] * 8])
    rounded = -(1.0 + 2 * tiny) + float((1.0 + tiny) * (1.0 + tiny))
    both = [_times(matrix, inexact), _times(matrix, np.ascontiguousarray(inexact[:, :1]))]
    return all(bool((result == rounded).all()) for result in both)


def _by_columns(matrix: sp.csr_array, wide: _Array) -> _Array:
    """Do the same product with NumPy, one stored entry of every row at a time."""
    counts = np.diff(matrix.indptr)
    total = np.zeros((matrix.shape[0], wide.shape[1]), wide.dtype)
    for k in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > k)
        entry = matrix.indptr[rows] + k
        total[rows] += matrix.data[entry, None] * wide[matrix.indices[entry]]
    return total
