"""Collectives of processes on one machine, against mpi4py's own.

Each call takes the result of the one before, where the shapes allow it. Every broadcast has another
root, since the root of MPI's own would else run ahead of the others. What is compared are sums, as
MPI has no mean. The rivals write into arrays that are kept, ours return new ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import dectool
from benchmarks._table import Row, compare, main

SIZES = (1 << 10, 1 << 20, 1 << 24)
RANKS = (2, 4)
OPERATIONS = ("allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast")
REPETITIONS = 9


def candidates(comm: Any, operation: str, x: Any) -> list[Callable[[Any, int], Any]]:
    """Return ours and MPI's call, both from a value and the number of the call to the next value.

    ``x`` is what a rank gives: of ``allgather`` its own part, of ``alltoall`` all of its rows.
    """
    from mpi4py import MPI

    world, n = MPI.COMM_WORLD, comm.size
    rows = x.reshape(n, -1)
    results = [np.empty_like(x), np.empty_like(x)]
    gathered, row = np.empty((n, x.size), x.dtype), np.empty(x.size // n, x.dtype)

    def other(value: Any) -> Any:
        return results[0] if value is not results[0] else results[1]

    def allreduce(value: Any, number: int) -> Any:
        world.Allreduce(value, other(value), MPI.SUM)
        return other(value)

    def reduce_scatter(value: Any, number: int) -> Any:
        world.Reduce_scatter_block(value, row, MPI.SUM)
        return value

    def allgather(value: Any, number: int) -> Any:
        world.Allgather(value, gathered)
        return value

    def alltoall(value: Any, number: int) -> Any:
        world.Alltoall(value, other(value))
        return other(value)

    def broadcast(value: Any, number: int) -> Any:
        world.Bcast(value, number % n)
        return value

    def ours(value: Any, number: int) -> Any:
        if operation == "allreduce":
            return comm.allreduce(value, "sum")
        if operation == "reduce_scatter":
            comm.reduce_scatter(rows, "sum")
            return value
        if operation == "allgather":
            comm.allgather(value)
            return value
        if operation == "alltoall":
            return comm.alltoall(value.reshape(n, -1)).reshape(-1)
        return comm.broadcast(value, number % n)

    native = {f.__name__: f for f in (allreduce, reduce_scatter, allgather, alltoall, broadcast)}
    return [ours, native[operation]]


def program(comm: Any, operation: str, size: int) -> list[float]:
    """Return the median seconds of a call of ours and of MPI's own, until all are through."""
    from mpi4py import MPI

    elements = size // 4 // comm.size if operation == "allgather" else size // 4
    x = np.random.default_rng(comm.rank).integers(-8, 9, elements).astype(np.float32)
    calls = max(4, min(300, (1 << 25) // size))
    seconds: list[list[float]] = [[], []]
    both = candidates(comm, operation, x)
    if operation not in ("allgather", "reduce_scatter"):
        got = [call(x.copy(), 1) for call in both]
        if not np.array_equal(*got):
            raise AssertionError("the results differ: the comparison would mean nothing")
    for repetition in range(REPETITIONS + 1):
        for candidate, call in enumerate(both):
            value = np.zeros_like(x)
            MPI.COMM_WORLD.Barrier()
            start = time.perf_counter()
            for number in range(calls):
                value = call(value, number)
            MPI.COMM_WORLD.Barrier()
            spent = (time.perf_counter() - start) / calls
            slowest = MPI.COMM_WORLD.allreduce(spent, MPI.MAX)
            if repetition:
                seconds[candidate].append(slowest)
    return [median(times) for times in seconds]


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure all operations, sizes and numbers of ranks."""
    rows = []
    for n in RANKS:
        with dectool.Cluster(n=n, backend="mpi") as cluster:
            for operation in OPERATIONS:
                for size in SIZES:
                    case = f"{operation} of {n}, {_bytes(size)}"
                    tell(case)
                    ours, native = cluster.run(program, args=(operation, size)).values[0]
                    most = 3.0 if size < 1 << 20 else 1.5
                    rows.append(compare(case, 1e6 * ours, 1e6 * native, ratio_at_most=most))
    return rows, [
        "rival: the call of mpi4py, into arrays that are kept; ours returns new ones.",
        "Sizes: of what a rank gives, and of what it gets from allgather.",
        "Medians of 9, until all are through.",
    ]


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


if __name__ == "__main__":
    main("Collectives of processes on one machine", measure, unit="microseconds")
