"""Arrays given by the user: what is accepted, and a copy per working precision."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dectool.errors import ArgumentError, ArgumentTypeError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IndexArray: TypeAlias = NDArray[np.integer[Any]]
Rows: TypeAlias = slice | IndexArray


def at(name: str, index: tuple[int, ...]) -> str:
    """Return ``name[i, j]``, the way an entry is named in messages.

    Example:
        >>> at("h", (2, 0))
        'h[2, 0]'
    """
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def real_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a contiguous float64 copy of ``values``; integers are converted, the rest refused.

    Raises:
        ArgumentTypeError: The values are not real numbers.
        ArgumentError: The rows have different lengths, or an entry is NaN or infinite.

    Example:
        >>> real_array([[1, 2]], "h")
        array([[1., 2.]])
    """
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"{name} must be a rectangular array of numbers: {error}") from error
    if raw.dtype.kind not in "fiu":
        raise ArgumentTypeError(
            f"{name} has dtype {raw.dtype}; it must hold real numbers, such as float64"
        )
    result = np.array(raw, dtype=np.float64, order="C")
    check_finite(result, name)
    result.flags.writeable = False
    return result


def check_finite(values: NDArray[Any], name: str) -> None:
    """Raise an error that names the first NaN or infinity by its position.

    Raises:
        ArgumentError: An entry is not finite.

    Example:
        >>> check_finite(np.zeros(3), "b")
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    index = tuple(np.argwhere(~finite)[0])
    count = int(values.size - finite.sum())
    raise ArgumentError(
        f"{at(name, index)} is {values[index]} ({count} of {values.size} entries are not finite); "
        "every entry must be a finite number: remove or replace it first"
    )


def positive_int(value: object, name: str, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``.

    Raises:
        ArgumentTypeError: It is not an integer.
        ArgumentError: It is below ``least``.

    Example:
        >>> positive_int(np.int64(3), "n")
        3
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"{name}={value!r} must be an integer of at least {least}")
    if value < least:
        raise ArgumentError(f"{name}={value} must be an integer of at least {least}")
    return int(value)


def real_number(value: object, name: str, *, least: float = 0.0, strict: bool = False) -> float:
    """Return ``value`` as a finite float of at least (``strict``: above) ``least``.

    Raises:
        ArgumentTypeError: It is not a real number.
        ArgumentError: It is NaN, infinite or too small.

    Example:
        >>> real_number(1, "l2")
        1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{name}={value!r} must be a real number")
    number = float(value)
    if not np.isfinite(number) or number < least or (strict and number == least):
        rule = f"above {least:g}" if strict else f"at least {least:g}"
        raise ArgumentError(f"{name}={number!r} must be a finite number {rule}")
    return number


class Casts:
    """A tuple of float64 arrays, and their copies in other precisions, made once each.

    Example:
        >>> Casts(np.ones(2)).at(np.dtype("f4"))[0].dtype
        dtype('float32')
    """

    def __init__(self, *arrays: FloatArray) -> None:
        self._by_dtype: dict[np.dtype[Any], tuple[FloatArray, ...]] = {np.dtype(np.float64): arrays}

    def at(self, dtype: DTypeLike) -> tuple[FloatArray, ...]:
        """Return the arrays in ``dtype``."""
        key = np.dtype(dtype)
        found = self._by_dtype.get(key)
        if found is None:
            found = tuple(a.astype(key) for a in self._by_dtype[np.dtype(np.float64)])
            self._by_dtype[key] = found
        return found

    def __getstate__(self) -> tuple[FloatArray, ...]:
        return self.at(np.float64)

    def __setstate__(self, arrays: tuple[FloatArray, ...]) -> None:
        self._by_dtype = {np.dtype(np.float64): arrays}
