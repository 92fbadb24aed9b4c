"""Quadratics as one matrix and one vector over all ranks, for closed forms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import Floats
from dectool.topology import Topology

CURVATURES = (1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0)


class Blocks(NamedTuple):
    """Local gradients :math:`H x - b` and an average :math:`W x` of all ranks at once.

    Attributes:
        W: Mixing matrix, times the identity in each coordinate; shape (n d, n d).
        H: Curvatures, block diagonal; shape (n d, n d).
        b: Linear terms; shape (n d,).
    """

    W: Floats
    H: Floats
    b: Floats


def blocks(problem: Problem, topology: Topology) -> Blocks:
    """Return a quadratic problem and a topology as matrices."""
    zero, ranks = np.zeros((problem.size, problem.dim)), problem.ranks
    H = scipy.linalg.block_diag(*np.asarray(problem.hessian(zero, ranks)))
    b = -np.asarray(problem.grad(zero, ranks), np.float64).ravel()
    W = np.kron(topology.to_dense(), np.eye(problem.dim))
    return Blocks(np.asarray(W, np.float64), H, b)


def eight_scalars() -> Quadratic:
    """Return eight quadratics of one variable, of curvatures 1 to 4 and linear terms 0 to 7."""
    return Quadratic(h=np.array(CURVATURES)[:, None], b=np.arange(8.0)[:, None])


def checked_quadratic(problem: Problem | None, size: int | None = None) -> Quadratic:
    """Return the problem, or the default one.

    Raises:
        ArgumentError: It has another number of ranks.
        ArgumentTypeError: It is no :class:`dectool.problems.Quadratic`.
    """
    found = eight_scalars() if problem is None and size in (None, 8) else problem
    if found is None:
        assert size is not None
        found = Quadratic.random(size, 2, kappa=4.0)
    if not isinstance(found, Quadratic):
        raise ArgumentTypeError(
            f"problem is a {type(found).__name__}; closed forms are for problems.Quadratic"
        )
    if size not in (None, found.size):
        raise ArgumentError(
            f"the problem has {found.size} ranks and the topology {size}; build both for the "
            "same number"
        )
    return found


def checked_rate(name: str, value: float, most: float = np.inf) -> float:
    """Return a number above 0 and below ``most``.

    Raises:
        ArgumentError: It is none.
    """
    if isinstance(value, bool) or not 0.0 < value < most:
        bound = "finite" if most == np.inf else f"below {most:g}"
        raise ArgumentError(f"{name}={value!r} must be above 0 and {bound}")
    return float(value)
