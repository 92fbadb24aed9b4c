"""What an algorithm may ask of the local functions, and who may ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.communicator import Communicator
from dectool.errors import ArgumentError
from dectool.problems import DataProblem, Problem

if TYPE_CHECKING:
    from dectool.algorithms import Algorithm


class Oracle:
    """A rank's local function as an algorithm sees it: the gradient, and what inverts it.

    Each answer takes the modelled time of one gradient, and counts as one.

    Args:
        comm: Whose rank; or of all ranks at once.
        problem: Its local functions, as functions of vectors.
        batch_size: Samples of a gradient; ``None`` for all.
        first: Gradients that were taken before.
    """

    def __init__(
        self, comm: Communicator, problem: Problem, batch_size: int | None = None, first: int = 0
    ) -> None:
        self._comm = comm
        self._problem = problem
        self._batch_size = batch_size
        self._flat = len(problem.shape) == 1
        self.number = first

    def __call__(self, x: Any) -> Any:
        """Return the gradient of f_i at x, or an estimate of it."""
        with self._comm.computing():
            point = self._shaped(x)
            if self._batch_size is None:
                g = self._problem.grad(point, self._comm.rank)
            else:
                rng = self._comm.rng("minibatch", self.number)
                smooth = self._problem.smooth
                assert isinstance(smooth, DataProblem)
                g = smooth.sample_grad(point, self._comm.rank, rng, self._batch_size)
        return self._answer(g, x)

    def prox(self, v: Any, weight: Any) -> Any:
        """Return the proximal point of f_i at v: see :meth:`dectool.problems.Problem.prox`."""
        with self._comm.computing():
            p = self._problem.prox(self._shaped(v), self._comm.rank, weight)
        return self._answer(p, v)

    def conjugate(self, y: Any, start: Any = None) -> Any:
        """Return the gradient of the conjugate of f_i at y: the x with gradient y.

        See :meth:`dectool.problems.Problem.grad_conjugate`.
        """
        with self._comm.computing():
            near = None if start is None else self._shaped(start)
            x = self._problem.grad_conjugate(self._shaped(y), self._comm.rank, near)
        return self._answer(x, y)

    def prox_regularizer(self, v: Any, step: Any) -> Any:
        """Return the proximal point of the common term at v; v itself if there is none."""
        r = self._problem.regularizer
        return v if r is None else r.prox(v, step)

    def _shaped(self, x: Any) -> Any:
        return x if self._flat else x.reshape((*x.shape[:-1], *self._problem.shape))

    def _answer(self, result: Any, like: Any) -> Any:
        self.number += 1
        return result if self._flat else np.asarray(result).reshape(like.shape)


def check_oracle(
    algorithm: Algorithm, problem: Problem, batch_size: int | None, check: bool = True
) -> None:
    """Refuse a problem that cannot answer what an algorithm asks of its local functions.

    Args:
        algorithm: Which says by ``oracle`` what it asks.
        problem: What is asked.
        batch_size: Samples of a gradient, which must be all of them where more is asked.
        check: Whether the curvature of the problem must be what the theory needs, too.

    Raises:
        ArgumentError: Names the algorithm, the problem, and the fix.
    """
    if problem.regularizer is not None and not algorithm.composite:
        raise ArgumentError(
            f"{algorithm.name} knows nothing of the common term of {problem!r}, and would minimise "
            "f alone; use PGEXTRA or NIDS, or solve problem.smooth"
        )
    if algorithm.oracle == "gradient":
        return
    name, least = algorithm.name, problem.mu_min if check else np.inf
    asked, needed = {
        "prox": ("the proximal point of each local function", "convex"),
        "conjugate": ("the gradient of each local function's conjugate", "strongly convex"),
    }[algorithm.oracle]
    if batch_size is not None:
        raise ArgumentError(
            f"batch_size={batch_size}, but {name} asks for {asked}, which a few samples do not "
            "give; leave batch_size out, or use an algorithm of gradients, such as EXTRA"
        )
    if least < 0.0 or (least == 0.0 and needed == "strongly convex"):
        raise ArgumentError(
            f"{name} asks for {asked}, so all must be {needed}, but the smallest strong convexity "
            f"of one of {problem!r} is {least:g}; give it curvature (l2 > 0, or h > 0), or use an "
            "algorithm of gradients, such as EXTRA. check=False insists"
        )
