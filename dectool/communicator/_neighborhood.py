"""Operations between neighbours in a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dectool.communicator._buckets import Buckets
from dectool.communicator._coded import is_payload
from dectool.communicator._compressed import CompressedOperations
from dectool.communicator._core import Channel
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    Phantom,
    average,
    dense,
    empty_row,
    own,
    pack,
    row,
    same_layout,
    stack,
    unpack,
)
from dectool.communicator._plans import NeighborPlan
from dectool.communicator._request import Request
from dectool.errors import ContractError
from dectool.kernels import scale
from dectool.topology import Topology


class NeighborhoodOperations(CompressedOperations):
    """The neighbourhood part of a communicator, derived from messages."""

    def ineighbor_allreduce(
        self,
        x: Any,
        topology: Topology | None = None,
        *,
        self_weight: float | None = None,
        src_weights: Any = None,
        dst_weights: Any = None,
        compressor: Any = None,
        missing: str | None = None,
    ) -> Request[Any]:
        """Start a :meth:`neighbor_allreduce`; the result is there after ``wait()``."""
        if type(x) is Buckets:
            return x.start(
                self.ineighbor_allreduce,
                topology,
                self_weight=self_weight,
                src_weights=src_weights,
                dst_weights=dst_weights,
                compressor=compressor,
                missing=missing,
            )
        plan = self._plan(topology, self_weight, src_weights, dst_weights)
        if missing is not None:
            plan = self._tolerating(plan, missing)
        if compressor is not None or is_payload(x):
            return self._start_coded_allreduce(x, compressor, plan)
        buffers, layout = self._pack(x)
        if not layout.averageable:
            layout.require_averageable("neighbor_allreduce")
        return self._start_neighbor_allreduce(buffers, layout, plan)

    def neighbor_allreduce(
        self,
        x: Any,
        topology: Topology | None = None,
        *,
        self_weight: float | None = None,
        src_weights: Any = None,
        dst_weights: Any = None,
        compressor: Any = None,
        missing: str | None = None,
    ) -> Any:
        r"""Return the weighted average over the in-neighbours: row ``rank`` of :math:`W X`.

        .. math:: x_i^+ = \sum_j W_{ij} x_j

        The sum runs over sources in ascending rank with this rank in its place, from +0.0, left
        to right, weight times value rounded before adding: the bits are the same on every
        backend. Half precision is summed in float32.

        With a compressor C the neighbours receive C(x), decompressed, and a rank's own term stays
        exact: :math:`x_i^+ = W_{ii} x_i + \sum_{j \ne i} W_{ij} C(x_j)`. If ``x`` is a
        payload, as :meth:`compress` makes, every term is what a payload stands for.

        Args:
            x: An array of floats or complex numbers, or a container of them (one message); or a
                payload.
            topology: Whose matrix W to use; default ``comm.topology``.
            self_weight: Weight of ``x`` itself, for a graph that only the ranks concerned know.
            src_weights: ``{source: weight}``, given together with ``self_weight``.
            dst_weights: ``{destination: factor}`` by which what is sent is scaled first, or a
                sequence of destinations; default: the out-neighbours in ``topology``.
                With ``"stacked"`` these three are sequences with one entry per rank.
            compressor: A :class:`dectool.compression.Compressor` for what is sent.
            missing: What to do where a message was lost, "error", "renormalize" or "self";
                default ``comm.missing``. What is compressed is always an error.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``dst_weights`` scale what is compressed.
            ArgumentTypeError: ``x`` holds integers or bools; cast them first.
            ContractError: Neighbours hold other shapes or dtypes, or are at another operation.
            MessageLostError: A message was lost, and ``missing`` is "error".

        Example:
            >>> import numpy as np, dectool
            >>> from dectool import topology
            >>> def program(comm):
            ...     return comm.neighbor_allreduce(np.array([3.0]) * comm.rank)
            >>> result = dectool.run(program, n=3, backend="sim", topology=topology.path(3))
            >>> [round(float(v[0]), 12) for v in result.values]
            [1.0, 3.0, 5.0]
        """
        if type(x) is Buckets:
            given = {"self_weight": self_weight, "src_weights": src_weights}
            given |= {"dst_weights": dst_weights, "compressor": compressor, "missing": missing}
            if len(x) == 1 or self._waits_for_each:
                return x.each(self.neighbor_allreduce, topology, **given)
            return x.start(self.ineighbor_allreduce, topology, **given).wait()
        plan = self._plan(topology, self_weight, src_weights, dst_weights)
        if missing is not None:
            plan = self._tolerating(plan, missing)
        if compressor is not None or is_payload(x):
            return self._start_coded_allreduce(x, compressor, plan).wait()
        buffers, layout = self._pack(x)
        if not layout.averageable:
            layout.require_averageable("neighbor_allreduce")
        return self._neighbor_allreduce(buffers, layout, plan)

    def ineighbor_allgather(
        self,
        x: Any,
        topology: Topology | None = None,
        *,
        compressor: Any = None,
        missing: Any = None,
    ) -> Request[Any]:
        """Start a :meth:`neighbor_allgather`."""
        if type(x) is Buckets:
            return x.start(
                self.ineighbor_allgather, topology, compressor=compressor, missing=missing
            )
        plan = self._plan(topology, None, None, None)
        if isinstance(missing, str):
            plan = self._tolerating(plan, missing)
        if compressor is not None or is_payload(x):
            coded, _ = self._coded(x, compressor, "neighbor_allgather")
            return self._start_coded_exchange(
                coded, plan, "neighbor_allgather", lambda edges: self._edges(edges, coded.layout)
            )
        buffers, layout = self._pack(x)
        if missing is not None and not isinstance(missing, str):
            rows, row_layout = pack(missing, 1)
            same_layout(layout, row_layout, "neighbor_allgather: x and the rows of missing")
            if isinstance(plan, NeighborPlan):
                self._check_edges(rows, len(plan.sources), "in-neighbors")
            plan = self._tolerating(plan, rows)
        return self._start_neighbor_allgather(buffers, layout, plan)

    def neighbor_allgather(
        self,
        x: Any,
        topology: Topology | None = None,
        *,
        compressor: Any = None,
        missing: Any = None,
    ) -> Any:
        """Return what each in-neighbour holds: an edge array.

        Args:
            x: An array or a container of arrays; or a payload, as :meth:`compress` makes.
            topology: Default ``comm.topology``.
            compressor: For what is sent; received is what the payloads stand for.
            missing: What to do where a message was lost: "error"; "self", for a row with this
                rank's own value; or an edge array like the result, whose row is taken, such as
                what came last time. Default ``comm.missing``, where "renormalize" is an error
                too, as there are no weights.

        Returns:
            Like ``x``, each array with a new leading axis over this rank's in-neighbours in
            ascending order, itself left out (stacked: over all edges, in the order of W's rows).

        Raises:
            ContractError: Neighbours hold other shapes or dtypes, or are at another operation.
            MessageLostError: A message was lost, and ``missing`` does not say what to take.
        """
        return self.ineighbor_allgather(x, topology, compressor=compressor, missing=missing).wait()

    def ineighbor_alltoall(
        self, x: Any, topology: Topology | None = None, *, compressor: Any = None
    ) -> Request[Any]:
        """Start a :meth:`neighbor_alltoall`."""
        if type(x) is Buckets:
            return x.start(self.ineighbor_alltoall, topology, compressor=compressor)
        plan = self._plan(topology, None, None, None)
        buffers, layout = pack(x, 1)
        if compressor is not None:
            layout.require_averageable("neighbor_alltoall with a compressor")
            return self._start_coded_alltoall(*dense(buffers, layout), compressor, plan)
        return self._start_neighbor_alltoall(buffers, layout, plan)

    def neighbor_alltoall(
        self, x: Any, topology: Topology | None = None, *, compressor: Any = None
    ) -> Any:
        """Send each out-neighbour its own row of ``x``; return what each in-neighbour sent here.

        Args:
            x: Arrays whose leading axis runs over the out-neighbours, ascending (stacked: over
                all edges ordered by sender, then receiver).
            topology: Default ``comm.topology``.
            compressor: For what is sent, each row by itself; received is what the payloads
                stand for.

        Returns:
            Arrays whose leading axis runs over the in-neighbours, as in
            :meth:`neighbor_allgather`.

        Raises:
            ArgumentError: The compressor needs a near vector to decompress.
            ContractError: The leading axis is not the number of out-neighbours, or neighbours
                hold other arrays.
            MessageLostError: A message was lost.
        """
        return self.ineighbor_alltoall(x, topology, compressor=compressor).wait()

    def mix(self, edges: Any, topology: Topology | None = None, own: Any = None) -> Any:
        r"""Reduce an edge array with the weights of the topology; nothing is sent.

        ``mix(neighbor_allgather(x), own=x)`` has the bits of ``neighbor_allreduce(x)``.

        Args:
            edges: Arrays whose leading axis runs over this rank's in-edges.
            topology: Default ``comm.topology``.
            own: This rank's value, weighted by :math:`W_{ii}`; left out of the sum if ``None``.

        Returns:
            Like ``edges`` without the leading axis: :math:`\sum_{j \ne i} W_{ij} e_j`, plus
            :math:`W_{ii}` times ``own``.

        Raises:
            ArgumentTypeError: The arrays hold integers or bools.
            ContractError: The leading axis is not the number of in-neighbours, or ``own`` has
                another shape or dtype.
        """
        plan = self._plan(topology, None, None, None)
        buffers, layout = pack(edges, 1)
        layout.require_averageable("mix")
        own_buffers: tuple[Buffer, ...] | None = None
        if own is not None:
            own_buffers, own_layout = self._pack(own)
            same_layout(layout, own_layout, "mix: own")
        return self._mix(buffers, layout, plan, own_buffers)

    # -- how ranks that exchange messages do it ------------------------------------------------

    def _start_neighbor_allreduce(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: NeighborPlan
    ) -> Request[Any]:
        parcel, pending = self._swap(buffers, layout, plan, "neighbor_allreduce")

        def finish(parcels: Sequence[Parcel]) -> Any:
            return unpack(self._reduce(parcel, parcels, plan), layout)

        return Request(self, pending, finish)

    def _neighbor_allreduce(self, buffers: tuple[Buffer, ...], layout: Layout, plan: Any) -> Any:
        if plan.factors:
            return self._start_neighbor_allreduce(buffers, layout, plan).wait()
        channel, number = self._numbered("neighbor_allreduce")
        return unpack(self._average(buffers, layout, plan, channel, number), layout)

    def _average(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: NeighborPlan,
        channel: Channel,
        number: int,
    ) -> Sequence[Buffer]:
        """Trade with the neighbours and sum; to be overridden for speed only."""
        parcel = Parcel(own(buffers), layout, number)
        return self._reduce(parcel, self._trade(parcel, plan, channel), plan)

    def _trade(self, parcel: Parcel, plan: NeighborPlan, channel: Channel) -> list[Any]:
        """Send to all destinations and await all sources; to be overridden for speed only."""
        for dest in plan.destinations:
            self._post(parcel, dest, channel)
        return self._await([self._expect(source, channel) for source in plan.sources])

    def _swap(
        self, buffers: tuple[Buffer, ...], layout: Layout | None, plan: NeighborPlan, operation: str
    ) -> tuple[Parcel, list[Any]]:
        """Send one's own value to all destinations and announce the receipts."""
        channel, number = self._numbered(operation)
        parcel = self._owned(buffers, layout, number)
        factors = plan.factors or (None,) * len(plan.destinations)
        for dest, factor in zip(plan.destinations, factors, strict=True):
            self._post(parcel if factor is None else _scaled(parcel, factor, layout), dest, channel)
        return parcel, [self._expect(source, channel) for source in plan.sources]

    def _reduce(
        self, parcel: Parcel, received: Sequence[Parcel], plan: NeighborPlan
    ) -> list[Buffer]:
        layout, sequence = parcel.layout, parcel.sequence
        terms: list[tuple[Buffer, ...]] = []
        for other in received:
            if other.layout is not layout or other.sequence != sequence:
                self._check_agreement(parcel, other, plan.sources[len(terms)])
            terms.append(other.buffers)
        if plan.place is not None:
            terms.insert(plan.place, parcel.buffers)
        weights = plan.weights
        if not terms:
            terms, weights = [parcel.buffers], (0.0,)
        reduced = []
        for index, dtype in enumerate(layout.dtypes if layout is not None else ("float64",)):
            column = []
            for buffers in terms:  # here, a comprehension costs more than it saves
                column.append(buffers[index])  # noqa: PERF401
            reduced.append(average(weights, column, dtype))
        return reduced

    def _start_neighbor_allgather(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: NeighborPlan
    ) -> Request[Any]:
        parcel, pending = self._swap(buffers, layout, plan, "neighbor_allgather")

        def finish(parcels: Sequence[Parcel]) -> Any:
            return self._edge_array(parcel, parcels, layout, plan)

        return Request(self, pending, finish)

    def _edge_array(
        self, mine: Parcel, received: Sequence[Parcel], layout: Layout, plan: NeighborPlan
    ) -> Any:
        for source, other in zip(plan.sources, received, strict=True):
            self._check_agreement(mine, other, source)
        rows = [
            stack([other.buffers[index] for other in received], like)
            for index, like in enumerate(mine.buffers)
        ]
        return unpack(rows, layout, (len(received),))

    def _start_neighbor_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, plan: NeighborPlan
    ) -> Request[Any]:
        self._check_edges(buffers, len(plan.destinations), "out-neighbors")
        operation = "neighbor_alltoall"
        channel, sequence = self._numbered(operation)
        for position, dest in enumerate(plan.destinations):
            rows = tuple(row(buffer, position) for buffer in buffers)
            self._post(self._owned(rows, layout, sequence), dest, channel)
        pending = [self._expect(source, channel) for source in plan.sources]
        likes = tuple(empty_row(buffer) for buffer in buffers)

        def finish(parcels: Sequence[Parcel]) -> Any:
            return self._edge_array(Parcel(likes, layout, sequence), parcels, layout, plan)

        return Request(self, pending, finish)

    def _check_edges(self, buffers: Sequence[Buffer], edges: int, meaning: str) -> None:
        for buffer in buffers:
            if buffer.shape[0] != edges:
                raise ContractError(
                    f"rank {self.rank} has {edges} {meaning}, but an array with leading axis "
                    f"{buffer.shape[0]} was given; it must have one row for each"
                )

    def _mixed(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: NeighborPlan,
        mine: tuple[Buffer, ...] | None,
    ) -> list[Buffer]:
        self._check_edges(buffers, len(plan.sources), "in-neighbors")
        weights = list(plan.weights)
        if plan.place is not None and mine is None:
            del weights[plan.place]
        mixed = []
        for index, (dtype, buffer) in enumerate(zip(layout.dtypes, buffers, strict=True)):
            rows = [row(buffer, position) for position in range(buffer.shape[0])]
            if plan.place is not None and mine is not None:
                rows.insert(plan.place, mine[index])
            mixed.append(
                average(weights, rows, dtype)
                if rows
                else average((0.0,), (empty_row(buffer),), dtype)
            )
        return mixed


def _scaled(parcel: Parcel, factor: float, layout: Layout | None) -> Parcel:
    dtypes = layout.dtypes if layout is not None else ("float64",)
    return Parcel(
        tuple(
            b if isinstance(b, Phantom) else scale(b, factor, d)
            for b, d in zip(parcel.buffers, dtypes, strict=True)
        ),
        layout,
        parcel.sequence,
    )
