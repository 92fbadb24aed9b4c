"""The laws of slow workers: what waiting costs, and what not waiting gains."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dectool.errors import ArgumentError
from dectool.theory._arguments import Floats, real, seconds_of, whole
from dectool.theory._order_statistics import expected_maximum


def local_sgd_round_time(n: int, steps: int, mean: float = 1.0) -> float:
    r"""Return the expected time of a round of local SGD with exponential compute times.

    Each of n ranks takes H steps of its own, then all meet: the largest of n Gamma(H) variables.
    Waiting once in H steps averages a rank's luck. For two ranks, with mean time 1/μ a step,

    .. math:: \frac{1}{\mu} \left( H + H \binom{2H}{H} 4^{-H} \right)

    Args:
        n: Number of ranks, at least 1.
        steps: H, at least 1.
        mean: Mean seconds of a step, above 0.

    Returns:
        Seconds from one meeting to the next, for H steps of every rank.

    Example:
        >>> local_sgd_round_time(n=2, steps=5)
        6.23046875
    """
    n, steps = whole("n", n, 1), whole("steps", steps, 1)
    scale = float(seconds_of("mean", mean, 1)[0])
    if n == 2:
        share = float(math.comb(2 * steps, steps) / 4**steps)
        return scale * steps * (1.0 + share)
    from scipy import stats

    return expected_maximum(stats.gamma(steps, scale=scale), n)


def synchronous_throughput(seconds: Sequence[float] | Floats) -> float:
    r"""Return the computations per second of all ranks together, when each waits for all.

    .. math:: n / \max_i c_i

    That is so with constant times :math:`c_i`, for a barrier, for a wait on the neighbors in a
    connected graph (in the long run) and with bounded staleness, whatever the bound: none of these
    hides a rank that is slow for good. With random times it is what no bound can exceed, and
    :func:`expected_maximum` and :func:`exponential_cycle_time` say how far below one stays.

    Args:
        seconds: Mean seconds of a computation of each rank, above 0.

    Returns:
        Computations per second.

    Example:
        >>> synchronous_throughput([1.0, 1.0, 1.0, 2.0])
        2.0

    References:
        Q. Ho et al., More effective distributed ML via a stale synchronous parallel parameter
        server, NeurIPS 2013 (bounded staleness).
    """
    times = seconds_of("seconds", seconds)
    return len(times) / float(times.max())


def asynchronous_throughput(seconds: Sequence[float] | Floats) -> float:
    r"""Return the computations per second of all ranks together, when none ever waits.

    .. math:: \sum_i 1 / \mathrm{E}[c_i]

    By the elementary renewal theorem, whatever the laws of the times.

    Args:
        seconds: Mean seconds :math:`\mathrm{E}[c_i]` of a computation of each rank, above 0.

    Returns:
        Computations per second.

    Example:
        >>> asynchronous_throughput([1.0, 1.0, 1.0, 2.0])
        3.5
    """
    return float((1.0 / seconds_of("seconds", seconds)).sum())


def asynchronous_speedup(n: int, slowdown: float) -> float:
    r"""Return how much sooner an epoch ends if nobody waits for the one slow rank.

    An epoch is a fixed number of computations, whoever makes them. Of n ranks one is slower by a
    factor s, for good. Those who wait are all as slow as that one:

    .. math:: \frac{T_\text{sync}}{T_\text{async}} = \frac{s (n - 1 + 1/s)}{n}

    Args:
        n: Number of ranks, at least 1.
        slowdown: s, at least 1.

    Returns:
        Epoch time when waiting over epoch time when not.

    Example:
        >>> 1 / asynchronous_speedup(128, 2.0)  # an epoch takes half the time
        0.50196078431
    """
    n = whole("n", n, 1)
    slowdown = real("slowdown", slowdown)
    if not 1.0 <= slowdown < math.inf:
        raise ArgumentError(f"slowdown={slowdown} must be finite and at least 1")
    times = [1.0] * (n - 1) + [slowdown]
    return asynchronous_throughput(times) / synchronous_throughput(times)
