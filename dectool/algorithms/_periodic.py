"""What algorithms share whose last step of a round is unlike the others."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._checks import check_whole
from dectool.communicator import Communicator
from dectool.errors import ArgumentError


@dataclass(frozen=True)
class PeriodicAlgorithm(Algorithm):
    """An algorithm in rounds of ``period`` steps; where in a round a step lies, ``at`` knows.

    Attributes:
        lr: Step size.
        period: Steps H of a round.
        phase: Steps of the first round that are taken to be done: step k ends a round where
            ``phase + k + 1`` is a multiple of the period.
    """

    lr: StepSize
    period: int = 4
    phase: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_whole(self.name, "period", self.period, 1)
        check_whole(self.name, "phase", self.phase, 0)
        if self.phase >= self.period:
            raise ArgumentError(
                f"{self.name}: phase={self.phase} must be below period={self.period}; leave it "
                "out to begin with a whole round"
            )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)

    def at(self, k: int) -> Self:
        """Return the algorithm as step ``k`` needs it: its phase is that of the step."""
        return dataclasses.replace(super().at(k), phase=(self.phase + k) % self.period)

    @property
    def ends_round(self) -> bool:
        """Whether the step is the last of a round."""
        return self.phase == self.period - 1
