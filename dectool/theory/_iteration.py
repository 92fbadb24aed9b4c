"""The exact affine map that one step of an algorithm is on quadratics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.linalg

from dectool.algorithms import Algorithm, State
from dectool.communicator import Communicator
from dectool.errors import ArgumentError
from dectool.problems import Problem, Quadratic
from dectool.run import run
from dectool.topology import Schedule, Topology, as_schedule

_Array = np.ndarray[Any, np.dtype[np.float64]]
_Complex = np.ndarray[Any, np.dtype[np.complex128]]
_COLUMNS = 1024


@final
@dataclass(frozen=True, eq=False)
class Iteration:
    r"""One period of an algorithm on a quadratic, :math:`s^+ = M s + c`.

    Attributes:
        matrix: M, shape (N, N).
        constant: c, shape (N,).
        fields: The arrays of the state that s is made of, in order, with their shapes (n, ...).
        period: Steps that M stands for: 1, or the period of the schedule.
    """

    matrix: _Array
    constant: _Array
    fields: Mapping[str, tuple[int, ...]]
    period: int

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
        """Eigenvalues of M but for zeros and the conserved ones, which stay 1; largest first."""
        if not len(self._core):
            return np.empty(0, np.complex128)
        values = np.linalg.eigvals(self._core).astype(np.complex128)
        changing = np.argsort(np.abs(values - 1.0))[self.conserved :]
        kept = values[changing]
        return kept[np.argsort(-np.abs(kept))]

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


def _near_zero(R: np.ndarray[Any, Any], tolerance: float) -> int:
    """Return how many diagonal entries of a pivoted triangular factor are negligible."""
    diagonal = np.abs(np.diag(R))
    return int((diagonal <= tolerance * max(1.0, float(diagonal[0]))).sum())


def iteration(algorithm: Algorithm, problem: Problem, topology: Topology | Schedule) -> Iteration:
    r"""Return the affine map of one period of an algorithm, by running it on unit states.

    The map is read off the algorithm's own code, so there is no second version of it to be wrong.
    Problems other than quadratics are replaced by their :func:`linearize`.

    Args:
        algorithm: With constant hyper-parameters.
        problem: n local functions of d variables.
        topology: A topology, or a periodic schedule.

    Raises:
        ArgumentError: The algorithm is not affine, changes from step to step, or the schedule
            has no period.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> iteration(algorithms.ATC(lr=0.5), q, topology.ring(2)).matrix
        array([[0.25, 0.25],
               [0.25, 0.25]])
    """
    schedule = as_schedule(topology)
    if schedule.period is None:
        raise ArgumentError(
            f"topology {schedule.name} is random and has no period; give a topology or a "
            "periodic schedule"
        )
    quadratic = problem if isinstance(problem, Quadratic) else linearize(problem)
    found: list[Iteration] = []

    def program(comm: Communicator) -> None:
        found.append(_probe(comm, algorithm, quadratic, schedule))

    run(program, problem.size, backend="stacked", topology=schedule)
    return found[0]


def iteration_matrix(
    algorithm: Algorithm, problem: Problem, topology: Topology | Schedule
) -> _Array:
    """Return the matrix M of :func:`iteration`, shape (N, N)."""
    return iteration(algorithm, problem, topology).matrix


def rate(algorithm: Algorithm, problem: Problem, topology: Topology | Schedule) -> float:
    """Return the predicted contraction per step in the long run, near the optimum.

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

    Example:
        >>> from dectool import problems
        >>> linearize(problems.Averaging([[1.0], [3.0]])).optimum
        array([2.])
    """
    ranks = np.arange(problem.size)
    points = np.broadcast_to(problem.optimum, (problem.size, *problem.shape))
    H = np.asarray(problem.hessian(points, ranks))
    g = np.asarray(problem.grad(points, ranks)).reshape(problem.size, problem.dim)
    return Quadratic(h=H, b=H @ problem.optimum.reshape(-1) - g)


def _probe(
    comm: Communicator, algorithm: Algorithm, quadratic: Quadratic, schedule: Schedule
) -> Iteration:
    period = schedule.period or 1

    def grad(x: Any) -> Any:
        return quadratic.grad(x, comm.rank)

    def advance(state: State, first: int) -> State:
        for k in range(first, first + period):
            comm.topology = schedule.at(k)
            state = algorithm.at(k).step(comm, state, grad)
        return state

    comm.topology = schedule.at(0)
    size, dim = quadratic.size, quadratic.dim
    state = algorithm.at(0).init(comm, np.zeros((size, dim)), grad)
    for repeat in range(2):
        state = advance(state, repeat * period)
    after = advance(state, 2 * period)
    fields = {k: v.shape for k, v in state.items() if isinstance(v, np.ndarray)}
    shared = {k: v for k, v in state.items() if k not in fields}
    if any(after[name] != value for name, value in shared.items()):
        raise ArgumentError(
            f"{algorithm.name} changes from step to step ({', '.join(shared)}), so no one matrix "
            "describes it"
        )

    def apply(columns: _Array) -> _Array:
        """Apply a period to states given as columns of shape (N, B)."""
        arrays, start = {}, 0
        for name, shape in fields.items():
            stop = start + math.prod(shape)
            block = columns[start:stop].reshape(*shape, -1)
            arrays[name] = np.ascontiguousarray(np.moveaxis(block, -1, 1))
            start = stop
        result = advance(State(**arrays, **shared), 2 * period)
        parts = [np.moveaxis(result[name], 1, -1) for name in fields]
        return np.concatenate([part.reshape(-1, columns.shape[1]) for part in parts])

    total = sum(math.prod(shape) for shape in fields.values())
    with np.errstate(all="ignore"):
        constant = apply(np.zeros((total, 1)))
    if not np.isfinite(constant).all():
        raise _not_affine(algorithm)
    matrix = np.empty((total, total))
    for start in range(0, total, _COLUMNS):
        stop = min(start + _COLUMNS, total)
        unit = np.zeros((total, stop - start))
        unit[np.arange(start, stop), np.arange(stop - start)] = 1.0
        matrix[:, start:stop] = apply(unit) - constant
    _check_affine(algorithm, apply, matrix, constant)
    return Iteration(matrix, constant[:, 0], fields, period)


def _check_affine(algorithm: Algorithm, apply: Any, matrix: _Array, constant: _Array) -> None:
    s = np.random.default_rng(0).normal(size=(len(matrix), 1))
    expected = matrix @ s + constant
    if not np.allclose(apply(s), expected, rtol=1e-6, atol=1e-6 * float(np.abs(expected).max())):
        raise _not_affine(algorithm)


def _not_affine(algorithm: Algorithm) -> ArgumentError:
    return ArgumentError(
        f"{algorithm.name} is not affine in its state, so no matrix describes a step of it"
    )
