"""Linear least squares, with or without an L2 term (ridge regression)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import FloatArray, Rows, real_array
from dectool.problems._data_problem import DataProblem, smallest_gram
from dectool.problems._inverse import Spectra, spectral_inverse
from dectool.problems._optimum import TOLERANCE
from dectool.problems._problem import Curvature
from dectool.problems._shards import Samples


@final
class LeastSquares(DataProblem):
    r"""Linear least squares.

    .. math:: \ell(x; a, y) = \tfrac12 (a^\top x - y)^2

    The optimum is the solution of smallest norm. See `DataProblem` for the sum over samples, the
    L2 term and the arguments.

    Args:
        A: Features, (m, d).
        y: Targets, (m,), real.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> from dectool import problems
        >>> p = problems.LeastSquares([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.0, 6.0, 8.0], n=2)
        >>> p.optimum.round(12), p.value([0.0], 0)
        (array([2.]), np.float64(5.0))
    """

    def _read_targets(self, y: ArrayLike, samples: int) -> NDArray[Any]:
        targets = real_array(y, "y")
        if targets.shape != (samples,):
            raise ArgumentError(
                f"y has shape {targets.shape}; A has {samples} rows, so it must be ({samples},)"
            )
        return targets

    def _encode(self, A: FloatArray, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        return A, labels

    def _loss(self, X: FloatArray, s: Samples) -> FloatArray:
        r = _residual(X, s)
        total: FloatArray = 0.5 * (r * r * s.w[:, None]).sum(axis=-1)
        return total

    def _loss_slope(self, X: FloatArray, s: Samples) -> FloatArray:
        r = _residual(X, s)
        r *= s.w[:, None]
        return _back(r, s)

    def _loss_hessian(self, X: FloatArray, s: Samples) -> FloatArray:
        gram = np.matmul((s.A * s.w[..., None]).swapaxes(-1, -2), s.A)
        return np.repeat(gram[:, None], X.shape[1], axis=1)

    def _loss_product(self, X: FloatArray, V: FloatArray, s: Samples) -> FloatArray:
        return _back(np.matmul(s.A[:, None], V[..., None])[..., 0] * s.w[:, None], s)

    def _bend(self) -> float:
        return 1.0

    def _curvature(self) -> Curvature:
        eigenvalues = np.linalg.eigvalsh(self._loss_hessian_of_mean())
        largest = float(eigenvalues[-1])
        lowest = float(eigenvalues[0])
        # Below this an eigenvalue is rounding, and zero is the better answer.
        if lowest <= np.finfo(np.float64).eps * self.dim * largest:
            lowest = 0.0
        local = smallest_gram(self._shards.take(slice(None), np.float64))
        return (
            super()._curvature()._replace(mu=lowest + self.l2, mu_min=float(local.min()) + self.l2)
        )

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        return spectral_inverse(self, self._spectra, Y, weight, rows)

    @cached_property
    def _spectra(self) -> Spectra:
        return Spectra(self.size, self.dim)

    def _loss_hessian_of_mean(self) -> NDArray[Any]:
        whole = self._loss_hessian(np.zeros((1, 1, self.dim)), self._pool(np.float64))
        return np.asarray(whole[0, 0])

    def _solve(self) -> NDArray[np.float64]:
        A, y, w = (part[0] for part in self._pool(np.float64))
        root = np.sqrt(w[w > 0])
        rows = np.concatenate([A[w > 0] * root[:, None], np.sqrt(self.l2) * np.eye(self.dim)])
        right = np.concatenate([y[w > 0] * root, np.zeros(self.dim)])
        x: NDArray[np.float64] = np.linalg.lstsq(rows, right)[0]
        reached = float(np.linalg.norm(self.gradient(x)))
        scale = max(np.linalg.norm(rows.T @ right), self.L * np.linalg.norm(x))
        if not reached <= TOLERANCE * scale:
            raise ArgumentError(
                f"the optimum of {self!r} was not found: the gradient norm is {reached:.3g}, above "
                f"{TOLERANCE * scale:.3g}. The data is too badly conditioned: use l2 > 0, and "
                "standardised data"
            )
        return x


def _residual(X: FloatArray, s: Samples) -> FloatArray:
    r: FloatArray = np.matmul(s.A[:, None], X[..., None])[..., 0]
    r -= s.t[:, None]
    return r


def _back(r: FloatArray, s: Samples) -> FloatArray:
    product: FloatArray = np.matmul(r[..., None, :], s.A[:, None])[..., 0, :]
    return product
