"""The communicator of all ranks at once: rows of one array, mixed by one sparse product."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, final

import numpy as np
import scipy.sparse as sp

from dectool.communicator import (
    Channel,
    Communicator,
    Observation,
    Observer,
    Parcel,
    Pending,
    Request,
    StopRun,
)
from dectool.communicator._arrays import Buffer, Phantom
from dectool.communicator._coded import Coded, is_payload
from dectool.communicator._parcel import Layout, own, pack, row_bytes, unpack
from dectool.communicator._plans import checked_weight
from dectool.communicator._rounds import Rounds, blocks, pairwise
from dectool.errors import ArgumentError, ContractError, UnsupportedOperation
from dectool.kernels import combine, sparse_product
from dectool.sim._random import StackedGenerator
from dectool.sim.compute import ComputeTimes
from dectool.sim.stacked._clocks import Clocks, Edges
from dectool.sim.stacked._compressed import broadcast_of, coded_allreduce, for_all, numbered
from dectool.sim.stacked._plan import StackedPlan, given_plan, one_per_rank
from dectool.sim.stacked._ranks import all_ranks
from dectool.sim.stacked._trees import fill_scalars, stack_trees
from dectool.topology import Topology


class _Done(Pending):
    """A value that is there, and the times at which each rank may have it."""

    __slots__ = ("times", "value")

    def __init__(self, value: Any, times: Any) -> None:
        self.value = value
        self.times = times


class _Background(_Done):
    """The same for a background operation, which holds the ports until it is waited for."""


@final
class StackedCommunicator(Communicator):
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
        self._stacked_plans: dict[int, tuple[Topology, StackedPlan]] = {}
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

    def _pack(self, x: Any, rows: int = 0) -> tuple[tuple[Buffer, ...], Layout]:
        if type(x) is not np.ndarray or not x.ndim or len(x) != len(self._rank):
            x = fill_scalars(x, self.size)
        return pack(x, 1 + rows)

    # -- neighbourhood -------------------------------------------------------------------------

    def _plan(self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any) -> Any:
        if self_weight is None and src_weights is None and dst_weights is None:
            chosen: Any = self._topology if topology is None else topology
            cached = self._stacked_plans.get(id(chosen))
            if cached is not None and cached[0] is chosen:
                return cached[1]
            chosen = self.topology if topology is None else self._checked_topology(topology)
            plan = StackedPlan(chosen.W)
            if len(self._stacked_plans) > 256:
                self._stacked_plans.clear()
            self._stacked_plans[id(chosen)] = (chosen, plan)
            return plan
        return self._given(topology, self_weight, src_weights, dst_weights)

    def _given(self, topology: Any, self_weight: Any, src_weights: Any, dst_weights: Any) -> Any:
        if (self_weight is None) != (src_weights is None):
            raise ArgumentError(
                f"self_weight={self_weight} and src_weights={src_weights}: "
                "give both or neither, since they share one sum"
            )
        ranks = range(self.size)
        own: list[float | None]
        if self_weight is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            own = [chosen.self_weight(r) if r in chosen.row(r)[0] else None for r in ranks]
            sources = [{s: w for s, w in zip(*chosen.row(r), strict=True) if s != r} for r in ranks]
        else:
            given = np.broadcast_to(np.asarray(self_weight, np.float64), self.size)
            own = [checked_weight(w, f"self_weight[{r}]") for r, w in enumerate(given)]
            per_rank = one_per_rank(src_weights, self.size, "src_weights")
            sources = [self._checked_weights(r, per_rank[r], "src_weights") for r in ranks]
        destinations: list[dict[int, float | None]]
        if dst_weights is None:
            chosen = self.topology if topology is None else self._checked_topology(topology)
            destinations = [dict.fromkeys(chosen.out_neighbors(r)) for r in ranks]
        else:
            per_rank = one_per_rank(dst_weights, self.size, "dst_weights")
            destinations = [self._checked_destinations(r, per_rank[r]) for r in ranks]
        return given_plan(self.size, own, sources, destinations)

    def _rows_checked(self, buffers: Sequence[Buffer], rows: int, meaning: str) -> None:
        for buffer in buffers:
            if buffer.shape[0] != rows:
                raise ContractError(
                    f"an array with leading axis {buffer.shape[0]} was given, but backend "
                    f"'stacked' has {rows} {meaning}: axis 0 must have one row for each"
                )

    def _start_neighbor_allreduce(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        mixed, times = self._averaged(buffers, layout, plan)
        return self._request(mixed, layout, times)

    def _neighbor_allreduce(self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any) -> Any:
        mixed, times = self._averaged(buffers, layout, plan)
        self._clocks.reach(times)
        return unpack(mixed, layout, self._lead_shape)

    def _averaged(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> tuple[list[Buffer], Any]:
        self._rows_checked(buffers, self.size, "ranks")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        mixed: list[Buffer] = []
        for index, buffer in enumerate(buffers):
            if isinstance(buffer, Phantom):
                mixed.append(buffer)
            else:
                mixed.append(plan.average(buffer, layout.dtypes[index]))
        return mixed, times

    def _start_neighbor_allgather(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        self._rows_checked(buffers, self.size, "ranks")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        rows = [_take(buffer, plan.edges.sources) for buffer in buffers]
        return self._request(rows, layout, times, len(plan.edges))

    def _start_coded_exchange(
        self,
        coded: Coded,
        plan: Any,
        operation: str,
        finish: Callable[[tuple[Buffer, ...]], Any],
        mine: tuple[Buffer, ...] | None = None,
    ) -> Request[Any]:
        edges = plan.edges
        times = self._clocks.exchange(edges, coded.sizes[edges.sources])
        if coded.compressor.needs_reference and mine is not None:
            received = coded.rows(edges.sources).decompressed(
                [_take(b, edges.targets) for b in mine]
            )
        else:
            received = tuple(_take(buffer, edges.sources) for buffer in coded.decompressed())
        degrees = np.bincount(edges.targets, minlength=self.size)
        nbytes = row_bytes(coded.decompressed() if mine is None else mine)

        def gather(results: Sequence[Any]) -> Any:
            self._spend("decompress", degrees * nbytes)
            return finish(results[0])

        return Request(self, [_Done(received, times)], gather)

    def _start_coded_allreduce(
        self, x: Any, compressor: Any, plan: Any, operation: str = "neighbor_allreduce"
    ) -> Request[Any]:
        if not is_payload(x) or plan.factors is not None:
            return super()._start_coded_allreduce(x, compressor, plan, operation)
        # All terms are what payloads stand for, so W mixes them without an array of edges.
        coded, dense = self._coded(x, compressor, operation)
        times = self._clocks.exchange(plan.edges, coded.sizes[plan.edges.sources])
        received = np.bincount(plan.edges.targets, minlength=self.size) * row_bytes(dense)

        def finish(results: Sequence[Any]) -> Any:
            self._spend("decompress", received)
            mixed = [
                buffer if isinstance(buffer, Phantom) else plan.average(buffer, dtype)
                for buffer, dtype in zip(results[0], coded.layout.dtypes, strict=True)
            ]
            return unpack(mixed, coded.layout, self._lead_shape)

        return Request(self, [_Done(dense, times)], finish)

    def _spend(self, what: str, nbytes: Any) -> None:
        self._clocks.spend(getattr(self._clocks.network.codec, what), nbytes)

    def _pair_plan(self, peer: Any, self_weight: float, peer_weight: float) -> Any:
        mine = checked_weight(self_weight, "self_weight")
        theirs = checked_weight(peer_weight, "peer_weight")
        ranks = np.arange(self.size)
        peers = self._partners(peer)
        alone = peers == ranks
        first = np.minimum(ranks, peers)
        own_first = (ranks <= peers)[:, None]
        pairs = np.where(own_first, [[mine, theirs]], [[theirs, mine]])
        pairs[alone, 0] = 1.0
        keep = np.stack([np.ones(self.size, bool), ~alone], axis=1)
        columns = np.stack([first, np.maximum(ranks, peers)], axis=1)[keep]
        starts = np.r_[0, np.cumsum(keep.sum(axis=1))]
        return StackedPlan(sp.csr_array((pairs[keep], columns, starts), (self.size, self.size)))

    def _start_neighbor_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any
    ) -> Request[Any]:
        self._rows_checked(buffers, len(plan.edges), "edges")
        times = self._clocks.exchange(plan.edges, row_bytes(buffers))
        order = np.argsort(plan.edges.by_source)
        rows = [_take(buffer, order) for buffer in buffers]
        return self._request(rows, layout, times, len(plan.edges))

    def _mix(self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any, mine: Any) -> Any:
        self._rows_checked(buffers, len(plan.edges), "edges")
        mixed: list[Buffer] = []
        for index, (buffer, dtype) in enumerate(zip(buffers, layout.dtypes, strict=True)):
            if isinstance(buffer, Phantom):
                mixed.append(Phantom((self.size, *buffer.shape[1:]), buffer.itemsize))
            else:
                mixed.append(plan.mix(buffer, None if mine is None else mine[index], dtype))
        return unpack(mixed, layout, self._lead_shape)

    def _start_pair_gossip(
        self, buffers: tuple[Buffer, ...], layout: Layout, peer: Any, weights: tuple[float, float]
    ) -> Request[Any]:
        self._rows_checked(buffers, self.size, "ranks")
        mine, theirs = (
            checked_weight(weights[0], "self_weight"),
            checked_weight(weights[1], "peer_weight"),
        )
        ranks = np.arange(self.size)
        peers = self._partners(peer)
        active = np.flatnonzero(peers != ranks)
        others = peers[active]
        first = active < others
        columns = np.stack([np.minimum(active, others), np.maximum(active, others)], axis=1)
        data = np.stack([np.where(first, mine, theirs), np.where(first, theirs, mine)], axis=1)
        starts = np.arange(len(active) + 1) * 2
        matrix = sp.csr_array((data.ravel(), columns.ravel(), starts), (len(active), self.size))
        times = self._clocks.exchange(Edges(others, active), row_bytes(buffers))
        mixed: list[Buffer] = []
        for buffer, dtype in zip(buffers, layout.dtypes, strict=True):
            if isinstance(buffer, Phantom):
                mixed.append(buffer)
                continue
            result = buffer.copy()
            if len(active):
                result[active] = sparse_product(matrix, buffer, dtype)
            mixed.append(result)
        return self._request(mixed, layout, times)

    def _partners(self, peer: Any) -> Any:
        """Return the checked partner of each rank; a rank without one is its own."""
        ranks = np.arange(self.size)
        given = [-1 if p is None else p for p in one_per_rank(peer, self.size, "peer")]
        peers = np.where(np.asarray(given) == -1, ranks, np.asarray(given))
        for rank in ranks:
            self._check_peer(peers[rank], "peer")
        bad = np.flatnonzero(peers[peers] != ranks)
        if len(bad):
            one = bad[0]
            raise ContractError(
                f"rank {one} names peer {peers[one]}, but rank {peers[one]} names "
                f"{peers[peers[one]]}; partners must name each other"
            )
        return peers

    def _hierarchical(
        self, buffers: tuple[Buffer, ...], layout: Layout, topology: Topology
    ) -> tuple[Buffer, ...]:
        self._rows_checked(buffers, self.size, "ranks")
        group, nodes = self.local_size, self.num_nodes
        shards = np.zeros(group, np.int64)
        for buffer in buffers:
            shards += np.diff(blocks(buffer.shape[-1], group)) * _itemsize(buffer)
        ranks = np.arange(self.size)
        within = Edges(*_pairs_within_nodes(nodes, group))
        self._clocks.reach(self._clocks.exchange(within, shards[within.targets % group]))
        plan = StackedPlan(topology.W)
        local = np.arange(group)
        across = Edges(
            (plan.edges.sources[:, None] * group + local).ravel(),
            (plan.edges.targets[:, None] * group + local).ravel(),
        )
        self._clocks.reach(self._clocks.exchange(across, shards[across.sources % group]))
        self._clocks.reach(self._clocks.exchange(within, shards[within.sources % group]))
        starts = np.arange(nodes + 1) * group
        mean = sp.csr_array((np.full(self.size, 1.0 / group), ranks, starts), (nodes, self.size))
        return tuple(
            b
            if isinstance(b, Phantom)
            else np.repeat(plan.average(sparse_product(mean, b, dtype), dtype), group, axis=0)
            for b, dtype in zip(buffers, layout.dtypes, strict=True)
        )

    def hierarchical_neighbor_allreduce(self, x: Any, topology: Topology) -> Any:
        """Average within each node, then between nodes; see the base class."""
        buffers, layout = self._hierarchical_arguments(x, topology)
        return unpack(self._hierarchical(buffers, layout, topology), layout, self._lead_shape)

    def ihierarchical_neighbor_allreduce(self, x: Any, topology: Topology) -> Request[Any]:
        """Start a :meth:`hierarchical_neighbor_allreduce`."""
        buffers, layout = self._hierarchical_arguments(x, topology)
        pending = self._background(lambda comm: comm._hierarchical(buffers, layout, topology))
        return Request(self, [pending], lambda r: unpack(r[0], layout, self._lead_shape))

    def _request(
        self, buffers: Sequence[Buffer], layout: Layout, times: Any, rows: int | None = None
    ) -> Request[Any]:
        lead = (self.size if rows is None else rows,)
        return Request(self, [_Done(buffers, times)], lambda r: unpack(r[0], layout, lead))

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
        sizes = [_itemsize(buffer) for buffer in buffers]
        for steps in self._steps(rounds, np.arange(self.size), buffers, cuts):
            senders, receivers, segments = self._clocks.run_round(steps, sizes)
            for d, step, part, dtype in zip(data, steps, segments, dtypes, strict=True):
                if not isinstance(d, Phantom):
                    _move(d, senders, receivers, *part, op if step.reduces else None, dtype)
        return data

    def _coded_allreduce(
        self, buffers: Sequence[Buffer], layout: Layout, op: str, compressor: Any, number: int
    ) -> tuple[Buffer, ...]:
        self._rows_checked(buffers, self.size, "ranks")
        rng = numbered(self._seed, self.size, number)
        return coded_allreduce(buffers, layout, op, compressor, rng, self._clocks)

    def _coded_broadcast(
        self, buffers: Sequence[Buffer], layout: Layout, root: int, compressor: Any, number: int
    ) -> tuple[Buffer, ...]:
        self._rows_checked(buffers, self.size, "ranks")
        coded = broadcast_of(buffers, layout, root, compressor, self._seed, number)
        at_root = np.arange(self.size) == root
        self._spend("compress", at_root * row_bytes(buffers))
        self._broadcast(for_all(coded.wire, self.size), coded.wire_layout, root)
        self._spend("decompress", ~at_root * row_bytes(buffers))
        return for_all(coded.decompressed(), self.size)

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
        block = sum(b.shape[-1] * _itemsize(b) for b in buffers)
        self._clocks.run_pairs(pairwise(np.arange(self.size), self.size), block)

    # -- messages ------------------------------------------------------------------------------

    def isendrecv(self, x: Any, dest: Any, source: Any, tag: int = 0) -> Request[Any]:
        """Send each rank's row along a permutation; ``dest`` and ``source`` are arrays."""
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
        return self._request([_take(buffer, origin) for buffer in buffers], layout, times)

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
            assert isinstance(done, _Done)
            self._clocks.reach(done.times)
            if isinstance(done, _Background):
                self._clocks.in_background -= 1
            values.append(done.value)
        return values

    def _ready(self, pending: Sequence[Pending]) -> bool:
        return all(
            done.times is None or bool(np.all(self._clocks.time >= done.times))
            for done in pending
            if isinstance(done, _Done)
        )

    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        twin = copy.copy(self)
        twin._clocks = copy.copy(self._clocks)
        twin._clocks.time = self._clocks.time.copy()
        value = operation(twin)
        self._clocks.messages = twin._clocks.messages
        self._clocks.in_background += 1
        return _Background(value, twin._clocks.time)

    # -- time and chance -----------------------------------------------------------------------

    def now(self) -> Any:
        """The virtual time of each rank in seconds, shape (n,)."""
        return self._clocks.time.copy()

    @property
    def bytes_sent(self) -> Any:
        """Payload bytes that each rank has sent, shape (n,)."""
        return self._clocks.bytes_of.copy()

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


def _itemsize(buffer: Buffer) -> int:
    return buffer.itemsize


def _take(buffer: Buffer, rows: Any) -> Buffer:
    if isinstance(buffer, Phantom):
        return Phantom((len(rows), *buffer.shape[1:]), buffer.itemsize)
    taken: Buffer = buffer[rows]
    return taken


def _pairs_within_nodes(nodes: int, group: int) -> tuple[Any, Any]:
    source, target = np.meshgrid(np.arange(group), np.arange(group), indexing="ij")
    apart = source != target
    first = (np.arange(nodes) * group)[:, None]
    return (first + source[apart]).ravel(), (first + target[apart]).ravel()


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
