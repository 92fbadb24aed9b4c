"""What logistic and softmax regression share: classes and accuracy."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import FloatArray
from dectool.problems._calling import enter_point
from dectool.problems._data_problem import DataProblem
from dectool.problems._dataset import Dataset
from dectool.problems._shards import Samples


class Classifier(DataProblem):
    """A data problem whose targets are classes."""

    _classes: NDArray[Any]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes in ascending order, as in y."""
        return tuple(self._classes.tolist())

    def accuracy(self, x: ArrayLike, data: Dataset | None = None) -> Any:
        r"""Return the share of samples that x classifies rightly.

        Args:
            x: Point of shape (\*batch, \*shape).
            data: Samples to classify, with the features of A (no bias column); None for those
                of the problem.

        Returns:
            Float64 array of shape (\*batch), from 0 to 1; a scalar if that is empty.

        Raises:
            ArgumentError: x has another shape, or data other features or classes.

        Example:
            >>> from dectool import problems
            >>> p = problems.LogisticRegression([[-2.0], [-1.0], [1.0]], [0, 0, 1], n=1, l2=0.1)
            >>> p.accuracy(p.optimum)
            np.float64(1.0)
        """
        call = enter_point(x, self._shape)
        dtype = call.X.dtype
        s = self._pool(dtype) if data is None else self._one_shard(data, dtype)
        counted = s.w[:, None] > 0
        right = (self._hits(call.X, s) & counted).sum(axis=-1) / counted.sum(axis=-1)
        return call._replace(dtype=np.dtype(np.float64)).answer(right, ())

    def _one_shard(self, data: Dataset, dtype: DTypeLike) -> Samples:
        if data.X.shape[1] != self._features:
            raise ArgumentError(
                f"data has {data.X.shape[1]} features; the problem was made with {self._features}"
            )
        absent = ~np.isin(data.y, self._classes)
        if absent.any():
            raise ArgumentError(
                f"data holds the label {data.y[absent].tolist()[0]!r}, which the problem has not; "
                f"its classes are {self.classes}"
            )
        A, t, w = self._prepare(data.X, data.y)
        return Samples(
            A[None].astype(dtype),
            t[None].astype(dtype),
            w[None].astype(dtype),
        )

    @abstractmethod
    def _hits(self, X: FloatArray, s: Samples) -> NDArray[np.bool_]:
        """Return which samples are classified rightly, (k, batch, m)."""

    def _solve(self) -> NDArray[np.float64]:
        x = super()._solve()
        s = self._pool(np.float64)
        counted = s.w > 0
        if self._l2 == 0.0 and self._hits(x.reshape(1, 1, -1), s)[0, 0][counted[0]].all():
            raise ArgumentError(
                f"l2=0 and the classes of {self.name} can be separated, so the loss has no "
                "minimiser: use l2 > 0"
            )
        return x
