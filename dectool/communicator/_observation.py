"""What is recorded of a step."""

from __future__ import annotations

from typing import Any


class Observation:
    """What all ranks held when they reached a step, and what it had cost by then.

    Attributes:
        step: Number given by the program.
        values: One per rank (a stacked array in ``"stacked"``).
        stacked: Whether ``values`` is one object with the rank axis in front.
        time: Latest of the ranks' clocks, in seconds.
        bytes: Payload bytes sent by all ranks so far.
        messages: Messages sent by all ranks so far.
    """

    __slots__ = ("bytes", "messages", "stacked", "step", "time", "values")

    def __init__(
        self, step: int, values: Any, *, stacked: bool, time: float, messages: int, bytes: int
    ) -> None:
        self.step = step
        self.values = values
        self.stacked = stacked
        self.time = time
        self.messages = messages
        self.bytes = bytes
