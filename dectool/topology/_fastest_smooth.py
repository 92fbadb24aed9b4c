"""Fastest weights of large graphs: accelerated gradients of a smoothed norm, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dectool.topology import _spectrum
from dectool.topology._edges import Floats, Matrix
from dectool.topology._fastest_problem import Problem

_BLOCK = 64
_DEGREE = 12
_WARM = 8
_STAGES = ((0.01, 30), (0.005, 40), (0.0025, 60))
"""Smoothing, relative to the first norm, and steps of each stage."""
_STIFF = 1e4
_GAP = 1e-4


def smooth(problem: Problem) -> tuple[Floats, float]:
    r"""Return the weights and the dual bound.

    The norm is smoothed to :math:`\mu \log \sum_k e^{|\lambda_k| / \mu}` over the eigenvalues
    :math:`\lambda_k` of M = W - J that are largest in modulus, whose eigenvectors follow M by
    filtered subspace iteration. Nesterov's accelerated gradients minimise it while μ falls; its
    gradient, and the mean of the gradients of a stage, are those of dual points.

    References:
        Y. Nesterov, Smoothing technique and its applications in semidefinite optimization, Math.
        Program. 110, 2007; Y. Zhou, Y. Saad, M. L. Tiago, J. R. Chelikowsky, Self-consistent-field
        calculations using Chebyshev-filtered subspace iteration, J. Comput. Phys. 219, 2006.
    """
    w = min(_constants(problem), key=lambda start: _norm(problem, start))
    first = best = _norm(problem, w)
    best_w, bound = w, 0.0
    search = _Search(problem)
    search.warm(w)
    for share, steps in _STAGES:
        w, duals = search.descend(w, share * first, steps)
        reached = _norm(problem, w)
        if reached < best:
            best_w, best = w, reached
        for dual in duals:
            bound = max(bound, problem.bound(dual.trace, dual.stretch, best, None))
        if best - bound <= _GAP * best:
            break
    return best_w, min(best, bound)


def _constants(problem: Problem) -> list[Floats]:
    degrees = problem.at_ranks(np.ones(problem.first.size))
    larger = np.maximum(degrees[problem.first], degrees[problem.second])
    return [1.0 / (1.0 + larger), 0.999 / larger]


def _norm(problem: Problem, w: Floats) -> float:
    W = problem.matrix(w)
    return max(_spectrum.second_largest(W), -_spectrum.smallest(W))


@dataclass(frozen=True)
class _Dual:
    """A smoothed norm, and the dual point that its gradient is."""

    value: float
    trace: float
    stretch: Floats


@dataclass
class _Search:
    """Accelerated gradients; V follows the extreme eigenvectors, z the projection's dual."""

    problem: Problem
    stiffness: float = 5e-4
    V: Floats = field(init=False)
    cut: float = field(default=0.3, init=False)
    z: Floats = field(init=False)

    def __post_init__(self) -> None:
        n = self.problem.n
        block = min(_BLOCK, n - 1)
        V = np.random.default_rng(1911).standard_normal((n, block))
        self.V = np.linalg.qr(V - V.mean(axis=0))[0]
        self.z = np.zeros(n)

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
            x, momentum = new, 1.0 if uphill else grown
            at = self._edge(y, mu)
        return x, [self._edge(x, mu), _Dual(at.value, trace, stretch)]

    def _step(self, y: Floats, at: _Dual, mu: float) -> Floats:
        """Take one gradient step, as long as the smoothed norm allows."""
        while True:
            length = mu / self.stiffness
            new = y + length * at.stretch
            if self.problem.mixing:
                new = self._project(new)
            move = new - y
            model = at.value - at.stretch @ move + move @ move / (2 * length)
            # The value of a V that lags is a little too small.
            if self._edge(new, mu).value <= model + 0.01 * mu or self.stiffness > _STIFF:
                self.stiffness *= 0.9
                return new
            self.stiffness *= 2

    def _edge(self, w: Floats, mu: float) -> _Dual:
        values = self._filter(self.problem.matrix(w))
        sizes = np.abs(values)
        top = float(sizes.max())
        soft = np.exp((sizes - top) / mu)
        total = float(soft.sum())
        signed = np.sign(values) * soft / total
        return _Dual(
            top + mu * float(np.log(total)),
            float(signed.sum()),
            self.problem.stretch(self.V, signed),
        )

    def _filter(self, W: Matrix) -> Floats:
        """Turn V toward the eigenvectors of large modulus, and return its Ritz values.

        Whatever V is, its columns have unit length and sum to 0, all that a dual point needs.
        """
        from scipy.linalg import eigh

        before, now = self.V, np.asarray(1 / self.cut * (W @ self.V))
        for _ in range(_DEGREE - 1):
            before, now = now, np.asarray(2 / self.cut * (W @ now) - before)
        now = now / np.linalg.norm(now, axis=0)
        for _ in range(2):
            now = now - now.mean(axis=0)
            # Several times faster than a QR factorisation, and as good when done twice.
            _, turn = eigh(gram := now.T @ now)
            lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", turn, gram @ turn), 1e-300))
            now = now @ (turn / lengths)
        values, turn = np.linalg.eigh(now.T @ (W @ now))
        V = now @ turn
        V -= V.mean(axis=0)
        self.V = V / np.linalg.norm(V, axis=0)
        self.cut = max(float(np.abs(values).min()), 0.3 * float(np.abs(values).max()), 1e-6)
        return np.asarray(values)

    def _project(self, y: Floats) -> Floats:
        """Return the nearest w >= 0 with sums of at most 1, by accelerated dual ascent."""
        problem, old = self.problem, self.z
        first, second = problem.first, problem.second
        stiff = 2.0 * problem.at_ranks(np.ones(first.size)).max()
        z, momentum = old, 1.0
        for _ in range(60):
            w = np.maximum(0.0, y - z[first] - z[second])
            new = np.maximum(0.0, z + (problem.at_ranks(w) - 1.0) / stiff)
            done = np.abs(new - z).max() < 1e-9
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            z = new + (momentum - 1) / grown * (new - old)
            old, momentum = new, grown
            if done:
                break
        self.z = old
        w = np.maximum(0.0, y - old[first] - old[second])
        return np.asarray(w / max(1.0, float(problem.at_ranks(w).max())))
