"""A rank that fails, ends or never comes while others wait at a window is an error, not a hang."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.errors import BackendError, DeadlockError
from tests.mpi.test_failures import within
from tests.mpi.window_ways import WAYS, by_way

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

RING = topology.ring(2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[dectool.Cluster]:
    """Two processes of these tests, since some of them end the processes."""
    with dectool.Cluster(n=2) as cluster:
        yield cluster


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def holding_a_cell(comm: Any) -> None:
    with comm.window(np.zeros(9), "x", RING) as win:
        if comm.rank == 1:
            win._store._near[0].slots[1]._line.take(0)
            comm.barrier()
            die()
        comm.barrier()
        win.update()


def holding_a_mutex(comm: Any) -> None:
    with comm.window(np.zeros(9), "x", RING) as win:
        if comm.rank == 1:
            with win.lock([0]):
                comm.barrier()
                die()
        comm.barrier()
        with win.lock([0]):
            pass


def at_a_fence(comm: Any) -> None:
    with comm.window(np.zeros(9), "x", RING) as win:
        if comm.rank == 1:
            die()
        win.fence()


def put_to(comm: Any) -> None:
    with comm.window(np.zeros(300_000), "x", RING) as win:
        if comm.rank == 1:
            die()
        while True:
            win.put()
            comm.elapse(0.0)


@pytest.mark.parametrize(
    ("program", "way"),
    [
        (holding_a_cell, "memory"),
        (holding_a_mutex, "memory"),
        (holding_a_mutex, "messages"),
        (at_a_fence, "memory"),
        (put_to, "messages"),
    ],
)
def test_a_rank_that_dies_ends_the_run(cluster: dectool.Cluster, program: Any, way: str) -> None:
    with within(25.0), pytest.raises(BackendError, match=r"rank 1 of 2 .* signal 9 \(SIGKILL\)"):
        cluster.run(by_way(program, way), 2)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_on_one_rank_stops_the_other(cluster: dectool.Cluster, way: str) -> None:
    def program(comm: Any) -> None:
        with comm.window(np.zeros(100_000), "x", RING) as win:
            if comm.rank == 1:
                win.put()
                raise ValueError("first")
            win.wait(1, 2)

    with within(20.0), pytest.raises(ValueError, match="first"):
        cluster.run(by_way(program, way), 2)
    # What was under way does not reach the windows of the next run.
    for _ in range(3):
        got = cluster.run(
            by_way(lambda comm: comm.window(np.ones(4), "x", RING).slot(1 - comm.rank), way), 2
        )
        assert all((slot == 1.0).all() for slot in got.values)


@pytest.mark.parametrize("way", WAYS)
def test_waits_are_reported(cluster: dectool.Cluster, way: str) -> None:
    """Who waits for whom, in which window, at which line."""

    def program(comm: Any, what: str) -> None:
        with comm.window(np.zeros(3), "params", RING) as win:
            if comm.rank == 0:
                if what == "version":
                    win.wait(1, 1)
                elif what == "fence":
                    win.fence()
                else:
                    comm.recv(1, tag=1)
                    with win.lock([0]):
                        pass
            elif what == "lock":
                with win.lock([0]):
                    comm.send(np.zeros(1), 0, tag=1)
                    comm.elapse(30.0)
            comm.recv(1 - comm.rank)

    for what, line in {
        "version": r"rank 0 waits in an operation of window 'params' for rank 1, .*wait\(1, 1\)",
        "fence": r"rank 0 waits in fence of window 'params' for rank 1, .*win.fence\(\)",
        "lock": r"rank 0 waits in lock of window 'params' for rank \d, .*win.lock\(\[0\]\)",
    }.items():
        with within(20.0), pytest.raises(DeadlockError, match=line):
            cluster.run(by_way(program, way), 2, args=(what,), timeout=1.0)


@pytest.mark.parametrize("way", WAYS)
def test_a_neighbour_that_returned_is_no_hope(cluster: dectool.Cluster, way: str) -> None:
    """What it wrote before is there, and what it did not write is missed at once."""

    def program(comm: Any, versions: int) -> float:
        win = comm.window(np.full(70_000, float(comm.rank)), "x", RING)
        if comm.rank == 1:
            engine = comm._engine
            ended = engine.finish

            def finish(how: int) -> Any:
                assert not engine.windows._asked, "it ends before what it wrote is there"
                return ended(how)

            engine.finish = finish
            for _ in range(3):
                win.iput()
            return 0.0
        win.wait(1, versions)
        return float(win.slot(1)[-1])

    assert list(cluster.run(by_way(program, way), 2, args=(3,)).values) == [1.0, 0.0]
    with within(10.0), pytest.raises(DeadlockError, match=r"for rank 1 \(of these, 1 returned\)"):
        cluster.run(by_way(program, way), 2, args=(4,))


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_returned_still_serves(cluster: dectool.Cluster, way: str) -> None:
    def program(comm: Any) -> float:
        win = comm.window(np.full(20_000, float(comm.rank)), "x", RING)
        if comm.rank == 1:
            return 0.0
        time.sleep(0.1)
        for _ in range(5):
            win.put()
            win.get()
            with win.lock():
                pass
        return float(win.slot(1)[0])

    assert list(cluster.run(by_way(program, way), 2).values) == [1.0, 0.0]
