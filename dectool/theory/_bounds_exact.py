"""What is guaranteed of methods that end at the optimum itself, with one message per step."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import optimize

from dectool.algorithms import SSDA
from dectool.history import History
from dectool.theory._arguments import Floats
from dectool.theory._bound import Assumption, Bound
from dectool.theory._facts import Facts, steps_of

_SHI = "W. Shi, Q. Ling, G. Wu & W. Yin, SIAM J. Optim. 25(2), 2015"
_LI_YAN = "Y. Li & M. Yan, J. Optim. Theory Appl. 189, 2021"
_NIDS = "Z. Li, W. Shi & M. Yan, IEEE TSP 67(17), 2019"
_TANG = "H. Tang, X. Lian, M. Yan, C. Zhang & J. Liu, ICML 2018"


def _mixing(f: Facts) -> tuple[Assumption, ...]:
    return (f.symmetric(), f.stochastic(), f.connected())


def of_extra(f: Facts) -> Iterator[Bound]:
    """Yield two step sizes of EXTRA, and its contraction."""
    L, low = f.problem.L_max, f.lambda_min
    limit = (1.0 + low) / L
    yield f.bound(
        "step size",
        f"with lr < 2 lambda_min((I + W)/2) / L_max = {limit:.9g} it converges to an optimum",
        limit,
        f"{_SHI}, Theorem 3.3",
        (*_mixing(f), f.lambda_above(-1.0), f.convex()),
    )
    larger = (5.0 + 3.0 * low) / (4.0 * L)
    yield f.bound(
        "step size",
        f"with lr < (5 + 3 lambda_min) / (4 L_max) = {larger:.9g} it converges linearly",
        larger,
        _LI_YAN,
        (*_mixing(f), f.lambda_above(-5.0 / 3.0, "-5/3"), f.convex(), f.strongly_convex()),
    )
    yield _extra_contraction(f)


def _extra_contraction(f: Facts) -> Bound:
    """Return the linear rate of EXTRA: |z - z*|_G shrinks by (1 + delta)^(-1/2)."""
    L, mu, lr = f.problem.L_max, f.problem.mu_min, f.lr
    low, gap = (1.0 + f.lambda_min) / 2.0, (1.0 - f.lambda_2) / 2.0
    limit = 2.0 * mu * low / L**2
    delta = _extra_delta(lr, L, mu, low, gap) if 0.0 < lr < limit and gap > 0.0 else math.nan
    factor = (1.0 + delta) ** -0.5

    def envelope(history: History) -> Floats:
        X, g = f.start(history), f.local_gradients_at_optimum()
        values, U = np.linalg.eigh(f.topology.to_dense())
        # z = (q; x) with q = sqrt((I - W)/2) times the sum of x so far; W = 1 is in no q.
        root = np.sqrt(np.maximum((1.0 - values) / 2.0, 0.0))
        inverse = np.where(root > 1e-9, 1.0 / np.maximum(root, 1e-9), 0.0)
        away = U.T @ (X - f.problem.optimum.reshape(-1))
        q = root[:, None] * (U.T @ X) + lr * inverse[:, None] * (U.T @ g)
        first = float(np.sum(q**2) + np.sum((1.0 + values)[:, None] / 2.0 * away**2))
        most: Floats = math.sqrt(first / low) * factor ** steps_of(history)
        return most

    return f.bound(
        "contraction",
        f"|z - z*|_G, of iterates and what corrects them, shrinks by {factor:.9g} per step",
        factor,
        f"{_SHI}, Theorem 3.7",
        (
            *_mixing(f),
            f.lambda_above(-1.0),
            f.each_strongly_convex(),
            f.lr_below(limit, "2 mu_min lambda_min((I + W)/2) / L_max^2"),
        ),
        "distance",
        envelope,
    )


def _extra_delta(lr: float, L: float, mu: float, low: float, gap: float) -> float:
    """Return the best delta of the theorem over its two free parameters, eta and theta."""

    def least(eta: float) -> float:
        # delta <= a / (b theta + gap) and delta <= c (theta - 1) / theta; both meet at the best.
        a = lr * (2.0 * mu - eta) * gap
        b = (lr * L) ** 2
        c = (eta * low - lr * L**2) * gap / (eta * (1.0 + lr * L) ** 2)
        if not c * b > 0.0:
            # At the largest step nothing is left.
            return 0.0
        # c b theta^2 + (c gap - c b - a) theta - c gap = 0
        middle = c * gap - c * b - a
        theta = (-middle + math.sqrt(middle**2 + 4.0 * c**2 * b * gap)) / (2.0 * c * b)
        return a / (b * theta + gap)

    ends = lr * L**2 / low, 2.0 * mu
    margin = 1e-9 * (ends[1] - ends[0])
    found = optimize.minimize_scalar(
        lambda eta: -least(float(eta)),
        bounds=(ends[0] + margin, ends[1] - margin),
        method="bounded",
    )
    return least(float(found.x))


def of_nids(f: Facts) -> Iterator[Bound]:
    """Yield step size and rate of NIDS, and of exact diffusion, the same from another start."""
    L, mu, lr = f.problem.L_max, f.problem.mu_min, f.lr
    limit = 2.0 / L
    mixing = (*_mixing(f), f.lambda_above(-1.0))
    yield f.bound(
        "step size",
        f"with lr < 2 / L_max = {limit:.9g}, whatever the network, it converges to an optimum",
        limit,
        _NIDS,
        (*mixing, f.convex()),
    )
    descent, consensus = 1.0 - lr * mu * (2.0 - lr * L), (1.0 + f.lambda_2) / 2.0
    factor = math.sqrt(max(descent, consensus, 0.0))
    yield f.bound(
        "contraction",
        f"the slower one of descent, 1 - lr mu_min (2 - lr L_max) = {descent:.9g}, and of "
        f"averaging, (1 + lambda_2)/2 = {consensus:.9g}, both of squares",
        factor,
        _NIDS,
        (*mixing, f.each_strongly_convex(), f.lr_below(limit, "2 / L_max")),
    )


def of_d2(f: Facts) -> Iterator[Bound]:
    """Yield the step size of D2: that of NIDS with 2 W - I, whose eigenvalues are above -5/3."""
    limit = 2.0 / f.problem.L_max
    yield f.bound(
        "step size",
        f"with lr < 2 / L_max = {limit:.9g}, whatever the network, it converges linearly",
        limit,
        f"{_LI_YAN}, with 2 W - I in place of W; {_TANG}",
        (
            *_mixing(f),
            f.lambda_above(-1.0 / 3.0, "-1/3"),
            f.convex(),
            f.strongly_convex(),
        ),
    )


def of_ssda(f: Facts) -> Iterator[Bound]:
    """Yield the rate of accelerated ascent of the dual function, whose square roots x follows."""
    assert isinstance(f.algorithm, SSDA)
    problem = f.problem
    mixing = (*_mixing(f), f.each_strongly_convex())
    factor, own = math.nan, (math.nan, math.nan)
    if all(mixing):
        alone = problem.size == 1
        gamma = 1.0 if alone else (1.0 - f.lambda_2) / (1.0 - f.lambda_min)
        factor = math.sqrt(1.0 - math.sqrt(gamma * problem.mu_min / problem.L_max))
        suggested = SSDA.suggested(problem, f.schedule)
        own = suggested["lr"], suggested["momentum"]
    given = f.lr, f.algorithm.momentum
    yield f.bound(
        "contraction",
        f"the distance to the optimum shrinks by (1 - sqrt(gamma/kappa))^(1/2) = {factor:.9g} per "
        "step in the long run",
        factor,
        "K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, ICML 2017",
        (
            *mixing,
            Assumption(
                f"lr = {own[0]:.6g} and momentum = {own[1]:.6g} (SSDA.for_problem)",
                f"lr = {given[0]:.6g} and momentum = {given[1]:.6g}",
                bool(np.allclose(given, own, rtol=1e-9, atol=0.0)),
            ),
        ),
        "distance",
    )
