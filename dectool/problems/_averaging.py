"""Averaging as an optimization problem."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import Casts, FloatArray, Rows, real_array
from dectool.problems._problem import Curvature, Problem


@final
class Averaging(Problem):
    r"""Find the mean of the ranks' values.

    .. math:: f_i(x) = \tfrac12 \|x - v_i\|^2, \qquad x^* = \frac1n \sum_i v_i

    where :math:`v_i` is ``values[i]``. Rank i starts from its own value, so that averaging
    alone (gossip) solves the problem without any gradient.

    Args:
        values: One value per rank, (n, \*shape), finite.

    Raises:
        ArgumentError: ``values`` is empty, ragged or not finite.
        ArgumentTypeError: ``values`` is not numeric.

    Example:
        >>> from dectool import problems
        >>> p = problems.Averaging([[1.0, 0.0], [3.0, 2.0]])
        >>> p.optimum, p.initial(1)
        (array([2., 1.]), array([3., 2.]))
    """

    def __init__(self, values: ArrayLike) -> None:
        v = real_array(values, "values")
        if v.ndim == 0 or v.size == 0:
            raise ArgumentError(
                f"values has shape {v.shape}; it must be (n, *shape) with one value per rank"
            )
        super().__init__(v.shape[0], v.shape[1:], "Averaging")
        self._v = Casts(v.reshape(self.size, self.dim))

    def __repr__(self) -> str:
        return f"Averaging(n={self.size}, shape={self.shape})"

    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        gap = self._grads(X, rows)
        total: FloatArray = 0.5 * (gap * gap).sum(axis=-1)
        return total

    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        (v,) = self._v.at(X.dtype)
        return X - v[rows][:, None]

    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        return np.broadcast_to(np.eye(self.dim, dtype=X.dtype), (*X.shape, self.dim)).copy()

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        (v,) = self._v.at(np.float64)
        return np.asarray((Y + v[rows][:, None]) / (1.0 + weight)[:, None, None])

    def _starts(self, rows: Rows) -> NDArray[np.float64]:
        (v,) = self._v.at(np.float64)
        return np.array(v[rows], dtype=np.float64)

    def _curvature(self) -> Curvature:
        return Curvature(L=1.0, L_max=1.0, mu=1.0, mu_min=1.0)

    def _solve(self) -> NDArray[np.float64]:
        (v,) = self._v.at(np.float64)
        return np.asarray(v.mean(axis=0), dtype=np.float64)

    def _gradient(self, X: FloatArray) -> FloatArray:
        return X - self._centre(X.dtype)

    def _gap(self, X: FloatArray) -> FloatArray:
        away = self._gradient(X)
        total: FloatArray = 0.5 * (away * away).sum(axis=-1)
        return total

    def _centre(self, dtype: np.dtype[Any]) -> FloatArray:
        return self.optimum.reshape(-1).astype(dtype)
