"""One-sided windows of two processes, on one machine and between hosts.

The rivals are a memory copy of the same bytes, and mpi4py's ``Win.Allocate`` with ``Put`` and
``Flush`` in a lock of all for its life, in the same run. A target waits (in a receive) or computes
(in NumPy, for as long as the puts take, without calling dectool or MPI). Visible is the time from
before a put until a target that computes has the new value in its memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import dectool
from benchmarks._table import Row, compare, main
from dectool import topology
from dectool.testing._lab import Lab, why_no_lab

SIZES = {"1 KiB": 1 << 10, "1 MiB": 1 << 20, "16 MiB": 1 << 24}
FAR_SIZES = {"1 KiB": 1 << 10, "4 MiB": 1 << 22}
RATE = 125e6
"""Of the link between hosts [byte/s]."""

REPETITIONS = 15
PUTS = 6
SPELL = 0.8
"""Seconds that a target computes."""


def program(comm: Any, size: int) -> dict[str, float]:
    """Return median seconds of what rank 0 does, and until rank 1 sees it."""
    from mpi4py import MPI

    x = np.full(size // 4, 1.0, np.float32)
    y = x.copy()
    calls = max(1, min(100, (1 << 20) // size))
    memory = MPI.Win.Allocate(x.nbytes, 4, comm=MPI.COMM_WORLD)
    memory.Lock_all()

    def put_and_flush() -> None:
        memory.Put([x, MPI.FLOAT], 1)
        memory.Flush(1)

    # No window of ours is open meanwhile: its thread would make progress for the rival too.
    found = _measure(comm, {"rival": put_and_flush, "copy": lambda: np.copyto(y, x)}, calls)
    there = np.frombuffer(memory.tomemory(), np.float32)
    found |= _while_computing(comm, "rival", put_and_flush, lambda k: x.fill(-k), there)
    memory.Unlock_all()
    memory.Free()
    with comm.window(x, "x", topology.ring(2)) as win:
        ours = {"put": win.put, "put(x)": lambda: win.put(x), "update": win.update}
        found |= _measure(comm, ours, calls)
        there = win._store.slots[1 - comm.rank].buffers[0]
        found |= _while_computing(comm, "put", win.put, lambda k: win.set(0 * x - k), there)
    return found


def _measure(comm: Any, candidates: dict[str, Callable[[], Any]], calls: int) -> dict[str, float]:
    """Time what rank 0 does while rank 1 waits."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for repetition in range(REPETITIONS + 1 if comm.rank == 0 else 0):
        for name, call in candidates.items():
            began = time.perf_counter()
            for _ in range(calls):
                call()
            if repetition:
                seconds[name].append((time.perf_counter() - began) / calls)
    comm.barrier()
    return {name: median(times) for name, times in seconds.items() if times}


def _while_computing(
    comm: Any, name: str, put: Callable[[], Any], change: Callable[[int], Any], there: Any
) -> dict[str, float]:
    """Put -1, -2, ... while rank 1 computes; return how long puts take, and until they are seen."""
    comm.barrier()
    if comm.rank:
        comm.send(_compute(comm, there), 0)
        return {}
    began, spent = [], []
    time.sleep(0.1)
    for number in range(1, PUTS + 1):
        change(number)
        began.append(time.perf_counter())
        put()
        spent.append(time.perf_counter() - began[-1])
        time.sleep(0.01)
    late = comm.recv(1) - np.array(began)
    return {f"{name}, computing": median(spent), f"{name}, visible": float(np.median(late))}


def _compute(comm: Any, seen: Any) -> Any:
    """Compute for a while; return when each number, as a whole, was in memory first."""
    matrix, at = np.full((100, 100), 0.01), np.full(PUTS, np.inf)
    until = time.perf_counter() + SPELL
    while (now := time.perf_counter()) < until or (now < until + SPELL and np.inf in at):
        if now < until:
            matrix = np.tanh(matrix @ matrix)
        else:
            # What did not come by itself may come once MPI is called.
            comm.elapse(1e-4)
        number = -int(seen[-1])
        if number > 0 and seen[0] == seen[-1] and at[number - 1] == np.inf:
            at[number - 1] = time.perf_counter()
    return at


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure on one machine, and between hosts where they can be built."""
    rows: list[Row] = []
    with dectool.Cluster(n=2, backend="mpi") as cluster:
        for label, size in SIZES.items():
            tell(f"one machine, {label}")
            found = cluster.run(program, args=(size,)).values[0]
            rows += _rows(f"one machine, {label}", found, size)
    notes = [f"medians of {REPETITIONS}; put sends the value that the window has, put(x) another"]
    reason = why_no_lab()
    if reason is not None:
        return rows, [*notes, f"between hosts: not measured: {reason}"]
    with Lab(2, rate=RATE) as lab:
        options: Any = {"launcher": lab.launcher, "env": lab.variables}
        with dectool.Cluster(hosts=lab.addresses, **options) as cluster:
            for label, size in FAR_SIZES.items():
                tell(f"two hosts, {label}")
                found = cluster.run(program, args=(size,)).values[0]
                rows += _rows(f"two hosts, {label}", found, size, near=False)
    return rows, [*notes, f"hosts are joined by links of {RATE / 125e6:g} Gbit/s"]


def _rows(case: str, found: dict[str, float], size: int, *, near: bool = True) -> list[Row]:
    """Return the rows of one case."""
    us = {name: 1e6 * seconds for name, seconds in found.items()}
    rows = [compare(f"{case}: put; Win.Allocate Put, Flush", us["put"], us["rival"])]
    if near and size >= 1 << 20:
        rows += [
            compare(f"{case}: put; a copy", us["put"], us["copy"], ratio_at_most=2.0),
            compare(f"{case}: put(x); two copies", us["put(x)"], 2 * us["copy"]),
            compare(f"{case}: update of two; a copy", us["update"], us["copy"]),
        ]
    computing, limit = f"{case}, target computes", 5e4 if near else None
    return [
        *rows,
        compare(f"{computing}: put; the same", us["put, computing"], us["rival, computing"]),
        compare(
            f"{computing}: visible; the same",
            us["put, visible"],
            us["rival, visible"],
            at_most=limit,
            unit="us",
        ),
    ]


if __name__ == "__main__":
    main("One-sided windows of two processes", measure, unit="microseconds")
    sys.exit(0)
