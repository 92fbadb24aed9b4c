"""Stochastic levels of a norm, the codes of :class:`dectool.compression.QSGD`."""

from __future__ import annotations

import numpy as np

from dectool.kernels import _extension
from dectool.kernels._extension import Array, contiguous, real_kind


def quantise_levels(x: Array, norm: Array, levels: int, uniform: Array) -> Array:
    r"""Return the codes ``levels + sign * level`` of ``x``.

    The level is :math:`\lfloor a \rfloor + [u < a - \lfloor a \rfloor]`, at most ``levels``, with
    :math:`a = |x| / norm \cdot levels`; it is 0 where the norm is not above 0.

    Args:
        x: Shape (n, count), float32 or float64.
        norm: Shape (n, 1) or (n, count), in the dtype of ``x``; at least the magnitudes.
        levels: At most 32767.
        uniform: Numbers in [0, 1), of the shape and dtype of ``x``.

    Returns:
        ``uint8``, or ``uint16`` for more than 127 levels.

    Example:
        >>> x, u = np.array([[0.5, -1.0]]), np.array([[0.9, 0.9]])
        >>> quantise_levels(x, np.array([[1.0]]), 4, u)
        array([[6, 0]], dtype=uint8)
    """
    kind = np.uint8 if levels <= 127 else np.uint16
    if _extension.native is None or not x.size:
        return _quantise_by_numpy(x, norm, levels, uniform).astype(kind)
    codes = np.empty(x.shape, kind)
    _extension.native.levels(
        real_kind(x), contiguous(x), contiguous(norm), *x.shape, levels, contiguous(uniform), codes
    )
    return codes


def dequantise_levels(codes: Array, norm: Array, levels: int, out: Array) -> None:
    """Write the numbers that codes stand for to ``out``: (code - levels) / levels * norm.

    Args:
        codes: Shape (n, count), integers.
        norm: Shape (n, 1) or (n, count).
        levels: As in :func:`quantise_levels`.
        out: Shape (n, count), in the dtype of ``norm``.

    Example:
        >>> out = np.empty((1, 2))
        >>> dequantise_levels(np.array([[6, 0]], np.uint8), np.array([[1.0]]), 4, out)
        >>> out
        array([[ 0.5, -1. ]])
    """
    small = codes.dtype in (np.uint8, np.uint16)
    if _extension.native is not None and small and out.size and out.flags.c_contiguous:
        _extension.native.levels(
            real_kind(out), out, contiguous(norm), *out.shape, levels, None, contiguous(codes)
        )
        return
    kind = norm.dtype.type
    out[...] = codes
    out -= kind(levels)
    out /= kind(levels)
    out *= norm


def _quantise_by_numpy(x: Array, norm: Array, levels: int, uniform: Array) -> Array:
    kind = x.dtype.type
    with np.errstate(all="ignore"):
        level: Array = np.abs(x)
        level /= norm
        level *= kind(levels)
        low = np.floor(level)
        level -= low
        low += uniform < level
        np.minimum(low, kind(levels), out=low)
        np.copyto(low, kind(0), where=~(norm > 0))
        np.copysign(low, x, out=low)
        low += kind(levels)
    return low
