"""What happened in a simulated run: spans of each rank and messages between ranks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple, final

from dectool._files import written_whole


class Span(NamedTuple):
    """Something that one rank did from ``start`` to ``end`` (seconds).

    ``kind`` is "compute" (``comm.computing()`` and ``comm.elapse``), "wait", or "background" (a
    wait of a background operation, while the program goes on).
    """

    rank: int
    kind: str
    start: float
    end: float
    label: str


class MessageRecord(NamedTuple):
    """A message of ``nbytes`` bytes, from when its sending began to its arrival (seconds)."""

    source: int
    dest: int
    nbytes: int
    start: float
    arrival: float
    operation: str


class WindowUse(NamedTuple):
    """A rank's use, at ``time``, of what a neighbour had sent into a window ``age`` seconds before.

    Both in seconds. ``source`` is the neighbour.
    """

    rank: int
    source: int
    time: float
    age: float
    window: str


@final
class Trace:
    """The record of a run, made by ``run(..., trace=True)``.

    Attributes:
        spans: Every span, in the order in which it was known.
        messages: Every message.
        uses: Every use of what neighbours had sent into windows, with its age.

    Example:
        >>> import dectool
        >>> r = dectool.run(lambda comm: comm.elapse(2.0), n=1, backend="sim", trace=True)
        >>> r.trace.spans[0].kind, r.trace.shares()[0]["compute"]
        ('compute', 1.0)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.spans: list[Span] = []
        self.messages: list[MessageRecord] = []
        self.uses: list[WindowUse] = []

    def span(self, rank: int, kind: str, start: float, end: float, label: str) -> None:
        """Record that a rank did something."""
        self.spans.append(Span(rank, kind, start, end, label))

    def message(
        self, source: int, dest: int, nbytes: int, start: float, arrival: float, channel: Any
    ) -> None:
        """Record a message."""
        from dectool.communicator import describe_channel

        operation = describe_channel(channel)
        self.messages.append(MessageRecord(source, dest, nbytes, start, arrival, operation))

    def use(self, rank: int, source: int, time: float, age: float, window: str) -> None:
        """Record that a rank has used what a neighbour had sent into a window."""
        self.uses.append(WindowUse(rank, source, time, age, window))

    def shares(self) -> list[dict[str, float]]:
        """Return for each rank the share of the run's time spent in "compute" and "wait".

        What is left of 1 is "idle": the time after the rank had finished.
        """
        total = max((span.end for span in self.spans), default=0.0)
        spent = [{"compute": 0.0, "wait": 0.0} for _ in range(self.size)]
        for span in self.spans:
            if span.kind in spent[span.rank]:
                spent[span.rank][span.kind] += span.end - span.start
        for shares in spent:
            for kind in shares:
                shares[kind] = shares[kind] / total if total else 0.0
            shares["idle"] = max(0.0, 1.0 - sum(shares.values())) if total else 0.0
        return spent

    def to_chrome(self, path: str | os.PathLike[str]) -> Path:
        """Write the trace for Perfetto or chrome://tracing (microseconds); return the path."""
        events: list[dict[str, Any]] = [
            {
                "name": span.label,
                "cat": span.kind,
                "ph": "X",
                "ts": span.start * 1e6,
                "dur": (span.end - span.start) * 1e6,
                "pid": 0,
                "tid": span.rank,
            }
            for span in self.spans
        ]
        for number, record in enumerate(self.messages):
            flow = {"name": record.operation, "cat": "message", "id": number, "pid": 0}
            at_start = {"ph": "s", "ts": record.start * 1e6, "tid": record.source}
            at_end = {"ph": "f", "bp": "e", "ts": record.arrival * 1e6, "tid": record.dest}
            events.append({**flow, **at_start, "args": {"bytes": record.nbytes}})
            events.append({**flow, **at_end})
        events += [
            {
                "name": f"age in window {use.window!r} from {use.source}",
                "ph": "C",
                "ts": use.time * 1e6,
                "pid": 0,
                "tid": use.rank,
                "args": {f"rank {use.rank}": use.age * 1e6},
            }
            for use in self.uses
        ]
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        return Path(path)
