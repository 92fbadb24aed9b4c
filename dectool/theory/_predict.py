"""All that theory says of a run, before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.metrics import measure
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import Floats, whole
from dectool.theory._fixed_point import FixedPoint, end_of
from dectool.theory._iteration import Iteration, linearize, probed
from dectool.theory._probe import Probe
from dectool.topology import Schedule, Topology, as_schedule

COLUMNS = ("distance", "consensus_error", "gap")
"""The columns of a history that a prediction has, too."""


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """What :func:`predict` returns.

    Attributes:
        algorithm: Whose steps.
        problem: On which functions.
        topology: Name of the topology.
        iteration: The affine map of a period.
        limit: Where the iterates end if the rate is below 1.
        exact: Whether the problem is quadratic, so that every iterate is predicted, not only the
            behavior near the limit.
        x0: Starting points, shape (n, d).
    """

    algorithm: Algorithm
    problem: Problem
    topology: str
    iteration: Iteration
    limit: FixedPoint
    exact: bool
    x0: Floats
    _found: Probe

    def __repr__(self) -> str:
        return (
            f"<Prediction of {self.algorithm.name} on {self.topology}: rate {self.rate:.9g}, "
            f"bias {self.bias:.9g}>"
        )

    @property
    def rate(self) -> float:
        """Contraction per step in the long run; see :func:`dectool.theory.rate`."""
        return self.iteration.rate

    @property
    def bias(self) -> float:
        r"""Distance :math:`\|X_\infty - 1 x^{*\top}\|_F` of the limit from the optimum."""
        return self.limit.bias

    @property
    def period(self) -> int:
        """Steps of a period: those of which ``iteration`` is the map."""
        return self.iteration.period

    def iterates(self, steps: Sequence[int]) -> Floats:
        r"""Return the iterates of all ranks after some numbers of steps, shape (K, n, d).

        .. math:: s_{mp} - s_\infty = M^m (s_0 - s_\infty)

        after m periods of p steps; the steps within a period have maps of their own.

        Args:
            steps: Numbers of steps, ascending.

        Raises:
            ArgumentError: The problem is not quadratic, or a step is negative or out of order.
        """
        if not self.exact:
            raise ArgumentError(
                f"{self.problem.name} is not quadratic, so only rate and limit are predicted"
            )
        M, c = self._found.matrix, self._found.constant
        s, done, last, found = self._found.warm, len(self._found.first) - 1, 0, []
        for given in steps:
            step = last = whole("steps", given, last)
            if step < len(self._found.first):
                found.append(self._found.first[step])
                continue
            while done + self.period <= step:
                s, done = M @ s + c, done + self.period
            if step == done:
                found.append(self.iteration.unpack(s)["x"])
            else:
                to_x, offset = self._found.within[step - done - 1]
                found.append(to_x @ s + offset)
        return np.reshape([np.ravel(x) for x in found], (len(found), *self.x0.shape))

    def trajectory(self, steps: Sequence[int]) -> Mapping[str, Floats]:
        """Return what a history would record after some numbers of steps.

        Args:
            steps: As for :meth:`iterates`.

        Returns:
            One array (K,) each for "distance", "consensus_error" and "gap".

        Raises:
            ArgumentError: As for :meth:`iterates`.
        """
        rows = [measure(self.problem, X) for X in self.iterates(steps)]
        return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def predict(
    algorithm: Algorithm, problem: Problem, topology: Topology | Schedule, x0: Any = None
) -> Prediction:
    r"""Return what theory says an algorithm will do.

    On quadratics that is everything: with M and c of :func:`dectool.theory.iteration`,

    .. math:: s_{k+1} = M s_k + c, \qquad s_k - s_\infty = M^k (s_0 - s_\infty)

    On other problems it is the rate near the limit, and to first order the bias.

    Args:
        algorithm: As for :func:`dectool.theory.iteration`.
        problem: n local functions of d variables.
        topology: A topology, or a periodic schedule.
        x0: Starting points, as for :func:`dectool.solve`; default: those of the problem.

    Raises:
        ArgumentError: As for :func:`dectool.theory.fixed_point`.

    Example:
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> found = predict(algorithms.DGD(lr=0.5), q, topology.ring(2))
        >>> found
        <Prediction of DGD on ring of 2: rate 0.5, bias 0.471404521>
        >>> found.trajectory([0, 10, 20])["distance"].round(6)
        array([1.414214, 0.470946, 0.471404])
    """
    found, period = probed(algorithm, problem, topology, x0, within=True)
    iteration = Iteration.of(found, period)
    return Prediction(
        algorithm=algorithm,
        problem=problem,
        topology=as_schedule(topology).name,
        iteration=iteration,
        limit=end_of(algorithm, problem, found, iteration),
        exact=not algorithm.uses_gradient or _is_quadratic(problem),
        x0=found.first[0],
        _found=found,
    )


def _is_quadratic(problem: Problem) -> bool:
    """Return whether gradients agree with the linearized ones, away from the optimum too."""
    if isinstance(problem, Quadratic):
        return True
    ranks = np.arange(problem.size)
    points = np.random.default_rng(0).normal(size=(problem.size, *problem.shape))
    flat = points.reshape(problem.size, -1)
    found = problem.grad(points, ranks).reshape(flat.shape)
    return bool(np.allclose(found, linearize(problem).grad(flat, ranks), rtol=1e-9, atol=1e-9))
