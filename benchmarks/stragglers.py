"""What asynchrony saves when one worker is slow: an epoch's time over that of synchronous descent.

An epoch is a number of gradients of all ranks together. Where one of n ranks is s times slower and
nobody waits, theory says that it lasts n / ((n - 1 + 1/s) s) of what it does where all wait for
all. The simulator is held against that within 5 %, and real processes, which sleep in place of
computing, within 15 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dectool
from benchmarks._table import Row, main
from dectool import algorithms, sim, theory, topology

SLOWDOWNS = (2.0, 1290 / 585, 5.0)
NETWORK = sim.AlphaBeta(latency=1e-5, bandwidth=1.25e9)
SECONDS = {"sim": 0.1, "mpi": 0.05}
"""What one gradient takes, in seconds."""
BUDGETS = {"sim": 0.05, "mpi": 0.15}
STEPS = {"sim": 60, "mpi": 30}
"""Gradients of each rank in a synchronous epoch."""
NUMBERS = 1000
SYNCHRONOUS = algorithms.AllReduceGD(lr=0.01)
CASES: tuple[tuple[str, int, algorithms.Algorithm], ...] = (
    ("sim", 4, algorithms.AsynchronousModelAverage(lr=0.01)),
    ("sim", 16, algorithms.AsynchronousModelAverage(lr=0.01)),
    ("sim", 16, algorithms.ADPSGD(lr=0.01)),
    ("sim", 128, algorithms.ADPSGD(lr=0.01)),
    ("mpi", 4, algorithms.AsynchronousModelAverage(lr=0.01)),
    ("mpi", 4, algorithms.ADPSGD(lr=0.01)),
)


def program(comm: Any, algorithm: algorithms.Algorithm, steps: int, deadline: float) -> list[float]:
    """Return when this rank had computed each of its gradients, in seconds from the start.

    It takes so many steps, or goes on until the deadline if that is later.
    """
    done: list[float] = []

    def grad(x: Any) -> Any:
        with comm.computing():
            pass
        done.append(comm.now())
        return x - comm.rank

    state = algorithm.init(comm, np.zeros(NUMBERS), grad)
    comm.barrier()
    start = comm.now()
    while len(done) < steps or comm.now() - start < deadline:
        state = algorithm.step(comm, state, grad)
    return [at - start for at in done]


def epoch(
    backend: str, n: int, slowdown: float, algorithm: algorithms.Algorithm, deadline: float = 0.0
) -> float:
    """Return the seconds in which n ranks compute an epoch's gradients."""
    gradients = n * STEPS[backend]
    options: dict[str, Any] = {"network": NETWORK} if backend == "sim" else {}
    done = dectool.run(
        program,
        args=(algorithm, 1 if deadline else STEPS[backend], deadline),
        backend=backend,
        topology=topology.ring(n),
        compute=sim.PerRank({0: slowdown}, sim.Constant(SECONDS[backend])),
        **options,
    ).values
    return float(np.sort(np.concatenate(done))[gradients - 1])


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    rows = []
    waiting: dict[tuple[str, int, float], float] = {}
    for backend, n, algorithm in CASES:
        for s in SLOWDOWNS:
            name = f"{backend}, {n} ranks, one {s:.3g} times slower; {algorithm.name}"
            tell(name)
            key = (backend, n, s)
            if key not in waiting:
                waiting[key] = epoch(*key, SYNCHRONOUS)
            law = 1.0 / theory.asynchronous_speedup(n, s)
            ours = epoch(*key, algorithm, deadline=1.3 * law * waiting[key])
            ratio, budget = ours / waiting[key], BUDGETS[backend]
            off = abs(ratio / law - 1.0)
            text = f"{law:.4f} within {budget:.0%}"
            rows.append(Row(name, ours, waiting[key], ratio, text, off <= budget))
    return rows, [
        "The rival is synchronous: gradients averaged by an all-reduce of all ranks.",
        "Ratios should be n / ((n - 1 + 1/s) s), which the column of the budget states.",
    ]


if __name__ == "__main__":
    main("Stragglers", measure, unit="seconds per epoch")
