"""Class labels as numbers that losses can use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool._text import listing
from dectool.errors import ArgumentError, DataError
from dectool.problems._arrays import check_finite


def label_array(y: ArrayLike, samples: int, rows_of: str = "A") -> NDArray[Any]:
    """Return y as a one-dimensional array, one label per sample.

    Raises:
        ArgumentError: y has another shape, or a NaN.

    Example:
        >>> label_array([1, 0], 2)
        array([1, 0])
    """
    labels = np.asarray(y)
    if labels.shape != (samples,):
        raise ArgumentError(
            f"y has shape {labels.shape}; {rows_of} has {samples} rows, so it must be ({samples},)"
        )
    if labels.dtype.kind == "f":
        check_finite(labels, "y")
    return labels


def found_classes(labels: NDArray[Any], least: int = 2) -> NDArray[Any]:
    """Return the sorted classes in the labels.

    Raises:
        DataError: There are fewer than ``least`` classes.

    Example:
        >>> found_classes(np.array([3, 1, 3]))
        array([1, 3])
    """
    known = np.unique(labels)
    if known.size < least:
        raise DataError(
            f"y holds {known.size} class ({listing(known.tolist())}) in {labels.size} samples; "
            f"classification needs at least {least}: take samples of other classes too"
        )
    return known


def signs(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return -1 for the first of two classes and +1 for the second.

    Example:
        >>> signs(np.array([0, 1, 1]), np.array([0, 1]))
        array([-1.,  1.,  1.])
    """
    return np.where(labels == classes[1], 1.0, -1.0)


def one_hot(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return rows with a one in the column of the label's class.

    Example:
        >>> one_hot(np.array([5, 2]), np.array([2, 5]))
        array([[0., 1.],
               [1., 0.]])
    """
    return np.asarray(labels[:, None] == classes[None, :], dtype=np.float64)
