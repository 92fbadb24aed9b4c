"""Averages through shared memory: in every order and mixture, the bits of the simulator."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.backends.mpi._boards import native
from dectool.errors import ContractError
from dectool.testing import assert_same_bits

pytestmark = pytest.mark.skipif(native is None, reason="the C extension was not built")


MIB = 1 << 20


def directed(matrix: list[list[float]]) -> topology.Topology:
    """Return a topology some ranks of which only send or only receive."""
    return topology.from_matrix(matrix, require_connected=False)


GRAPHS = [
    topology.ring(4),
    topology.exponential(4),
    topology.star(4),
    directed(
        [[0.5, 0.0, 0.0, 0.5], [0.7, 0.3, 0.0, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.2, 0.8, 0.0]],
    ),
    directed(
        [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.5, 0.5]],
    ),
]


def value(rng: np.random.Generator, rank: int, kind: int, size: int) -> Any:
    """Return an array of one of several kinds that holds something else on each rank."""
    base = rng.normal(size=size) + rank
    if kind == 0:
        return base
    if kind == 1:
        return base.astype(np.float32).reshape(-1, 1)
    if kind == 2:
        return base.astype(np.float16)
    if kind == 3:
        return (base + 1j * base[::-1]).astype(np.complex64)
    if kind == 4:
        return {"w": base.astype(np.float32), "b": [base[:3], base[:1].astype(np.float16)]}
    return base.astype(ml_dtypes.float8_e4m3fn)  # no C kernel knows it


def rounds(comm: Any, seed: int, steps: int, largest: int) -> list[Any]:
    """Average again and again: kinds, sizes, graphs and ways to call, the same on every rank."""
    chance = np.random.default_rng(seed)
    kept: list[Any] = []
    pending: list[Any] = []
    for _ in range(steps):
        graph = GRAPHS[chance.integers(len(GRAPHS))]
        kind, way = chance.integers(6), chance.integers(8)
        size = int(chance.choice([1, 7, 1000, largest]))
        x = value(
            np.random.default_rng([seed, int(chance.integers(1 << 30))]), comm.rank, kind, size
        )
        if way == comm.rank:
            pending.append(comm.ineighbor_allreduce(x, graph))
        elif way == 4:
            kept.append(comm.neighbor_allgather(np.full(3, comm.rank * 1.0), graph))
            kept.append(comm.neighbor_allreduce(x, graph))
        elif way == 5:
            scales = dict.fromkeys(graph.out_neighbors(comm.rank), 0.5)
            kept.append(comm.neighbor_allreduce(x, graph, dst_weights=scales))
        else:
            kept.append(comm.neighbor_allreduce(x, graph))
        if way == 6:
            kept += [request.wait() for request in pending]
            pending = []
    return kept + [request.wait() for request in pending]


def same_as_sim(cluster: dectool.Cluster, program: Any, n: int, *args: Any) -> Any:
    """Run a program on both; compare every value of every rank, and what was sent."""
    expected = dectool.run(program, n=n, backend="sim", args=args)
    got = cluster.run(program, n=n, args=args, timeout=20.0)
    for rank in range(n):
        assert len(got.values[rank]) == len(expected.values[rank])
        for k, (one, other) in enumerate(zip(got.values[rank], expected.values[rank], strict=True)):
            assert_same_bits(one, other, f"rank {rank}, result {k}")
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)
    return got


@pytest.mark.parametrize("seed", range(12))
def test_random_rounds(cluster: dectool.Cluster, seed: int) -> None:
    same_as_sim(cluster, rounds, 4, seed, 60, 70_000)


def test_rounds_of_megabytes(cluster: dectool.Cluster) -> None:
    same_as_sim(cluster, rounds, 4, 99, 12, 1_000_003)


@pytest.mark.parametrize("n", [2, 4])
def test_parcels_about_as_large_as_goes_without_a_ring(cluster: dectool.Cluster, n: int) -> None:
    """1 MiB, a line less or more, and several arrays whose edges lie within chunks."""

    def program(comm: Any) -> list[Any]:
        rng = np.random.default_rng(comm.rank)
        graph = topology.ring(comm.size)
        kept = []
        for nbytes in (MIB - 64, MIB, MIB + 64, MIB + MIB // 2, 2 * MIB + 2):
            whole = rng.normal(size=nbytes // 2).astype(np.float16)
            third = nbytes // 12
            parts = {"a": whole[:third].astype(np.float32), "b": whole[third : -third // 2]}
            for x in (whole, parts):
                for _ in range(4):
                    comm.elapse(float(rng.choice([0.0, 1e-4, 1e-3])))
                    kept.append(comm.neighbor_allreduce(x, graph))
        return kept

    same_as_sim(cluster, program, n)


def test_one_goes_through_shared_memory(cluster: dectool.Cluster) -> None:
    """After the first rounds no message carries a neighbour's value."""

    def program(comm: Any) -> int:
        graph, x = topology.ring(4), np.full(5000, comm.rank * 1.0)
        for _ in range(5):
            x = comm.neighbor_allreduce(x, graph)
            comm.barrier()
        posted: list[Any] = []
        original = comm._engine._send
        comm._engine._send = lambda data, dest, tag: (
            posted.append(dest) or original(data, dest, tag)
        )
        for _ in range(50):
            x = comm.neighbor_allreduce(x, graph)
        comm._engine._send = original
        comm.barrier()
        return len(posted)

    assert cluster.run(program, n=4).values == [0] * 4


def test_a_sender_need_not_wait_for_a_slow_reader(cluster: dectool.Cluster) -> None:
    """Rank 0 only sends; it is many rounds ahead before rank 1 takes the first."""

    def program(comm: Any) -> list[Any]:
        one_way = directed([[1.0, 0.0], [0.5, 0.5]])
        kept = [comm.neighbor_allreduce(np.full(9, 1.0 * comm.rank), one_way) for _ in range(4)]
        if comm.rank == 0:
            kept += [comm.neighbor_allreduce(np.full(20_000, float(k)), one_way) for k in range(40)]
            comm.send(np.array([7.0]), 1)
        else:
            kept.append(comm.recv(0))
            kept += [
                comm.neighbor_allreduce(np.full(20_000, -float(k)), one_way) for k in range(40)
            ]
        return kept

    same_as_sim(cluster, program, 2)


@pytest.mark.parametrize("late", [0, 1, 2, 3])
def test_large_parcels_with_a_rank_that_is_late(cluster: dectool.Cluster, late: int) -> None:
    """Its neighbours have written their parcels whole by then; those of the others go on."""

    def program(comm: Any) -> list[Any]:
        kept = []
        for graph in GRAPHS:
            x = np.random.default_rng(comm.rank).normal(size=700_001)
            for _ in range(4):
                if comm.rank == late:
                    comm.elapse(0.003)
                x = comm.neighbor_allreduce(x, graph)
            kept.append(x)
        return kept

    same_as_sim(cluster, program, 4)


@pytest.mark.parametrize("graph", [topology.ring(2), topology.star(3)], ids=["pair", "star"])
def test_large_parcels_with_a_rank_that_stops_amid(
    cluster: dectool.Cluster, graph: topology.Topology
) -> None:
    """Stopped at any moment, it never reads what a neighbour has written over."""

    def program(comm: Any) -> list[Any]:
        stopped = comm.allgather(np.array(os.getpid()))[-1]
        over = threading.Event()

        def stop_now_and_then() -> None:
            chance = np.random.default_rng(0)
            while not over.wait(chance.uniform(0, 0.003)):
                os.kill(int(stopped), signal.SIGSTOP)
                time.sleep(chance.uniform(0, 0.002))
                os.kill(int(stopped), signal.SIGCONT)

        stopping = threading.Thread(target=stop_now_and_then)
        if comm.rank == 0 and comm.backend == "mpi":
            stopping.start()
        x = {
            "w": np.random.default_rng(comm.rank).normal(size=1_300_001).astype(np.float32),
            "b": np.random.default_rng(comm.rank).normal(size=100_003),
        }
        for _ in range(60):
            x = comm.neighbor_allreduce(x, graph)
        over.set()
        if stopping.is_alive():
            stopping.join()
        return [x]

    same_as_sim(cluster, program, graph.size)


def test_results_are_not_written_over(cluster: dectool.Cluster) -> None:
    """Memory of results is used again only when nothing shows it any more."""

    def program(comm: Any) -> list[Any]:
        import torch

        graph, kept = topology.ring(2), []
        for k in range(12):
            x = np.full((300, 400), k + 10.0 * comm.rank)
            if k % 3 == 0:
                kept.append(comm.neighbor_allreduce(x, graph)[5:, ::7])
            elif k % 3 == 1:
                kept.append(comm.neighbor_allreduce(torch.from_numpy(x), graph).mT)
            else:
                comm.neighbor_allreduce(x, graph)
        return kept

    same_as_sim(cluster, program, 2)


@pytest.mark.parametrize("size", [1000, 500_000])
@pytest.mark.parametrize("other", ["shape", "dtype", "structure"])
def test_disagreement_is_an_error_on_each_rank_concerned(
    cluster: dectool.Cluster, other: str, size: int
) -> None:
    """Also once shared memory is in use; and nothing is lost: the next round is right."""

    def program(comm: Any) -> tuple[str, list[Any]]:
        graph, x = topology.ring(4), np.full(size, comm.rank * 1.0)
        for _ in range(5):
            x = comm.neighbor_allreduce(x, graph)
        wrong = {"shape": x[:-100], "dtype": x.astype(np.float32), "structure": [x]}[other]
        said = ""
        try:
            comm.neighbor_allreduce(wrong if comm.rank == 1 else x, graph)
        except ContractError as error:
            said = str(error)
        return said, [comm.neighbor_allreduce(np.full(3, comm.rank * 1.0), graph)]

    got = cluster.run(program, n=4, timeout=5.0).values
    assert got[3][0] == ""
    for rank, neighbor in ((0, 1), (1, 0), (2, 1)):
        assert f"rank {rank} and its in-neighbor {neighbor} hold different arrays" in got[rank][0]
    for rank in range(4):
        neighbors = (rank - 1) % 4 + rank + (rank + 1) % 4
        assert got[rank][1][0] == pytest.approx(np.full(3, neighbors / 3))


def test_a_missing_neighbor_is_reported(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        graph, x = topology.ring(2), np.zeros(10)
        for _ in range(5):
            comm.neighbor_allreduce(x, graph)
        if comm.rank == 1:
            comm.recv(0)
        comm.neighbor_allreduce(x, graph)

    with pytest.raises(
        dectool.DeadlockError, match=r"rank 0 waits in neighbor_allreduce for rank 1"
    ):
        cluster.run(program, n=2, timeout=1.0)


def test_what_nobody_received_is_counted(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        one_way = directed([[1.0, 0.0], [0.5, 0.5]])
        for k in range(7):
            if k < 4 or comm.rank == 0:
                comm.neighbor_allreduce(np.zeros(4), one_way)
            if k == 3:
                comm.barrier()

    with pytest.raises(ContractError, match="3 messages sent but never received"):
        cluster.run(program, n=2)


def test_nothing_is_left(cluster: dectool.Cluster) -> None:
    """Boards have no name, and their descriptors are closed with the run."""

    def program(comm: Any, rounds: int) -> int:
        for k in range(rounds):
            comm.neighbor_allreduce(np.zeros(10 << k), topology.ring(2))
        return len(os.listdir("/proc/self/fd"))

    before = cluster.run(program, n=2, args=(0,)).values
    cluster.run(program, n=2, args=(14,))
    time.sleep(0.01)
    assert cluster.run(program, n=2, args=(0,)).values == before
