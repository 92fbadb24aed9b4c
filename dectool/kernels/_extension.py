"""The C extension, where there is one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
"""A NumPy array of any dtype and shape."""

native: Any = None
"""The module, or ``None``: it was installed without a C compiler, or numbers are big-endian."""

try:
    from dectool.kernels import _native

    if sys.byteorder == "little" and hasattr(_native, "levels"):
        native = _native
except ImportError:
    pass

KINDS = {"float64": 0, "float32": 1, "float16": 2, "bfloat16": 3}
"""The dtypes that the extension knows, by the number it gives them."""


def contiguous(array: Array) -> Array:
    """Return the array, or a copy if its elements are not one after the other, in native order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def real_kind(x: Array) -> int:
    """Return the number of float64 or float32.

    Raises:
        TypeError: Another dtype.
    """
    kind = KINDS.get(x.dtype.name, 2)
    if kind > 1:
        raise TypeError(f"the kernels take float32 and float64, not {x.dtype.name}")
    return kind


def threads(numbers: int) -> int:
    """Return how many threads the kernels use for so many numbers.

    At most ``OMP_NUM_THREADS``, and 1 where the extension was built without OpenMP. Results do
    not depend on it.

    Example:
        >>> threads(100)
        1
    """
    return 1 if native is None else int(native.threads(numbers))
