"""What a theorem guarantees of a run, and on which conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.history import History
from dectool.problems import Problem
from dectool.theory._arguments import Floats
from dectool.theory._evidence import Check
from dectool.theory._same_run import check_run

Kind = Literal["step size", "contraction", "neighborhood"]
# Of a slope of logarithms of float64 numbers, over a few records.
_ROUNDING = 1e-9


@final
@dataclass(frozen=True)
class Assumption:
    """A condition of a theorem, held against a problem and a topology.

    Attributes:
        text: The condition.
        value: What it is here.
        holds: Whether it is met.
    """

    text: str
    value: str
    holds: bool

    def __bool__(self) -> bool:
        """Whether it is met."""
        return self.holds

    def __str__(self) -> str:
        """Return one line."""
        return f"{'ok  ' if self.holds else 'FAIL'} {self.text}: {self.value}"


@final
@dataclass(frozen=True, eq=False)
class Run:
    """What runs where."""

    algorithm: Algorithm
    problem: Problem
    topology: str


@final
@dataclass(frozen=True, eq=False)
class Bound:
    """A published guarantee, with its conditions checked.

    Attributes:
        kind: What the number is: the largest "step size" (itself excluded), the "contraction" per
            step in the long run, or the radius of a "neighborhood" of the optimum.
        statement: What is guaranteed.
        value: The number; NaN where the theorem says nothing of such a problem or topology.
        source: Whose theorem.
        assumptions: Its conditions.
        column: Which column of a history the guarantee limits.
    """

    kind: Kind
    statement: str
    value: float
    source: str
    assumptions: tuple[Assumption, ...]
    column: str
    _run: Run
    _envelope: Callable[[History], Floats] | None = field(default=None, repr=False)

    @property
    def applies(self) -> bool:
        """Whether all conditions are met."""
        return all(self.assumptions)

    def __repr__(self) -> str:
        met = "" if self.applies else ", whose conditions are not all met"
        return f"<Bound on the {self.kind} of {self._run.algorithm.name}: {self.value:.9g}{met}>"

    def __str__(self) -> str:
        """Return the statement, its source, and one line for each condition."""
        lines = [f"{self.statement} ({self.source})", *(str(one) for one in self.assumptions)]
        return "\n".join(lines)

    def envelope(self, history: History) -> Floats:
        """Return the most that ``column`` may be at each record, shape (K,).

        Args:
            history: A run of the same algorithm, problem and topology, without faults, on full
                gradients, or, where messages are compressed at random, on average.

        Raises:
            ArgumentError: A condition of the theorem is not met, the history is of another run,
                or the theorem limits no single iterate (then :meth:`check` fits a rate).
        """
        self._need(history)
        if self._envelope is None:
            raise ArgumentError(
                f"{self.statement}: that limits no single iterate; check(history) fits a rate"
            )
        return self._envelope(history)

    def check(self, history: History) -> Check:
        """Hold a run against the guarantee.

        A step size must be below the number, and then the iterates converge: the rate that the
        history shows is at most 1. Of a contraction in the long run, it is at most the number, but
        for a thousandth, as a fitted slope is rough, and no more than half of the way to 1. Every
        other guarantee limits a column at each record, where the worst counts.

        Args:
            history: As for :meth:`envelope`.

        Raises:
            ArgumentError: As there, but for the last; the step size of the run changes or is not
                guaranteed; or there are too few records to fit a rate.

        Example:
            >>> import dectool
            >>> from dectool import algorithms, problems, theory, topology
            >>> q = problems.Quadratic.random(8, 2, kappa=4.0, seed=0)
            >>> nids, ring = algorithms.NIDS(lr=1 / q.L_max), topology.ring(8)
            >>> history = dectool.solve(nids, q, topology=ring, steps=100)
            >>> all(bound.check(history) for bound in theory.bounds(nids, q, ring))
            True
        """
        self._need(history)
        if self._envelope is not None:
            return self._worst(history, self._envelope(history))
        limit, slack = self.value, min(1e-3, max(0.0, 1.0 - self.value) / 2.0)
        if self.kind == "step size":
            self._need_step_size(history.about["parameters"]["lr"])
            limit, slack = 1.0, _ROUNDING
        if history.status == "diverged":
            return Check(f"{self.kind}: rate per step", math.inf, limit, math.inf, slack, "<=")
        rate = history.rate(self.column)
        if not math.isfinite(rate):
            raise ArgumentError(
                "the history has too few records to fit a rate; take more steps, or record more "
                "often"
            )
        return Check.at_most(f"{self.kind}: rate per step", rate, limit, slack)

    def _worst(self, history: History, most: Floats) -> Check:
        measured = history[self.column].astype(np.float64)
        finite = np.isfinite(most)
        # What is left when all digits agree is rounding.
        rounding = 1e-12 * float(np.nanmax(np.where(finite, most, 0.0), initial=1e-300))
        excess = np.where(finite, measured / (most + rounding), 0.0)
        worst = int(np.argmax(np.where(np.isnan(excess), math.inf, excess)))
        text = (
            f"{self.kind}: {self.column} (worst of {len(most)} records: step "
            f"{int(history['step'][worst])})"
        )
        found = Check.at_most(text, float(measured[worst]), float(most[worst] + rounding))
        return found if math.isfinite(measured[worst]) else _broken(found)

    def _need_step_size(self, lr: Any) -> None:
        if not isinstance(lr, (int, float)):
            raise ArgumentError(f"lr of the run changes from step to step ({lr}); give a constant")
        if not lr < self.value:
            raise ArgumentError(
                f"the run has lr={lr}, and only steps below {self.value:.9g} are guaranteed"
            )

    def _need(self, history: History) -> None:
        run = self._run
        check_run(history, run.algorithm, run.problem, run.topology)
        for one in self.assumptions:
            if not one:
                raise ArgumentError(
                    f"{self.source} promises nothing here: it needs {one.text}, but {one.value}"
                )


def _broken(check: Check) -> Check:
    """Return a check of what is no number, which keeps no bound."""
    return Check(check.quantity, check.measured, check.predicted, math.inf, check.tolerance, "<=")
