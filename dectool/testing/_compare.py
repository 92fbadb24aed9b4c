"""Comparing bit for bit what programs return."""

from __future__ import annotations

from typing import Any

import numpy as np


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return an array of any kind as a NumPy array of the same dtype (bfloat16 by ml_dtypes)."""
    if hasattr(x, "detach"):
        import torch

        if x.dtype == torch.bfloat16:
            import ml_dtypes

            bits = x.detach().contiguous().view(torch.uint16).numpy()
            return np.asarray(bits.view(ml_dtypes.bfloat16))
        return np.asarray(x.detach().resolve_conj().numpy())
    return np.asarray(x)


def describe_kind(x: Any) -> str:
    """Return the library, dtype and device that an array must keep; numbers count as NumPy."""
    if hasattr(x, "detach"):
        return f"torch {x.dtype} on {x.device.type}"
    return f"numpy {np.asarray(x).dtype}"


def assert_same_bits(got: Any, expected: Any, where: str = "") -> None:
    """Require the same structure, kind of array, dtype, shape and bits.

    The sign of zero counts. A NaN equals a NaN: the bits of its payload, which IEEE 754 leaves
    open, do not.

    Args:
        got: An array or number, or nested lists, tuples and dicts of them.
        expected: What it must be.
        where: What was done, for the message.

    Raises:
        AssertionError: They differ; the message says where.
    """
    if isinstance(expected, dict):
        assert isinstance(got, dict), f"{where}: a dict became a {type(got).__name__}"
        assert list(got) == list(expected), f"{where}: keys {list(got)}, not {list(expected)}"
        for key in expected:
            assert_same_bits(got[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert type(got) is type(expected), f"{where}: {type(got)}, not {type(expected)}"
        assert len(got) == len(expected), f"{where}: {len(got)} items, not {len(expected)}"
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same_bits(one, other, f"{where}[{index}]")
    elif expected is None or isinstance(expected, str):
        assert got == expected, f"{where}: {got!r}, not {expected!r}"
    else:
        _assert_same_array(got, expected, where)


def _assert_same_array(got: Any, expected: Any, where: str) -> None:
    kinds = describe_kind(got), describe_kind(expected)
    assert kinds[0] == kinds[1], f"{where}: got {kinds[0]}, not {kinds[1]}"
    shapes = tuple(np.shape(got)), tuple(np.shape(expected))
    assert shapes[0] == shapes[1], f"{where}: got shape {shapes[0]}, not {shapes[1]}"
    if kinds[1].endswith("on meta"):
        return
    one, other = to_numpy(got), to_numpy(expected)
    same = _bits(one) == _bits(other)
    assert same, f"{where}: got {_shown(one)}, not {_shown(other)}, bit for bit"


def _shown(x: np.ndarray[Any, Any]) -> str:
    return np.array2string(x, threshold=20, floatmode="unique", separator=", ")


def _bits(x: np.ndarray[Any, Any]) -> bytes:
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag])
    if x.dtype.kind not in "iub":
        x = np.where(np.isnan(x), np.full_like(x, np.nan), x)
    return x.tobytes()
