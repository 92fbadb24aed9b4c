"""What compression buys: accuracy against bytes, and against time on slow and fast networks.

Sixteen ranks share scikit-learn's 1,797 digits, unevenly (some hold few classes), and fit a softmax
regression with CHOCO-SGD on a ring, once for each compressor. The bytes are those of the
payloads; the seconds are virtual, for links of 0.1, 1 and 10 Gbit/s.

    python -m examples.compression [--output FOLDER] [--steps STEPS]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

import dectool

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from dectool import algorithms, problems, topology
from dectool.sim import AlphaBeta, Constant

RANKS = 16
STEPS = 600
EVERY = 5
LATENCY = 20e-6
COMPUTE = 50e-6
RATES = (0.1, 1.0, 10.0)
TARGET = 0.96
COMPRESSORS = {
    "identity": 1.0,
    "cast:bfloat16": 1.0,
    "minmax8": 0.8,
    "qsgd:16": 0.5,
    "natural": 0.8,
    "sign": 0.3,
    "topk:0.1": 0.2,
    "randomk:0.1": 0.08,
}
"""The step size of the gossip for each compressor: the coarser it is, the smaller."""


class Course(NamedTuple):
    """How one run went: accuracy of the mean model, bytes sent by all, and seconds."""

    accuracy: list[float]
    bytes: list[int]
    seconds: list[float]

    def when(self, column: list[Any]) -> Any:
        """Return what had been spent when the accuracy first reached the target."""
        reached = [at for at, value in zip(column, self.accuracy, strict=True) if value >= TARGET]
        return reached[0] if reached else None


def program(comm: Any, algorithm: Any, problem: Any, steps: int) -> Course:
    """Run the algorithm on all ranks at once; single precision throughout."""

    def gradient(x: Any) -> Any:
        with comm.computing():
            return problem.grad(x, comm.rank).astype(np.float32)

    x = np.zeros((comm.size, *problem.shape), np.float32)
    state = algorithm.init(comm, x, gradient)
    course = Course([], [], [])
    for step in range(steps + 1):
        if step % EVERY == 0:
            course.accuracy.append(float(problem.accuracy(np.mean(state.x, axis=0))))
            course.bytes.append(int(comm.bytes_sent.sum()))
            course.seconds.append(float(comm.now().max()))
        state = algorithm.step(comm, state, gradient)
    return course


def courses(problem: Any, steps: int) -> dict[str, dict[float, Course]]:
    """Run every compressor on every network."""
    found: dict[str, dict[float, Course]] = {}
    for name, gamma in COMPRESSORS.items():
        algorithm = algorithms.CHOCO(lr=0.2, gamma=gamma, compressor=name)
        found[name] = {}
        for rate in RATES:
            kept: list[Course] = []

            def run(comm: Any, algorithm: Any = algorithm, kept: list[Course] = kept) -> None:
                kept.append(program(comm, algorithm, problem, steps))

            dectool.run(
                run,
                backend="stacked",
                topology=topology.ring(RANKS),
                network=AlphaBeta(latency=LATENCY, bandwidth=rate * 1e9 / 8),
                compute=Constant(COMPUTE),
            )
            found[name][rate] = kept[0]
    return found


def show(found: dict[str, dict[float, Course]]) -> None:
    """Print bytes and seconds to the target accuracy."""
    table = Table(title=f"To {TARGET:.0%} of the digits, {RANKS} ranks on a ring, CHOCO-SGD")
    for header in ("compressor", "final", "MB", *(f"s at {rate:g} Gbit/s" for rate in RATES)):
        table.add_column(header, justify="left" if header == "compressor" else "right")
    for name, by_rate in found.items():
        first = by_rate[RATES[0]]
        sent = first.when(first.bytes)
        times = [by_rate[rate].when(by_rate[rate].seconds) for rate in RATES]
        table.add_row(
            name,
            f"{first.accuracy[-1]:.3f}",
            "not reached" if sent is None else f"{sent / 1e6:.2f}",
            *("" if at is None else f"{at:.4f}" for at in times),
        )
    Console().print(table)


def draw(found: dict[str, dict[float, Course]], file: Path) -> None:
    """Draw accuracy against bytes, and against seconds on each network."""
    figure, axes = plt.subplots(1, 1 + len(RATES), figsize=(16, 4), sharey=True)
    for name, by_rate in found.items():
        course = by_rate[RATES[0]]
        axes[0].plot(course.bytes[1:], course.accuracy[1:], label=name)
        for axis, rate in zip(axes[1:], RATES, strict=True):
            axis.plot(by_rate[rate].seconds[1:], by_rate[rate].accuracy[1:])
    axes[0].set(xscale="log", xlabel="bytes sent by all ranks", ylabel="accuracy of the mean model")
    for axis, rate in zip(axes[1:], RATES, strict=True):
        axis.set(xscale="log", xlabel=f"virtual seconds at {rate:g} Gbit/s")
    for axis in axes:
        axis.axhline(TARGET, color="gray", linewidth=0.8, linestyle="dotted")
        axis.set_ylim(0.85, 0.99)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=150)


def main() -> None:
    """Run all, print the table and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    problem = problems.SoftmaxRegression.from_data(
        problems.digits(), n=RANKS, l2=1e-3, partition=problems.partition.Dirichlet(0.5, seed=0)
    )
    found = courses(problem, given.steps)
    show(found)
    file = given.output / "compression.png"
    draw(found, file)
    print(f"figure: {file}")


if __name__ == "__main__":
    main()
