"""A rank of the simulator, and its lines of execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import greenlet
import simpy


class RankState:
    """What the strands of one rank share: its ports, its counters."""

    __slots__ = (
        "bytes",
        "computations",
        "finished_at",
        "messages",
        "rank",
        "receive_port",
        "send_port",
        "strands",
    )

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.send_port = 0.0
        self.receive_port = 0.0
        self.messages = 0
        self.bytes = 0
        self.computations = 0
        self.strands = 0
        self.finished_at = 0.0


class Call(simpy.Event):
    """Calls back when its time has come; a strand has one, which resumes it again and again."""

    def __init__(self, env: simpy.Environment, callbacks: list[Callable[[Any], Any]]) -> None:
        self.env = env
        self.callbacks = callbacks
        self._value = None
        self._ok = True


class Strand:
    """One line of execution of a rank, with its own clock: the program, or a background task."""

    __slots__ = (
        "clock",
        "greenlet",
        "missing",
        "name",
        "polls",
        "resume",
        "state",
        "waits",
        "wake",
        "wake_at",
    )

    def __init__(self, state: RankState, clock: float, name: str) -> None:
        self.state = state
        self.clock = clock
        self.name = name
        self.greenlet: greenlet.greenlet
        self.wake: Call
        self.resume: Callable[[Any], Any]
        self.missing = 0
        self.wake_at = 0.0
        self.waits: Sequence[Any] | None = None
        self.polls = 0
