"""Fastest weights of small graphs: a barrier method with a certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dectool.topology._edges import Floats
from dectool.topology._fastest_problem import Multipliers, Problem

_GAP = 1e-9
_FEW = 100
_FASTER, _CAREFUL = 12.0, 3.0
"""Growth of t after a stage of few Newton steps, and of ``_MANY``."""
_MANY = 15
_STAGES = 35
_STEPS = 200
_ROUNDING = 1e-9
_CENTERED = 1e-14
_CROWDED = 4.0
"""No step may end where the trace of X⁻¹, which is t on the path, is so many times as large."""
_CLOSE = 1e-2


class _Point(NamedTuple):
    """Weights, level s, the blocks A, -B, C of X⁻¹, and what is left at each rank."""

    w: Floats
    s: float
    A: Floats
    B: Floats
    C: Floats
    rest: Floats
    value: float

    @property
    def crowd(self) -> float:
        """Trace of X⁻¹: how near X is to singular."""
        return float(np.trace(self.A) + np.trace(self.C))


def barrier(problem: Problem) -> tuple[Floats, float]:
    r"""Return the weights and the dual bound.

    Newton's method on :math:`t s - \log\det X` with
    :math:`X = \begin{pmatrix} s I & M \\ M^T & s I \end{pmatrix}`, :math:`M = W - J`, and the
    logarithms of w and of the self-weights if these must not be negative, while t grows; on that
    path the block B of :math:`X^{-1}`, scaled, is the dual point.
    """
    w = problem.inside()
    best_w, best, bound = w, problem.norm(w), 0.0
    s = 1.05 * best + 0.05
    force = 4.0 * problem.n / s
    enough = _GAP if w.size <= _FEW else _GAP * w.size
    for _ in range(_STAGES):
        at, steps = _center(problem, w, s, force)
        w, s = at.w, at.s
        reached = problem.norm(w)
        if reached < best:
            best_w, best = w, reached
        raised = _bound(problem, at, best)
        # From here on rounding grows faster than t.
        stalled = raised <= bound and at.s - reached <= _ROUNDING
        bound = min(best, max(bound, raised))
        if best - bound <= enough or stalled:
            break
        force *= _FASTER if steps < _MANY else _CAREFUL
    return best_w, bound


def _at(problem: Problem, w: Floats, s: float, force: float) -> _Point | None:
    """Return the point with its barrier's value, or None outside the constraints."""
    rest = 1.0 - problem.at_ranks(w)
    if s <= 0 or (problem.mixing and (w.min() <= 0 or rest.min() <= 0)):
        return None
    n, M = problem.n, problem.deviation(w)
    # NumPy's LAPACK alone: the threads of SciPy's own would wait for those of NumPy's to rest.
    slack = s * np.eye(n) - M.T @ M / s
    try:
        factor = np.linalg.cholesky(slack)
    except np.linalg.LinAlgError:
        return None
    value = force * s - n * np.log(s) - 2 * float(np.log(factor.diagonal()).sum())
    half = np.linalg.inv(factor)
    C = half.T @ half
    B = M @ C / s
    A = (np.eye(n) + B @ M.T) / s
    if problem.mixing:
        value -= float(np.log(w).sum() + np.log(rest).sum())
    return _Point(w, s, A, B, C, rest, value)


def _derivatives(problem: Problem, at: _Point, force: float) -> tuple[Floats, Floats]:
    """Return gradient and Hessian of the barrier in (w, s)."""
    m = at.w.size
    gradient, hessian = np.zeros(m + 1), np.empty((m + 1, m + 1))
    PA, PB = problem.left(at.A), problem.left(at.B)
    cross = problem.right(PB)
    gradient[:m] = -2 * cross.diagonal()
    gradient[m] = force - at.crowd
    outer = problem.left(np.ascontiguousarray(PA.T))
    inner = problem.right(problem.right(at.C).T)
    hessian[:m, :m] = 2 * (cross * cross.T + outer * inner)
    # p_eᵀ (A B + B C) a_e, without the products of matrices.
    mixed = np.einsum("ek,ke->e", PA, problem.right(at.B))
    mixed += np.einsum("ek,ke->e", PB, problem.right(at.C))
    hessian[:m, m] = hessian[m, :m] = 2 * mixed
    hessian[m, m] = float(np.square(at.A).sum() + 2 * np.square(at.B).sum())
    hessian[m, m] += float(np.square(at.C).sum())
    if problem.mixing:
        T = problem.sums
        gradient[:m] += T.T @ (1.0 / at.rest) - 1.0 / at.w
        hessian[:m, :m] += (T.T @ (T.multiply(np.square(1.0 / at.rest)[:, None]))).toarray()
        hessian[np.arange(m), np.arange(m)] += 1.0 / np.square(at.w)
    return gradient, hessian


def _newton(problem: Problem, at: _Point, force: float) -> tuple[Floats, float]:
    """Return Newton's step and how much it would lower the barrier, twice; nan where it fails."""
    gradient, hessian = _derivatives(problem, at, force)
    basis = problem.basis
    if basis is not None:
        turn = np.zeros((gradient.size, basis.shape[1] + 1))
        turn[:-1, :-1], turn[-1, -1] = basis, 1.0
        gradient, hessian = turn.T @ gradient, turn.T @ hessian @ turn
    scale = 1.0 / np.sqrt(hessian.diagonal())
    scaled = hessian * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-14
    try:
        step = -scale * np.linalg.solve(scaled, scale * gradient)
    except np.linalg.LinAlgError:
        return np.zeros(at.w.size + 1), np.nan
    decrease = -float(gradient @ step)
    return step if basis is None else np.asarray(turn @ step), decrease


def _center(problem: Problem, w: Floats, s: float, force: float) -> tuple[_Point, int]:
    """Minimise the barrier for one force by damped Newton steps; return their number too."""
    at = _at(problem, w, s, force)
    assert at is not None
    before = np.inf
    for steps in range(_STEPS):
        step, decrease = _newton(problem, at, force)
        if not decrease > _CENTERED or (before < _CLOSE and decrease > before / 4):
            return at, steps
        before = decrease
        if decrease < _CLOSE:
            # Newton's method converges from here, and the values differ by rounding alone.
            new = _at(problem, at.w + step[:-1], at.s + step[-1], force)
            if new is None:
                return at, steps
            at = new
            continue
        length = 1.0
        while length > 1e-8:
            new = _at(problem, at.w + length * step[:-1], at.s + length * step[-1], force)
            if (
                new is not None
                and new.value <= at.value - 0.1 * length * decrease
                and new.crowd <= max(at.crowd, _CROWDED * force)
            ):
                break
            length /= 2
        else:
            return at, steps
        at = new
    return at, _STEPS


def _bound(problem: Problem, at: _Point, reached: float) -> float:
    """Return the dual bound of a point near the central path."""
    D = 2 * at.B
    D = D - D.mean(axis=0)
    D = D - D.mean(axis=1, keepdims=True)
    size = float(np.linalg.norm(D, "nuc"))
    if size == 0.0:
        return 0.0
    D /= size
    stretch = np.einsum("ee->e", problem.right(problem.left(D)))
    near = None
    if problem.mixing:
        near = Multipliers(1.0 / at.rest / size, 1.0 / at.w / size)
    return problem.bound(float(np.trace(D)), stretch, reached, near)
