"""Neighbour averages on one machine, against the same in C with nothing around it.

``bare.c`` has no Python, no MPI, no checks, and readers that never come late, so it tells what is
left to gain; and how much of the limit that ``benchmarks.mpi`` calls memory's (a copy by all ranks
at once, times the bytes that an average must read and write) can be reached on a machine at all: a
copy stays in the caches of one core, what ranks exchange does not.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import dectool
from benchmarks._table import Row, compare, main
from benchmarks.mpi import WARM, calls_of
from dectool import topology

SOURCE = Path(__file__).with_name("bare.c")
RANKS = (2, 4)
WHOLE, RING = (1 << 19, 4), (1 << 17, 4)
SIZES = {1 << 20: WHOLE, 1 << 22: RING, 1 << 24: RING}
"""Bytes of an array, and chunks as ``_slots.h`` has them: bytes of one, and how many in a ring."""

PASSES, BLOCKS = 7, 9
LONGEST = 60.0
"""Seconds after which the program in C must be stuck."""


def program(comm: Any, size: int, calls: int) -> float:
    """Return the median seconds of an average."""
    x = np.full(size // 4, comm.rank, np.float32)
    seconds = []
    for _ in range(BLOCKS):
        value = x
        for _ in range(WARM):
            value = comm.neighbor_allreduce(value)
        comm.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            value = comm.neighbor_allreduce(value)
        comm.barrier()
        seconds.append((time.perf_counter() - start) / calls)
    return median(seconds)


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure all cases, ours and in C in turn."""
    compiler = shutil.which("cc")
    if compiler is None:
        return [], ["not measured: there is no C compiler, cc"]
    found: dict[tuple[int, int], list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder, "bare")
        flags = ["-O3", "-march=native", "-ffp-contract=off"]
        subprocess.run([compiler, *flags, str(SOURCE), "-o", str(bare)], check=True)
        for turn in range(PASSES):
            for n in RANKS:
                with dectool.Cluster(n=n, backend="mpi") as cluster:
                    for size, (chunk, depth) in SIZES.items():
                        tell(f"pass {turn + 1} of {PASSES}: ring of {n}, {size >> 20} MiB")
                        calls = calls_of(size)
                        run = cluster.run(program, topology=topology.ring(n), args=(size, calls))
                        words = [str(word) for word in (bare, n, size, chunk, depth, calls)]
                        told = subprocess.run(
                            words, check=True, capture_output=True, text=True, timeout=LONGEST
                        )
                        seconds = [1e6 * run.values[0], *map(float, told.stdout.split())]
                        found.setdefault((n, size), []).append(seconds)
    rows = []
    for (n, size), passes in found.items():
        case = f"ring of {n}, {size >> 20} MiB"
        ours, in_c, copy = (median(times) for times in zip(*passes, strict=True))
        limit = (3 + min(2, n - 1)) / 2 * copy
        rows += [
            compare(f"{case}; in C", ours, in_c),
            compare(f"{case}, in C; memory", in_c, limit),
        ]
    return rows, [f"medians of {PASSES} passes, in each of which both are measured in turn"]


if __name__ == "__main__":
    main("Neighbor averages, ours and in bare C", measure, unit="microseconds")
