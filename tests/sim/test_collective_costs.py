"""The costs of collectives are those of the closed forms, message by message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dectool
from dectool import topology
from dectool.sim import AlphaBeta
from dectool.topology import Topology

N, ALPHA, B, M = 8, 10e-6, 1.25e9, 100_000_000
GOLDEN = {
    "ring": 0.14014,
    "recursive_doubling": 0.24003,
    "rabenseifner": 0.14006,
    "tree": 0.48006,
}


def payload(nbytes: int = M) -> torch.Tensor:
    return torch.empty(nbytes // 4, dtype=torch.float32, device="meta")


def time_of(program: Callable[[Any], Any], n: int = N, backend: str = "sim", **options: Any) -> Any:
    network = AlphaBeta(ALPHA, B, port=options.pop("port", "serial"))
    return dectool.run(program, n, backend=backend, network=network, **options)


@pytest.mark.parametrize("backend", ["sim", "stacked"])
@pytest.mark.parametrize("algorithm", GOLDEN)
def test_allreduce_costs_what_theory_says(algorithm: str, backend: str) -> None:
    def program(comm: Any) -> None:
        x = comm.per_rank(lambda rank: payload())
        comm.allreduce(x, algorithm=algorithm)

    result = time_of(program, backend=backend)
    assert result.time == pytest.approx(GOLDEN[algorithm], rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 16])
def test_allreduce_formulas_hold_for_every_size(n: int) -> None:
    log, m = math.ceil(math.log2(n)), 4 * 5040 * 16
    expected = {"ring": 2 * (n - 1) * ALPHA + 2 * (n - 1) / n * m / B}
    if n & (n - 1) == 0:
        expected["tree"] = 2 * log * (ALPHA + m / B)
        expected["recursive_doubling"] = log * (ALPHA + m / B)
        expected["rabenseifner"] = 2 * log * ALPHA + 2 * (n - 1) / n * m / B
    for algorithm, seconds in expected.items():
        result = time_of(lambda comm, a=algorithm: comm.allreduce(payload(m), algorithm=a), n)
        assert result.time == pytest.approx(seconds, rel=1e-9), algorithm


def test_ring_sends_two_blocks_for_each_other_rank() -> None:
    result = time_of(lambda comm: comm.allreduce(payload(), algorithm="ring"))
    assert result.messages == 2 * N * (N - 1)
    assert result.bytes == 2 * (N - 1) * M


NEIGHBORS: dict[str, tuple[Callable[[], Topology], float, float]] = {
    "one peer": (lambda: topology.one_peer_exponential(N).at(1), 0.08001, 0.08001),
    "static exponential": (lambda: topology.exponential(N), 0.24001, 0.08001),
    "ring": (lambda: topology.ring(N), 0.16001, 0.08001),
}


@pytest.mark.parametrize("backend", ["sim", "stacked"])
@pytest.mark.parametrize("name", NEIGHBORS)
def test_neighbor_allreduce_shares_the_port(name: str, backend: str) -> None:
    make, serial, parallel = NEIGHBORS[name]

    def program(comm: Any) -> None:
        comm.neighbor_allreduce(comm.per_rank(lambda rank: payload()))

    for port, seconds in (("serial", serial), ("parallel", parallel)):
        result = time_of(program, backend=backend, topology=make(), port=port)
        assert result.time == pytest.approx(seconds, rel=1e-9), port


def test_parameter_server_of_messages_is_bound_by_one_port() -> None:
    """2α + nM/B out of one serial port: the server's sends leave one after the other."""

    def program(comm: Any) -> None:
        x = payload(M // 10)
        if comm.rank:
            comm.send(x, 0)
            comm.recv(0)
        else:
            for source in range(1, comm.size):
                comm.recv(source)
            for dest in range(1, comm.size):
                comm.send(x, dest)

    m = M // 10
    assert time_of(program).time == pytest.approx(2 * ALPHA + N * m / B, rel=1e-9)


def test_barrier_takes_log_n_latencies() -> None:
    for n in (1, 2, 3, 8, 9):
        rounds = (n - 1).bit_length()
        assert time_of(lambda comm: comm.barrier(), n).time == pytest.approx(rounds * ALPHA)


def test_broadcast_and_alltoall() -> None:
    m = M // 100
    result = time_of(lambda comm: comm.broadcast(payload(m), root=3))
    assert result.time == pytest.approx(3 * (ALPHA + m / B), rel=1e-9)
    rows = torch.empty((N, m // 4), device="meta")
    result = time_of(lambda comm: comm.alltoall(rows))
    assert result.time == pytest.approx((N - 1) * (ALPHA + m / B), rel=1e-9)


def test_hierarchical_moves_a_shard_per_rank_between_nodes() -> None:
    """One shard to each local peer and back, and one across, for each of g = 4 ranks."""
    m, group = 4 * 1024 * 1024, 4
    nodes = topology.ring(2)

    def program(comm: Any) -> None:
        comm.hierarchical_neighbor_allreduce(payload(m), nodes)

    result = time_of(program, ranks_per_node=group)
    within = ALPHA + (group - 1) * (m / group) / B
    assert result.time == pytest.approx(2 * within + ALPHA + m / group / B, rel=1e-9)
    assert result.bytes == N * (2 * (group - 1) + 1) * m // group


def test_auto_chooses_like_an_mpi_library() -> None:
    def messages(n: int, nbytes: int) -> int:
        return time_of(lambda comm: comm.allreduce(payload(nbytes)), n).messages

    assert messages(8, 1024) == 8 * 3
    assert messages(8, 1 << 20) == 8 * 6
    assert messages(6, 1 << 20) == 2 * 6 * 5
