"""How far noisy gradients keep the iterates from where they would end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.linalg

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.problems import Problem
from dectool.theory._arguments import Floats, floats
from dectool.theory._iteration import Iteration, moving, probed
from dectool.theory._probe import Probe
from dectool.topology import Schedule, Topology


class DivergesError(ArgumentError):
    """Iterates do not converge, so their spread grows without bound."""


@final
@dataclass(frozen=True, eq=False)
class SteadyState:
    r"""The spread of the iterates about their mean, in the long run.

    Attributes:
        covariance: Of the iterates of all ranks, rank by rank; shape (n d, n d).
        variance: Mean over ranks of :math:`\mathrm{E} \|x_i - \mathrm{E} x_i\|^2`: trace / n.
        mean_variance: :math:`\mathrm{E} \|\bar x - \mathrm{E} \bar x\|^2` of the mean over ranks.
    """

    covariance: Floats
    variance: float
    mean_variance: float


def steady_state(
    algorithm: Algorithm,
    problem: Problem,
    topology: Topology | Schedule,
    noise: Any = 1.0,
) -> SteadyState:
    r"""Return the covariance of the iterates in the long run, with noise in every gradient.

    .. math:: \Sigma = M \Sigma M^\top + \sum_j G_j N G_j^\top

    the discrete Lyapunov equation of :math:`s^+ = M s + c + \sum_j G_j \xi_j`, where :math:`\xi_j`
    is what is added to the j-th gradient of a period: of mean 0, covariance N, and independent of
    all others. M and G are read off the algorithm's code. Where gradients are kept for the next
    step, as in gradient tracking, the noise is kept with them.

    Args:
        algorithm: As for :func:`dectool.theory.iteration`.
        problem: n local functions of d variables; others than quadratics are replaced by their
            :func:`dectool.theory.linearize`.
        topology: A topology, or a periodic schedule; then it is the spread at the beginning of a
            period.
        noise: Standard deviation of each coordinate of a gradient: a number, or an array that
            broadcasts to (n, d).

    Raises:
        ArgumentError: The rate is 1 or more, noise adds up in a conserved quantity, the noise is
            negative, or as for :func:`dectool.theory.iteration`.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> found = steady_state(algorithms.ATC(lr=0.5), q, topology.complete(2))
        >>> round(found.mean_variance, 9)  # lr / (n h (2 - lr h))
        0.166666667

    References:
        A. H. Sayed, Adaptation, learning, and optimization over networks, Foundations and Trends
        in Machine Learning 7(4-5), 2014, chapter 11.
    """
    return spread_of(algorithm, problem, topology, noise).steady_state()


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """The noisy map of an algorithm, in the directions in which nothing is conserved.

    Attributes:
        found: What was read off the algorithm's code.
        iteration: Its map.
        basis: Orthonormal basis B of these directions, shape (N, m).
        core: M among them, shape (m, m); a contraction.
        to_x: From them to the iterates of all ranks, shape (n d, m).
        covariance: That of these directions in the long run, shape (m, m).
        size: Number of ranks.
    """

    found: Probe
    iteration: Iteration
    basis: Floats
    core: Floats
    to_x: Floats
    covariance: Floats
    size: int

    def steady_state(self) -> SteadyState:
        """Return the spread in the long run."""
        block = self.to_x @ self.covariance @ self.to_x.T
        covariance = (block + block.T) / 2
        dim = len(covariance) // self.size
        mean = np.kron(np.ones((1, self.size)) / self.size, np.eye(dim))
        return SteadyState(
            covariance=covariance,
            variance=float(np.trace(covariance)) / self.size,
            mean_variance=float(np.trace(mean @ covariance @ mean.T)),
        )


def spread_of(
    algorithm: Algorithm,
    problem: Problem,
    topology: Topology | Schedule,
    noise: Any,
    x0: Any = None,
) -> Spread:
    """Return the noisy map of an algorithm; see :func:`steady_state` for arguments and errors."""
    found, period = probed(algorithm, problem, topology, x0, noise=True)
    size = problem.size * problem.dim
    deviation = floats("noise", noise)
    if not np.isfinite(deviation).all() or (deviation < 0.0).any():
        raise ArgumentError("noise is a standard deviation, so finite and at least 0")
    try:
        scale = np.broadcast_to(deviation, (problem.size, problem.dim)).ravel()
    except ValueError:
        raise ArgumentError(
            f"noise has shape {deviation.shape}, which does not broadcast to "
            f"{(problem.size, problem.dim)}"
        ) from None
    iteration = Iteration.of(found, period)
    if iteration.rate >= 1.0:
        raise DivergesError(
            f"{algorithm.name} does not converge here (rate {iteration.rate:.6g}), so the spread "
            "grows without bound; lower lr: see largest_stable_lr"
        )
    basis = moving(found.matrix)
    inputs = np.concatenate(
        [np.zeros((len(found.matrix), 0)), *(G * scale for G in found.noise)], 1
    )
    within = basis.T @ inputs
    leak = np.abs(inputs - basis @ within).max(initial=0.0)
    if leak > 1e-9 * np.abs(inputs).max(initial=scale.max()):
        raise ArgumentError(
            f"{algorithm.name} adds up noise in a quantity that nothing brings back, so its spread "
            "grows without bound"
        )
    core = basis.T @ found.matrix @ basis
    # x is linear in s, so the rows of the basis that belong to it are had as a state is.
    rows = [iteration.unpack(column)["x"].ravel() for column in basis.T]
    X = np.reshape(rows, (basis.shape[1], size)).T
    return Spread(
        found=found,
        iteration=iteration,
        basis=basis,
        core=core,
        to_x=X,
        covariance=scipy.linalg.solve_discrete_lyapunov(core, within @ within.T),
        size=problem.size,
    )
