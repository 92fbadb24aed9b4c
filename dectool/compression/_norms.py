"""Sums in one defined order, so that a row has the same bits alone and among others.

The order is that of :func:`dectool.kernels.row_sums`.
"""

from __future__ import annotations

import numpy as np

from dectool.compression._formats import Array, tiles
from dectool.kernels import row_sums


def mean_abs(x: Array) -> Array:
    """Return the mean of the absolute values of each row, in the dtype of ``x``, shape (n, 1).

    It is NaN where the row holds infinity or NaN.

    Example:
        >>> mean_abs(np.array([[1.0, -3.0], [0.0, np.inf]], np.float32))
        array([[ 2.], [nan]], dtype=float32)
    """
    unit = units(x)
    return mean_of(row_sums(x, unit, square=False), unit, x)


def mean_of(total: Array, unit: Array, x: Array) -> Array:
    """Return what :func:`mean_abs` does, from the sum of the absolute values of ``unit * x``."""
    with np.errstate(all="ignore"):
        return _fit(total / x.shape[1] / unit, x)


def norm(x: Array) -> Array:
    """Return the Euclidean norm of each row, in the dtype of ``x``, shape (n, 1).

    It is at least the largest absolute value, and NaN where the row holds infinity or NaN. Where
    it overflows it is the largest finite number.

    Example:
        >>> norm(np.array([[3.0, -4.0], [3e38, 3e38]], np.float32))
        array([[5.0000e+00], [3.4028e+38]], dtype=float32)
    """
    unit = units(x)
    total = row_sums(x, unit, square=True)
    with np.errstate(all="ignore"):
        return _fit(np.sqrt(total) / unit, x)


def largest(x: Array) -> Array:
    """Return the largest absolute value of each row, shape (n, 1); NaN for infinity or NaN."""
    found = _largest(x)
    return np.where(np.isfinite(found), found, x.dtype.type(np.nan))


def _fit(value: Array, x: Array) -> Array:
    most = np.finfo(x.dtype).max
    finite = np.isfinite(_largest(x)) if not np.isfinite(value).all() else np.True_
    kept = np.where(finite, np.minimum(value, most), np.nan)
    return kept.astype(x.dtype)


def _largest(x: Array) -> Array:
    found = np.zeros((len(x), 1), x.dtype)
    with np.errstate(invalid="ignore"):
        for rows, columns in tiles(*x.shape):
            most = np.abs(x[rows, columns]).max(axis=1, keepdims=True)
            found[rows] = np.maximum(found[rows], most)
    return found


def units(x: Array) -> Array:
    """Return for each row a power of two, mostly 1, that keeps sums of ``unit * x`` in range."""
    unit = np.ones((len(x), 1))
    if x.dtype == np.float64:
        found = _largest(x)
        extreme = np.isfinite(found) & (found > 0) & ((found > 2.0**480) | (found < 2.0**-480))
        unit[extreme] = np.exp2(-np.clip(np.frexp(found[extreme])[1], -1000, 1000))
    return unit
