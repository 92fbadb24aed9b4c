"""After how many rounds averaging is exact, for graphs and sequences where it ever is."""

from __future__ import annotations

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._edges import Floats, Matrix, count
from dectool.topology._guards import need_either, period_of
from dectool.topology._lanczos import generic, nilpotent
from dectool.topology._schedule import Schedule
from dectool.topology._schedules import as_schedule
from dectool.topology._topology import Topology

_ROUNDING = 1e-12
_PERIODS = 64


def finite_time_length(topology: Topology | Schedule, *, start: int | None = None) -> int | None:
    r"""Return the least k with :math:`W_{s+k-1} \cdots W_s = J` to rounding, or None.

    Rounding is 1e-12 on a generic vector. A contraction does not count, however often it is
    repeated: the product of a period less J must vanish at one of its powers. Nor does agreement
    on something else than the mean, as of W whose columns do not sum to 1.

    Args:
        topology: A Topology, or a Schedule with a period.
        start: First step s, from 0 to the period - 1; default: the worst of all of them.

    Raises:
        ArgumentError: start is out of range.
        TopologyError: The schedule has no period.

    Example:
        >>> from dectool import topology
        >>> s = topology.one_peer_exponential(16)
        >>> topology.finite_time_length(s), topology.finite_time_length(s, start=3)
        (4, 4)
        >>> topology.finite_time_length(topology.de_bruijn(27, 3))
        3
        >>> topology.finite_time_length(topology.ring(8)) is None
        True

    References:
        J.-C. Delvenne, R. Carli, S. Zampieri, Optimal strategies in the average consensus problem,
        Systems & Control Letters 58, 2009. B. Ying et al., Exponential graph is provably efficient
        for decentralized deep training, NeurIPS 2021.
    """
    need_either("finite_time_length", topology)
    schedule = as_schedule(topology)
    period = period_of("finite_time_length", schedule)
    starts: list[int] | range = range(period)
    if start is not None:
        start = count("start", start, 0)
        if start >= period:
            raise ArgumentError(f"start must be below the period, {period}, got {start}")
        starts = [start]
    if schedule.size == 1:
        return 0
    steps = [schedule.at(k).W for k in range(period)]
    # Products that differ by where in the cycle they begin have the same eigenvalues but for 0.
    if not _is_exact(_once(steps)):
        return None
    lengths = [_length(steps, first) for first in starts]
    found = [length for length in lengths if length is not None]
    return max(found) if len(found) == len(lengths) else None


def _once(steps: list[Matrix]) -> list[Matrix]:
    """Return the steps that are repeated, as often as may be, to make up all.

    Repeated often enough, a contraction ends in rounding too.
    """
    number = len(steps)
    for part in range(1, number):
        if number % part == 0 and all(
            abs(steps[k] - steps[k % part]).max() == 0 for k in range(part, number)
        ):
            return steps[:part]
    return steps


def _is_exact(steps: list[Matrix]) -> bool:
    """Say whether differences vanish after some steps, be it at the mean or elsewhere."""
    n = steps[0].shape[0]

    def period(v: Floats) -> Floats:
        for W in steps:
            v = np.asarray(W @ v)
        return np.asarray(v - v.mean())

    v = generic(n)
    v = v - v.mean()
    if np.linalg.norm(period(v)) <= _ROUNDING:
        return True
    return nilpotent(lambda u: period(u - u.mean()), n, _PERIODS)


def _length(steps: list[Matrix], first: int) -> int | None:
    """Return the least number of steps to the mean; None if they end elsewhere."""
    v = generic(steps[0].shape[0])
    mean = v.mean()
    for k in range((_PERIODS + 1) * len(steps)):
        v = np.asarray(steps[(first + k) % len(steps)] @ v)
        if np.linalg.norm(v - mean) <= _ROUNDING:
            return k + 1
    return None
