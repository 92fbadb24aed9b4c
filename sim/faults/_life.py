"""One life of a rank: from its start to its crash."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, final

from dectool.communicator import Channel
from dectool.sim._strand import RankState

STEP = 1 << 20
"""Numbers that neighbour operations of one step of a solve may take."""


class Numbered(NamedTuple):
    """Last part of a channel whose messages are matched by the number of the operation."""

    number: int


@final
class Life(RankState):
    """A rank between two crashes.

    Args:
        rank: Its number.
        dies_at: When it crashes, in seconds; ``inf`` for never.

    Attributes:
        gone: Whether the crash has ended its program.
        over: Whether the crash has happened, so that nothing can be on its way to be sent.
        finished: Whether its program has returned.
        silent: Whether background operations have ended too, so that it sends no more.
        restarts: How often the rank has crashed before.
        step: The step of a solve that it is in.
        first_step: The first step of a solve that it is to be recorded at.
        joined: Whether it knows at which step to take part.
        floor: The first number of a neighbour operation that it takes part in.
        joins: The same by channel, where the program has no steps.
    """

    __slots__ = (
        "dies_at",
        "finished",
        "first_step",
        "floor",
        "gone",
        "joined",
        "joins",
        "over",
        "restarts",
        "silent",
        "step",
    )

    def __init__(self, rank: int, dies_at: float) -> None:
        super().__init__(rank)
        self.dies_at = dies_at
        self.gone = False
        self.over = False
        self.finished = False
        self.silent = False
        self.restarts = 0
        self.step = -1
        self.first_step = 0.0
        self.joined = True
        self.floor = 0.0
        self.joins: dict[Channel, int] = {}

    def successor(self, dies_at: float, *, crashed: bool) -> Self:
        """Return the next life, which goes on with the counters of this one."""
        life = type(self)(self.rank, dies_at)
        life.send_port, life.receive_port = self.send_port, self.receive_port
        life.messages, life.bytes = self.messages, self.bytes
        life.computations = self.computations
        life.restarts = self.restarts + crashed
        life.joined = False
        return life

    @property
    def words(self) -> str:
        """What follows "rank 3" for those who wait for it too late or too early."""
        if self.silent:
            return f"whose program returned at t = {self.finished_at:.9g} s"
        return "which takes part in later operations only"

    def comes_to(self, step: int) -> bool:
        """Tell whether it is to be recorded at a step."""
        return self.first_step <= step

    def first_number(self, channel: Channel) -> float:
        """Return the first number of an operation on a channel that it takes part in."""
        return max(self.floor, self.joins.get(channel, 0))

    def came_after(self, channel: Any) -> bool:
        """Tell whether a message belongs to an operation before its first one."""
        last = channel[-1]
        return isinstance(last, Numbered) and last.number < self.first_number(channel[:-1])
