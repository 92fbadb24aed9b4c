"""Windows while everybody writes and reads at once, and while owners compute."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from tests.mpi.window_ways import WAYS, by_way

READS = 10_000
LARGEST = 1 << 17


def accumulated(comm: Any, rounds: int, size: int) -> tuple[bool, bool]:
    """Add whole numbers to every neighbour's slot and value while they collect."""
    chance = np.random.default_rng(comm.rank)
    zero = np.zeros(size)
    everyone = range(comm.size)
    sent = np.zeros(comm.size)
    with (
        comm.window(zero, "slots", zero_init=True) as slots,
        comm.window(zero, "values") as values,
    ):
        for _ in range(rounds):
            for dest in everyone:
                if dest != comm.rank:
                    number = int(chance.integers(1, 1000))
                    slots.iaccumulate(zero + number, dst_weights=[dest], self_weight=0.0)
                    values.iadd(zero + number, [dest])
                    sent[dest] += number
            if chance.random() < 0.5:
                slots.set(zero)
                sent[comm.rank] -= float(slots.collect()[0])
        slots.flush()
        values.flush()
        comm.barrier()
        slots.set(zero)
        collected = slots.collect() - sent[comm.rank]
        added = values.value
        sent[comm.rank] = 0.0
        due = comm.allreduce(sent, "sum")[comm.rank]
        return bool((collected == due).all()), bool((added == due).all())


@pytest.mark.parametrize("way", WAYS)
def test_concurrent_accumulates_sum_exactly(cluster: dectool.Cluster, way: str) -> None:
    program = by_way(accumulated, way)
    for rounds, size in ((300, 3), (20, 30_000)):
        graph = topology.complete(4)
        found = cluster.run(program, n=4, topology=graph, args=(rounds, size)).values
        assert list(found) == [(True, True)] * 4, found


def torn_reads(comm: Any, reads: int, locked: bool) -> tuple[int, int, int]:
    """Write arrays of equal elements.

    Return how many of those read had unequal ones, how many were read, and how many were new.
    """
    from dectool.backends.mpi._window_cells import SharedCell

    original = SharedCell.exclusive
    if not locked:
        from contextlib import nullcontext

        SharedCell.exclusive = lambda cell: nullcontext()  # type: ignore[assignment,method-assign]
    torn = done = new = 0
    try:
        for share, size in ((0.5, 1), (0.3, 1000), (0.15, 20_000), (0.05, LARGEST)):
            x = np.zeros(size)
            with comm.window(x, f"of {size}", topology.ring(2)) as win:
                if comm.rank == 0:
                    number = 0
                    while win.version(1) == 0:
                        number += 1
                        x[:] = number
                        win.put(x) if number % 3 else win.accumulate(x, self_weight=1.0)
                else:
                    last = 0.0
                    for k in range(int(share * reads)):
                        if k % 3 == 0:
                            seen = win.slot(0)
                        elif k % 3 == 1:
                            win.get()
                            seen = win.slot(0)
                        else:
                            seen = win.update(self_weight=0.0, src_weights={0: 1.0})
                        torn += bool((seen != seen[0]).any())
                        done += 1
                        new += bool(seen[0] != last)
                        last = seen[0]
                    win.put()
    finally:
        SharedCell.exclusive = original  # type: ignore[method-assign]
    return torn, done, new


def test_nobody_sees_half_a_write(cluster: dectool.Cluster) -> None:
    torn, done, new = cluster.run(torn_reads, n=2, args=(READS, True), timeout=30.0).values[1]
    assert (torn, done) == (0, READS)
    assert new > READS / 100


def test_nobody_sees_half_a_message(cluster: dectool.Cluster) -> None:
    program = by_way(torn_reads, "messages")
    found = cluster.run(program, n=2, args=(READS // 10, True), timeout=30.0).values[1]
    assert found[:2] == (0, READS // 10)


def test_without_exclusion_halves_are_seen(cluster: dectool.Cluster) -> None:
    """The planted fault: what is tested above does happen."""
    found = cluster.run(torn_reads, n=2, args=(READS, False), timeout=30.0).values[1]
    assert found[0] > 0


def push_sum(comm: Any, most: int) -> tuple[float, list[float]]:
    """Average by asynchronous push-sum; stop the world now and then to weigh all mass."""
    chance = comm.rng("sleep")
    x = np.random.default_rng(comm.rank).normal(size=50)
    target = comm.allreduce(x, "sum") / comm.size
    total = np.append(comm.size * target, comm.size)
    slow = 10.0 if comm.rank == comm.size - 1 else 1.0
    errors = []
    with comm.window(x, "x", push_sum=True) as win:
        for _ in range(most):
            until = comm.now() + 0.03
            while comm.now() < until:
                time.sleep(slow * chance.uniform(0.0, 1e-3))
                win.accumulate()
                win.collect()
            win.flush()
            comm.barrier()
            cells = [win._store.own, *win._store.slots.values()]
            mass = sum(np.append(cell.buffers[0], cell.weight) for cell in cells)
            errors.append(float(np.abs(comm.allreduce(mass, "sum") - total).max()))
            far = float(np.abs(win.debiased - target).max())
            worst = float(comm.allreduce(np.array([far]), "max")[0])
            if worst < 1e-10 and len(errors) > 9:
                break
    return worst, errors


@pytest.mark.parametrize("way", WAYS[:2])
def test_asynchronous_push_sum_averages(cluster: dectool.Cluster, way: str) -> None:
    """One rank is ten times slower; no mass is made or lost at any time."""
    graph = topology.exponential(4)
    result = cluster.run(by_way(push_sum, way), n=4, topology=graph, args=(400,), timeout=30.0)
    for worst, errors in result.values:
        assert worst < 1e-10
        assert max(errors) < 1e-12


def busy_target(comm: Any, puts: int) -> Any:
    """Put to a rank that computes for a second; return the seconds of puts, and to be seen."""
    graph = topology.ring(2)
    with comm.window(np.zeros(250), "x", graph) as win:
        comm.barrier()
        if comm.rank == 0:
            spent, stamps = [], []
            time.sleep(0.05)
            for _ in range(puts):
                stamps.append(time.perf_counter())
                win.put(np.full(250, stamps[-1]))
                spent.append(time.perf_counter() - stamps[-1])
                time.sleep(0.8 / puts)
            win.fence()
            return spent
        cell, matrix = win._store.slots[0], np.full((120, 120), 0.01)
        seen, at, until = [0.0], [0.0], time.perf_counter() + 1.0
        while time.perf_counter() < until:
            matrix = np.tanh(matrix @ matrix)
            # Only a look at memory: nothing that would serve a message.
            if cell.buffers[0][-1] != seen[-1]:
                seen.append(float(cell.buffers[0][-1]))
                at.append(time.perf_counter())
        win.fence()
        return [there - sent for there, sent in zip(at[1:], seen[1:], strict=True)]


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_put_completes_while_the_target_computes(
    cluster: dectool.Cluster, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spent, visible = cluster.run(by_way(busy_target, way), n=2, args=(8,)).values
    figures = [1e3 * float(np.median(spent)), 1e3 * max(spent)]
    figures += [1e3 * float(np.median(visible)), 1e3 * max(visible)]
    with capsys.disabled():
        print(
            "\n{}: put {:.2f} ms (at most {:.2f}), visible after {:.2f} ms (at most {:.2f})".format(
                way, *figures
            )
        )
    assert len(visible) > len(spent) / 2
    assert np.median(spent) < 0.05
    assert np.median(visible) < 0.05


def guarded_counter(comm: Any, turns: int) -> int:
    """Change rank 0's value by what it was, which only a mutex keeps whole."""
    star = topology.complete(comm.size)
    with comm.window(np.array([1.0]), "counter", star) as win:
        for _ in range(turns):
            with win.lock([0]):
                if comm.rank == 0:
                    before = win.value[0]
                else:
                    win.get(src_weights=[0])
                    before = win.slot(0)[0]
                after = (3.0 * before + 1.0) % 1_000_003.0
                win.add(np.array([after - before]), [0])
        win.fence()
        return int(win.value[0])


@pytest.mark.parametrize("way", WAYS)
def test_a_mutex_loses_no_change(cluster: dectool.Cluster, way: str) -> None:
    turns, expected = 40, 1
    for _ in range(4 * turns):
        expected = (3 * expected + 1) % 1_000_003
    got = cluster.run(by_way(guarded_counter, way), n=4, args=(turns,), timeout=20.0)
    assert got.values[0] == expected


def test_the_owner_gets_its_turn(cluster: dectool.Cluster) -> None:
    """A neighbour that writes large values without a pause does not keep the owner out."""

    def program(comm: Any) -> float:
        with comm.window(np.zeros(1 << 21), "x", topology.ring(2)) as win:
            longest = 0.0
            if comm.rank == 0:
                while win.version(1) == 0:
                    win.put()
            else:
                win.wait(0, 1)
                for _ in range(20):
                    began = time.perf_counter()
                    win.slot(0)
                    longest = max(longest, time.perf_counter() - began)
                win.put()
            return longest

    assert cluster.run(program, n=2, timeout=20.0).values[1] < 0.5


def test_a_wait_for_a_version(cluster: dectool.Cluster) -> None:
    """Bounded staleness: nobody is more than two steps ahead of a neighbour."""

    def program(comm: Any) -> int:
        chance, ahead = comm.rng("sleep"), 0
        with comm.window(np.zeros(1), "step", topology.ring(4)) as win:
            sources = [(comm.rank - 1) % 4, (comm.rank + 1) % 4]
            for k in range(1, 30):
                time.sleep(chance.uniform(0.0, 2e-3))
                win.put(np.array([float(k)]))
                for source in sources:
                    win.wait(source, k - 2)
                    ahead = max(ahead, k - int(win.slot(source)[0]))
        return ahead

    for way in WAYS:
        assert max(cluster.run(by_way(program, way), n=4).values) <= 2
