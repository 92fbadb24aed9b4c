"""Between the dtypes of arrays, the type that arithmetic uses, and bytes on the wire."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.errors import ArgumentTypeError
from dectool.kernels import (
    TILE as TILE,
    bfloat16_to_float32,
    float16_to_float32,
    float32_to_bfloat16,
    float32_to_float16,
    tiles as tiles,
)

Array = np.ndarray[Any, Any]
"""A NumPy array of any dtype and shape."""

ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
"""The dtypes that are compressed, and the bytes of one number of each."""

LARGEST = {"float16": 65504.0, "bfloat16": (2.0 - 2.0**-7) * 2.0**127}
"""The largest numbers of the dtypes whose arithmetic is done in a longer one."""


def check_dtype(dtype: str) -> None:
    """Refuse what cannot be compressed.

    Raises:
        ArgumentTypeError: Anything but float16, bfloat16, float32 and float64.
    """
    if dtype in ITEMSIZE:
        return
    if dtype.startswith("complex"):
        fix = "compress x.real and x.imag, or the view of x as reals, x.view(float)"
    else:
        fix = "cast x first, for example x.astype('float32') or x.float()"
    raise ArgumentTypeError(
        f"compress: x has dtype {dtype}, but takes {', '.join(ITEMSIZE)}; {fix}"
    )


def working(dtype: str) -> np.dtype[Any]:
    """Return the type of the arithmetic: float64 for float64, float32 for all that is smaller."""
    return np.dtype("<f8" if dtype == "float64" else "<f4")


def widen(buffer: Array, dtype: str) -> Array:
    """Return the numbers of a buffer in the type of the arithmetic; exact."""
    if dtype == "bfloat16":
        return bfloat16_to_float32(buffer)
    if dtype == "float16":
        return float16_to_float32(buffer)
    return buffer.astype(working(dtype), copy=False)


def narrow(values: Array, dtype: str) -> Array:
    """Undo :func:`widen`, rounding to nearest and ties to even; overflow becomes infinity."""
    if dtype == "bfloat16":
        return float32_to_bfloat16(values)
    if dtype == "float16":
        return float32_to_float16(values)
    with np.errstate(over="ignore"):
        return values.astype(np.dtype(dtype), copy=False)


def saturated(values: Array, dtype: str) -> Array:
    """Return the numbers with what is finite but too large for ``dtype`` cut to its largest.

    Example:
        >>> saturated(np.array([7e4, np.inf], np.float32), "float16")
        array([65504.,    inf], dtype=float32)
    """
    if dtype not in LARGEST:
        return values
    most = values.dtype.type(LARGEST[dtype])
    return np.where(np.isinf(values), values, np.clip(values, -most, most))


def to_bytes(values: Array, dtype: str) -> Array:
    """Return numbers of shape (..., k) as little-endian bytes, each in ``dtype``."""
    return raw(narrow(values, dtype))


def from_bytes(data: Array, dtype: str) -> Array:
    """Undo :func:`to_bytes`, into the type of the arithmetic."""
    stored = np.dtype("<u2") if dtype == "bfloat16" else np.dtype(dtype).newbyteorder("<")
    return widen(unraw(data, stored), dtype)


def raw(values: Array) -> Array:
    """Return an array of shape (..., k) as little-endian bytes of shape (..., k·itemsize)."""
    ordered = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    if not ordered.size:
        return np.empty((*values.shape[:-1], values.shape[-1] * values.itemsize), np.uint8)
    return ordered.view(np.uint8)


def unraw(data: Array, dtype: np.dtype[Any]) -> Array:
    """Undo :func:`raw`."""
    if not data.size:
        return np.empty((*data.shape[:-1], data.shape[-1] // dtype.itemsize), dtype)
    return np.ascontiguousarray(data).view(dtype)
