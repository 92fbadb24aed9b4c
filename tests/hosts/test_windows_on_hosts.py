"""Windows between hosts go by message, on a host through memory, with the simulator's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.testing import assert_same_bits
from dectool.testing._lab import Lab
from tests.mpi.test_windows import lines, sequence
from tests.mpi.test_windows_at_work import accumulated, busy_target, guarded_counter


def mixed(comm: Any) -> Any:
    """Return what other tests compare on one machine, and how neighbours are reached."""
    small = sequence(comm, 5, "numpy float32", 3, None, 3)
    large = sequence(comm, 4, "numpy float64", 40_000, None, 2)
    return small, large[-1], lines(comm)


def test_the_bits_are_those_of_the_simulator(cluster: dectool.Cluster) -> None:
    """Two ranks on each of two hosts."""
    options: Any = {"topology": topology.complete(4), "seed": 3}
    expected = dectool.run(mixed, backend="sim", **options)
    got = cluster.run(mixed, timeout=20.0, **options)
    for rank in range(4):
        assert_same_bits(got.values[rank], expected.values[rank], f"rank {rank}")
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)


def test_memory_on_a_host_and_messages_between_them(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> tuple[list[int], list[int]]:
        with comm.window(np.zeros(1), "x", topology.complete(4)) as win:
            return sorted(win._store._near), sorted(win._store._far)

    assert list(cluster.run(program).values) == [
        ([0, 1], [2, 3]),
        ([0, 1], [2, 3]),
        ([2, 3], [0, 1]),
        ([2, 3], [0, 1]),
    ]


def test_nothing_is_lost_between_hosts(cluster: dectool.Cluster) -> None:
    graph = topology.complete(4)
    found = cluster.run(accumulated, topology=graph, args=(60, 3), timeout=20.0).values
    assert list(found) == [(True, True)] * 4
    expected = 1
    for _ in range(4 * 10):
        expected = (3 * expected + 1) % 1_000_003
    assert cluster.run(guarded_counter, args=(10,), timeout=20.0).values[0] == expected


def test_one_rank_on_each_host(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A put is seen while its target computes; the figure is printed."""
    options: Any = {"launcher": lab.launcher, "env": lab.variables}
    with dectool.Cluster(hosts=lab.addresses, **options) as cluster:
        got = cluster.run(lines, topology=topology.complete(2))
        spent, visible = cluster.run(busy_target, args=(8,)).values
    expected = dectool.run(lines, backend="sim", topology=topology.complete(2))
    for rank in range(2):
        assert_same_bits(got.values[rank], expected.values[rank], f"rank {rank}")
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)
    with capsys.disabled():
        print(
            f"\nbetween hosts: put {1e3 * float(np.median(spent)):.2f} ms, "
            f"visible after {1e3 * float(np.median(visible)):.2f} ms"
        )
    assert visible
    assert np.median(visible) < 0.25
