"""Predictions: what theory says an algorithm will do on a problem and a topology."""

from dectool.theory._iteration import (
    Iteration as Iteration,
    iteration as iteration,
    iteration_matrix as iteration_matrix,
    linearize as linearize,
    rate as rate,
)

__all__ = ["Iteration", "iteration", "iteration_matrix", "linearize", "rate"]
