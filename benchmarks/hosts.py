"""Neighbour averages between hosts, as a share of what the link carries.

Hosts are network namespaces of this machine, each with one rank and one link of limited rate in
either direction. A ring of two hosts sends an array to one neighbour, a ring of four to two. The
share is payload bytes that a rank sends, by time, by rate: Ethernet, IP and TCP headers count for
the link and not for us, so with packets of 9000 bytes no more than 0.993 can be reached. The rival
is mpi4py's ``Isend`` and ``Irecv`` of the same arrays, with the same average. Either has processes,
and so connections, of its own: how much TCP dares to send depends on what it has lost before, for
seconds, so that in a common one each would measure the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks._table import Row, compare, installed, main
from dectool.testing._lab import Lab, why_no_lab

HOSTS = (2, 4)
RATES = {"100 Mbit/s": 12.5e6, "1 Gbit/s": 125e6}
SIZES = {
    "64 KiB": 1 << 16,
    "256 KiB": 1 << 18,
    "1 MiB": 1 << 20,
    "4 MiB": 1 << 22,
    "16 MiB": 1 << 24,
}
BLOCKS = 3
BLOCK_SECONDS = 1.0
BUDGET = 0.95
BUDGET_FROM = 1 << 20
MTU = 9000


def program(comm: Any, rounds: dict[int, int], by_hand: bool) -> dict[int, float]:
    """Return for each size the median seconds of a round."""
    from statistics import median

    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD.Dup()
    neighbors = sorted({(comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size})
    weight = 1.0 / (1 + len(neighbors))
    found = {}
    for size, count in rounds.items():
        x = np.full(size // 4, comm.rank, np.float32)
        received = [np.empty_like(x) for _ in neighbors]

        def raw(x: Any, received: Any = received) -> None:
            requests = [world.Irecv(r, i) for r, i in zip(received, neighbors, strict=True)]
            requests += [world.Isend(x, i) for i in neighbors]
            MPI.Request.Waitall(requests)
            average = weight * x
            for r in received:
                average += weight * r

        call = raw if by_hand else comm.neighbor_allreduce
        seconds = []
        for _ in range(BLOCKS + 1):
            world.Barrier()
            start = MPI.Wtime()
            for _ in range(count):
                call(x)
            world.Barrier()
            seconds.append((MPI.Wtime() - start) / count)
        # The first block warms up.
        found[size] = median(seconds[1:])
    return found


def measure(progress: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Return the rows of all cases, or a note that says why there are none."""
    import dectool
    from dectool import topology

    reason = why_no_lab() if installed("mpi4py") else "mpi4py is not installed"
    if reason is not None:
        return [], [f"not measured: {reason}"]
    rows = []
    congestion = ""
    for n in HOSTS:
        outgoing = 1 if n == 2 else 2
        for label, rate in RATES.items():
            progress(f"{n} hosts at {label}")
            expected = {size: outgoing * size / rate for size in SIZES.values()}
            rounds = {size: max(1, round(BLOCK_SECONDS / s)) for size, s in expected.items()}
            with Lab(n, rate=rate, mtu=MTU) as lab:
                congestion = lab.congestion
                ours, raw = (
                    dectool.run(
                        program,
                        backend="mpi",
                        topology=topology.ring(n),
                        args=(rounds, by_hand),
                        hosts=lab.addresses,
                        launcher=lab.launcher,
                        env=lab.variables,
                    ).values[0]
                    for by_hand in (False, True)
                )
            for name, size in SIZES.items():
                rows.append(
                    compare(
                        f"{n} hosts, {label}, {name}; mpi4py Isend and Irecv",
                        expected[size] / ours[size],
                        expected[size] / raw[size],
                        at_least=BUDGET if size >= BUDGET_FROM else None,
                    )
                )
    return rows, [
        f"packets of {MTU} bytes: at most 0.993; medians of {BLOCKS} blocks of {BLOCK_SECONDS:g} s",
        f"congestion control: {congestion}",
    ]


if __name__ == "__main__":
    main("Neighbour averages between hosts", measure, unit="shares of the link's rate")
    sys.exit(0)
