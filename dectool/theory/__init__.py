"""Predictions: what theory says an algorithm will do on a problem and a topology."""

from dectool.theory._iteration import Iteration as Iteration
from dectool.theory._iteration import iteration as iteration
from dectool.theory._iteration import iteration_matrix as iteration_matrix
from dectool.theory._iteration import linearize as linearize
from dectool.theory._iteration import rate as rate

__all__ = ["Iteration", "iteration", "iteration_matrix", "linearize", "rate"]
