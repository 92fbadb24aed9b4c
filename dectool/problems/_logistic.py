"""Logistic regression for two classes."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import DataError
from dectool.problems._arrays import FloatArray
from dectool.problems._classifier import Classifier
from dectool.problems._labels import found_classes, label_array, signs
from dectool.problems._shards import Samples


@final
class LogisticRegression(Classifier):
    r"""Logistic regression for two classes.

    .. math:: \ell(x; a, y) = \log(1 + e^{-y\,a^\top x}), \qquad y \in \{-1, +1\}

    Any two labels will do: the smaller (or alphabetically first) one becomes -1, the other +1.
    See `DataProblem` for the sum over samples, the L2 term and the arguments. L and L_max are
    the usual bounds, a quarter of the largest eigenvalue of the weighted :math:`A^\top A`,
    plus l2; mu is l2.

    Args:
        A: Features, (m, d).
        y: Labels of exactly two classes, (m,).

    Raises:
        ArgumentError: An argument breaks its rule.
        DataError: y does not hold exactly two classes.

    Example:
        >>> from dectool import problems
        >>> p = problems.LogisticRegression([[-1.0], [1.0], [2.0], [-2.0]], [0, 1, 1, 0], n=2, l2=1)
        >>> p.value([0.0], 0), p.accuracy(p.optimum)
        (np.float64(0.6931471805599453), np.float64(1.0))
    """

    def _read_targets(self, y: ArrayLike, samples: int) -> NDArray[Any]:
        labels = label_array(y, samples)
        self._classes = found_classes(labels)
        if self._classes.size > 2:
            raise DataError(
                f"y holds {self._classes.size} classes; logistic regression takes two: "
                "use SoftmaxRegression, or select two classes with Dataset.take"
            )
        return labels

    def _encode(self, A: FloatArray, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        t = signs(labels, self._classes)
        # Only y a appears in the loss, so it is stored instead of a.
        return A * t[:, None], t

    def _loss(self, X: FloatArray, s: Samples) -> FloatArray:
        losses = np.logaddexp(0.0, -_margins(X, s))
        losses *= s.w[:, None]
        total: FloatArray = losses.sum(axis=-1)
        return total

    def _loss_slope(self, X: FloatArray, s: Samples) -> FloatArray:
        z = _margins(X, s)
        # exp may overflow to infinity, and w / infinity is the right answer.
        with np.errstate(over="ignore"):
            np.exp(z, out=z)
        z += 1.0
        np.divide(s.w[:, None], z, out=z)
        np.negative(z, out=z)
        slope: FloatArray = np.matmul(z[..., None, :], s.A[:, None])[..., 0, :]
        return slope

    def _loss_hessian(self, X: FloatArray, s: Samples) -> FloatArray:
        weighted = s.A[:, None] * _bends(X, s)[..., None]
        hessian: FloatArray = np.matmul(weighted.swapaxes(-1, -2), s.A[:, None])
        return hessian

    def _loss_product(self, X: FloatArray, V: FloatArray, s: Samples) -> FloatArray:
        AV = np.matmul(s.A[:, None], V[..., None])[..., 0] * _bends(X, s)
        product: FloatArray = np.matmul(AV[..., None, :], s.A[:, None])[..., 0, :]
        return product

    def _bend(self) -> float:
        return 0.25

    def _hits(self, X: FloatArray, s: Samples) -> NDArray[np.bool_]:
        z = _margins(X, s)
        # A score of zero counts as the second class.
        return np.asarray((z > 0) | ((z == 0) & (s.t[:, None] > 0)))


def _margins(X: FloatArray, s: Samples) -> FloatArray:
    z: FloatArray = np.matmul(s.A[:, None], X[..., None])[..., 0]
    return z


def _bends(X: FloatArray, s: Samples) -> FloatArray:
    e = np.exp(-np.abs(_margins(X, s)))
    bends: FloatArray = s.w[:, None] * e / ((1.0 + e) * (1.0 + e))
    return bends
