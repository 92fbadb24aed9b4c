"""Compressed operations on processes: what the transport carries is what payloads declare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import compression, topology
from dectool.errors import ContractError

NAMES = ["cast:float16", "minmax8", "qsgd:4", "natural", "sign", "topk:0.1", "randomk:0.1"]


def carried(comm: Any, name: str) -> tuple[int, int]:
    """Return the bytes that MPI was given beyond headers in one average, and those declared."""
    from dectool.backends.mpi import _wire

    compressor = compression.get(name)
    counted: list[int] = []
    original = comm._engine._send

    def send(data: Any, dest: int, tag: int) -> None:
        header = 8 + int.from_bytes(data[:8].tobytes(), "little")
        assert _wire.decode(data)[0].inline
        counted.append(data.size - header)
        original(data, dest, tag)

    x = np.random.default_rng(comm.rank).normal(size=333).astype(np.float32)
    comm._engine._send = send
    comm.neighbor_allreduce(x, topology.ring(4), compressor=compressor)
    comm._engine._send = original
    return sum(counted), 2 * compressor.wire_bytes(333)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_at_the_transport_are_those_declared(name: str, cluster: dectool.Cluster) -> None:
    for found, declared in cluster.run(carried, n=4, args=(name,)).values:
        assert found == declared


def test_ranks_that_compress_differently_are_told_so(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> str:
        c = compression.TopK(2) if comm.rank else compression.TopK(3)
        try:
            comm.neighbor_allreduce(np.zeros(9), topology.complete(2), compressor=c)
        except ContractError as error:
            return str(error)
        return ""

    for text in cluster.run(program, n=2, timeout=5.0).values:
        assert "hold different arrays" in text
        assert "topk:3 of float64[9]" in text
