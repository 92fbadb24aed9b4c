"""What is measured at a recorded step."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.problems import Problem

COLUMNS = (
    "step",
    "time",
    "bytes",
    "messages",
    "objective",
    "gap",
    "grad_norm",
    "consensus_error",
    "distance",
    "worst_distance",
    "worst_rank",
    "change",
    "alive",
)
"""The columns of a history, in order."""


def measure(
    problem: Problem, X: np.ndarray[Any, Any], previous: np.ndarray[Any, Any] | None = None
) -> dict[str, float]:
    r"""Return the metrics of the iterates of all ranks.

    Args:
        problem: Gives the objective f, its gradient and its optimum x*.
        X: Iterates, shape (n, dim).
        previous: Iterates at the record before, if there is one.

    Returns:
        ``objective``: :math:`f(\bar x)` at the mean iterate; ``gap``: :math:`f(\bar x) - f(x^*)`;
        ``grad_norm``: :math:`\|\nabla f(\bar x)\|`; ``consensus_error``:
        :math:`\|X - 1 \bar x^T\|_F`; ``distance``: :math:`\|X - 1 x^{*T}\|_F`;
        ``worst_distance``: the largest :math:`\|x_i - x^*\|`, and ``worst_rank``: whose it is;
        ``change``: :math:`\|X - X_{previous}\|_F`, NaN at the first record; ``alive``: number of
        ranks. Where ranks have crashed, all of this is said of the ranks that are left: f is the
        mean of their local functions, and x* its optimum; see :class:`dectool.problems.Among`.

    Example:
        >>> import numpy as np
        >>> from dectool import problems
        >>> m = measure(problems.Averaging([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
        >>> m["gap"], m["consensus_error"]
        (0.0, 0.0)
    """
    mean = X.mean(axis=0)
    point = mean.reshape(problem.shape)
    objective = float(problem.objective(point))
    apart = np.linalg.norm(X - problem.optimum.reshape(-1), axis=1)
    worst = int(np.argmax(apart))
    return {
        "objective": objective,
        "gap": float(problem.gap(point)),
        "grad_norm": float(np.linalg.norm(problem.gradient(point))),
        "consensus_error": float(np.linalg.norm(X - mean)),
        "distance": float(np.linalg.norm(apart)),
        "worst_distance": float(apart[worst]),
        "worst_rank": worst,
        "change": float("nan") if previous is None else float(np.linalg.norm(X - previous)),
        "alive": len(X),
    }
