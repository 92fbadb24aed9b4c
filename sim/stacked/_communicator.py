"""The communicator of all ranks at once: rows of one array, mixed by one sparse product."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, final

import numpy as np

from dectool.communicator import (
    Channel,
    Observation,
    Observer,
    Parcel,
    Pending,
    Request,
    StopRun,
)
from dectool.communicator._arrays import Buffer, Phantom
from dectool.communicator._buckets import Buckets
from dectool.communicator._parcel import Layout, own, pack, row_bytes
from dectool.communicator._rounds import Rounds, pairwise
from dectool.errors import ArgumentError, ContractError, UnsupportedOperation
from dectool.kernels import combine
from dectool.sim._random import StackedGenerator
from dectool.sim.compute import ComputeTimes
from dectool.sim.stacked._clocks import Clocks, Edges
from dectool.sim.stacked._done import Background, Done, take
from dectool.sim.stacked._hierarchy import StackedHierarchy
from dectool.sim.stacked._plan import one_per_rank
from dectool.sim.stacked._ranks import all_ranks
from dectool.sim.stacked._trees import fill_scalars, stack_trees


@final
class StackedCommunicator(StackedHierarchy):
    """All ranks of a synchronous program as rows of one array.

    ``rank`` is the array of all ranks, every array has the rank axis in front, and ``now()`` is
    an array too. Messages between single ranks do not exist here; everything else gives the bits
    of backend "sim", and its virtual times wherever the network model is accepted.

    Args:
        size: Number of ranks.
        clocks: Time and counters.
        compute: How long computations take.
        seed: Seed of the run.
        local_size: Ranks on one node.
        observer: Who takes the records of steps, or ``None``.
    """

    backend: ClassVar[str] = "stacked"

    def __init__(
        self,
        size: int,
        clocks: Clocks,
        compute: ComputeTimes,
        *,
        seed: int,
        local_size: int,
        observer: Observer | None = None,
    ) -> None:
        self._rank = all_ranks(size)
        self._clocks = clocks
        self._computes = compute
        self._computations = 0
        self._seed = seed
        self._observer = observer
        self._local_size = local_size
        self._topology = None
        self._schedule = None
        self._sequence = {}
        self._counters = {}
        self._groups = {}
        self._stacked_plans = {}
        self._generators: dict[str, StackedGenerator] = {}

    # -- identity ------------------------------------------------------------------------------

    @property
    def rank(self) -> Any:
        """The array of all ranks, shape (n,)."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self._rank)

    @property
    def local_size(self) -> int:
        """Number of ranks on one node."""
        return self._local_size

    @property
    def _lead_shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def _context(self) -> Channel:
        return ("world",)

    def per_rank(self, function: Callable[[int], Any]) -> Any:
        """Return ``function(rank)`` for every rank: arrays stacked, other values in a list."""
        return stack_trees([function(rank) for rank in range(self.size)])

    def _network_model(self) -> Any:
        return self._clocks.network

    def _pack(self, x: Any, rows: int = 0) -> tuple[tuple[Buffer, ...], Layout]:
        if type(x) is not np.ndarray or not x.ndim or len(x) != len(self._rank):
            x = fill_scalars(x, self.size)
        return pack(x, 1 + rows)

    # -- collectives ---------------------------------------------------------------------------

    def _run_rounds(
        self,
        rounds: Rounds,
        buffers: Sequence[Buffer],
        dtypes: Sequence[str],
        op: str | None,
        operation: str,
        layout: Layout | None = None,
        cuts: Sequence[Any] | None = None,
    ) -> tuple[Buffer, ...]:
        if operation == "barrier":
            buffers = (np.zeros((self.size, 0), np.uint8),)
        self._rows_checked(buffers, self.size, "ranks")
        data = own(tuple(buffers))
        sizes = [buffer.itemsize for buffer in buffers]
        for steps in self._steps(rounds, np.arange(self.size), buffers, cuts):
            senders, receivers, segments = self._clocks.run_round(steps, sizes)
            for d, step, part, dtype in zip(data, steps, segments, dtypes, strict=True):
                if not isinstance(d, Phantom):
                    _move(d, senders, receivers, *part, op if step.reduces else None, dtype)
        return data

    def _spread(self, buffer: Buffer) -> Buffer:
        elements = buffer.shape[-1]
        if isinstance(buffer, Phantom):
            return Phantom((self.size, self.size * elements), buffer.itemsize)
        self._rows_checked((buffer,), self.size, "ranks")
        whole = np.empty((self.size, self.size, elements), buffer.dtype)
        ranks = np.arange(self.size)
        whole[ranks, ranks] = buffer
        return whole.reshape(self.size, self.size * elements)

    def _alltoall(self, buffers: Sequence[Buffer], layout: Layout) -> tuple[Buffer, ...]:
        self._alltoall_clocks(buffers)
        return tuple(b if isinstance(b, Phantom) else b.swapaxes(0, 1).copy() for b in buffers)

    def _alltoall_parcels(
        self, buffers: Sequence[Buffer], layout: Layout, operation: str
    ) -> list[Parcel]:
        self._alltoall_clocks(buffers)
        return [
            Parcel(
                tuple(
                    Phantom(b.shape[1:], b.itemsize) if isinstance(b, Phantom) else b[source]
                    for b in buffers
                ),
                layout,
            )
            for source in range(self.size)
        ]

    def _alltoall_clocks(self, buffers: Sequence[Buffer]) -> None:
        self._rows_checked(buffers, self.size, "ranks")
        block = sum(b.shape[-1] * b.itemsize for b in buffers)
        self._clocks.run_pairs(pairwise(np.arange(self.size), self.size), block)

    # -- messages ------------------------------------------------------------------------------

    def isendrecv(self, x: Any, dest: Any, source: Any, tag: int = 0) -> Request[Any]:
        """Send each rank's row along a permutation; ``dest`` and ``source`` are arrays."""
        if type(x) is Buckets:
            return x.start(self.isendrecv, dest, source, tag)
        buffers, layout = self._pack(x)
        self._rows_checked(buffers, self.size, "ranks")
        to = np.asarray(one_per_rank(dest, self.size, "dest"))
        origin = np.asarray(one_per_rank(source, self.size, "source"))
        ranks = np.arange(self.size)
        for name, peers in (("dest", to), ("source", origin)):
            for peer in peers:
                if peer == -1:
                    raise UnsupportedOperation(
                        f"{name} has -1: with backend 'stacked' every rank must send and "
                        "receive; use backend='sim'"
                    )
                self._check_peer(peer, name)
        bad = np.flatnonzero(to[origin] != ranks)
        if len(bad):
            one = bad[0]
            raise ContractError(
                f"rank {one} receives from {origin[one]}, but rank {origin[one]} sends to "
                f"{to[origin[one]]}; dest must be the inverse of source"
            )
        times = self._clocks.exchange(Edges(origin, ranks), row_bytes(buffers))
        return self._request([take(buffer, origin) for buffer in buffers], layout, times)

    def isend(self, x: Any, dest: int, tag: int = 0) -> Request[None]:
        """Not here: a message between two ranks needs ranks that run by themselves."""
        self._refuse("isend and send")

    def irecv(self, source: int, tag: int = 0) -> Request[Any]:
        """Not here: a message between two ranks needs ranks that run by themselves."""
        self._refuse("irecv and recv")

    def iexchange(
        self, sends: dict[int, Any], sources: Sequence[int], tag: int = 0
    ) -> Request[dict[int, Any]]:
        """Not here: messages between single ranks need ranks that run by themselves."""
        self._refuse("iexchange and exchange")

    def split(self, color: Any, key: Any = 0) -> Self | None:
        """Not here: groups of unlike size cannot be rows of one array."""
        self._refuse("split")

    @property
    def node(self) -> Self:
        """Not here; hierarchical_neighbor_allreduce works."""
        self._refuse("node")

    @property
    def peers_across_nodes(self) -> Self:
        """Not here; hierarchical_neighbor_allreduce works."""
        self._refuse("peers_across_nodes")

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedOperation(
            f"backend 'stacked' runs all ranks at once and has no {what}; use backend='sim', or "
            "neighbor_allreduce, pair_gossip, sendrecv with arrays of ranks, and collectives"
        )

    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        self._refuse("messages between single ranks")

    def _expect(self, source: int, channel: Channel) -> Pending:
        self._refuse("messages between single ranks")

    def _subgroup(self, members: Sequence[int], context: Channel) -> Self:
        self._refuse("groups")

    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        values = []
        for done in pending:
            assert isinstance(done, Done)
            self._clocks.reach(done.times)
            if isinstance(done, Background):
                self._clocks.in_background -= 1
            values.append(done.value)
        return values

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return all(
            done.times is None or bool(np.all(self._clocks.time >= done.times))
            for done in pending
            if isinstance(done, Done)
        )

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin = copy.copy(self)
        twin._clocks = copy.copy(self._clocks)
        twin._clocks.time = self._clocks.time.copy()
        value = operation(twin)
        self._clocks.note_background(twin._clocks)
        return Background(value, twin._clocks.time)

    # -- time and chance -----------------------------------------------------------------------

    def now(self) -> Any:
        """The virtual time of each rank in seconds, shape (n,)."""
        return self._clocks.time.copy()

    @property
    def bytes_sent(self) -> Any:
        """Payload bytes that each rank has sent, shape (n,)."""
        return self._clocks.sent.by_rank.copy()

    def elapse(self, seconds: Any) -> None:
        """Let time pass: one number of seconds for all ranks, or an array of shape (n,)."""
        if np.ndim(seconds) == 0:
            self._clocks.advance(self._checked_seconds(seconds))
            return
        times = np.asarray(seconds, np.float64)
        if times.shape != (self.size,):
            raise ArgumentError(
                f"elapse: seconds has shape {times.shape}; give a number or shape ({self.size},)"
            )
        for rank in np.flatnonzero(~(np.isfinite(times) & (times >= 0.0)))[:1]:
            self._checked_seconds(float(times[rank]))
        self._clocks.advance(times)

    def _compute(self, flops: float | None = None) -> None:
        number = self._computations
        self._computations = number + 1
        self._clocks.advance(self._computes.all_ranks(number, flops))

    def rng(self, purpose: str, number: int | None = None) -> Any:
        """Return what draws from every rank's generator of (seed, rank, ``purpose``) at once."""
        if number is not None:
            return StackedGenerator(self._seed, self.size, purpose, number)
        if purpose not in self._generators:
            self._generators[purpose] = StackedGenerator(self._seed, self.size, purpose)
        return self._generators[purpose]

    def _observe(self, step: int, value: Any) -> None:
        observation = Observation(
            step,
            value,
            stacked=True,
            time=float(self._clocks.time.max()),
            messages=self._clocks.messages,
            bytes=self._clocks.bytes,
        )
        if self._observer is not None and self._observer.collect(observation):
            raise StopRun


def _move(
    data: Any, senders: Any, receivers: Any, low: Any, high: Any, op: str | None, dtype: str
) -> None:
    """Carry each sender's segment to its receiver, all at once."""
    if not len(senders):
        return
    if (low == low[0]).all() and (high == high[0]).all():
        columns: Any = slice(int(low[0]), int(high[0]))
        source, target = (senders, columns), (receivers, columns)
    else:
        lengths = high - low
        offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = np.repeat(low, lengths) + offsets
        source = (np.repeat(senders, lengths), columns)
        target = (np.repeat(receivers, lengths), columns)
    sent = data[source]
    if op is None:
        data[target] = sent
    elif op in ("max", "min"):
        # As in CollectiveOperations: the lower rank's share is on the left.
        mine = data[target]
        first = (source[0] < target[0]).reshape(-1, *[1] * (sent.ndim - 1))
        data[target] = combine(op, np.where(first, sent, mine), np.where(first, mine, sent), dtype)
    else:
        data[target] = combine(op, data[target], sent, dtype)
