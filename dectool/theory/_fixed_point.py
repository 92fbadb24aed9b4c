"""Where the iterates of an algorithm end, and how far that is from the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.problems import Problem
from dectool.theory._arguments import Floats
from dectool.theory._iteration import Iteration, moving, probed
from dectool.theory._probe import Probe
from dectool.topology import Schedule, Topology


@final
@dataclass(frozen=True, eq=False)
class FixedPoint:
    r"""A state that a period of an algorithm does not change.

    Attributes:
        x: Iterates of all ranks, shape ``(n, *shape)``.
        bias: :math:`\|X - 1 x^{*\top}\|_F`, the column "distance" of a history.
        mean_bias: :math:`\|\bar x - x^*\|`.
        consensus_error: :math:`\|X - 1 \bar x^\top\|_F`.
        attracts: Whether the iterates tend to it: the rate is below 1.
        state: All arrays of the state, by name.
    """

    x: Floats
    bias: float
    mean_bias: float
    consensus_error: float
    attracts: bool
    state: Mapping[str, Floats]


def fixed_point(
    algorithm: Algorithm, problem: Problem, topology: Topology | Schedule, x0: Any = None
) -> FixedPoint:
    r"""Return the point where an algorithm's iterates end.

    .. math:: s_\infty = u + B (I - B^\top M B)^{-1} B^\top (M u + c), \qquad
       u = (I - B B^\top) s_k

    where B is an orthonormal basis of the directions in which nothing is conserved, and :math:`s_k`
    a state that the algorithm reaches from its own start. So conserved quantities (the sum of y in
    gradient tracking, the mean in gossip) have the values that ``init`` gives them. On a schedule
    it is the state at the beginning of a period.

    Args:
        algorithm: As for :func:`dectool.theory.iteration`.
        problem: n local functions of d variables. If not quadratic, it is replaced by its
            :func:`dectool.theory.linearize`, and the result is right to first order in the bias.
        topology: A topology, or a periodic schedule.
        x0: Starting points, as for :func:`dectool.solve`; default: those of the problem.

    Returns:
        The fixed point, also where it repels (``attracts`` is False then).

    Raises:
        ArgumentError: As for :func:`dectool.theory.iteration`; or a conserved direction is pushed
            for good, so that there is no fixed point; or ``x0`` has another shape.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> end = fixed_point(algorithms.DGD(lr=0.5), q, topology.ring(2))
        >>> end.x.ravel().round(9), round(end.bias, 9)
        (array([0.66666667, 1.33333333]), 0.471404521)

    References:
        K. Yuan, Q. Ling & W. Yin, On the convergence of decentralized gradient descent, SIAM J.
        Optim. 26(3), 2016 (DGD ends at :math:`\alpha (I - W + \alpha H)^{-1} b`).
    """
    found, period = probed(algorithm, problem, topology, x0)
    return end_of(algorithm, problem, found, Iteration.of(found, period))


def end_of(
    algorithm: Algorithm, problem: Problem, found: Probe, iteration: Iteration
) -> FixedPoint:
    """Return the fixed point that belongs to what was read off."""
    M, c = found.matrix, found.constant
    basis = moving(M)
    kept = _kept(found, basis)
    core = basis.T @ M @ basis
    s = kept + basis @ np.linalg.solve(np.eye(len(core)) - core, basis.T @ (M @ kept + c))
    move = float(np.linalg.norm(M @ s + c - s))
    if move > 1e-8 * max(float(np.linalg.norm(c)), float(np.linalg.norm(s)), 1.0):
        raise ArgumentError(
            f"{algorithm.name} has no fixed point here: a quantity that nothing brings back moves "
            "by the same amount in each step; see the topology and the starting point"
        )
    state = iteration.unpack(s)
    x = state["x"].reshape(problem.size, -1)
    mean, optimum = x.mean(axis=0), problem.optimum.reshape(-1)
    return FixedPoint(
        x=x.reshape(problem.size, *problem.shape),
        bias=float(np.linalg.norm(x - optimum)),
        mean_bias=float(np.linalg.norm(mean - optimum)),
        consensus_error=float(np.linalg.norm(x - mean)),
        attracts=iteration.rate < 1.0,
        state=state,
    )


def _kept(found: Probe, basis: Floats) -> Floats:
    """Return the part of a reached state that nothing moves.

    While weights settle, iterates of a step size that is too large grow, and of the sums that they
    keep rounding leaves nothing. So the part is that of an early state, unless the late one has
    another.
    """
    with np.errstate(all="ignore"):
        early, late = (s - basis @ (basis.T @ s) for s in (found.early, found.warm))
        slack = 1e-9 * max(1.0, float(np.abs(found.warm).max(initial=0.0)))
        return late if float(np.abs(late - early).max(initial=0.0)) > slack else early
