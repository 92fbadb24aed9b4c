"""What went wrong so far, counted."""

from __future__ import annotations

from collections import Counter
from typing import final

from dectool.fault_report import FaultReport, LostMessages, RankEvent, SlowRank


@final
class Account:
    """Counts what the report of a run says.

    Attributes:
        received: Messages that their receivers have taken.
    """

    def __init__(self) -> None:
        self.received = 0
        self._events: list[RankEvent] = []
        self._messages: Counter[tuple[int, int, str]] = Counter()
        self._bytes: Counter[tuple[int, int, str]] = Counter()
        self._slowed: Counter[int] = Counter()
        self._seconds: dict[int, float] = {}

    @property
    def struck(self) -> bool:
        """Whether anything was lost, or a rank was."""
        return bool(self._events or self._messages)

    def event(self, rank: int, kind: str, time: float) -> None:
        """Note a crash, a restart or a join."""
        self._events.append(RankEvent(rank, kind, time))

    def lose(self, source: int, dest: int, reason: str, nbytes: int) -> None:
        """Count a lost message."""
        self._messages[source, dest, reason] += 1
        self._bytes[source, dest, reason] += nbytes

    def slow(self, rank: int, seconds: float) -> None:
        """Count a computation that took so much longer."""
        self._slowed[rank] += 1
        self._seconds[rank] = self._seconds.get(rank, 0.0) + seconds

    def report(self, messages: int, nbytes: int) -> FaultReport:
        """Return the report of a run in which so many messages and bytes were sent."""
        return FaultReport(
            events=tuple(sorted(self._events, key=lambda event: (event.time, event.rank))),
            lost=tuple(
                LostMessages(*key, count, self._bytes[key])
                for key, count in sorted(self._messages.items())
            ),
            slow=tuple(
                SlowRank(rank, self._seconds[rank], count)
                for rank, count in sorted(self._slowed.items())
            ),
            messages=messages,
            bytes=nbytes,
        )
