"""What is guaranteed of methods that end near the optimum, and of gradient descent itself."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dectool.errors import ArgumentError
from dectool.history import History
from dectool.theory._arguments import Floats
from dectool.theory._bound import Bound
from dectool.theory._facts import Facts, shrinking, steps_of

_YUAN = "K. Yuan, Q. Ling & W. Yin, SIAM J. Optim. 26(3), 2016"
_SAYED = "A. H. Sayed, Foundations and Trends in Machine Learning 7(4-5), 2014"
_POLYAK = "B. T. Polyak, Introduction to Optimization, 1987"


def of_allreduce(f: Facts) -> Iterator[Bound]:
    """Yield what is known of gradient descent on f."""
    L, mu = f.problem.L, f.problem.mu
    limit = 2.0 / L
    factor = max(abs(1.0 - f.lr * mu), abs(1.0 - f.lr * L))

    def envelope(history: History) -> Floats:
        if np.ptp(f.start(history), axis=0).max() > 0.0:
            raise ArgumentError("the ranks start apart, and then they stay apart; give one start")
        return shrinking(history, "distance", factor)

    yield f.bound(
        "step size",
        f"with lr < 2/L = {limit:.9g} it converges to the optimum",
        limit,
        _POLYAK,
        (f.convex(),),
    )
    yield f.bound(
        "contraction",
        f"the distance to the optimum shrinks by max(|1 - lr mu|, |1 - lr L|) = {factor:.9g}",
        factor,
        _POLYAK,
        (f.strongly_convex(), f.lr_below(limit, "2/L")),
        "distance",
        envelope,
    )


def of_dgd(f: Facts) -> Iterator[Bound]:
    """Yield step size, contraction and distance of decentralized gradient descent."""
    L, low = f.problem.L_max, f.lambda_min
    limit = (1.0 + low) / L
    mixing = (f.symmetric(), f.stochastic(), f.connected(), f.lambda_above(-1.0))
    yield f.bound(
        "step size",
        f"with lr < (1 + lambda_min) / L_max = {limit:.9g} the iterates converge, near the optimum",
        limit,
        f"{_YUAN}, Theorem 1",
        (*mixing, f.convex()),
    )
    # A step of size 1 down x'(I - W)x / 2 + lr sum_i f_i(x_i), whose curvature is known.
    factor = max(abs(1.0 - f.lr * f.problem.mu_min), abs(low - f.lr * L))
    yield f.bound(
        "contraction",
        "the change from step to step shrinks by max(|1 - lr mu_min|, |lambda_min - lr L_max|) = "
        f"{factor:.9g}",
        factor,
        f"{_YUAN}, the Lyapunov function of section 2",
        (*mixing, f.each_strongly_convex(), f.lr_below(limit, "(1 + lambda_min) / L_max")),
        envelope=lambda history: shrinking(history, "change", factor),
    )
    yield _neighborhood(f, limit)


def _neighborhood(f: Facts, limit: float) -> Bound:
    """Return the distance from the optimum that every rank of DGD keeps, from a start at 0."""
    L, mu, lr, n = f.problem.L_max, f.problem.mu, f.lr, f.problem.size
    c1, c2 = 1.0 / (mu + L), mu * L / (mu + L)
    zero = np.zeros((n, *f.problem.shape))
    slopes = float(np.sum(np.square(f.problem.grad(zero, f.problem.ranks))))
    # f_i(0) - min f_i is at most the squared slope over 2 mu_i.
    D = math.sqrt(L * slopes / f.problem.mu_min) if f.problem.mu_min > 0.0 else math.nan
    spread = lr * D / (1.0 - f.rho) if f.rho < 1.0 else math.nan
    inner = 4.0 / c2**2 - 2.0 * lr / c2 if c2 > 0.0 else math.nan
    radius = spread * (1.0 + L * math.sqrt(inner)) if inner >= 0.0 else math.nan
    factor = math.sqrt(1.0 - lr * c2 / 2.0) if lr * c2 <= 2.0 else math.nan

    def envelope(history: History) -> Floats:
        if np.any(f.start(history)):
            raise ArgumentError("the theorem is on runs that start from zero; leave x0 out")
        away = float(np.linalg.norm(f.problem.optimum))
        return away * factor ** steps_of(history) + radius

    step = min(limit, c1)
    return f.bound(
        "neighborhood",
        f"from zero, every rank is within {factor:.9g}^k |x*| + {radius:.6g} of the optimum",
        radius,
        f"{_YUAN}, Theorem 3 and Corollary 1",
        (
            f.symmetric(),
            f.stochastic(),
            f.nonnegative(),
            f.contracts(),
            f.each_strongly_convex(),
            f.lr_at_most(step, "min((1 + lambda_min) / L_max, 1 / (mu + L_max))"),
        ),
        "worst_distance",
        envelope,
    )


def of_diffusion(f: Facts) -> Iterator[Bound]:
    """Yield step size and contraction of diffusion: a contraction, and an average."""
    L, mu = f.problem.L_max, f.problem.mu_min
    limit = 2.0 / L
    factor = max(abs(1.0 - f.lr * mu), abs(1.0 - f.lr * L))
    mixing = (f.stochastic(), f.nonexpansive(), f.each_strongly_convex())
    yield f.bound(
        "step size",
        f"with lr < 2 / L_max = {limit:.9g} the iterates converge, near the optimum",
        limit,
        _SAYED,
        mixing,
    )
    yield f.bound(
        "contraction",
        "the change from step to step shrinks by max(|1 - lr mu_min|, |1 - lr L_max|) = "
        f"{factor:.9g}",
        factor,
        _SAYED,
        (*mixing, f.lr_below(limit, "2 / L_max")),
        envelope=lambda history: shrinking(history, "change", factor),
    )
