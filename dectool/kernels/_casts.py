"""Conversions between bfloat16 bits and float32, and the arithmetic type of each dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]


def bfloat16_to_float32(bits: _Array) -> _Array:
    """Return the float32 values of bfloat16 ``bits`` (uint16); exact.

    Example:
        >>> float(bfloat16_to_float32(np.array([0x3FC0], np.uint16))[0])
        1.5
    """
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def float32_to_bfloat16(values: _Array) -> _Array:
    """Round float32 ``values`` to bfloat16 bits (uint16), to nearest and ties to even.

    A NaN stays a quiet NaN with its sign.

    Example:
        >>> hex(float32_to_bfloat16(np.array([1.5], np.float32))[0])
        '0x3fc0'
    """
    bits = values.view(np.uint32)
    rounding = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    with np.errstate(over="ignore"):
        rounded = ((bits + rounding) >> np.uint32(16)).astype(np.uint16)
    quiet = (bits >> np.uint32(16)).astype(np.uint16) | np.uint16(0x40)
    return np.where(np.isnan(values), quiet, rounded)


def is_half(dtype: str) -> bool:
    """Tell whether arithmetic on this logical dtype is done in float32."""
    return dtype in ("float16", "bfloat16") or dtype.startswith("float8")


def widen(buffer: _Array, dtype: str) -> _Array:
    """Return the buffer in the type that arithmetic uses: real, and at least float32.

    Complex numbers become pairs of reals, which a real weight scales exactly alike.
    """
    if dtype == "bfloat16":
        return bfloat16_to_float32(buffer)
    if is_half(dtype):
        return buffer.astype(np.float32)
    if buffer.dtype.kind == "c":
        return np.ascontiguousarray(buffer).view(buffer.real.dtype)
    return buffer


def narrow(values: _Array, dtype: str) -> _Array:
    """Undo :func:`widen`, rounding once."""
    if dtype == "bfloat16":
        return float32_to_bfloat16(values)
    if is_half(dtype):
        return values.astype(_numpy_dtype(dtype))
    if dtype.startswith("complex"):
        return values.view(np.dtype(dtype))
    return values


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    if dtype.startswith("float8"):
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
        return extended
    return np.dtype(dtype)
