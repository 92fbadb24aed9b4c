"""What waiting costs: a step's time when all wait for all, for neighbors, for one peer, for nobody.

Ranks compute, then average; messages take no time, so all that is lost is lost by waiting. Once
compute times are exponential, with a mean of one second, and once they are one second but for one
rank that is always slower. What the simulator measures stands beside what theory predicts.

    python -m examples.stragglers [--output FOLDER] [--steps STEPS] [--ranks N [N ...]]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

import dectool

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from dectool import sim, theory, topology
from dectool.errors import ArgumentError

RANKS = (4, 8, 16, 32, 64)
STEPS = 2000
BATCHES = 20
SLOWDOWN = 4.0
MAX_STATES = 20_000
GRAPHS: dict[str, Callable[[int], Any]] = {
    "ring": topology.ring,
    "static exponential": topology.exponential,
    "one-peer exponential": topology.one_peer_exponential,
}
METHODS = ("barrier", *GRAPHS, "asynchronous")
CASES = ("exponential", "one slow rank")


class Pace(NamedTuple):
    """Seconds in which n ranks make n computations."""

    measured: float
    error: float
    predicted: float | None


def compute_model(case: str) -> sim.ComputeModel:
    """Return the compute times of a case."""
    return sim.Exponential(1.0) if case == "exponential" else sim.PerRank({0: SLOWDOWN})


def waiting(method: str, n: int, compute: sim.ComputeModel, steps: int) -> tuple[float, float]:
    """Measure the seconds of a step of ranks that wait, and the standard error, from batches."""
    schedule = None if method == "barrier" else topology.as_schedule(GRAPHS[method](n))
    per_batch = max(1, steps // BATCHES)
    warm_up = min(200, steps)
    marks: list[float] = []

    def program(comm: Any) -> None:
        x = np.zeros((comm.size, 1))
        for k in range(warm_up + BATCHES * per_batch + 1):
            if k >= warm_up and (k - warm_up) % per_batch == 0:
                marks.append(float(np.mean(comm.now())))
            with comm.computing():
                pass
            if schedule is None:
                comm.barrier()
            else:
                comm.neighbor_allreduce(x, schedule.at(k))

    dectool.run(program, n=n, backend="stacked", compute=compute)
    batches = np.diff(marks) / per_batch
    return float(batches.mean()), float(batches.std(ddof=1)) / math.sqrt(BATCHES)


def asynchronous(n: int, compute: sim.ComputeModel, steps: int) -> tuple[float, float]:
    """Measure the same of ranks that write to their neighbors' windows and wait for nobody."""
    horizon = float(min(steps, 400))

    def program(comm: Any) -> int:
        done = 0
        with comm.window(np.zeros(1), name="x") as window:
            x = np.zeros(1)
            while True:
                with comm.computing():
                    pass
                if comm.now() > horizon:
                    return done
                done += 1
                window.iput(x)
                x = window.update()

    run = dectool.run(program, topology=topology.ring(n), backend="sim", compute=compute)
    done = np.array(run.values)
    pace = n * horizon / float(done.sum())
    # The counts of exponential times are Poisson variables; constant times have no error.
    random = isinstance(compute, sim.Exponential)
    return pace, pace / math.sqrt(float(done.sum())) if random else 0.0


def predict(case: str, method: str, n: int) -> float | None:
    """Return what theory says, or None where there are too many states."""
    times = np.ones(n)
    if case == "one slow rank":
        times[0] = SLOWDOWN
    if method == "asynchronous":
        return n / theory.asynchronous_throughput(times)
    if case == "exponential" and method == "barrier":
        return theory.expected_maximum(compute_model(case), n)
    if case == "exponential":
        try:
            return theory.exponential_cycle_time(GRAPHS[method](n), max_states=MAX_STATES)
        except ArgumentError:
            return None
    graph = topology.complete(n) if method == "barrier" else GRAPHS[method](n)
    return theory.cycle_time(graph, times)


def paces(case: str, ranks: tuple[int, ...], steps: int) -> dict[str, list[Pace]]:
    """Measure and predict every method for every number of ranks."""
    compute = compute_model(case)
    found: dict[str, list[Pace]] = {}
    for method in METHODS:
        found[method] = []
        for n in ranks:
            if method == "asynchronous":
                measured = asynchronous(n, compute, steps)
            else:
                measured = waiting(method, n, compute, steps)
            found[method].append(Pace(*measured, predict(case, method, n)))
    return found


def show(case: str, found: dict[str, list[Pace]], ranks: tuple[int, ...]) -> None:
    """Print measured ± standard error | predicted."""
    title = {
        "exponential": "exponential compute times, mean 1 s",
        "one slow rank": f"compute times of 1 s, of one rank {SLOWDOWN:g} s",
    }
    table = Table(title=f"Seconds for n computations: {title[case]}\nmeasured | predicted")
    table.add_column("n", justify="right")
    for method in found:
        table.add_column(method, justify="right")
    for row, n in enumerate(ranks):
        cells = []
        for column in found.values():
            pace = column[row]
            error = f" ± {pace.error:.3f}" if pace.error > 5e-13 else ""
            known = "" if pace.predicted is None else f"{pace.predicted:.3f}"
            cells.append(f"{pace.measured:.3f}{error} | {known:5}")
        table.add_row(str(n), *cells)
    Console(width=130).print(table)


def draw(results: dict[str, dict[str, list[Pace]]], ranks: tuple[int, ...], file: Path) -> None:
    """Draw measurements as marks and predictions as lines, against n."""
    figure, axes = plt.subplots(1, len(results), figsize=(12, 4.5))
    for axis, (case, found) in zip(axes, results.items(), strict=True):
        for index, (method, column) in enumerate(found.items()):
            color = f"C{index}"
            # Cases in which methods agree would hide each other's marks.
            place = np.array(ranks) * (1.0 + 0.04 * (index - 2))
            errors = [5.0 * pace.error for pace in column]
            values = [pace.measured for pace in column]
            axis.errorbar(place, values, errors, fmt="o", color=color, label=method, markersize=4)
            known = [
                (n, pace.predicted)
                for n, pace in zip(ranks, column, strict=True)
                if pace.predicted is not None
            ]
            axis.plot(*zip(*known, strict=True), color=color, linewidth=1)
        axis.set(xscale="log", title=case, xlabel="ranks n", ylim=(0.0, None))
        axis.set_xticks(ranks, [str(n) for n in ranks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds for n computations")
    axes[0].legend(fontsize="small", title="marks: measured ± 5 standard errors\nlines: predicted")
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure all, print the tables and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(RANKS))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    ranks = tuple(given.ranks)
    results = {case: paces(case, ranks, given.steps) for case in CASES}
    for case, found in results.items():
        show(case, found, ranks)
    n = ranks[-1]
    law = theory.asynchronous_speedup(n, SLOWDOWN)
    last = {name: column[-1].measured for name, column in results["one slow rank"].items()}
    print(
        f"One of {n} ranks {SLOWDOWN:g} times slower: without waiting an epoch is "
        f"{last['barrier'] / last['asynchronous']:.4f} times shorter; the law says {law:.4f}"
    )
    file = given.output / "stragglers.png"
    draw(results, ranks, file)
    print(f"figure: {file}")


if __name__ == "__main__":
    main()
