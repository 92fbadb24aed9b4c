"""What is guaranteed of averaging."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dectool.algorithms import ChebyshevGossip, PushSum, ShiftRegisterGossip
from dectool.history import History
from dectool.theory._arguments import Floats
from dectool.theory._bound import Assumption, Bound
from dectool.theory._facts import Facts, first_of, steps_of

_ERROR = "consensus_error"


def of_gossip(f: Facts) -> Iterator[Bound]:
    """Yield the contraction of plain gossip, on schedules that of a period."""

    def envelope(history: History) -> Floats:
        most: Floats = f.rho ** np.floor(steps_of(history) / f.period)
        return first_of(history, _ERROR) * most

    # Within a period nothing may expand.
    within = () if f.period == 1 else (f.nonnegative(),)
    per = "step" if f.period == 1 else f"period of {f.period} steps"
    yield f.bound(
        "contraction",
        f"the distance to the mean shrinks by {f.rho:.9g} per {per}, or faster",
        f.rho ** (1.0 / f.period),
        "L. Xiao & S. Boyd, Systems & Control Letters 53(1), 2004",
        (f.stochastic(), f.contracts(), *within),
        _ERROR,
        envelope,
    )


def of_chebyshev(f: Facts) -> Iterator[Bound]:
    """Yield 1 / T_k(1/rho), on the spectrum that the algorithm takes W to have."""
    interval = getattr(f.algorithm, "interval", "symmetric")
    assert isinstance(f.algorithm, ChebyshevGossip)
    if interval == "symmetric":
        low, high = -f.rho, f.rho
    elif interval == "tight":
        # Of a single rank W has no eigenvalue but the first.
        low, high = (f.lambda_min, f.lambda_2) if f.problem.size > 1 else (0.0, 0.0)
    else:
        low, high = float(interval[0]), float(interval[1])
    spread = (high - low) / (2.0 - low - high)
    q = _accelerated(spread)

    def envelope(history: History) -> Floats:
        k = steps_of(history)
        most: Floats = 2.0 * q**k / (1.0 + q ** (2.0 * k))
        return first_of(history, _ERROR) * most

    inside = low - 1e-12 <= f.lambda_min and f.lambda_2 <= high + 1e-12
    spectrum = Assumption(
        f"eigenvalues of W but for the first in [{low:.6g}, {high:.6g}]",
        f"they are in [{f.lambda_min:.6g}, {f.lambda_2:.6g}]",
        inside,
    )
    yield f.bound(
        "contraction",
        f"the distance to the mean is at most 2 q^k / (1 + q^2k) of the first, q = {q:.9g}",
        q,
        "M. Arioli & J. Scott, Numerical Algorithms 66, 2014; K. Scaman et al., ICML 2017",
        (f.symmetric(), f.stochastic(), f.contracts(), spectrum),
        _ERROR,
        envelope,
    )


def of_shift_register(f: Facts) -> Iterator[Bound]:
    r"""Yield q^k (1 + k sqrt(1 - rho^2)): both roots are q where λ is ±ρ, and nowhere larger."""
    assert isinstance(f.algorithm, ShiftRegisterGossip)
    q, slope = _accelerated(f.rho), math.sqrt(max(0.0, 1.0 - f.rho**2))

    def envelope(history: History) -> Floats:
        k = steps_of(history)
        most: Floats = q**k * (1.0 + k * slope)
        return first_of(history, _ERROR) * most

    yield f.bound(
        "contraction",
        f"the distance to the mean is at most q^k (1 + {slope:.6g} k) of the first, q = {q:.9g}",
        q,
        "S. Muthukrishnan, B. Ghosh & M. Schultz, Theory of Computing Systems 31, 1998",
        (f.symmetric(), f.stochastic(), f.contracts()),
        _ERROR,
        envelope,
    )


def of_push_sum(f: Facts) -> Iterator[Bound]:
    """Yield the rate that holds for every strongly connected graph of so many ranks."""
    assert isinstance(f.algorithm, PushSum)
    n, graph = f.problem.size, f.topology
    share = float(n) ** -n

    def envelope(history: History) -> Floats:
        masses = np.abs(f.start(history)).sum(axis=0)
        factor = 8.0 / share if share else np.inf
        later = np.maximum(steps_of(history) - 1.0, 0.0)
        most: Floats = factor * float(np.linalg.norm(masses)) * (1.0 - share) ** later
        most[steps_of(history) == 0.0] = np.inf
        return most

    columns = graph.W.tocsc()
    even = all(
        np.allclose(columns.data[a:b], 1.0 / (b - a), rtol=0.0, atol=1e-12)
        for a, b in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
    )
    loops = bool((graph.W.diagonal() > 0.0).all())
    yield f.bound(
        "contraction",
        f"|x_i - mean| <= 8 n^n lambda^(k-1) sum_j |x_j^0| in each coordinate, lambda = "
        f"1 - n^-n = {1.0 - share:.9g}",
        1.0 - share,
        "A. Nedić & A. Olshevsky, IEEE TAC 60(3), 2015",
        (
            Assumption("every rank splits its mass evenly", "it does" if even else "not so", even),
            Assumption("every rank keeps a share", "it does" if loops else "not so", loops),
            Assumption(
                "strongly connected",
                "it is" if graph.is_connected else "it is not",
                graph.is_connected,
            ),
        ),
        "worst_distance",
        envelope,
    )


def _accelerated(rho: float) -> float:
    """Return q of Chebyshev polynomials on [-rho, rho]."""
    return rho / (1.0 + math.sqrt(max(0.0, 1.0 - rho**2)))
