"""Softmax (multinomial logistic) regression for any number of classes."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.problems._arrays import FloatArray
from dectool.problems._classifier import Classifier
from dectool.problems._labels import found_classes, label_array, one_hot
from dectool.problems._shards import Samples


@final
class SoftmaxRegression(Classifier):
    r"""Softmax (multinomial logistic) regression.

    .. math:: \ell(x; a, y) = \log \sum_c e^{a^\top x_c} - a^\top x_y

    where :math:`x_c` is column c of x, so that x has shape (d, classes). Labels are numbers or
    strings; column c belongs to the c-th of the sorted classes. See `DataProblem` for the sum
    over samples, the L2 term and the arguments. L and L_max are bounds, half of the largest
    eigenvalue of the weighted :math:`A^\top A`, plus l2; mu is l2.

    For large shards the last bit of a product depends on the number of BLAS threads, so runs
    that are to agree bit for bit must use the same number.

    Args:
        A: Features, (m, d).
        y: Labels of at least two classes, (m,).

    Raises:
        ArgumentError: An argument breaks its rule.
        DataError: y holds fewer than two classes.

    Example:
        >>> from dectool import problems
        >>> p = problems.SoftmaxRegression([[-1.0], [0.0], [1.0]], ["a", "b", "c"], n=1, l2=0.1)
        >>> p.shape, p.classes, round(float(p.value([[0.0, 0.0, 0.0]], 0)), 12)
        ((1, 3), ('a', 'b', 'c'), 1.098612288668)
    """

    def _read_targets(self, y: ArrayLike, samples: int) -> NDArray[Any]:
        labels = label_array(y, samples)
        self._classes = found_classes(labels)
        return labels

    def _encode(self, A: FloatArray, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        return A, one_hot(labels, self._classes)

    def _loss(self, X: FloatArray, s: Samples) -> FloatArray:
        Z = self._scores(X, s)
        highest = Z.max(axis=-1, keepdims=True)
        Z -= highest
        own = (Z * s.t[:, None]).sum(axis=-1)
        losses = np.log(np.exp(Z).sum(axis=-1)) - own
        total: FloatArray = (losses * s.w[:, None]).sum(axis=-1)
        return total

    def _loss_slope(self, X: FloatArray, s: Samples) -> FloatArray:
        R = self._shares(X, s)
        R -= s.t[:, None]
        R *= s.w[:, None, :, None]
        return self._back(R, X, s)

    def _loss_hessian(self, X: FloatArray, s: Samples) -> FloatArray:
        P = self._shares(X, s)
        k, batch, m, classes = P.shape
        d = s.A.shape[-1]
        H = np.empty((k, batch, d, classes, d, classes), dtype=X.dtype)
        AT = s.A[:, None].swapaxes(-1, -2)
        for c in range(classes):
            G = -P[..., c, None] * P
            G[..., c] += P[..., c]
            G *= s.w[:, None, :, None]
            AG = s.A[:, None, :, :, None] * G[..., None, :]
            block = np.matmul(AT, AG.reshape(k, batch, m, d * classes))
            H[:, :, :, c] = block.reshape(k, batch, d, d, classes)
        return H.reshape(k, batch, d * classes, d * classes)

    def _loss_product(self, X: FloatArray, V: FloatArray, s: Samples) -> FloatArray:
        P, S = self._shares(X, s), self._scores(V, s)
        R = P * (S - (P * S).sum(axis=-1, keepdims=True))
        R *= s.w[:, None, :, None]
        return self._back(R, X, s)

    def _bend(self) -> float:
        return 0.5

    def _hits(self, X: FloatArray, s: Samples) -> NDArray[np.bool_]:
        chosen = self._scores(X, s).argmax(axis=-1)
        return np.asarray(chosen == s.t[:, None].argmax(axis=-1))

    def _scores(self, X: FloatArray, s: Samples) -> FloatArray:
        XC = X.reshape((*X.shape[:2], s.A.shape[-1], self._classes.size))
        scores: FloatArray = np.matmul(s.A[:, None], XC)
        return scores

    def _shares(self, X: FloatArray, s: Samples) -> FloatArray:
        P = self._scores(X, s)
        P -= P.max(axis=-1, keepdims=True)
        np.exp(P, out=P)
        P /= P.sum(axis=-1, keepdims=True)
        return P

    def _back(self, R: FloatArray, X: FloatArray, s: Samples) -> FloatArray:
        slope: FloatArray = np.matmul(s.A[:, None].swapaxes(-1, -2), R)
        return slope.reshape(X.shape)
