"""Quadratics as one matrix and one vector over all ranks, for closed forms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from dectool.problems import Problem
from dectool.theory._arguments import Floats
from dectool.topology import Topology


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
