"""Fastest weights of small graphs: a barrier method with a certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dectool.topology._edges import Floats
from dectool.topology._fastest_problem import Problem

_GAP = 1e-9
_FEW = 100
_FASTER = 12.0
_STAGES = 13
_STEPS = 40
_ROUNDING = 1e-6
_CENTERED = 1e-14
_CLOSE = 1e-2


class _Point(NamedTuple):
    """Weights and level s, the slacks s ± M(w) inverted, and what is left at each rank."""

    w: Floats
    s: float
    upper: Floats
    lower: Floats
    rest: Floats
    value: float


def barrier(problem: Problem) -> tuple[Floats, float]:
    r"""Return the weights and the dual bound.

    Newton's method on :math:`t s - \log\det(s I - M) - \log\det(s I + M)` with
    :math:`M = I - J - L(w)`, and the logarithms of w and of the self-weights if these must not be
    negative, while t grows; on that path :math:`(sI - M)^{-1} - (sI + M)^{-1}`, scaled, is the
    dual point.
    """
    w = problem.start()
    s = 1.05 * _norm(problem, w) + 0.05
    best_w, best, bound = w, _norm(problem, w), 0.0
    force = 4.0 * problem.n / s
    enough = _GAP if w.size <= _FEW else _GAP * w.size
    for _ in range(_STAGES):
        at = _center(problem, w, s, force)
        w, s = at.w, at.s
        reached = _norm(problem, w)
        better = reached < best
        if better:
            best_w, best = w, reached
        raised = _bound(problem, at, best)
        stalled = raised <= bound and not better and best - bound <= _ROUNDING
        bound = min(best, max(bound, raised))
        if best - bound <= enough or stalled:
            break
        force *= _FASTER
    return best_w, bound


def _norm(problem: Problem, w: Floats) -> float:
    values = np.linalg.eigvalsh(problem.matrix(w).toarray() - 1.0 / problem.n)
    return float(max(values[-1], -values[0]))


def _at(problem: Problem, w: Floats, s: float, force: float) -> _Point | None:
    """Return the point with its barrier's value, or None outside the constraints."""
    rest = 1.0 - problem.at_ranks(w)
    if problem.mixing and (w.min() <= 0 or rest.min() <= 0):
        return None
    n = problem.n
    M = problem.matrix(w).toarray() - 1.0 / n
    value, inverses = force * s, []
    for slack in (s * np.eye(n) - M, s * np.eye(n) + M):
        try:
            factor = np.linalg.cholesky(slack)
        except np.linalg.LinAlgError:
            return None
        value -= 2 * float(np.log(factor.diagonal()).sum())
        half = np.linalg.inv(factor)
        inverses.append(half.T @ half)
    if problem.mixing:
        value -= float(np.log(w).sum() + np.log(rest).sum())
    return _Point(w, s, inverses[0], inverses[1], rest, value)


def _between(problem: Problem, A: Floats) -> Floats:
    """Return (a_eᵀ A a_f) over all pairs of edges, a_e the difference of two unit vectors."""
    rows = A[problem.first] - A[problem.second]
    return np.asarray(rows[:, problem.first] - rows[:, problem.second])


def _derivatives(problem: Problem, at: _Point, force: float) -> tuple[Floats, Floats]:
    """Return gradient and Hessian of the barrier in (w, s)."""
    m = at.w.size
    gradient, hessian = np.zeros(m + 1), np.zeros((m + 1, m + 1))
    gradient[m] = force
    for inverse, sign in ((at.upper, 1.0), (at.lower, -1.0)):
        pairs = _between(problem, inverse)
        gradient[:m] -= sign * pairs.diagonal()
        gradient[m] -= float(np.trace(inverse))
        hessian[:m, :m] += np.square(pairs)
        steps = inverse[:, problem.first] - inverse[:, problem.second]
        mixed = sign * np.square(steps).sum(axis=0)
        hessian[:m, m] += mixed
        hessian[m, :m] += mixed
        hessian[m, m] += float(np.square(inverse).sum())
    if problem.mixing:
        gradient[:m] += _slope(problem, at)
        ranks = np.zeros((m, problem.n))
        edge = np.arange(m)
        ranks[edge, problem.first] = 1.0 / at.rest[problem.first]
        ranks[edge, problem.second] = 1.0 / at.rest[problem.second]
        hessian[:m, :m] += ranks @ ranks.T
        hessian[edge, edge] += 1.0 / np.square(at.w)
    return gradient, hessian


def _slope(problem: Problem, at: _Point) -> Floats:
    """Return the gradient of the logarithms of weights and self-weights."""
    return np.asarray(1.0 / at.rest[problem.first] + 1.0 / at.rest[problem.second] - 1.0 / at.w)


def _center(problem: Problem, w: Floats, s: float, force: float) -> _Point:
    """Minimise the barrier for one force by damped Newton steps."""
    from scipy.linalg import cho_factor, cho_solve

    at = _at(problem, w, s, force)
    assert at is not None
    before = np.inf
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(problem, at, force)
        scale = 1.0 / np.sqrt(hessian.diagonal())
        scaled = hessian * scale * scale[:, None]
        scaled[np.diag_indices_from(scaled)] += 1e-14
        try:
            step = -scale * cho_solve(cho_factor(scaled), scale * gradient)
        except np.linalg.LinAlgError:
            return at
        decrease = -float(gradient @ step)
        if not decrease > _CENTERED or (before < _CLOSE and decrease > before / 4):
            return at
        before = decrease
        if decrease < _CLOSE:
            # Newton's method converges from here, and the values differ by rounding alone.
            new = _at(problem, at.w + step[:-1], at.s + step[-1], force)
            if new is None:
                return at
            at = new
            continue
        length = 1.0
        while length > 1e-8:
            new = _at(problem, at.w + length * step[:-1], at.s + length * step[-1], force)
            if new is not None and new.value <= at.value - 0.1 * length * decrease:
                break
            length /= 2
        else:
            return at
        at = new
    return at


def _bound(problem: Problem, at: _Point, reached: float) -> float:
    """Return the dual bound of a point near the central path."""
    D = at.upper - at.lower
    D = D - D.mean(axis=0)
    D = D - D.mean(axis=1, keepdims=True)
    size = float(np.abs(np.linalg.eigvalsh(D)).sum())
    if size == 0.0:
        return 0.0
    first, second = problem.first, problem.second
    stretch = D[first, first] + D[second, second] - 2 * D[first, second]
    cover = 1.0 / at.rest / size
    return problem.bound(float(np.trace(D)) / size, stretch / size, reached, cover)
