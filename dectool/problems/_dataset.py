"""A data set: features, labels, and the names that belong to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import IndexArray, real_array
from dectool.problems._labels import label_array


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and labels of m samples.

    Args:
        X: Features, (m, d); a float64 copy is kept, read-only.
        y: Labels or targets, (m,).
        name: Name of the data.
        classes: Names of the classes in the order of the sorted labels; empty for regression.

    Raises:
        ArgumentError: The shapes do not match, or an entry is not finite.

    Example:
        >>> Dataset([[1.0, 2.0], [3.0, 4.0]], [0, 1], "tiny", ("no", "yes"))
        Dataset(tiny, 2 samples, 2 features, classes: no, yes)
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    name: str = "data"
    classes: tuple[str, ...] = ()

    def __init__(
        self, X: ArrayLike, y: ArrayLike, name: str = "data", classes: tuple[str, ...] = ()
    ) -> None:
        features = real_array(X, "X")
        if features.ndim != 2 or features.size == 0:
            raise ArgumentError(
                f"X has shape {features.shape}; it must be (samples, features), not empty"
            )
        labels = np.array(label_array(y, features.shape[0], rows_of="X"))
        labels.flags.writeable = False
        for field, value in (("X", features), ("y", labels), ("name", name)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "classes", tuple(classes))

    def __repr__(self) -> str:
        m, d = self.X.shape
        kinds = f"classes: {', '.join(self.classes)}" if self.classes else "no class names"
        return f"Dataset({self.name}, {m} samples, {d} features, {kinds})"

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: int | slice | IndexArray | list[int]) -> Dataset:
        """Return some of the samples.

        Args:
            rows: The first so many (an integer), a slice, indices, or a mask (m,).

        Raises:
            ArgumentError: There are fewer samples, or none is selected.

        Example:
            >>> len(Dataset([[1.0], [2.0], [3.0]], [0, 1, 0]).take(2))
            2
        """
        if isinstance(rows, int | np.integer):
            if not 1 <= rows <= len(self):
                raise ArgumentError(f"rows={rows} is out of range: {self.name} has {len(self)}")
            rows = slice(int(rows))
        try:
            X, y = self.X[rows], self.y[rows]
        except IndexError as error:
            raise ArgumentError(f"rows does not fit {self.name}: {error}") from error
        if len(X) == 0:
            raise ArgumentError(f"rows={rows!r} selects no sample of {self.name}")
        return replace(self, X=X, y=y)

    def standardized(self) -> Dataset:
        """Return the data with every feature shifted to mean 0 and scaled to deviation 1.

        Mean and standard deviation (ddof 0) are those of the samples here; take the samples
        first. A constant feature becomes 0.

        Example:
            >>> Dataset([[1.0, 7.0], [3.0, 7.0]], [0, 1]).standardized().X.tolist()
            [[-1.0, 0.0], [1.0, 0.0]]
        """
        constant = np.ptp(self.X, axis=0) == 0
        scale = np.where(constant, 1.0, self.X.std(axis=0))
        centred = np.where(constant, 0.0, self.X - self.X.mean(axis=0))
        return replace(self, X=centred / scale)
