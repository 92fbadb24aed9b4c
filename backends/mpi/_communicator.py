"""The communicator of one process of an MPI job."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, final

from dectool.backends.mpi._engine import Engine
from dectool.backends.mpi._records import Records
from dectool.communicator import Channel, Communicator, Parcel, Pending, generator

_WORLD: Channel = ("world",)


@final
class MPICommunicator(Communicator):
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
        self._engine = engine
        self._start = start
        self._local_size = local_size
        self._seed = seed
        self._seconds = compute
        self._records = records
        self._rank = engine.comm.rank
        self._size = engine.comm.size
        self._members: Sequence[int] | None = None
        self._base: Channel = _WORLD
        self._topology = None
        self._schedule = None
        self._generators: dict[str, Any] = {}
        self._reset()

    def _reset(self) -> None:
        self._sequence = {}
        self._counters = {}
        self._groups = {}
        self._plans = {}

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def local_size(self) -> int:
        """Number of ranks on one node."""
        return self._local_size

    @property
    def _context(self) -> Channel:
        return self._base

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        self._engine.post(parcel, dest if self._members is None else self._members[dest], channel)

    def _expect(self, source: int, channel: Channel) -> Pending:
        world = source if self._members is None else self._members[source]
        return self._engine.expect(world, channel)

    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        return self._engine.wait(pending)

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return self._engine.ready(pending)

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin = copy.copy(self)
        number = self._next_sequence("background")
        twin._reset()
        twin._base = (*self._base, "background", number)
        return self._engine.background(lambda: operation(twin))

    def _subgroup(self, members: Sequence[int], context: Channel) -> Self:
        group = copy.copy(self)
        group._reset()
        known = self._members
        group._members = [m if known is None else known[m] for m in members]
        group._rank = list(members).index(self._rank)
        group._size = len(members)
        group._base = context
        group._topology = None
        group._schedule = None
        group._local_size = 1
        return group

    def now(self) -> float:
        """Seconds since the run started."""
        return time.perf_counter() - self._start

    def elapse(self, seconds: float) -> None:
        """Sleep, and take in meanwhile what arrives."""
        self._engine.sleep(self._checked_seconds(seconds))

    def _compute(self, flops: float | None = None) -> None:
        if self._seconds is not None:
            self._engine.sleep(self._seconds(flops))

    def rng(self, purpose: str, number: int | None = None) -> Any:
        """Return the generator of (seed, this rank, ``purpose``), or a fresh numbered one."""
        world = self._engine.comm.rank
        if number is not None:
            return generator(self._seed, world, purpose, number)
        if purpose not in self._generators:
            self._generators[purpose] = generator(self._seed, world, purpose)
        return self._generators[purpose]

    def _observe(self, step: int, value: Any) -> None:
        self._records.take(step, value, self.now(), self._forget)

    def _forget(self, seconds: float) -> None:
        self._start += seconds
