"""Averages within nodes and between them, for all ranks at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dectool.communicator._arrays import Buffer, Phantom, columns
from dectool.communicator._encode import encode
from dectool.communicator._hierarchical import HIERARCHICAL, Coding
from dectool.communicator._layout import Layout, share_layout
from dectool.communicator._parcel import join, row_bytes
from dectool.communicator._rounds import blocks
from dectool.kernels import sparse_product
from dectool.sim._random import StackedGenerator
from dectool.sim.stacked._clocks import Edges
from dectool.sim.stacked._coded import StackedCompression
from dectool.sim.stacked._done import take
from dectool.sim.stacked._plan import StackedPlan
from dectool.topology import Topology


class StackedHierarchy(StackedCompression):
    """The part of the stacked communicator that knows nodes."""

    def _hierarchical(
        self,
        buffers: tuple[Buffer, ...],
        layout: Layout,
        topology: Topology,
        coding: Coding | None = None,
    ) -> tuple[Buffer, ...]:
        self._rows_checked(buffers, self.size, "ranks")
        group = self.local_size
        cuts = [blocks(buffer.shape[-1], group) for buffer in buffers]
        shards = np.zeros(group, np.int64)
        for buffer, cut in zip(buffers, cuts, strict=True):
            shards += np.diff(cut) * buffer.itemsize
        within = Edges(*_pairs_within_nodes(self.num_nodes, group))
        self._clocks.reach(self._clocks.exchange(within, shards[within.targets % group]))
        plan = StackedPlan(topology.W)
        means = tuple(
            self._means(buffer, dtype) for buffer, dtype in zip(buffers, layout.dtypes, strict=True)
        )
        if coding is None:
            across = _between_nodes(plan.edges, group)
            self._clocks.reach(self._clocks.exchange(across, shards[across.sources % group]))
            mixed = [
                mean if isinstance(mean, Phantom) else plan.average(mean, dtype)
                for mean, dtype in zip(means, layout.dtypes, strict=True)
            ]
        else:
            mixed = self._mixed_compressed(means, layout, plan, cuts, coding)
        self._clocks.reach(self._clocks.exchange(within, shards[within.sources % group]))
        return tuple(
            Phantom((self.size, mean.shape[-1]), mean.itemsize)
            if isinstance(mean, Phantom)
            else np.repeat(mean, group, axis=0)
            for mean in mixed
        )

    def _means(self, buffer: Buffer, dtype: str) -> Buffer:
        """Return the mean of each node's rows, shape (nodes, elements)."""
        group, nodes = self.local_size, self.num_nodes
        if isinstance(buffer, Phantom):
            return Phantom((nodes, buffer.shape[-1]), buffer.itemsize)
        weights, starts = np.full(self.size, 1.0 / group), np.arange(nodes + 1) * group
        matrix = sp.csr_array((weights, np.arange(self.size), starts), (nodes, self.size))
        return sparse_product(matrix, buffer, dtype)

    def _mixed_compressed(
        self,
        means: tuple[Buffer, ...],
        layout: Layout,
        plan: StackedPlan,
        cuts: list[Any],
        coding: Coding,
    ) -> list[Buffer]:
        """Compress each shard of each node's mean, trade between nodes, and mix."""
        compressor, number = coding
        group, nodes, edges = self.local_size, self.num_nodes, plan.edges
        rng = StackedGenerator(self._seed, self.size, HIERARCHICAL, number)
        received: list[tuple[Buffer, ...]] = []
        sizes, shares = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        for local in range(group):
            ranks = np.arange(nodes) * group + local
            spans = [(int(cut[local]), int(cut[local + 1])) for cut in cuts]
            mine = [columns(mean, *span) for mean, span in zip(means, spans, strict=True)]
            block = share_layout(layout, spans, compressor.per_tensor)
            who = "hierarchical_neighbor_allreduce"
            coded = encode(mine, block, compressor, rng.only(ranks), (nodes,), who)
            sizes[ranks], shares[ranks] = coded.sizes, row_bytes(mine)
            if compressor.needs_reference and len(edges):
                near = [take(buffer, edges.targets) for buffer in mine]
                received.append(coded.rows(edges.sources).decompressed(near))
            else:
                own = mine if compressor.needs_reference else coded.decompressed()
                received.append(tuple(take(buffer, edges.sources) for buffer in own))
        self._spend("compress", shares)
        across = _between_nodes(edges, group)
        times = self._clocks.exchange(across, sizes[across.sources])
        self._clocks.reach(times)
        self._spend("decompress", np.bincount(across.targets, minlength=self.size) * shares)
        mixed: list[Buffer] = []
        for mean, pieces, dtype in zip(
            means, zip(*received, strict=True), layout.dtypes, strict=True
        ):
            whole = join(pieces)
            if isinstance(mean, Phantom) or isinstance(whole, Phantom):
                mixed.append(mean)
            else:
                mixed.append(plan.mix(whole, mean, dtype))
        return mixed


def _between_nodes(edges: Edges, group: int) -> Edges:
    """Return the messages between ranks of one local rank, for those between nodes."""
    local = np.arange(group)
    return Edges(
        (edges.sources[:, None] * group + local).ravel(),
        (edges.targets[:, None] * group + local).ravel(),
    )


def _pairs_within_nodes(nodes: int, group: int) -> tuple[Any, Any]:
    source, target = np.meshgrid(np.arange(group), np.arange(group), indexing="ij")
    apart = source != target
    first = (np.arange(nodes) * group)[:, None]
    return (first + source[apart]).ravel(), (first + target[apart]).ravel()
