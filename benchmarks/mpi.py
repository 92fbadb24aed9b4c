"""Neighbour averages of processes on one machine, against what one would write by hand.

The rivals are mpi4py's ``Isend``/``Irecv`` with an average in NumPy, the same with
``Ineighbor_alltoall``, and the limit that memory sets: the time in which all ranks at once copy as
many bytes as an average of d neighbours must read and write, which is (3 + d) / 2 copies (one's
own value is read and written for the neighbours, d values are read, the result is written).

How fast cores exchange what they have written depends on where they are, and a virtual machine's
are moved while it runs. So all cases are measured in several passes, minutes from first to last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import dectool
from benchmarks._table import Row, compare, main
from dectool import topology

SIZES = (1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
GRAPHS: dict[str, Callable[[int], topology.Topology]] = {
    "ring": topology.ring,
    "exponential": topology.exponential,
}
RANKS = (2, 4)
PASSES, REPETITIONS = 7, 2
"""How often all cases are measured, each time in new jobs, and how often a case is in a pass."""

LARGE = 1 << 20
WARM = 2
"""Calls before a block is timed: at first the caches hold what the rival before has left there."""


def calls_of(size: int) -> int:
    """Return the calls in a block for arrays of so many bytes."""
    return max(3, min(300, (1 << 26) // size))


def program(comm: Any, size: int) -> dict[str, list[float]]:
    """Return the seconds of each candidate; a round lasts until all ranks are through."""
    from mpi4py import MPI

    graph = comm.topology
    sources = [rank for rank in graph.in_neighbors(comm.rank) if rank != comm.rank]
    dests = [rank for rank in graph.out_neighbors(comm.rank) if rank != comm.rank]
    weight = np.float32(1.0 / (len(sources) + 1))
    x = np.random.default_rng(comm.rank).normal(size=size // 4).astype(np.float32)
    received = np.empty((len(sources), x.size), np.float32)
    results, product = [np.empty_like(x), np.empty_like(x)], np.empty_like(x)
    neighborhood = MPI.COMM_WORLD.Create_dist_graph_adjacent(sources, dests)
    copies = np.empty((len(dests), x.size), np.float32)

    def average(x: Any) -> Any:
        result = results[0] if x is not results[0] else results[1]
        np.multiply(x, weight, out=result)
        for row in received:
            np.multiply(row, weight, out=product)
            np.add(result, product, out=result)
        return result

    def by_hand(x: Any) -> Any:
        world = MPI.COMM_WORLD
        requests = [world.Irecv(r, s) for r, s in zip(received, sources, strict=True)]
        requests += [world.Isend(x, dest) for dest in dests]
        MPI.Request.Waitall(requests)
        return average(x)

    def by_alltoall(x: Any) -> Any:
        copies[:] = x
        neighborhood.Ineighbor_alltoall(copies, received).Wait()
        return average(x)

    def copy(x: Any) -> Any:
        result = results[0] if x is not results[0] else results[1]
        np.copyto(result, x)
        return result

    candidates: dict[str, Callable[[Any], Any]] = {
        "ours": comm.neighbor_allreduce,
        "by hand": by_hand,
        "alltoall": by_alltoall,
        "copy": copy,
    }
    expected = by_hand(x)
    if not np.allclose(comm.neighbor_allreduce(x), expected, rtol=1e-5, atol=1e-6):
        raise AssertionError("the averages differ: the comparison would mean nothing")
    calls = calls_of(size)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for repetition in range(REPETITIONS + 1):
        for name, call in candidates.items():
            value = x
            for _ in range(WARM):
                value = call(value)
            comm.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                value = call(value)
            comm.barrier()
            spent = (time.perf_counter() - start) / calls
            slowest = float(comm.allreduce(np.array([spent]), "max")[0])
            if repetition:
                seconds[name].append(slowest)
    neighborhood.Free()
    return seconds


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure all sizes, graphs and numbers of ranks, in turn."""
    found: dict[tuple[int, str, int], dict[str, list[float]]] = {}
    for turn in range(PASSES):
        for n in RANKS:
            with dectool.Cluster(n=n, backend="mpi") as cluster:
                for name, make in GRAPHS.items():
                    for size in SIZES:
                        tell(f"pass {turn + 1} of {PASSES}: {name} of {n}, {_bytes(size)}")
                        run = cluster.run(program, topology=make(n), args=(size,))
                        case = found.setdefault((n, name, size), {})
                        for candidate, seconds in run.values[0].items():
                            case.setdefault(candidate, []).extend(seconds)
    rows = []
    for (n, name, size), candidates in found.items():
        medians = {candidate: median(seconds) for candidate, seconds in candidates.items()}
        neighbors = len(GRAPHS[name](n).in_neighbors(0))
        rows += _rows(f"{name} of {n}, {_bytes(size)}", medians, size, neighbors)
    return rows, [
        "by hand: Isend/Irecv and an average in NumPy, into arrays that are kept.",
        "alltoall: Ineighbor_alltoall and the same average.",
        "memory: (3 + d)/2 times a copy by all ranks at once, d being the neighbours of a rank.",
        "Each round averages the result of the one before and lasts until all are through; medians "
        f"of {REPETITIONS} blocks of rounds in each of {PASSES} passes.",
    ]


def _rows(case: str, found: dict[str, float], size: int, neighbors: int) -> list[Row]:
    """Return the rows of one case."""
    ours = 1e6 * found["ours"]
    limit = (3 + neighbors) / 2 * found["copy"]
    large = size >= LARGE
    return [
        compare(
            f"{case}; by hand",
            ours,
            1e6 * found["by hand"],
            ratio_at_most=0.5 if large else 1.3 if size == SIZES[0] else None,
        ),
        compare(f"{case}; alltoall", ours, 1e6 * found["alltoall"]),
        compare(f"{case}; memory", ours, 1e6 * limit, ratio_at_most=2.0 if large else None),
    ]


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= LARGE else f"{size >> 10} KiB"


if __name__ == "__main__":
    main("Neighbor averages of processes on one machine", measure, unit="microseconds")
