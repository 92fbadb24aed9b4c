"""What theorems ask about: constants of a problem and of a topology, and conditions on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError
from dectool.history import History
from dectool.problems import Problem
from dectool.theory._arguments import Floats
from dectool.theory._bound import Assumption, Bound, Kind, Run
from dectool.topology import Schedule, Topology

_SLACK = 1e-12


@final
@dataclass(frozen=True)
class Facts:
    """An algorithm, a problem and a periodic schedule, as theorems see them.

    Attributes:
        algorithm: What runs.
        problem: On which functions.
        schedule: On which topologies.
    """

    algorithm: Algorithm
    problem: Problem
    schedule: Schedule

    @property
    def topology(self) -> Topology:
        """The topology of step 0: the only one, where the period is 1."""
        return self.schedule.at(0)

    @property
    def period(self) -> int:
        """Steps after which the schedule repeats."""
        assert self.schedule.period is not None
        return self.schedule.period

    @property
    def lr(self) -> float:
        """The step size, NaN where it changes from step to step."""
        lr: Any = getattr(self.algorithm, "lr", math.nan)
        return math.nan if callable(lr) else float(lr)

    @cached_property
    def rho(self) -> float:
        r"""The contraction :math:`\|W_p \dots W_1 - J\|_2` of a period, from its worst start."""
        if self.period == 1:
            return float(self.topology.rho)
        return max(self.schedule.contraction(k, self.period) for k in range(self.period))

    @property
    def lambda_min(self) -> float:
        """The smallest eigenvalue of W, NaN where W is not symmetric."""
        return float(self.topology.lambda_min) if self.topology.is_symmetric else math.nan

    @property
    def lambda_2(self) -> float:
        """The second largest eigenvalue of W, NaN where W is not symmetric."""
        return float(self.topology.lambda_2) if self.topology.is_symmetric else math.nan

    # Conditions on W

    def _each(self, text: str, met: Callable[[Topology], bool]) -> Assumption:
        broken = [k for k in range(self.period) if not met(self.schedule.at(k))]
        where = f" at step {broken[0]}" if broken and self.period > 1 else ""
        return Assumption(text, f"it is not{where}" if broken else "it is", not broken)

    def symmetric(self) -> Assumption:
        """W is symmetric."""
        return self._each("W symmetric", lambda one: one.is_symmetric)

    def stochastic(self) -> Assumption:
        """Rows and columns of W sum to 1."""
        return self._each("rows and columns of W sum to 1", lambda one: one.is_doubly_stochastic)

    def nonnegative(self) -> Assumption:
        """W has no negative weights."""
        return self._each("W nonnegative", lambda one: one.is_nonnegative)

    def contracts(self) -> Assumption:
        """W averages."""
        what = "rho < 1" if self.period == 1 else "rho < 1 over a period"
        return Assumption(what, f"rho = {self.rho:.6g}", self.rho < 1.0 - _SLACK)

    def nonexpansive(self) -> Assumption:
        """W never expands: with sums 1, its norm is the larger of 1 and rho."""
        return Assumption("rho <= 1", f"rho = {self.rho:.6g}", self.rho <= 1.0 + _SLACK)

    def connected(self) -> Assumption:
        """1 is a simple eigenvalue of W."""
        value = self.lambda_2
        return Assumption("lambda_2 < 1", f"lambda_2 = {value:.6g}", value < 1.0 - _SLACK)

    def lambda_above(self, least: float, text: str | None = None) -> Assumption:
        """The smallest eigenvalue of W is above a number."""
        value = self.lambda_min
        name = f"lambda_min > {least:g}" if text is None else f"lambda_min > {text}"
        return Assumption(name, f"lambda_min = {value:.6g}", value > least + _SLACK)

    # Conditions on the functions

    @property
    def _rounding(self) -> float:
        """By how much rounding moves an eigenvalue 0 of a Hessian."""
        return _SLACK * self.problem.L_max

    def convex(self) -> Assumption:
        """Every local function is convex."""
        value = self.problem.mu_min
        return Assumption("every f_i convex", f"mu_min = {value:.6g}", value >= -self._rounding)

    def strongly_convex(self) -> Assumption:
        """The mean of the local functions is strongly convex."""
        value = self.problem.mu
        return Assumption("f strongly convex", f"mu = {value:.6g}", value > self._rounding)

    def each_strongly_convex(self) -> Assumption:
        """Every local function is strongly convex."""
        value = self.problem.mu_min
        met = value > self._rounding
        return Assumption("every f_i strongly convex", f"mu_min = {value:.6g}", met)

    # Conditions on the algorithm

    def lr_below(self, limit: float, text: str) -> Assumption:
        """The step size is a constant below a limit."""
        if math.isnan(self.lr):
            return Assumption(f"lr constant and < {text}", "lr changes", False)
        return Assumption(f"lr < {text} = {limit:.6g}", f"lr = {self.lr:.6g}", self.lr < limit)

    def lr_at_most(self, limit: float, text: str) -> Assumption:
        """The step size is a constant, at most a limit."""
        if math.isnan(self.lr):
            return Assumption(f"lr constant and <= {text}", "lr changes", False)
        met = self.lr <= limit * (1.0 + _SLACK)
        return Assumption(f"lr <= {text} = {limit:.6g}", f"lr = {self.lr:.6g}", met)

    # What follows

    def bound(
        self,
        kind: Kind,
        statement: str,
        value: float,
        source: str,
        assumptions: tuple[Assumption, ...],
        column: str = "change",
        envelope: Callable[[History], Floats] | None = None,
    ) -> Bound:
        """Return a bound on such runs; its number is NaN where it makes no sense."""
        run = Run(self.algorithm, self.problem, self.schedule.name)
        return Bound(kind, statement, value, source, assumptions, column, run, envelope)

    def local_gradients_at_optimum(self) -> Floats:
        """Return the local gradients at x*, shape (n, d)."""
        problem = self.problem
        points = np.broadcast_to(problem.optimum, (problem.size, *problem.shape))
        return np.reshape(problem.grad(points, problem.ranks), (problem.size, problem.dim))

    def start(self, history: History) -> Floats:
        """Return the starting points of a run, shape (n, d)."""
        return np.reshape(history.x0, (self.problem.size, self.problem.dim)).astype(np.float64)


def steps_of(history: History) -> Floats:
    """Return the numbers of the recorded steps."""
    return history["step"].astype(np.float64)


def first_of(history: History, column: str) -> float:
    """Return the first value of a column."""
    return float(history[column][0])


def shrinking(history: History, column: str, factor: float) -> Floats:
    """Return the bound on a column that shrinks by a factor per step from its first value on."""
    values = history[column].astype(np.float64)
    first = int(np.flatnonzero(np.isfinite(values))[0])
    steps = steps_of(history)
    if column == "change" and (len(steps) < 2 or (np.diff(steps) != 1.0).any()):
        raise ArgumentError(
            "the guarantee is on the change from each step to the next; record every step"
        )
    most: Floats = float(values[first]) * factor ** (steps - steps[first])
    most[:first] = np.inf
    return most
