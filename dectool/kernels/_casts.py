"""Conversions between bfloat16 bits and float32, and the arithmetic type of each dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dectool.kernels import _extension
from dectool.kernels._extension import KINDS, contiguous
from dectool.kernels._room import empty
from dectool.kernels._tiles import TILE

_Array = np.ndarray[Any, Any]


def bfloat16_to_float32(bits: _Array, out: _Array | None = None) -> _Array:
    """Return the float32 values of bfloat16 ``bits`` (uint16); exact.

    Args:
        bits: Array of any shape.
        out: Where to write them, if not to a new array; contiguous.

    Example:
        >>> float(bfloat16_to_float32(np.array([0x3FC0], np.uint16))[0])
        1.5
    """
    return _cast("bfloat16", bits, np.dtype(np.float32), out, _widen_bfloat16)


def float32_to_bfloat16(values: _Array, out: _Array | None = None) -> _Array:
    """Round float32 ``values`` to bfloat16 bits (uint16), to nearest and ties to even.

    A NaN stays a quiet NaN with its sign. ``out`` is as in :func:`bfloat16_to_float32`.

    Example:
        >>> hex(float32_to_bfloat16(np.array([1.5], np.float32))[0])
        '0x3fc0'
    """
    return _cast("bfloat16", values, np.dtype(np.uint16), out, _narrow_bfloat16)


def float16_to_float32(halves: _Array, out: _Array | None = None) -> _Array:
    """Return float16 numbers as float32; exact. ``out`` is as in :func:`bfloat16_to_float32`.

    Example:
        >>> float16_to_float32(np.array([1.5], np.float16))
        array([1.5], dtype=float32)
    """
    return _cast("float16", halves, np.dtype(np.float32), out, _widen_float16)


def float32_to_float16(values: _Array, out: _Array | None = None) -> _Array:
    """Round float32 ``values`` to float16, to nearest and ties to even.

    What is too large becomes infinity; a NaN stays a quiet NaN with its sign. ``out`` is as in
    :func:`bfloat16_to_float32`.

    Example:
        >>> float32_to_float16(np.array([1.0001, 7e4], np.float32))
        array([ 1., inf], dtype=float16)
    """
    return _cast("float16", values, np.dtype(np.float16), out, _narrow_float16)


def _cast(
    half: str,
    given: _Array,
    wanted: np.dtype[Any],
    out: _Array | None,
    by_numpy: Callable[[_Array], _Array],
) -> _Array:
    expected = np.dtype(_STORED[half] if wanted == np.float32 else np.float32)
    given = given.astype(given.dtype.newbyteorder("="), copy=False)
    if given.dtype != expected:
        raise TypeError(f"the cast takes {expected}, not {given.dtype}")
    if out is None:
        out = empty(given.shape, wanted)
    elif out.shape != given.shape or out.dtype != wanted or not out.flags.c_contiguous:
        raise TypeError(f"out must be a contiguous array of {wanted} and shape {given.shape}")
    if _extension.native is None:
        flat, target = contiguous(given).reshape(-1), out.reshape(-1)
        for start in range(0, given.size, TILE):
            target[start : start + TILE] = by_numpy(flat[start : start + TILE])
    else:
        _extension.native.cast(KINDS[half], contiguous(given), out)
    return out


_STORED = {"bfloat16": "uint16", "float16": "float16"}


def _widen_bfloat16(bits: _Array) -> _Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrow_bfloat16(values: _Array) -> _Array:
    bits = values.view(np.uint32)
    rounding = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    with np.errstate(over="ignore"):
        rounded = ((bits + rounding) >> np.uint32(16)).astype(np.uint16)
    quiet = (bits >> np.uint32(16)).astype(np.uint16) | np.uint16(0x40)
    return np.where(np.isnan(values), quiet, rounded)


def _widen_float16(halves: _Array) -> _Array:
    return halves.astype(np.float32)


def _narrow_float16(values: _Array) -> _Array:
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    missing = np.isnan(values)
    if missing.any():
        # What becomes of the other bits of a NaN depends on the build of NumPy.
        bits = values.view(np.uint32)[missing]
        kept = ((bits >> np.uint32(16)) & np.uint32(0x8000)) | (
            (bits >> np.uint32(13)) & np.uint32(0x3FF)
        )
        halves.view(np.uint16)[missing] = kept | np.uint32(0x7E00)
    return halves


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
