"""Quadratic problems, with everything about them in closed form."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import (
    Casts,
    FloatArray,
    Rows,
    at,
    positive_int,
    real_array,
    real_number,
)
from dectool.problems._inverse import Spectra, check_positive, spectral_inverse
from dectool.problems._problem import Curvature, Problem


@final
class Quadratic(Problem):
    r"""Quadratic local functions.

    .. math:: f_i(x) = \tfrac12 x^\top H_i x - b_i^\top x, \qquad x^* = \bar H^{-1} \bar b

    where :math:`H_i` is ``h[i]``, a symmetric matrix, or its diagonal where h has two axes, and
    the bars are means over ranks. A local function may be concave; the mean may not.

    Args:
        h: Curvatures: (n, d) diagonals or (n, d, d) symmetric matrices, finite.
        b: Linear terms, (n, d), finite.

    Raises:
        ArgumentError: Wrong shapes, an entry that is not finite, a matrix that is not symmetric,
            or a mean that is unbounded below.
        ArgumentTypeError: h or b is not numeric.

    Example:
        >>> import numpy as np
        >>> from dectool import problems
        >>> h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
        >>> q = problems.Quadratic(h=h, b=np.arange(8.0)[:, None])
        >>> q.optimum, q.L, q.L_max
        (array([1.4]), 2.5, 4.0)
    """

    def __init__(self, h: ArrayLike, b: ArrayLike) -> None:
        H, c = real_array(h, "h"), real_array(b, "b")
        _check_shapes(H, c)
        super().__init__(c.shape[0], c.shape[1:], "Quadratic")
        self._diagonal = H.ndim == 2
        self._data = Casts(H, c)
        self._mean = Casts(H.mean(axis=0, keepdims=True), c.mean(axis=0, keepdims=True))
        self._check_bounded()

    @classmethod
    def random(
        cls, n: int, d: int, *, kappa: float = 10.0, heterogeneity: float = 1.0, seed: int = 0
    ) -> Quadratic:
        r"""Return random diagonal quadratics of exactly known condition and heterogeneity.

        The mean curvature runs geometrically from 1 to ``kappa``; local curvatures scatter
        around it by less than itself, so all are positive. Linear terms are set such that
        :math:`\frac1n \sum_i \|\nabla f_i(x^*)\|^2` is ``heterogeneity``, at a random x*.

        Args:
            n: Number of ranks.
            d: Number of variables.
            kappa: Condition number L / mu of f, at least 1; 1 if d is 1.
            heterogeneity: Mean squared norm of the local gradients at x*, at least 0.
            seed: Seed of the random numbers.

        Raises:
            ArgumentError: A value out of its range, or one that n or d makes impossible.

        Example:
            >>> from dectool import problems
            >>> q = problems.Quadratic.random(8, 3, kappa=100.0, heterogeneity=2.0, seed=1)
            >>> round(q.kappa, 9), round(q.heterogeneity, 9)
            (100.0, 2.0)
        """
        n, d = positive_int(n, "n"), positive_int(d, "d")
        kappa = real_number(kappa, "kappa", least=1.0)
        spread = real_number(heterogeneity, "heterogeneity")
        if d == 1 and kappa != 1.0:
            raise ArgumentError(f"kappa={kappa:g} needs d >= 2: with d=1, L and mu are equal")
        if n == 1 and spread > 0.0:
            raise ArgumentError(
                f"heterogeneity={spread:g} needs n >= 2: a single rank agrees with itself"
            )
        rng = np.random.default_rng(seed)
        mean = np.geomspace(1.0, kappa, d)
        h = mean * (1.0 + _centred(rng.uniform(-0.5, 0.5, (n, d))))
        g = _centred(rng.standard_normal((n, d)))
        if n > 1:
            g *= np.sqrt(spread / np.mean(np.sum(g * g, axis=1)))
        return cls(h=h, b=h * rng.standard_normal(d) - g)

    def __repr__(self) -> str:
        kind = "diagonal" if self._diagonal else "full"
        return f"Quadratic(n={self.size}, d={self.dim}, {kind})"

    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._value_of(X, self._data, rows)

    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        H, b = self._data.at(X.dtype)
        return self._times(H[rows], X) - b[rows][:, None]

    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        H = self._data.at(X.dtype)[0][rows]
        if self._diagonal:
            H = H[:, :, None] * np.eye(self.dim, dtype=X.dtype)
        return np.repeat(H[:, None], X.shape[1], axis=1)

    def _objective(self, X: FloatArray) -> FloatArray:
        return self._value_of(X, self._mean, slice(None))

    def _gradient(self, X: FloatArray) -> FloatArray:
        H, b = self._mean.at(X.dtype)
        return self._times(H, X) - b[:, None]

    def _gap(self, X: FloatArray) -> FloatArray:
        away = X - self.optimum.reshape(-1).astype(X.dtype)
        H, _ = self._mean.at(X.dtype)
        total: FloatArray = 0.5 * (away * self._times(H, away)).sum(axis=-1)
        return total

    def _curvature(self) -> Curvature:
        H, _ = self._data.at(np.float64)
        local = H if self._diagonal else _eigenvalues(np.asarray(H, dtype=np.float64))
        mean = self._mean_spectrum()
        return Curvature(
            L=float(mean.max()),
            L_max=float(np.abs(local).max()),
            mu=max(float(mean.min()), 0.0),
            mu_min=float(local.min()),
        )

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        if not self._diagonal:
            return spectral_inverse(self, self._spectra, Y, weight, rows)
        H, b = self._data.at(np.float64)
        check_positive(self, H[rows], weight, rows)
        return np.asarray((Y + b[rows][:, None]) / (H[rows] + weight[:, None])[:, None])

    @cached_property
    def _spectra(self) -> Spectra:
        return Spectra(self.size, self.dim)

    def _solve(self) -> NDArray[np.float64]:
        H, b = (np.asarray(a[0], dtype=np.float64) for a in self._mean.at(np.float64))
        if self.mu > 0.0:
            return np.asarray(b / H if self._diagonal else np.linalg.solve(H, b))
        full = np.diag(H) if self._diagonal else H
        x = np.asarray(np.linalg.lstsq(full, b)[0], dtype=np.float64)
        if float(np.linalg.norm(full @ x - b)) > 1e-12 * float(np.linalg.norm(b)):
            raise ArgumentError(
                "the mean of h is singular and the mean of b has a part in its null space, so f "
                "has no minimiser; make the mean curvature positive in every direction"
            )
        return x

    def _times(self, H: FloatArray, X: FloatArray) -> FloatArray:
        if self._diagonal:
            return H[:, None] * X
        product: FloatArray = np.matmul(H[:, None], X[..., None])[..., 0]
        return product

    def _value_of(self, X: FloatArray, data: Casts, rows: Rows) -> FloatArray:
        H, b = data.at(X.dtype)
        total: FloatArray = ((0.5 * self._times(H[rows], X) - b[rows][:, None]) * X).sum(axis=-1)
        return total

    def _mean_spectrum(self) -> NDArray[np.float64]:
        mean = np.asarray(self._mean.at(np.float64)[0][0], dtype=np.float64)
        if self._diagonal:
            return mean
        return _eigenvalues(mean)

    def _check_bounded(self) -> None:
        lowest = float(self._mean_spectrum().min())
        if lowest < 0.0:
            raise ArgumentError(
                f"the mean of h over the ranks has the negative curvature {lowest:g}, so f is "
                "unbounded below; h must be positive on average in every direction"
            )


def _eigenvalues(H: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the eigenvalues of symmetric matrices, along the last axis."""
    values = np.asarray(np.linalg.eigvalsh(H), dtype=np.float64)
    # Below this an eigenvalue is rounding, and zero is the better answer.
    rounding = np.finfo(np.float64).eps * H.shape[-1] * np.abs(values).max(axis=-1, keepdims=True)
    return np.where(np.abs(values) <= rounding, 0.0, values)


def _centred(a: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(a - a.mean(axis=0))


def _check_shapes(H: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    if H.ndim == 1:
        raise ArgumentError(
            f"h has shape {H.shape}; it must be (n, d) or (n, d, d): "
            "for scalar variables write h[:, None]"
        )
    if H.ndim not in (2, 3) or H.size == 0 or (H.ndim == 3 and H.shape[1] != H.shape[2]):
        raise ArgumentError(f"h has shape {H.shape}; it must be (n, d) or (n, d, d), not empty")
    if b.shape != H.shape[:2]:
        raise ArgumentError(
            f"b has shape {b.shape}; with h of shape {H.shape} it must be {H.shape[:2]}"
        )
    if H.ndim == 3:
        tolerance = 1e-12 * np.abs(H).max(axis=(1, 2), keepdims=True)
        bad = np.argwhere(np.abs(H - H.transpose(0, 2, 1)) > tolerance)
        if bad.size:
            i, j, k = (int(v) for v in bad[0])
            raise ArgumentError(
                f"h[{i}] is not symmetric: {at('h', (i, j, k))} is {H[i, j, k]:g} but "
                f"{at('h', (i, k, j))} is {H[i, k, j]:g}; use (h + h.transpose(0, 2, 1)) / 2"
            )
