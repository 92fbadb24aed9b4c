"""The exact affine map that one step of an algorithm is on quadratics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.linalg

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import need_algorithm, need_problem
from dectool.theory._probe import Probe, read
from dectool.topology import Schedule, Topology, as_schedule

_Array = np.ndarray[Any, np.dtype[np.float64]]
_Complex = np.ndarray[Any, np.dtype[np.complex128]]


@final
@dataclass(frozen=True, eq=False)
class Iteration:
    r"""One period of an algorithm on a quadratic, :math:`s^+ = M s + c`.

    Attributes:
        matrix: M, shape (N, N).
        constant: c, shape (N,).
        fields: The arrays of the state that s is made of, in order, with their shapes (n, ...).
        period: Steps that M stands for: the least common multiple of the periods of the
            algorithm and of the schedule, mostly 1.
    """

    matrix: _Array
    constant: _Array
    fields: Mapping[str, tuple[int, ...]]
    period: int

    @classmethod
    def of(cls, found: Probe, period: int) -> Iteration:
        """Return what was read off."""
        return cls(found.matrix, found.constant, found.fields, period)

    @cached_property
    def _core(self) -> _Array:
        """M on its own range: the same eigenvalues but for zeros, which states with memory have."""
        Q, R, _ = scipy.linalg.qr(self.matrix, mode="economic", pivoting=True, check_finite=False)
        rank = len(R) - _near_zero(R, 1e-14)
        basis = Q[:, :rank]
        core: _Array = basis.T @ (self.matrix @ basis)
        return core

    @cached_property
    def conserved(self) -> int:
        """Number of independent conserved quantities: left null vectors of M - I."""
        if not len(self._core):
            return 0
        shifted = self._core - np.eye(len(self._core))
        R = scipy.linalg.qr(shifted, mode="r", pivoting=True, check_finite=False)[0]
        return _near_zero(R, 1e-11)

    @cached_property
    def eigenvalues(self) -> _Complex:
        """Eigenvalues of M but for zeros and those of conserved quantities; largest first."""
        basis = moving(self._core)
        values = np.linalg.eigvals(basis.T @ self._core @ basis).astype(np.complex128)
        return values[np.argsort(-np.abs(values))]

    @property
    def rate(self) -> float:
        """Contraction per step in the long run: the spectral radius to the power 1/period."""
        if not len(self.eigenvalues):
            return 0.0
        return float(np.abs(self.eigenvalues[0]) ** (1.0 / self.period))

    def pack(self, state: Mapping[str, Any]) -> _Array:
        """Return a state as the vector s."""
        return np.concatenate([np.asarray(state[name]).ravel() for name in self.fields])

    def unpack(self, s: _Array) -> dict[str, _Array]:
        """Return the arrays of a state from the vector s."""
        arrays, start = {}, 0
        for name, shape in self.fields.items():
            stop = start + math.prod(shape)
            arrays[name] = s[start:stop].reshape(shape)
            start = stop
        return arrays


def moving(matrix: _Array) -> _Array:
    """Return an orthonormal basis of the directions in which no quantity is conserved.

    They are the range of (M - I)^p for large p. One such factor is not enough where a conserved
    quantity drives another, as the sum of pulls, always zero, drives the dual variable of LEAD:
    M has a Jordan block at 1 there.
    """
    basis = np.eye(len(matrix))
    while basis.shape[1]:
        core = basis.T @ matrix @ basis
        Q, R, _ = scipy.linalg.qr(core - np.eye(len(core)), pivoting=True, check_finite=False)
        zeros = _near_zero(R, 1e-11)
        if not zeros:
            break
        basis = basis @ Q[:, : len(core) - zeros]
    return basis


def _near_zero(R: np.ndarray[Any, Any], tolerance: float) -> int:
    """Return how many diagonal entries of a pivoted triangular factor are negligible."""
    diagonal = np.abs(np.diag(R))
    return int((diagonal <= tolerance * max(1.0, float(diagonal[0]))).sum())


def iteration(algorithm: Algorithm, problem: Problem, topology: Topology | Schedule) -> Iteration:
    r"""Return the affine map of one period of an algorithm, by running it on unit states.

    The map is read off the algorithm's own code, so there is no second version of it to be wrong.
    Weights that do not depend on x, as of push-sum, are a part of the map, at their limit.
    Problems other than quadratics are replaced by their :func:`linearize`.

    Args:
        algorithm: With constant hyper-parameters.
        problem: n local functions of d variables.
        topology: A topology, or a periodic schedule.

    Raises:
        ArgumentError: The algorithm is not affine, lets ranks go on at their own pace, or changes
            from step to step (as with random numbers), or the schedule has no period.
        ArgumentTypeError: An argument is of another kind.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> iteration(algorithms.ATC(lr=0.5), q, topology.ring(2)).matrix
        array([[0.25, 0.25],
               [0.25, 0.25]])
    """
    found, period = probed(algorithm, problem, topology)
    return Iteration.of(found, period)


def probed(
    algorithm: Algorithm,
    problem: Problem,
    topology: Topology | Schedule,
    x0: Any = None,
    noise: bool = False,
    within: bool = False,
) -> tuple[Probe, int]:
    """Return all that is read off an algorithm's code, and the period."""
    need_algorithm(algorithm)
    need_problem(problem)
    schedule = as_schedule(topology)
    if schedule.period is None:
        raise ArgumentError(
            f"topology {schedule.name} is random and has no period; give a topology or a "
            "periodic schedule"
        )
    quadratic = problem if isinstance(problem, Quadratic) else linearize(problem)
    start = problem.initial(np.arange(problem.size)) if x0 is None else x0
    period = math.lcm(schedule.period, algorithm.period)
    return read(algorithm, quadratic, schedule, period, start, noise, within), period


def iteration_matrix(
    algorithm: Algorithm, problem: Problem, topology: Topology | Schedule
) -> _Array:
    """Return the matrix M of :func:`iteration`, shape (N, N).

    Args:
        algorithm: As there.
        problem: As there.
        topology: As there.

    Raises:
        ArgumentError: As there.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> iteration_matrix(algorithms.EXTRA(lr=0.05), q, topology.ring(2)).shape
        (8, 8)
    """
    return iteration(algorithm, problem, topology).matrix


def rate(algorithm: Algorithm, problem: Problem, topology: Topology | Schedule) -> float:
    r"""Return the predicted contraction per step in the long run, near the optimum.

    .. math:: \max |\lambda(M)|^{1/p}

    over a period p, but for the eigenvalues 1 that belong to conserved quantities, which the
    algorithm's own start sets.

    Args:
        algorithm: As for :func:`iteration`.
        problem: As there.
        topology: As there.

    Raises:
        ArgumentError: As there.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> round(rate(algorithms.ATC(lr=0.5), q, topology.ring(2)), 9)
        0.5
    """
    return iteration(algorithm, problem, topology).rate


def linearize(problem: Problem) -> Quadratic:
    r"""Return the quadratics that agree with a problem to second order at its optimum.

    .. math:: \nabla q_i(x) = \nabla f_i(x^*) + \nabla^2 f_i(x^*) (x - x^*)

    Raises:
        ArgumentError: The problem has a common term that is not smooth.
        ArgumentTypeError: It is no problem.

    Example:
        >>> from dectool import problems
        >>> linearize(problems.Averaging([[1.0], [3.0]])).optimum
        array([2.])
    """
    need_problem(problem)
    if problem.regularizer is not None:
        raise ArgumentError(
            f"{problem!r} has corners, so no quadratic agrees with it to second order; use the "
            "smooth part, problem.smooth"
        )
    ranks = np.arange(problem.size)
    points = np.broadcast_to(problem.optimum, (problem.size, *problem.shape))
    H = np.asarray(problem.hessian(points, ranks))
    g = np.asarray(problem.grad(points, ranks)).reshape(problem.size, problem.dim)
    return Quadratic(h=H, b=H @ problem.optimum.reshape(-1) - g)
