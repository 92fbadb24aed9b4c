"""The report of what went wrong in a simulated run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

_MOST_LINKS = 24


class RankEvent(NamedTuple):
    """Something that happened to a rank: "crash", "restart" or "join", at a time in seconds."""

    rank: int
    kind: str
    time: float


class LostMessages(NamedTuple):
    """Messages from one rank to another that were lost for one reason, and their bytes."""

    source: int
    dest: int
    reason: str
    messages: int
    bytes: int


class SlowRank(NamedTuple):
    """Computing seconds that slow periods cost a rank, and how many computations they met."""

    rank: int
    seconds: float
    computations: int


@final
@dataclass(frozen=True)
class FaultReport:
    """What went wrong in a run; ``print`` shows it as a table, by reason where links are many.

    Attributes:
        events: Every crash, restart and late join that the run met, in order of time.
        lost: Messages lost, by link and reason.
        slow: Ranks that slow periods have met.
        messages: Messages that all ranks sent.
        bytes: Payload bytes that all ranks sent.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import topology
        >>> result = dectool.run(lambda comm: comm.neighbor_allreduce(np.ones(2)), backend="sim",
        ...                      topology=topology.ring(3), missing="self",
        ...                      faults=[dectool.sim.LinkDown(0, 1)])
        >>> print(result.faults)
        2 of 6 messages lost (32 of 96 bytes)
          from  to  reason     messages  bytes
             0   1  link down         1     16
             1   0  link down         1     16
    """

    events: Sequence[RankEvent] = ()
    lost: Sequence[LostMessages] = ()
    slow: Sequence[SlowRank] = ()
    messages: int = 0
    bytes: int = 0

    @property
    def messages_lost(self) -> int:
        """Messages lost, over all links."""
        return sum(link.messages for link in self.lost)

    @property
    def bytes_lost(self) -> int:
        """Payload bytes lost, over all links."""
        return sum(link.bytes for link in self.lost)

    @property
    def crashed(self) -> tuple[int, ...]:
        """Ranks whose last event is a crash, ascending."""
        last = {event.rank: event.kind for event in self.events}
        return tuple(sorted(rank for rank, kind in last.items() if kind == "crash"))

    def __str__(self) -> str:
        lines = [
            f"{self.messages_lost} of {self.messages} messages lost "
            f"({self.bytes_lost} of {self.bytes} bytes)"
        ]
        if self.events:
            rows = [(e.rank, e.kind, f"{e.time:.6g} s") for e in self.events]
            lines += _table(("rank", "event", "at"), rows)
        if len(self.lost) > _MOST_LINKS:
            lines += _table(("reason", "links", "messages", "bytes"), self._lost_by_reason())
        elif self.lost:
            lines += _table(("from", "to", "reason", "messages", "bytes"), self.lost)
        if self.slow:
            slowed = [(s.rank, f"{s.seconds:.6g} s", s.computations) for s in self.slow]
            lines += _table(("rank", "slowed by", "computations"), slowed)
        return "\n".join(lines)

    def _lost_by_reason(self) -> list[tuple[str, int, int, int]]:
        links: dict[str, list[LostMessages]] = {}
        for link in self.lost:
            links.setdefault(link.reason, []).append(link)
        return [
            (reason, len(some), sum(x.messages for x in some), sum(x.bytes for x in some))
            for reason, some in sorted(links.items())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the report in plain lists and numbers, for JSON."""
        return {
            "events": [list(event) for event in self.events],
            "lost": [list(link) for link in self.lost],
            "slow": [list(rank) for rank in self.slow],
            "messages": self.messages,
            "bytes": self.bytes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that :meth:`to_dict` wrote.

        Example:
            >>> FaultReport.from_dict(FaultReport(messages=3).to_dict()).messages
            3
        """
        return cls(
            tuple(RankEvent(*event) for event in data["events"]),
            tuple(LostMessages(*link) for link in data["lost"]),
            tuple(SlowRank(*rank) for rank in data["slow"]),
            data["messages"],
            data["bytes"],
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return lines with aligned columns: numbers to the right, words to the left."""
    cells = [list(map(str, row)) for row in rows]
    widths = [max(len(row[k]) for row in [list(head), *cells]) for k in range(len(head))]
    words = [isinstance(value, str) and not value[:1].isdigit() for value in rows[0]]

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if word else cell.rjust(width)
            for cell, width, word in zip(row, widths, words, strict=True)
        ]
        return ("  " + "  ".join(parts)).rstrip()

    return [line(head), *map(line, cells)]
