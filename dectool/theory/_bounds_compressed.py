"""What is guaranteed of algorithms on compressed messages."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dectool.algorithms import LEAD, CHOCOGossip, choco_gamma
from dectool.compression import Compressor
from dectool.history import History
from dectool.theory._arguments import Floats
from dectool.theory._bound import Assumption, Bound
from dectool.theory._facts import Facts, first_of, steps_of

_ERROR = "consensus_error"
_KOLOSKOVA = "A. Koloskova, S. Stich & M. Jaggi, ICML 2019"
_LIU = "X. Liu, Y. Li, R. Wang, J. Tang & M. Yan, ICLR 2021"


def of_choco(f: Facts) -> Iterator[Bound]:
    """Yield the rate of CHOCO-Gossip with the step size of its theorem."""
    assert isinstance(f.algorithm, CHOCOGossip)
    compressor = f.algorithm.compressor
    # One that changes from step to step has no number.
    found = compressor.contraction(f.problem.dim) if isinstance(compressor, Compressor) else None
    kept = found or 0.0
    square = 1.0 - (1.0 - f.rho) ** 2 * kept / 82.0
    gamma = choco_gamma(f.topology, kept) if 0.0 < kept <= 1.0 else math.nan
    given = f.algorithm.gamma

    def envelope(history: History) -> Floats:
        # Replicas begin at zero, and the first message brings them closer.
        first = first_of(history, _ERROR) ** 2 + float(np.sum(f.start(history) ** 2))
        most: Floats = np.sqrt(first * square ** steps_of(history))
        return most

    yield f.bound(
        "contraction",
        f"sum_i |x_i - mean|^2 + |x_i - x_hat_i|^2, on average, shrinks by {square:.9g} per step",
        math.sqrt(square),
        _KOLOSKOVA,
        (
            f.symmetric(),
            f.stochastic(),
            f.contracts(),
            Assumption("the compressor contracts", f"by delta = {kept:.6g}", 0.0 < kept <= 1.0),
            Assumption(
                f"gamma = {gamma:.6g} (choco_gamma)",
                f"gamma = {given:.6g}",
                abs(given - gamma) <= 1e-9 * given,
            ),
        ),
        _ERROR,
        envelope,
    )


def of_lead(f: Facts) -> Iterator[Bound]:
    """Yield the rate of LEAD, with a step of the dual variable and of replicas in their ranges."""
    assert isinstance(f.algorithm, LEAD)
    compressor = f.algorithm.compressor
    variance = None
    if isinstance(compressor, Compressor) and compressor.unbiased:
        variance = compressor.variance(f.problem.dim)
    C = math.nan if variance is None else variance
    L, mu = f.problem.L_max, f.problem.mu_min
    # Of a single rank, which has nothing to average, the largest eigenvalue of I - W is 0.
    largest, smallest = max(1.0 - f.lambda_min, 1e-100), 1.0 - f.lambda_2
    gamma, rate = f.algorithm.gamma, f.algorithm.rate
    descent = mu * f.lr * (2.0 - mu * f.lr)
    bold = 2.0 / ((3.0 * C + 1.0) * largest)
    if C > 0.0:
        bold = min(bold, 2.0 * descent / ((2.0 - descent) * C * largest))
    slow = C * largest * gamma / (2.0 * (1.0 + C))
    a1 = 4.0 * (1.0 + C) / (C * largest * gamma + 2.0)
    fast = min((2.0 - largest * gamma) / (4.0 - largest * gamma), descent) / a1
    kept = 1.0 - a1 * rate
    square = max((1.0 - descent) / kept if kept else 0.0, 1.0 - gamma * smallest / 2.0, 1.0 - rate)
    yield f.bound(
        "contraction",
        f"the mean square distance to the optimum shrinks by {square:.9g} per step in the long run",
        math.sqrt(square) if square >= 0.0 else math.nan,
        _LIU,
        (
            f.symmetric(),
            f.stochastic(),
            f.connected(),
            f.lambda_above(-1.0),
            f.each_strongly_convex(),
            f.lr_at_most(2.0 / (mu + L), "2 / (mu_min + L_max)"),
            Assumption("the compressor is unbiased", f"variance {C:.6g}", not math.isnan(C)),
            Assumption(f"gamma < {bold:.6g}", f"gamma = {gamma:.6g}", gamma < bold),
            Assumption(
                f"rate from {slow:.6g} to {fast:.6g}",
                f"rate = {rate:.6g}",
                slow * (1.0 - 1e-12) <= rate <= fast * (1.0 + 1e-12),
            ),
        ),
        "distance",
    )
