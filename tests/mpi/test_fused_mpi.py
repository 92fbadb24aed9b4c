"""Buckets and containers on processes: what the transport carries is what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import compression, topology

GRAPH = topology.ring(4)


def counted(comm: Any, operation: Any) -> tuple[int, int]:
    """Return the bytes that MPI was given beyond headers, and those that the communicator says."""
    from dectool.backends.mpi import _wire

    sent: list[int] = []
    original = comm._engine._send

    def send(data: Any, dest: int, tag: int) -> None:
        header = 8 + int.from_bytes(data[:8].tobytes(), "little")
        assert _wire.decode(data)[0].inline
        sent.append(data.size - header)
        original(data, dest, tag)

    before = comm.bytes_sent
    comm._engine._send = send
    operation(comm)
    comm._engine._send = original
    return sum(sent), comm.bytes_sent - before


def bucket(comm: Any) -> Any:
    return comm.ineighbor_allgather(comm.buckets([np.ones(3), np.ones(5)])[0]).wait()


def container(comm: Any) -> Any:
    return comm.ineighbor_allgather([np.ones(3), np.ones(5)]).wait()


def per_tensor(comm: Any) -> Any:
    c = compression.PerTensor(compression.TopK(1))
    return comm.neighbor_allreduce([np.ones(3), np.ones(5), np.ones(2, "f4")], compressor=c)


def rows(comm: Any) -> Any:
    return comm.neighbor_alltoall(np.ones((2, 40)), compressor=compression.ScaledSign())


@pytest.mark.parametrize(
    ("operation", "nbytes"),
    [(bucket, 64 + 40), (container, 64), (per_tensor, 9 + 9 + 5), (rows, 8 + 5)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_bytes_at_the_transport(operation: Any, nbytes: int, cluster: dectool.Cluster) -> None:
    args = (operation,)
    for found, said in cluster.run(counted, n=4, args=args, topology=GRAPH).values:
        assert found == said == 2 * nbytes


def test_parameters_in_buckets_are_averaged_between_processes(cluster: dectool.Cluster) -> None:
    torch = pytest.importorskip("torch")

    def program(comm: Any) -> Any:
        layer = torch.nn.Linear(3, 2)
        buckets = comm.buckets(list(layer.parameters()))
        for parameter, view in zip(layer.parameters(), buckets.views, strict=True):
            parameter.data = view
        with torch.no_grad():
            layer.weight.fill_(float(comm.rank))
        buckets.copy_from(comm.allreduce(buckets))
        return layer.weight.detach().numpy()

    for weight in cluster.run(program, n=4).values:
        assert weight.tolist() == [[1.5] * 3] * 2
