"""A smooth problem plus a term that all ranks know, and that has corners."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems._arrays import FloatArray, Rows
from dectool.problems._optimum import TOLERANCE
from dectool.problems._problem import Curvature, Problem
from dectool.problems._regularizers import Regularizer

_STEPS = 200_000


@final
class Composite(Problem):
    r"""Minimise the mean of smooth local functions plus a common term that need not be smooth.

    .. math:: \min_x \frac1n \sum_i f_i(x) + r(x)

    Every rank knows r, by its proximal points. So values are those of :math:`f_i + r`, but
    gradients, Hessians and curvatures those of :math:`f_i`; `gradient`, which is 0 at the optimum,
    is the gradient mapping :math:`L\,(x - \mathrm{prox}_{r/L}(x - \nabla f(x) / L))`. Algorithms
    that take r say so by ``composite`` (`PGEXTRA`, `NIDS`); `solve` refuses the others.

    Args:
        smooth: The problem of the :math:`f_i`.
        regularizer: r, such as :class:`L1` or :class:`Box`.

    Raises:
        ArgumentError: ``smooth`` has a common term already.
        ArgumentTypeError: One is not what it should be.

    Example:
        >>> from dectool import problems
        >>> p = problems.Composite(problems.Averaging([[1.0, 0.2], [3.0, 0.4]]), problems.L1(0.5))
        >>> p.optimum
        array([1.5, 0. ])
    """

    def __init__(self, smooth: Problem, regularizer: Regularizer) -> None:
        if not isinstance(smooth, Problem):
            raise ArgumentTypeError(
                f"smooth is a {type(smooth).__name__}; give one of dectool.problems"
            )
        if not isinstance(regularizer, Regularizer):
            raise ArgumentTypeError(
                f"regularizer is {regularizer!r}; give one of dectool.problems, such as "
                "L1(weight=0.1), or a subclass of problems.Regularizer"
            )
        if smooth.regularizer is not None:
            raise ArgumentError(
                f"{smooth!r} has the common term {smooth.regularizer!r} already; proximal points "
                "of a sum must be known together: derive one class from problems.Regularizer"
            )
        super().__init__(smooth.size, smooth.shape, f"{smooth.name} + {type(regularizer).__name__}")
        self._smooth = smooth
        self._regularizer = regularizer

    @property
    def smooth(self) -> Problem:
        """The problem without the common term."""
        return self._smooth

    @property
    def regularizer(self) -> Regularizer:
        """The common term r."""
        return self._regularizer

    def __repr__(self) -> str:
        return f"Composite({self._smooth!r}, {self._regularizer!r})"

    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        return np.asarray(self._smooth._values(X, rows) + self._regularizer.value(X))

    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._smooth._grads(X, rows)

    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._smooth._hessians(X, rows)

    def _curvature(self) -> Curvature:
        p = self._smooth
        return Curvature(L=p.L, L_max=p.L_max, mu=p.mu, mu_min=p.mu_min)

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        raise ArgumentError(
            f"{self!r} has no proximal points of f_i + r, since those of a sum do not follow from "
            "those of its terms; ask the smooth problem"
        )

    def _starts(self, rows: Rows) -> NDArray[np.float64]:
        return self._smooth._starts(rows)

    def _objective(self, X: FloatArray) -> FloatArray:
        return np.asarray(self._smooth._objective(X) + self._regularizer.value(X))

    def _gradient(self, X: FloatArray) -> FloatArray:
        L = self.L or 1.0
        forward = X - self._smooth._gradient(X) / L
        return np.asarray(L * (X - self._regularizer.prox(forward, 1.0 / L)))

    def _solve(self) -> NDArray[np.float64]:
        """Accelerated proximal gradient descent, begun anew where it goes up."""
        L = self.L or 1.0
        x = np.asarray(self._regularizer.prox(np.zeros((1, 1, self.dim)), 1.0 / L), np.float64)
        scale = float(np.linalg.norm(self._smooth._gradient(np.zeros_like(x))))
        y, t, reached, allowed = x, 1.0, math.inf, 0.0
        for _ in range(_STEPS):
            forward = y - self._smooth._gradient(y) / L
            moved = np.asarray(self._regularizer.prox(forward, 1.0 / L), np.float64)
            reached = L * float(np.linalg.norm(y - moved))
            allowed = TOLERANCE * max(scale, L * float(np.linalg.norm(moved)))
            if reached <= 1e-2 * allowed or (reached <= allowed and np.array_equal(moved, x)):
                return moved.reshape(-1)
            if float(np.vdot(y - moved, moved - x)) > 0.0:
                t = 1.0
            t_next = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
            x, y, t = moved, moved + (t - 1.0) / t_next * (moved - x), t_next
        if reached <= allowed:
            return x.reshape(-1)
        raise ArgumentError(
            f"the optimum of {self!r} was not found in {_STEPS} steps: the gradient mapping is "
            f"{reached:.3g}, above {allowed:.3g}. It is too badly conditioned: use l2 > 0, and "
            "standardised data"
        )
