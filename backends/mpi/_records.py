"""The records of a run, as one rank keeps them or hands them on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dectool.backends.mpi._engine import Engine
from dectool.backends.mpi._objects import post_object, receive_objects
from dectool.communicator import Observation, Observer, StopRun

_CHANNEL = ("record",)


class Record(NamedTuple):
    """What one rank held at a step, and what it had cost by then."""

    step: int
    value: Any
    time: float
    messages: int
    bytes: int


class Records:
    """Kept until the end or, if a run may stop early, gathered at once by rank 0.

    Args:
        engine: Sends what is gathered; it is not counted.
        observer: Takes the records, or ``None``.
    """

    def __init__(self, engine: Engine, observer: Observer | None) -> None:
        self._engine = engine
        self._observer = observer
        self.kept: list[Record] = []

    def take(self, step: int, value: Any, now: float, forget: Callable[[float], None]) -> None:
        """Take one record; ``forget`` is told the seconds that this took.

        Raises:
            StopRun: The observer ends the run.
        """
        if self._observer is None:
            return
        before = time.perf_counter()
        record = Record(step, value, now, self._engine.messages, self._engine.bytes)
        if not self._observer.live:
            self.kept.append(record)
            return
        ends = self._gather(self._observer, record)
        forget(time.perf_counter() - before)
        if ends:
            raise StopRun

    def _gather(self, observer: Observer, record: Record) -> bool:
        engine, size = self._engine, self._engine.comm.size
        if engine.comm.rank:
            post_object(engine, record, 0, _CHANNEL)
            return bool(receive_objects(engine, [0], _CHANNEL)[0])
        records = [record, *receive_objects(engine, range(1, size), _CHANNEL)]
        ends = observer.collect(observation(records))
        for rank in range(1, size):
            post_object(engine, ends, rank, _CHANNEL)
        return ends


def observation(records: Sequence[Record]) -> Observation:
    """Return what all ranks held at a step, from the record of each."""
    return Observation(
        records[0].step,
        [record.value for record in records],
        stacked=False,
        time=max(record.time for record in records),
        messages=sum(record.messages for record in records),
        bytes=sum(record.bytes for record in records),
    )
