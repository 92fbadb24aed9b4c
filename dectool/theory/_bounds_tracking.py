"""What is guaranteed of gradient tracking."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dectool.algorithms import (
    Algorithm,
    ATCGradientTracking,
    DIGing,
    SemiATCGradientTracking,
)
from dectool.history import History
from dectool.theory._arguments import Floats
from dectool.theory._bound import Bound
from dectool.theory._facts import Facts, steps_of

_QU = "G. Qu & N. Li, IEEE Trans. Control of Network Systems 5(3), 2018"
_NEDIC = "A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017"


def of_tracking(f: Facts) -> Iterator[Bound]:
    """Yield the bounds of a form of gradient tracking; on schedules those of DIGing alone."""
    if f.period == 1:
        yield from _three_errors(f)
    if isinstance(f.algorithm, DIGing):
        yield from _small_gain(f)


def _three_errors(f: Facts) -> Iterator[Bound]:
    r"""Yield what follows from a linear system of inequalities between three errors.

    With v the norms of y - 1 ȳ, x - 1 x̄ and √n (x̄ - x*),

    .. math:: v^{k+1} \le \begin{pmatrix} \sigma + s \alpha L & s L (\alpha L + 2) & s \alpha L^2
       \\ t \alpha & \sigma & 0 \\ 0 & \alpha L & \lambda \end{pmatrix} v^k

    where σ is ρ of W, λ the contraction of gradient descent on f, and s and t are σ where y and x
    are averaged after they change, and 1 where they are averaged before.
    """
    late: dict[type[Algorithm], tuple[float, float]]
    late = {DIGing: (1.0, 1.0), SemiATCGradientTracking: (1.0, f.rho)}
    s, t = late.get(type(f.algorithm), (f.rho, f.rho))
    assert isinstance(f.algorithm, (DIGing, SemiATCGradientTracking, ATCGradientTracking))
    L, mu = f.problem.L_max, f.problem.mu
    limit = min(_largest(s, t, f.rho, L, mu), 2.0 / (mu + f.problem.L))
    G = _system(f.lr, s, t, f)
    factor = float(np.abs(np.linalg.eigvals(G)).max()) if np.isfinite(G).all() else math.nan

    def envelope(history: History) -> Floats:
        X, n = f.start(history), f.problem.size
        g = f.problem.grad(X.reshape(n, *f.problem.shape), f.problem.ranks).reshape(X.shape)
        mean = X.mean(axis=0)
        v = np.array(
            [
                np.linalg.norm(g - g.mean(axis=0)),
                np.linalg.norm(X - mean),
                math.sqrt(n) * np.linalg.norm(mean - f.problem.optimum.reshape(-1)),
            ]
        )
        found, done = [], 0
        for step in steps_of(history).astype(int):
            while done < step:
                v, done = G @ v, done + 1
            found.append(math.hypot(v[1], v[2]))
        return np.array(found)

    mixing = (f.stochastic(), f.contracts(), f.strongly_convex())
    changed = "" if isinstance(f.algorithm, DIGing) else ", for this form of the algorithm"
    yield f.bound(
        "step size",
        f"with lr < {limit:.9g} errors of tracking, consensus and descent all shrink",
        limit,
        f"{_QU}{changed}",
        mixing,
    )
    yield f.bound(
        "contraction",
        f"the three errors shrink by {factor:.9g} per step in the long run",
        factor,
        f"{_QU}{changed}",
        (*mixing, f.lr_below(limit, "the largest step")),
        "distance",
        envelope,
    )


def _system(lr: float, s: float, t: float, f: Facts) -> Floats:
    L, descent = f.problem.L_max, max(abs(1.0 - lr * f.problem.mu), abs(1.0 - lr * f.problem.L))
    return np.array(
        [
            [f.rho + s * lr * L, s * L * (lr * L + 2.0), s * lr * L**2],
            [t * lr, f.rho, 0.0],
            [0.0, lr * L, descent],
        ]
    )


def _largest(s: float, t: float, rho: float, L: float, mu: float) -> float:
    """Return the step size at which the system stops shrinking: det(I - G) = 0, with lr taken out.

    Where lr is at most 2/(mu + L), descent contracts by 1 - lr mu, and this is a quadratic.
    """
    square = s * t * L**2 * (mu + L)
    linear = mu * s * L * (1.0 - rho) + 2.0 * s * t * mu * L
    constant = mu * (1.0 - rho) ** 2
    below = linear + math.sqrt(linear**2 + 4.0 * square * constant)
    return 2.0 * constant / below if below > 0.0 else math.inf


def _small_gain(f: Facts) -> Iterator[Bound]:
    """Yield step size and rate of DIGing, over periods of schedules too."""
    n, B, delta = f.problem.size, f.period, f.rho
    L, mu, lr = f.problem.L_max, f.problem.mu_min, f.lr
    kappa = L / mu if mu > 0.0 else math.inf
    J = 3.0 * kappa * B**2 * (1.0 + 4.0 * math.sqrt(n) * math.sqrt(kappa))
    limit = 1.5 * (1.0 - delta) ** 2 / (mu * J) if mu > 0.0 else math.nan
    conditions = (f.stochastic(), f.nonnegative(), f.contracts(), f.each_strongly_convex())
    yield f.bound(
        "step size",
        f"with lr < {limit:.9g} it converges linearly",
        limit,
        f"{_NEDIC}, Theorem 10",
        conditions,
    )
    factor = _rate(lr, mu, J, delta, B) if 0.0 < lr <= limit else math.nan
    yield f.bound(
        "contraction",
        f"the distance to the optimum shrinks by {factor:.9g} per step in the long run",
        factor,
        f"{_NEDIC}, Theorem 10",
        (*conditions, f.lr_at_most(limit, "1.5 (1 - delta)^2 / (mu J)")),
    )


def _rate(lr: float, mu: float, J: float, delta: float, B: int) -> float:
    root = math.sqrt(J**2 + (1.0 - delta**2) * J) - delta * J
    split = 1.5 * root**2 / (mu * J * (J + 1.0) ** 2)
    if lr <= split:
        return float((1.0 - lr * mu / 1.5) ** (1.0 / (2.0 * B)))
    return float((math.sqrt(lr * mu * J / 1.5) + delta) ** (1.0 / B))
