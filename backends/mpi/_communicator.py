"""The communicator of one process of an MPI job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, final

from dectool.backends.mpi._engine import Engine
from dectool.backends.mpi._records import Records
from dectool.communicator import Channel, OneRankCommunicator, Parcel, Pending


@final
class MPICommunicator(OneRankCommunicator):
    """A rank that is a process; time is real.

    Args:
        engine: Sends and receives.
        start: Reading of ``time.perf_counter`` that counts as time 0.
        local_size: Ranks on one node.
        seed: Seed of the run.
        compute: Draws the seconds of this rank's next computation, or ``None``.
        records: Takes what is recorded.
    """

    backend: ClassVar[str] = "mpi"

    def __init__(
        self,
        engine: Engine,
        *,
        start: float,
        local_size: int,
        seed: int,
        compute: Callable[[float | None], float] | None,
        records: Records,
    ) -> None:
        super().__init__(engine.comm.rank, engine.comm.size, seed=seed, local_size=local_size)
        self._engine = engine
        self._start = start
        self._seconds = compute
        self._records = records

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        self._engine.post(parcel, self._world(dest), channel)

    def _expect(self, source: int, channel: Channel) -> Pending:
        return self._engine.expect(self._world(source), channel)

    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        return self._engine.wait(pending)

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return self._engine.ready(pending)

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin, _ = self._twin()
        return self._engine.background(lambda: operation(twin))

    def now(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._start

    def elapse(self, seconds: float) -> None:
        """Sleep, and take in meanwhile what arrives."""
        self._engine.sleep(self._checked_seconds(seconds))

    def _compute(self, flops: float | None = None) -> None:
        if self._seconds is not None:
            self._engine.sleep(self._seconds(flops))

    def _observe(self, step: int, value: Any) -> None:
        self._records.take(step, value, self.now(), self._forget)

    def _forget(self, seconds: float) -> None:
        self._start += seconds
