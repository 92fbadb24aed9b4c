"""All-reduce and broadcast of compressed values, for all ranks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.communicator import generator
from dectool.communicator._arrays import Buffer
from dectool.communicator._coded import Coded
from dectool.communicator._compressed_collectives import (
    ALLREDUCE,
    BROADCAST,
    compressed_blocks,
    reduced_block,
)
from dectool.communicator._encode import encode, template
from dectool.communicator._parcel import Layout, join, row_bytes
from dectool.sim._random import StackedGenerator
from dectool.sim.stacked._clocks import Clocks, Edges
from dectool.sim.stacked._done import one_row, repeated


def coded_allreduce(
    buffers: Sequence[Buffer],
    layout: Layout,
    op: str,
    compressor: Any,
    rng: StackedGenerator,
    clocks: Clocks,
) -> tuple[Buffer, ...]:
    """Do the two phases for all ranks; see :meth:`dectool.Communicator.allreduce`."""
    size = len(clocks.time)
    parts = compressed_blocks(buffers, layout, compressor, rng, size, (size,))
    codec, whole = clocks.network.codec, row_bytes(buffers)
    shares = np.array([row_bytes(part.decompressed()) for part in parts])
    clocks.spend(codec.compress, whole)
    edges = _all_pairs(size)
    bytes_of = np.stack([part.sizes for part in parts], axis=1)
    clocks.reach(clocks.exchange(edges, bytes_of[edges.sources, edges.targets]))
    clocks.spend(codec.decompress, (size - 1) * shares)
    clocks.spend(codec.compress, shares)
    blocks, sent = [], np.empty(size, np.int64)
    for rank, part in enumerate(parts):
        rows = part.decompressed()
        terms = [tuple(one_row(buffer, source) for buffer in rows) for source in range(size)]
        reduced = reduced_block(terms, part.layout, op, size)
        block = encode(reduced, part.layout, compressor, rng.of(rank), (), "allreduce")
        sent[rank] = block.nbytes
        blocks.append(block.decompressed())
    clocks.reach(clocks.exchange(edges, sent[edges.sources]))
    clocks.spend(codec.decompress, whole - shares)
    return tuple(repeated(join(pieces), size) for pieces in zip(*blocks, strict=True))


def broadcast_of(
    buffers: Sequence[Buffer], layout: Layout, root: int, compressor: Any, seed: int, number: int
) -> Coded:
    """Return what the root sends."""
    template([one_row(b, root) for b in buffers], layout, compressor, "broadcast")
    rng = generator(seed, root, BROADCAST, number)
    rows = [one_row(buffer, root) for buffer in buffers]
    return encode(rows, layout, compressor, rng, (), "broadcast")


def numbered(seed: int, size: int, number: int) -> StackedGenerator:
    """Return the generators of a compressed all-reduce."""
    return StackedGenerator(seed, size, ALLREDUCE, number)


def for_all(buffers: Sequence[Buffer], size: int) -> tuple[Buffer, ...]:
    """Return one rank's buffers as those of every rank."""
    return tuple(repeated(buffer, size) for buffer in buffers)


def _all_pairs(size: int) -> Edges:
    source, target = np.meshgrid(np.arange(size), np.arange(size))
    apart = source != target
    return Edges(source[apart], target[apart])
