"""The kinds of arrays that every operation takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -(2.0**-1060), 2.0**-140, 1e300, -65504.0)
"""Values that a slip in the arithmetic would change: signed zeros, infinities, subnormals."""


class Kind(NamedTuple):
    """A library and a dtype.

    Attributes:
        name: For messages.
        make: Turns a float64 or complex128 NumPy array into one of this kind.
        is_complex: Whether it holds complex numbers.
    """

    name: str
    make: Callable[[np.ndarray[Any, Any]], Any]
    is_complex: bool = False


def numpy_kind(dtype: str) -> Kind:
    """Return the kind of NumPy arrays of a dtype; "bfloat16" is that of ml_dtypes."""

    def make(x: np.ndarray[Any, Any]) -> Any:
        if dtype == "bfloat16":
            import ml_dtypes

            return x.astype(ml_dtypes.bfloat16)
        return x.astype(dtype)

    return Kind(f"numpy {dtype}", make, dtype.startswith("complex"))


def torch_kind(dtype: str) -> Kind:
    """Return the kind of PyTorch tensors of a dtype, on the CPU."""

    def make(x: np.ndarray[Any, Any]) -> Any:
        import torch

        return torch.from_numpy(np.array(x)).to(getattr(torch, dtype))

    return Kind(f"torch {dtype}", make, dtype.startswith("complex"))


def averageable() -> list[Kind]:
    """Return the kinds that can be averaged; those of PyTorch and ml_dtypes where installed."""
    dtypes = ["float64", "float32", "float16", "complex128", "complex64"]
    kinds = [numpy_kind(dtype) for dtype in [*dtypes, *_with("ml_dtypes", "bfloat16")]]
    return kinds + [torch_kind(dtype) for dtype in _with("torch", *dtypes, "bfloat16")]


def whole() -> list[Kind]:
    """Return kinds of integers."""
    dtypes = ["int64", "int32", "int8", "uint8", "uint64"]
    kinds = [numpy_kind(dtype) for dtype in dtypes]
    return kinds + [torch_kind(dtype) for dtype in _with("torch", "int64", "int32", "uint8")]


def _with(module: str, *dtypes: str) -> tuple[str, ...]:
    try:
        __import__(module)
    except ImportError:
        return ()
    return dtypes


def values(
    kind: Kind, n: int, shape: tuple[int, ...], seed: int, *, special: bool = False
) -> list[Any]:
    """Return an array of the kind for each of ``n`` ranks.

    Args:
        kind: What to make.
        n: Number of ranks.
        shape: Shape of each array.
        seed: The values follow from it.
        special: Whether some entries are infinite, NaN, subnormal or signed zeros.
    """
    rng = np.random.default_rng([seed, n])
    with np.errstate(all="ignore"):
        return [kind.make(_draw(rng, shape, kind.is_complex, special)) for _ in range(n)]


def _draw(
    rng: np.random.Generator, shape: tuple[int, ...], is_complex: bool, special: bool
) -> np.ndarray[Any, Any]:
    x = np.asarray(rng.normal(size=shape))
    if special:
        x = np.where(rng.random(shape) < 0.5, rng.choice(SPECIAL, size=shape), x)
    return x + 1j * _draw(rng, shape, False, special) if is_complex else x


def small_whole_numbers(kind: Kind, n: int, shape: tuple[int, ...], seed: int) -> list[Any]:
    """Return arrays of numbers from 1 to 4, which every dtype adds and multiplies exactly."""
    rng = np.random.default_rng([seed, n])
    return [kind.make(rng.integers(1, 5, shape).astype(np.float64)) for _ in range(n)]
