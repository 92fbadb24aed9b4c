"""The main job: decentralized logistic regression on real data, predicted and measured.

Sixteen ranks share the 569 patients of scikit-learn's breast cancer data. One of them computes
four times slower than the others. Each algorithm runs on each topology twice: by the stacked
backend and by discrete-event simulation; the iterates must have the same bits. In the end one
algorithm runs on four real processes, over MPI, and must have the bits of the simulator too.

    python -m examples.demo [--output FOLDER]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import matplotlib

import dectool

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from dectool import algorithms, problems, theory, topology
from dectool.errors import TopologyError
from dectool.sim import AlphaBeta, PerRank, ShiftedExponential

RANKS = 16
PROCESSES = 4
STEPS = 2500
TARGET = 1e-6
LIMIT = 1e-9
NETWORK = AlphaBeta(latency=2e-4, bandwidth=1.25e6)
COMPUTE = PerRank({3: 4.0}, ShiftedExponential(shift=1e-3, mean=5e-4))
Graphs = dict[str, topology.Topology | topology.Schedule]
TOPOLOGIES: Graphs = {
    "ring": topology.ring(RANKS),
    "torus 4x4": topology.torus(4, 4),
    "one-peer exponential": topology.one_peer_exponential(RANKS),
}
ALL_RANKS: Graphs = {"all ranks": topology.complete(RANKS)}
ALGORITHMS = (
    algorithms.DGD(lr=0.1),
    algorithms.EXTRA(lr=0.2),
    algorithms.ExactDiffusion(lr=0.25),
    algorithms.ATCGradientTracking(lr=0.1),
    algorithms.AllReduceGD(lr=0.25),
)


class Row(NamedTuple):
    """One algorithm on one topology, on both backends."""

    algorithm: algorithms.Algorithm
    graph: str
    predicted: float
    stacked: dectool.History
    sim: dectool.History

    @property
    def same_bits(self) -> bool:
        """Whether both backends computed the same iterates and the same times."""
        same_time = bool((self.stacked["time"] == self.sim["time"]).all())
        return self.stacked.x.tobytes() == self.sim.x.tobytes() and same_time


def arrived(record: dict[str, float]) -> bool:
    """Tell whether a run is at the optimum, or, with a biased method, moves no more."""
    return record["distance"] <= LIMIT or record["change"] <= LIMIT / 10


def run_all(problem: problems.Problem, console: Console) -> list[Row]:
    """Run every algorithm on every topology that its theory allows."""
    rows = []
    for algorithm in ALGORITHMS:
        central = isinstance(algorithm, algorithms.AllReduceGD)
        for name, graph in (ALL_RANKS if central else TOPOLOGIES).items():
            try:
                algorithms.check_needs(algorithm.name, algorithm.needs, graph)
            except TopologyError:
                continue
            with console.status(f"{algorithm.name} on {name}"):
                stacked, sim = (
                    dectool.solve(
                        algorithm,
                        problem,
                        topology=graph,
                        steps=STEPS,
                        backend=backend,
                        network=NETWORK,
                        compute=COMPUTE,
                        record_every=topology.as_schedule(graph).period or 1,
                        stop=arrived,
                        progress=False,
                    )
                    for backend in ("stacked", "sim")
                )
                predicted = theory.rate(algorithm, problem, graph)
            rows.append(Row(algorithm, name, predicted, stacked, sim))
    return rows


def table_of(rows: list[Row]) -> Table:
    """Return the table of predicted and measured figures."""
    table = Table(title=f"To ||X - x*|| <= {TARGET:g}, one of {RANKS} ranks four times slower")
    for heading in ("algorithm", "lr", "topology"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rate:\npredicted", "rate:\nmeasured", "steps"):
        table.add_column(heading, justify="right")
    for heading in ("seconds:\nstacked", "seconds:\nsim", "MB\nsent", "same\nbits"):
        table.add_column(heading, justify="right")
    for row in rows:
        stacked, sim = (history.first(distance=TARGET) for history in (row.stacked, row.sim))
        if stacked is None or sim is None:
            figures = [f"ends at {row.stacked.last['distance']:.2g}", "", "", ""]
        else:
            figures = [
                f"{stacked['step']:.0f}",
                f"{stacked['time']:.4f}",
                f"{sim['time']:.4f}",
                f"{sim['bytes'] / 1e6:.2f}",
            ]
        table.add_row(
            row.algorithm.name,
            f"{row.algorithm.parameters()['lr']:g}",
            row.graph,
            f"{row.predicted:.5f}",
            f"{row.stacked.rate():.5f}",
            *figures,
            "yes" if row.same_bits else "NO",
        )
    return table


def draw(rows: list[Row], target: Path) -> None:
    """Draw the distance to the optimum over steps and over virtual time."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 5), sharey=True, layout="constrained")
    colors = {algorithm.name: f"C{i}" for i, algorithm in enumerate(ALGORITHMS)}
    styles = dict(zip((*TOPOLOGIES, *ALL_RANKS), ("-", "--", ":", "-."), strict=True))
    for row in rows:
        for axes, x in zip(panels, ("step", "time"), strict=True):
            row.sim.plot(
                y="distance",
                x=x,
                ax=axes,
                color=colors[row.algorithm.name],
                linestyle=styles[row.graph],
                label=f"{row.algorithm.name}, {row.graph}",
                linewidth=1.2,
            )
    panels[1].get_legend().remove()
    panels[1].set_ylabel("")
    panels[0].legend(fontsize=7)
    figure.suptitle("Logistic regression on breast_cancer, 16 ranks, one four times slower")
    handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=target.suffix)
    os.close(handle)
    figure.savefig(temporary, dpi=140)
    Path(temporary).replace(target)


def on_processes(console: Console) -> bool:
    """Run one algorithm on processes and in simulation; tell whether the iterates are equal."""
    if importlib.util.find_spec("mpi4py") is None:
        console.print("backend mpi: not installed; pip install 'dectool[mpi]'", markup=False)
        return True
    problem = problems.LogisticRegression.from_data(
        problems.breast_cancer(), n=PROCESSES, l2=0.3, bias=True
    )
    sim, mpi = (
        dectool.solve(
            algorithms.EXTRA(lr=0.2),
            problem,
            topology=topology.ring(PROCESSES),
            steps=300,
            backend=backend,
            progress=False,
        )
        for backend in ("sim", "mpi")
    )
    same = sim.x.tobytes() == mpi.x.tobytes()
    console.print(
        f"EXTRA on a ring of {PROCESSES} MPI processes, 300 steps in {mpi.last['time']:.2f} s: "
        f"iterates {'equal to' if same else 'DIFFERENT from'} those of sim, bit for bit",
        highlight=False,
    )
    return same


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    console = Console(width=max(Console().width, 130))
    problem = problems.LogisticRegression.from_data(
        problems.breast_cancer(), n=RANKS, l2=0.3, bias=True
    )
    console.print(problem, highlight=False)
    console.print(f"network {NETWORK}; compute 1 ms + Exponential(0.5 ms)", highlight=False)
    rows = run_all(problem, console)
    console.print(table_of(rows))
    figure = output / "demo.png"
    draw(rows, figure)
    console.print(f"figure: {figure}")
    same = on_processes(console)
    if not same or not all(row.same_bits for row in rows):
        raise SystemExit("two backends disagree; this must never happen")


if __name__ == "__main__":
    main()
