"""Compressed values between neighbours: what is sent, and what its receivers make of it."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from dectool.communicator._coded import Coded, is_payload
from dectool.communicator._encode import coded_payload, encode, encode_nothing, encode_rows
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    dense,
    empty_row,
    own,
    row_bytes,
    same_layout,
    stack,
    unpack,
)
from dectool.communicator._plans import NeighborPlan, NeighborPlans
from dectool.communicator._request import Request
from dectool.errors import ArgumentError, ContractError


class CompressedOperations(NeighborPlans):
    """The part of a communicator that compresses what neighbours send."""

    def compress(
        self,
        x: Any,
        compressor: Any,
        purpose: str = "compression",
        number: int | None = None,
    ) -> Any:
        """Compress ``x`` for an operation that takes a payload; nothing is sent.

        Each rank's whole array is one vector, and of a container all arrays of one dtype are, or
        with :class:`dectool.compression.PerTensor` each array.

        Args:
            x: An array or a container of arrays.
            compressor: A :class:`dectool.compression.Compressor`.
            purpose: Which of the rank's random generators it draws from.
            number: If given, draw from the fresh generator of that number; see :meth:`rng`.

        Returns:
            A :class:`dectool.compression.Payload`, which ``compressor.decompress`` reads; for a
            container what ``neighbor_allreduce`` and ``neighbor_allgather`` take alike, with a
            method ``unpacked()``.

        Raises:
            ArgumentTypeError: ``compressor`` is none, or cannot compress such arrays.

        Example:
            >>> import numpy as np, dectool
            >>> from dectool import compression, topology
            >>> def program(comm):
            ...     payload = comm.compress(np.array([1.0, 8.0]) * comm.rank, compression.TopK(1))
            ...     return comm.neighbor_allreduce(payload), payload.nbytes
            >>> dectool.run(program, topology=topology.complete(2), backend="sim").values[0]
            (array([0., 4.]), 9)
        """
        coded, _ = self._coded(x, compressor, "compress", purpose, number)
        return coded if coded.layout.structure is not None else coded.payloads[0]

    # -- how ranks that exchange messages do it ------------------------------------------------

    @property
    def _waits_for_each(self) -> bool:
        """Whether averages of several buckets are faster one after the other."""
        return False

    def _coded(
        self,
        x: Any,
        compressor: Any,
        operation: str,
        purpose: str = "compression",
        number: int | None = None,
    ) -> tuple[Coded, tuple[Buffer, ...]]:
        """Return ``x`` compressed, and the buffers of its own term."""
        if is_payload(x):
            if compressor is not None:
                raise ArgumentError(
                    f"{operation}: x is a payload and compressor={compressor!r} is given too; "
                    "pass one of them"
                )
            coded = x if isinstance(x, Coded) else coded_payload(x, self._lead_shape, operation)
            return coded, coded.decompressed()
        buffers, layout = dense(*self._pack(x))
        layout.require_averageable(operation)
        rng = self.rng(purpose, number)
        coded = encode(buffers, layout, compressor, rng, self._lead_shape, operation)
        self._spend("compress", row_bytes(buffers))
        return coded, buffers

    def _start_coded_allreduce(
        self, x: Any, compressor: Any, plan: Any, operation: str = "neighbor_allreduce"
    ) -> Request[Any]:
        if getattr(plan, "factors", None) is not None and len(plan.factors):
            raise ArgumentError(
                f"{operation}: dst_weights scale what is sent, which is compressed once for all; "
                "scale x before, or give the weights to the receivers (src_weights)"
            )
        coded, mine = self._coded(x, compressor, operation)
        mine = mine if is_payload(x) else own(mine)
        return self._start_coded_exchange(
            coded, plan, operation, lambda edges: self._mix(edges, coded.layout, plan, mine), mine
        )

    def _start_coded_exchange(
        self,
        coded: Coded,
        plan: NeighborPlan,
        operation: str,
        finish: Callable[[tuple[Buffer, ...]], Any],
        mine: tuple[Buffer, ...] | None = None,
    ) -> Request[Any]:
        """Send compressed values to all destinations, and make edge arrays of those received.

        Args:
            coded: This rank's value.
            plan: Whom it goes to, and who sends.
            operation: Whose messages these are.
            finish: Makes the result of one edge array per buffer.
            mine: This rank's buffers, near to which the others' are.
        """
        # Pairs meet whenever they like, so their messages are not numbered.
        pair = operation == "pair_gossip"
        channel, number = ((*self._context, operation), 0) if pair else self._numbered(operation)
        parcel = Parcel(coded.wire, coded.wire_layout, number)
        for dest in plan.destinations:
            self._post(parcel, dest, channel)
        likes = coded.decompressed() if mine is None else mine

        def gather(parcels: Sequence[Parcel]) -> Any:
            for source, other in zip(plan.sources, parcels, strict=True):
                self._check_agreement(parcel, other, source)
            received = [coded.received(other.buffers, likes) for other in parcels]
            self._spend("decompress", len(received) * row_bytes(likes))
            return finish(
                tuple(stack([row[k] for row in received], like) for k, like in enumerate(likes))
            )

        return Request(self, [self._expect(source, channel) for source in plan.sources], gather)

    def _start_coded_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, compressor: Any, plan: Any
    ) -> Request[Any]:
        operation = "neighbor_alltoall"
        self._check_edges(buffers, len(plan.destinations), "out-neighbors")
        coded = encode_rows(buffers, layout, compressor, self.rng("compression"), operation)
        self._spend("compress", len(plan.destinations) * row_bytes(buffers))
        channel, number = self._numbered(operation)
        for index, dest in enumerate(plan.destinations):
            assert coded is not None
            one = coded.row(index)
            self._post(Parcel(one.wire, one.wire_layout, number), dest, channel)
        likes = tuple(empty_row(buffer) for buffer in buffers)
        mine = encode_nothing(likes, layout, compressor)
        parcel = Parcel(mine.wire, mine.wire_layout, number)

        def gather(parcels: Sequence[Parcel]) -> Any:
            for source, other in zip(plan.sources, parcels, strict=True):
                self._check_agreement(parcel, other, source)
            received = [mine.received(other.buffers, ()) for other in parcels]
            self._spend("decompress", len(received) * row_bytes(likes))
            edges = [stack([row[k] for row in received], like) for k, like in enumerate(likes)]
            return unpack(edges, layout, (len(received),))

        return Request(self, [self._expect(source, channel) for source in plan.sources], gather)

    @abc.abstractmethod
    def _check_edges(self, buffers: Sequence[Buffer], edges: int, meaning: str) -> None:
        """Refuse arrays that have not one row for each edge."""

    def _edges(self, edges: Sequence[Buffer], layout: Layout) -> Any:
        """Return an edge array of a container."""
        return unpack(edges, layout, (edges[0].shape[0],))

    def _check_agreement(self, mine: Parcel, other: Parcel, source: int) -> None:
        if mine.layout is not None and other.layout is not None:
            same_layout(mine.layout, other.layout, f"rank {self.rank} and its in-neighbor {source}")
        if mine.sequence != other.sequence:
            raise ContractError(
                f"rank {self.rank} is at its neighbor operation number {mine.sequence}, but got "
                f"what rank {source} sent in its number {other.sequence}; every rank must call "
                "neighbor operations the same number of times, and each destination must name "
                "its source"
            )

    @abc.abstractmethod
    def _mixed(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: NeighborPlan,
        mine: tuple[Buffer, ...] | None,
    ) -> list[Buffer]:
        """Return the weighted sums of edge arrays and one's own buffers."""

    def _mix(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        plan: Any,
        mine: tuple[Buffer, ...] | None,
    ) -> Any:
        return unpack(self._mixed(buffers, layout, plan, mine), layout, self._lead_shape)
