"""Fastest weights of large graphs: accelerated gradients of a smoothed norm, certified."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dectool.topology._edges import Floats, Matrix
from dectool.topology._fastest_problem import Problem

_BLOCK = 64
_DEGREE = 6
_WARM = 8
_STAGES = ((0.01, 30), (0.005, 40), (0.0025, 60))
"""Smoothing, relative to the first norm, and steps of each stage."""
_STIFF = 1e4
_LARGEST = 1e10
"""Growth of a vector in the filter; up to 1e7 where values are as large as those before."""
_GAP = 1e-4
_EXACT = 1e-12
"""A norm that is rounding: W = J, as on complete graphs, which no W surpasses."""


def smooth(problem: Problem, *starts: Floats) -> tuple[Floats, float]:
    r"""Return the weights and the dual bound.

    The norm is smoothed to :math:`\mu \log \sum_k e^{\sigma_k / \mu}` over the largest singular
    values :math:`\sigma_k` of M = W - J, whose vectors follow M by filtered subspace iteration
    with :math:`M^T M`. Nesterov's accelerated gradients minimise it while μ falls; its
    gradient, and the mean of the gradients of a stage, are those of dual points.

    Args:
        problem: What to solve.
        starts: Feasible weights to start from, beside those that the problem knows.

    References:
        Y. Nesterov, Smoothing technique and its applications in semidefinite optimization, Math.
        Program. 110, 2007; Y. Zhou, Y. Saad, M. L. Tiago, J. R. Chelikowsky, Self-consistent-field
        calculations using Chebyshev-filtered subspace iteration, J. Comput. Phys. 219, 2006.
    """
    w = min((*starts, *problem.starts()), key=problem.norm)
    first, bound = problem.norm(w), 0.0
    if first <= _EXACT:
        return w, 0.0
    # Smoothing hides a gap that is far below it, and then a rule may do better than the search.
    best_w = min((w, *problem.others()), key=problem.norm)
    best = problem.norm(best_w)
    search = _Search(problem)
    search.warm(w)
    for share, steps in _STAGES:
        w, duals = search.descend(w, share * first, steps)
        reached = problem.norm(w)
        if reached < best:
            best_w, best = w, reached
        for dual in duals:
            bound = max(bound, problem.bound(dual.trace, dual.stretch, best))
        if best - bound <= _GAP * best:
            break
    return best_w, min(best, bound)


@dataclass(frozen=True)
class _Dual:
    """A smoothed norm, and the dual point that its gradient is."""

    value: float
    trace: float
    stretch: Floats


@dataclass
class _Search:
    """Accelerated gradients; V follows the largest singular vectors of M."""

    problem: Problem
    stiffness: float = 5e-4
    V: Floats = field(init=False)
    cut: float = field(default=0.5, init=False)
    dual: Floats | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        n = self.problem.n
        block = min(_BLOCK, n - 1)
        V = np.random.default_rng(1911).standard_normal((n, block))
        self.V = np.linalg.qr(V - V.mean(axis=0))[0]

    def warm(self, w: Floats) -> None:
        """Let V converge for one matrix."""
        for _ in range(_WARM):
            self._edge(w, 1.0)

    def descend(self, w: Floats, mu: float, steps: int) -> tuple[Floats, list[_Dual]]:
        """Return new weights and two dual points: the last, and the mean over the steps."""
        x = y = w
        momentum, trace, stretch = 1.0, 0.0, np.zeros_like(w)
        at = self._edge(y, mu)
        for k in range(steps):
            share = 2.0 / (k + 2)
            trace += share * (at.trace - trace)
            stretch = stretch + share * (at.stretch - stretch)
            new = self._step(y, at, mu)
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            uphill = float(at.stretch @ (new - x)) < 0
            y = new if uphill else new + (momentum - 1) / grown * (new - x)
            at = self._edge(y, mu)
            if math.isinf(at.value):
                # V did not see how much too long the step was.
                self.stiffness *= 4
                y, momentum, at = x, 1.0, self._edge(x, mu)
                continue
            x, momentum = new, 1.0 if uphill else grown
        return x, [self._edge(x, mu), _Dual(at.value, trace, stretch)]

    def _step(self, y: Floats, at: _Dual, mu: float) -> Floats:
        """Take one gradient step, as long as the smoothed norm allows."""
        while True:
            length = mu / self.stiffness
            new = y + length * at.stretch
            if self.problem.mixing:
                new, self.dual = self.problem.project(new, self.dual)
            else:
                new = self.problem.balance(new)
            move = new - y
            model = at.value - at.stretch @ move + move @ move / (2 * length)
            # The value of a V that lags is a little too small.
            if self._edge(new, mu).value <= model + 0.01 * mu or self.stiffness > _STIFF:
                self.stiffness *= 0.9
                return new
            self.stiffness *= 2

    def _edge(self, w: Floats, mu: float) -> _Dual:
        filtered = self._filter(self.problem.matrix(w))
        if filtered is None:
            return _Dual(math.inf, 0.0, np.zeros_like(w))
        U, sizes = filtered
        top = float(sizes.max())
        soft = np.exp((sizes - top) / mu)
        total = float(soft.sum())
        shares = soft / total
        return _Dual(
            top + mu * float(np.log(total)),
            float(np.einsum("ik,ik,k", U, self.V, shares)),
            self.problem.stretch(U, self.V, shares),
        )

    def _filter(self, W: Matrix) -> tuple[Floats, Floats] | None:
        """Turn V toward the singular vectors of large values; return U and these Ritz values.

        None, and V stays, if some value is several times as large as all before.

        Whatever V is, columns of U and V have unit length and sum to 0, all that a dual point
        needs.
        """
        T: Matrix = W.T.tocsr()
        scale = 2 / self.cut**2
        before, now = self.V, scale * (T @ (W @ self.V)) - self.V
        for _ in range(_DEGREE - 1):
            before, now = now, 2 * (scale * (T @ (W @ now)) - now) - before
        growth = np.linalg.norm(now, axis=0)
        if not growth.max() <= _LARGEST:
            return None
        now = now / growth
        for _ in range(2):
            now = now - now.mean(axis=0)
            # Several times faster than a QR factorisation, and as good when done twice.
            _, turn = np.linalg.eigh(gram := now.T @ now)
            lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", turn, gram @ turn), 1e-300))
            now = now @ (turn / lengths)
        image = W @ now
        _, turn = np.linalg.eigh(image.T @ image)
        self.V = _centered(now @ turn)
        U = image @ turn
        values = np.linalg.norm(U, axis=0)
        # Below half of the largest, what the filter leaves of a column would be rounding.
        self.cut = max(float(values.min()), 0.5 * float(values.max()), 1e-6)
        return _centered(U), values


def _centered(X: Floats) -> Floats:
    """Return X with columns that sum to 0, of unit length or less."""
    X = X - X.mean(axis=0)
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300))
