"""A history held against a prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.history import History
from dectool.theory._evidence import Check, Verdict
from dectool.theory._predict import COLUMNS, Prediction
from dectool.theory._same_run import check_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True, eq=False)
class Agreement:
    """What :func:`compare` returns.

    Attributes:
        history: What was measured.
        prediction: What was predicted.
        checks: One for each quantity.
    """

    history: History
    prediction: Prediction
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether all checks agree, and a text: one line for each."""
        relation = "agrees with" if all(self.checks) else "DISAGREES with"
        return Verdict.of(self.checks, f"{self.prediction!r} {relation} {self.history!r}")

    def plot(self, y: str = "distance", ax: Axes | None = None, **line: Any) -> Axes:
        """Draw a column of the history, and what was predicted of it; return the axes.

        Without an exact trajectory the prediction is a straight line of the predicted rate.

        Args:
            y: "distance", "consensus_error" or "gap".
            ax: Axes to draw on; default: new ones.
            line: Passed to matplotlib's ``plot`` for the history.

        Raises:
            ArgumentError: Another column is asked for.
            MissingDependencyError: matplotlib is not installed.
        """
        if y not in COLUMNS:
            raise ArgumentError(f"{y!r} is not predicted; give one of {', '.join(COLUMNS)}")
        axes = self.history.plot(y, ax=ax, **line)
        steps, values = _predicted(self.history, self.prediction, y)
        above = values > 0.0
        label = f"predicted, rate {self.prediction.rate:.6g}"
        axes.plot(steps[above], values[above], "k--", linewidth=1.0, label=label)
        axes.legend()
        return axes


def compare(
    history: History,
    prediction: Prediction,
    *,
    tolerance: float = 1e-9,
    rate_tolerance: float = 0.02,
) -> Agreement:
    r"""Hold a history against a prediction.

    Where every iterate is predicted (``prediction.exact``), the columns "distance",
    "consensus_error" and "gap" are compared at all recorded steps,

    .. math:: \max_k |a_k - b_k| \,/\, D, \qquad D = \max_k \|X^k - 1 x^{*\top}\|_F

    for measured a and predicted b, with :math:`L D^2 / 2n`, the largest gap that such a distance
    allows, in place of D for the gap. Otherwise it is the contraction per step, r of
    :meth:`dectool.History.rate`: :math:`|r - \rho| / \min(\rho, |1 - \rho|)`, as of a slow
    method :math:`1 - \rho` is what it does.

    Args:
        history: Of a run without faults, on full gradients.
        prediction: Of the same algorithm, problem, topology and starting points.
        tolerance: The largest error of a column that agrees; float64 needs some 1e-12, more where
            the iterates grow.
        rate_tolerance: The largest error of the rate that agrees. A fitted slope is rough where
            the largest eigenvalues are complex or lie close together.

    Raises:
        ArgumentError: The two are not of the same run, the run had faults or stochastic
            gradients, or its records are too few.
        ArgumentTypeError: One is of another kind.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, theory, topology
        >>> q = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
        >>> dgd, ring = algorithms.DGD(lr=0.5), topology.ring(2)
        >>> history = dectool.solve(dgd, q, topology=ring, steps=30)
        >>> bool(theory.compare(history, theory.predict(dgd, q, ring)).verdict)
        True
    """
    _check_same(history, prediction)
    if not prediction.exact:
        return Agreement(history, prediction, (_rate_check(history, prediction, rate_tolerance),))
    steps = history["step"].astype(np.int64)
    trajectory = prediction.trajectory(list(steps))
    scales = _scales(prediction, float(trajectory["distance"].max()))
    checks = []
    for name, expected in trajectory.items():
        measured = history[name].astype(np.float64)
        apart = np.abs(measured - expected)
        worst = int(np.argmax(np.where(np.isfinite(apart), apart, math.inf)))
        error = float(apart[worst]) / scales[name]
        checks.append(
            Check(
                f"{name} (worst of {len(steps)} steps: {int(steps[worst])}; relative)",
                float(measured[worst]),
                float(expected[worst]),
                error if math.isfinite(error) else math.inf,
                tolerance,
            )
        )
    return Agreement(history, prediction, tuple(checks))


def _scales(prediction: Prediction, distance: float) -> dict[str, float]:
    """Return what errors are relative to; never a column itself, which may be all rounding."""
    problem = prediction.problem
    away = float(np.linalg.norm(problem.optimum)) * math.sqrt(problem.size)
    reach = max(distance, 1e-6 * away, 1e-150)
    gap = problem.L * reach**2 / (2 * problem.size)
    return {"distance": reach, "consensus_error": reach, "gap": max(gap, 1e-300)}


def _predicted(history: History, prediction: Prediction, name: str) -> tuple[Any, Any]:
    """Return steps, and what a column is predicted to be there."""
    steps = history["step"].astype(np.int64)
    if prediction.exact:
        return steps, prediction.trajectory(list(steps))[name]
    values = history[name].astype(np.float64)
    middle = len(steps) // 2
    # The gap of a quadratic is of second order in the distance.
    factor = prediction.rate ** (2 if name == "gap" else 1)
    return steps, values[middle] * factor ** (steps - steps[middle]).astype(np.float64)


def _rate_check(history: History, prediction: Prediction, tolerance: float) -> Check:
    measured = history.rate()
    if not math.isfinite(measured):
        raise ArgumentError(
            "the history has too few records to fit a rate; take more steps, or record more often"
        )
    scale = min(prediction.rate, abs(1.0 - prediction.rate))
    error = abs(measured - prediction.rate) / max(scale, np.finfo(np.float64).tiny)
    text = "rate per step (relative to it, or to 1 less it)"
    return Check(text, measured, prediction.rate, error, tolerance)


def _check_same(history: Any, prediction: Any) -> None:
    if not (isinstance(history, History) and isinstance(prediction, Prediction)):
        raise ArgumentTypeError(
            f"compare takes a History and a Prediction, got {history!r} and {prediction!r}; see "
            "dectool.solve and theory.predict"
        )
    check_run(history, prediction.algorithm, prediction.problem, prediction.topology)
    x0 = np.reshape(history.x0, prediction.x0.shape)
    if not np.array_equal(x0, prediction.x0):
        raise ArgumentError("the history began elsewhere; give predict(..., x0=history.x0)")
