"""The values of one step, as ranks come by."""

from __future__ import annotations

from typing import Any

from dectool.communicator import Observation
from dectool.sim._strand import Strand


class Gathering:
    """The values of a step, as ranks come by."""

    def __init__(self, size: int, expected: int) -> None:
        self.left = expected
        self.values: list[Any] = [None] * size
        self.time = 0.0
        self.messages = 0
        self.bytes = 0

    def add(self, strand: Strand, value: Any) -> None:
        """Take in one rank's value, clock and counters."""
        self.values[strand.state.rank] = value
        self.time = max(self.time, strand.clock)
        self.messages += strand.state.messages
        self.bytes += strand.state.bytes
        self.left -= 1

    def observation(self, step: int) -> Observation:
        """Return what all ranks held at the step."""
        return Observation(
            step,
            self.values,
            stacked=False,
            time=self.time,
            messages=self.messages,
            bytes=self.bytes,
        )
