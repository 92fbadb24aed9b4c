"""The step size at which an algorithm stops converging on a quadratic."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import need_algorithm
from dectool.theory._iteration import linearize, rate
from dectool.topology import Schedule, Topology

_SMALLEST = 1e-3
_GROWTH = 1.25
_LARGEST = 1e6


def largest_stable_lr(
    algorithm: Algorithm, quadratic: Problem, topology: Topology | Schedule
) -> float:
    r"""Return the step size at which the iterates stop converging.

    .. math:: \alpha_{\max} = \sup \{\alpha : \rho(M(a)) < 1 \text{ for all } a < \alpha\}

    with the eigenvalues of :func:`dectool.theory.rate`. Steps from 1e-3 / L_max on are tried, each
    larger by a quarter, and the first that fails is bisected to 1e-9 relative to itself. What
    theorems guarantee is a lower bound of this.

    Args:
        algorithm: With a hyper-parameter ``lr``, whose value does not matter.
        quadratic: n local functions of d variables; others are replaced by their
            :func:`dectool.theory.linearize`.
        topology: A topology, or a periodic schedule.

    Returns:
        The step size, or infinity where 1e6 / L_max is stable too.

    Raises:
        ArgumentError: The algorithm has no ``lr``, small steps are not stable, or as for
            :func:`dectool.theory.iteration`.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> round(largest_stable_lr(algorithms.ATC(lr=0.1), q, topology.ring(2)), 6)  # 2 / h
        2.0

    References:
        W. Shi, Q. Ling, G. Wu & W. Yin, EXTRA, SIAM J. Optim. 25(2), 2015, Theorem 3.3, for one
        such bound: 2 λ_min((I + W)/2) / L.
    """
    need_algorithm(algorithm)
    if not any(field.name == "lr" for field in dataclasses.fields(algorithm)):
        raise ArgumentError(f"{algorithm.name} has no step size lr, so none is the largest")
    target = quadratic if isinstance(quadratic, Quadratic) else linearize(quadratic)
    changed: Any = dataclasses.replace

    def stable(lr: float) -> bool:
        return rate(changed(algorithm, lr=lr), target, topology) < 1.0

    low = _SMALLEST / target.L_max
    if not stable(low):
        raise ArgumentError(
            f"{algorithm.name} does not converge with lr={low:.3g}, which is small, so it has no "
            "largest stable step on this topology; see Algorithm.needs"
        )
    high = _GROWTH * low
    while stable(high):
        low, high = high, _GROWTH * high
        if high > _LARGEST / target.L_max:
            return math.inf
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low
