"""Non-blocking operations go on while the program computes; their time is not lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import compression, sim, topology
from dectool.errors import UnsupportedOperation

NET = sim.AlphaBeta(latency=1.0)
X = np.zeros(1)


def finish(start: Any, work: float, n: int = 4, backend: str = "sim", net: Any = NET) -> float:
    def program(comm: Any) -> None:
        request = start(comm, comm.per_rank(lambda rank: X))
        comm.elapse(work)
        request.wait()

    return dectool.run(
        program, n, backend=backend, network=net, topology=topology.ring(n), ranks_per_node=2
    ).time


ALONE = {
    "ineighbor_allreduce": (lambda comm, x: comm.ineighbor_allreduce(x), 1.0),
    "iallreduce": (lambda comm, x: comm.iallreduce(x), 2.0),
    "ring": (lambda comm, x: comm.iallreduce(x, algorithm="ring"), 6.0),
    "ibarrier": (lambda comm, x: comm.ibarrier(), 2.0),
    "ibroadcast": (lambda comm, x: comm.ibroadcast(x), 2.0),
    "iallgather": (lambda comm, x: comm.iallgather(x), 3.0),
    "hierarchical": (
        lambda comm, x: comm.ihierarchical_neighbor_allreduce(x, topology.ring(2)),
        3.0,
    ),
}


@pytest.mark.parametrize("backend", ["sim", "stacked"])
@pytest.mark.parametrize("name", ALONE)
def test_the_longer_of_work_and_communication_counts(name: str, backend: str) -> None:
    start, alone = ALONE[name]
    for work in (0.0, alone / 2, 3 * alone):
        assert finish(start, work, backend=backend) == pytest.approx(max(work, alone))


def test_background_operations_share_the_port() -> None:
    """Two all-reduces of two ranks at once: each sends 1 s of bytes through the same port."""

    def program(comm: Any) -> float:
        requests = [comm.iallreduce(np.zeros(125)) for _ in range(2)]
        return max(request.wait() is not None and comm.now() for request in requests)

    serial = sim.AlphaBeta(bandwidth=1000.0)
    assert dectool.run(program, 2, network=serial).values == [2.0, 2.0]
    parallel = sim.AlphaBeta(bandwidth=1000.0, port="parallel")
    assert dectool.run(program, 2, network=parallel).values == [1.0, 1.0]


def test_the_port_serves_strands_in_order_of_time() -> None:
    """The program's message at t = 5 does not delay the background's of t = 2."""

    def program(comm: Any) -> float | None:
        request = comm.iallreduce(np.zeros(125), algorithm="ring")
        comm.elapse(5.0)
        comm.send(np.zeros(125), 1 - comm.rank)
        comm.recv(1 - comm.rank)
        request.wait()
        return comm.now()

    serial = sim.AlphaBeta(bandwidth=1000.0)
    assert dectool.run(program, 2, network=serial).values == [6.0, 6.0]


def test_stacked_refuses_what_it_cannot_time() -> None:
    def program(comm: Any) -> None:
        request = comm.iallreduce(comm.per_rank(lambda rank: X))
        comm.neighbor_allreduce(comm.per_rank(lambda rank: X))
        request.wait()

    graph = topology.ring(4)
    with pytest.raises(UnsupportedOperation, match=r"port='parallel'\), or backend='sim'"):
        dectool.run(program, backend="stacked", topology=graph, network=NET)
    for net in (sim.AlphaBeta(1.0, port="parallel"), sim.AlphaBeta()):
        times = [
            dectool.run(program, backend=backend, topology=graph, network=net).times
            for backend in ("sim", "stacked")
        ]
        assert list(times[0]) == list(times[1])


def test_stacked_refuses_queues_at_receivers() -> None:
    with pytest.raises(UnsupportedOperation, match="Use backend='sim', or AlphaBeta"):
        dectool.run(lambda comm: None, 2, backend="stacked", network=sim.LogGP(1.0))


def test_unwaited_operations_do_not_hold_the_run_up() -> None:
    def program(comm: Any) -> None:
        comm.ineighbor_allreduce(X)

    assert dectool.run(program, topology=topology.ring(3), network=NET).time == 0.0


def test_what_the_background_did_to_clocks_counts_where_messages_take_no_time() -> None:
    """Compressing takes each rank another time, and who waits for a neighbour waits for that."""

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: np.arange(5.0))
        comm.iallreduce(x, compressor=compression.Cast("float16")).wait()
        comm.neighbor_allreduce(x)
        return comm.now()

    network = sim.AlphaBeta(codec=sim.Codec(compress=8.0, decompress=8.0))
    sides = [
        dectool.run(program, backend=name, topology=topology.ring(3), network=network).times
        for name in ("sim", "stacked")
    ]
    assert list(sides[0]) == list(sides[1])
    assert max(sides[0]) > 0.0
