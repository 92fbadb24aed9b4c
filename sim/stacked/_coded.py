"""Compressed operations, for all ranks at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool.communicator import Request
from dectool.communicator._arrays import Buffer, Phantom
from dectool.communicator._coded import Coded, is_payload
from dectool.communicator._encode import checked_compressor, encode_rows
from dectool.communicator._parcel import Layout, row_bytes, unpack
from dectool.sim.stacked._compressed import broadcast_of, coded_allreduce, for_all, numbered
from dectool.sim.stacked._done import Done, take
from dectool.sim.stacked._neighborhood import StackedNeighborhood


class StackedCompression(StackedNeighborhood):
    """The part of the stacked communicator that compresses rows."""

    _seed: int

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
                [take(b, edges.targets) for b in mine]
            )
        else:
            received = tuple(take(buffer, edges.sources) for buffer in coded.decompressed())
        degrees = np.bincount(edges.targets, minlength=self.size)
        nbytes = row_bytes(coded.decompressed() if mine is None else mine)

        def gather(results: Sequence[Any]) -> Any:
            self._spend("decompress", degrees * nbytes)
            return finish(results[0])

        return Request(self, [Done(received, times)], gather)

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

        return Request(self, [Done(dense, times)], finish)

    def _spend(self, what: str, nbytes: Any) -> None:
        self._clocks.spend(getattr(self._clocks.network.codec, what), nbytes)

    def _start_coded_alltoall(
        self, buffers: tuple[Buffer, ...], layout: Layout, compressor: Any, plan: Any
    ) -> Request[Any]:
        operation, edges = "neighbor_alltoall", plan.edges
        self._rows_checked(buffers, len(edges), "edges")
        checked_compressor(compressor, operation)
        degrees, rng = edges.out_degrees(self.size), self.rng("compression")
        sizes = [np.zeros(0, np.int64)]
        received: list[tuple[Buffer, ...]] = []
        for rank, stop in enumerate(np.cumsum(degrees)):
            rows = range(stop - degrees[rank], stop)
            mine = [take(buffer, rows) for buffer in buffers]
            coded = encode_rows(mine, layout, compressor, rng.of(rank), operation)
            if coded is not None:
                sizes.append(coded.sizes)
                received.append(coded.decompressed())
        self._spend("compress", degrees * row_bytes(buffers))
        order = np.argsort(edges.by_source)
        times = self._clocks.exchange(edges, np.concatenate(sizes)[order])
        dense = tuple(_one_below_the_other(each) for each in zip(*received, strict=True)) or buffers
        rows_of_edges = [take(buffer, order) for buffer in dense]
        nbytes = np.bincount(edges.targets, minlength=self.size) * row_bytes(buffers)

        def finish(results: Sequence[Any]) -> Any:
            self._spend("decompress", nbytes)
            return unpack(results[0], layout, (len(edges),))

        return Request(self, [Done(rows_of_edges, times)], finish)

    def _coded_allreduce(
        self,
        buffers: Sequence[Buffer],
        layout: Layout,
        op: str,
        compressor: Any,
        calls: tuple[int, int],
    ) -> tuple[Buffer, ...]:
        self._rows_checked(buffers, self.size, "ranks")
        rng = numbered(self._seed, self.size, calls[1])
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


def _one_below_the_other(buffers: Sequence[Buffer]) -> Buffer:
    first = buffers[0]
    if isinstance(first, Phantom):
        return Phantom((sum(b.shape[0] for b in buffers), *first.shape[1:]), first.itemsize)
    return np.concatenate(buffers)  # type: ignore[arg-type]
