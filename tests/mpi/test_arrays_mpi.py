"""Arrays of any kind over real processes, with the bits of the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.testing import assert_same_bits

GRAPH = topology.exponential(4)
INLINE = 64 * 1024


def torch_array(dtype: str) -> Callable[[int], Any]:
    def make(rank: int) -> Any:
        import torch

        values = torch.linspace(-1.0, 1.0, 33).add(rank).reshape(3, 11)
        return values.to(getattr(torch, dtype))

    return make


def bfloat16(rank: int) -> Any:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return (np.arange(7.0) + rank / 3).astype(ml_dtypes.bfloat16)


ARRAYS: dict[str, Callable[[int], Any]] = {
    "float64": lambda rank: np.sin(np.arange(50.0) + rank),
    "float16": lambda rank: (np.arange(9) / 7 + rank).astype(np.float16),
    "complex": lambda rank: np.exp(1j * (np.arange(9.0) + rank)),
    "bfloat16": bfloat16,
    "zero-size": lambda rank: np.zeros((0, 3)),
    "0-d": lambda rank: np.array(1.5 * rank),
    "strided": lambda rank: (np.arange(60.0) * (rank + 1)).reshape(6, 10)[::2, ::-3],
    "transposed": lambda rank: (np.arange(60.0) * (rank + 1)).reshape(6, 10).T,
    "torch": torch_array("float32"),
    "torch bfloat16": torch_array("bfloat16"),
    "torch complex": torch_array("complex64"),
    "just inline": lambda rank: np.full(INLINE // 8, rank / 7),
    "just beyond": lambda rank: np.full(INLINE // 8 + 1, rank / 7),
    "large": lambda rank: np.random.default_rng(rank).normal(size=1 << 19),
    "many": lambda rank: {
        "w": np.full((200, 100), rank / 3, np.float32),
        "b": [np.full(70_000, rank / 9), np.zeros((0,)), np.full(3, 1j * rank)],
    },
}


def program(comm: Any, names: list[str], size: int | None = None) -> Any:
    from dectool.backends.mpi import _wire

    before, _wire.CUT = _wire.CUT, size or _wire.CUT
    comm.barrier()
    found = []
    for name in names:
        x = ARRAYS[name](comm.rank)
        found.append(
            [
                comm.neighbor_allreduce(x),
                comm.sendrecv(x, (comm.rank + 1) % 4, (comm.rank - 1) % 4),
                comm.ibroadcast(x, 2).wait(),
                comm.allreduce(x, "sum"),
            ]
        )
    comm.barrier()
    _wire.CUT = before
    return found


def check(cluster: dectool.Cluster, names: list[str], size: int | None = None) -> None:
    options: Any = {"topology": GRAPH, "args": (names, size), "ranks_per_node": 1}
    expected = dectool.run(program, backend="sim", **options)
    got = cluster.run(program, **options)
    for rank in range(4):
        for index, name in enumerate(names):
            assert_same_bits(got.values[rank][index], expected.values[rank][index], name)
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)


def test_numpy_arrays(cluster: dectool.Cluster) -> None:
    check(cluster, [name for name in ARRAYS if "torch" not in name and name != "bfloat16"])


def test_torch_tensors(cluster: dectool.Cluster) -> None:
    pytest.importorskip("torch")
    check(cluster, [name for name in ARRAYS if "torch" in name])


def test_numpy_bfloat16(cluster: dectool.Cluster) -> None:
    pytest.importorskip("ml_dtypes")
    check(cluster, ["bfloat16"])


def test_data_in_many_pieces(cluster: dectool.Cluster) -> None:
    check(cluster, ["large", "many"], size=1 << 20)
    check(cluster, ["many"], size=1000)


def test_ten_runs_are_equal(cluster: dectool.Cluster) -> None:
    def repeated(comm: Any) -> Any:
        x = comm.rng("start").normal(size=1000)
        requests = [comm.ineighbor_allreduce(x * k) for k in range(5)]
        sums = [comm.iallreduce(x + k) for k in range(5)]
        return [request.wait() for request in [*reversed(requests), *sums]]

    first = cluster.run(repeated, topology=GRAPH, seed=4).values
    expected = dectool.run(repeated, topology=GRAPH, seed=4).values
    for _ in range(10):
        again = cluster.run(repeated, topology=GRAPH, seed=4).values
        for rank in range(4):
            assert_same_bits(again[rank], first[rank])
            assert_same_bits(again[rank], expected[rank])


def test_a_later_small_message_does_not_overtake_a_large_one(cluster: dectool.Cluster) -> None:
    def ordered(comm: Any) -> Any:
        if comm.rank == 0:
            for size in (1 << 20, 3, 1 << 18, 1):
                comm.send(np.full(size, float(size)), 1)
            return None
        comm.elapse(0.05)
        return [len(comm.recv(0)) for _ in range(4)]

    assert cluster.run(ordered, 2).values[1] == [1 << 20, 3, 1 << 18, 1]


def test_local_ranks_are_what_mpi_finds_unless_told(cluster: dectool.Cluster) -> None:
    def places(comm: Any) -> Any:
        return comm.local_size, comm.local_rank, comm.node_rank, comm.node.size

    assert cluster.run(places, 4).values == [(4, rank, 0, 4) for rank in range(4)]
    found = cluster.run(places, 4, ranks_per_node=2).values
    assert found == [(2, rank % 2, rank // 2, 2) for rank in range(4)]
    assert dectool.run(places, 2).values == [(1, 0, rank, 1) for rank in range(2)]
