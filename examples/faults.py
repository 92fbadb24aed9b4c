"""Two of sixteen ranks die in the middle of a run: what the others find, and what was lost.

Sixteen simulated ranks on a 4 x 4 torus train a logistic regression on scikit-learn's breast cancer
data. Ranks 3 and 9 crash for good, one of the links loses a tenth of its messages, and the rest go
on. What they should find is the optimum of the fourteen shards that are left: metrics are measured
against it from the first step that a rank misses.

    python -m examples.faults
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import dectool
from dectool import algorithms, problems, sim, topology

RANKS = 16
STEPS = 2000
DEAD = {3: 4.0, 9: 6.0}
FAULTS = [
    *(sim.Crash(rank, at=time) for rank, time in DEAD.items()),
    sim.MessageLoss(0.1, source=0, dest=1, both=True),
]
NETWORK = sim.AlphaBeta(latency=2e-4, bandwidth=1.25e7)
ALGORITHMS = {
    "ATC, shrinking steps": algorithms.ATC(lr=lambda k: 20.0 / (k + 40)),
    "ATC": algorithms.ATC(lr=0.1),
    "gradient tracking": algorithms.ATCGradientTracking(lr=0.1),
    "EXTRA": algorithms.EXTRA(lr=0.1),
}


def solve(algorithm: algorithms.Algorithm, problem: problems.Problem) -> dectool.History:
    """Run one algorithm through the faults."""
    return dectool.solve(
        algorithm,
        problem,
        topology=topology.torus(4, 4),
        steps=STEPS,
        record_every=50,
        backend="sim",
        network=NETWORK,
        compute=sim.ShiftedExponential(shift=1e-2, mean=2e-3),
        faults=FAULTS,
        missing="self",
        detection=0.05,
    )


def main() -> None:
    """Print the report of the faults, and where each algorithm ends."""
    console = Console(width=100)
    data = problems.breast_cancer()
    problem = problems.LogisticRegression.from_data(data, n=RANKS, l2=0.1, bias=True)
    left = [rank for rank in range(RANKS) if rank not in DEAD]
    own = problems.Among(problem, left).optimum
    table = Table(title="Where the 14 survivors end", title_justify="left")
    for column in ("algorithm", "ranks", "gap", "mean to their optimum", "consensus error"):
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    histories = {name: solve(algorithm, problem) for name, algorithm in ALGORITHMS.items()}
    for name, history in histories.items():
        away = np.linalg.norm(history.x[left].mean(axis=0) - own)
        last = history.last
        table.add_row(
            name,
            f"{last['alive']:.0f}",
            f"{last['gap']:.2e}",
            f"{away:.2e}",
            f"{last['consensus_error']:.2e}",
        )
    console.print(str(histories["ATC, shrinking steps"].faults), highlight=False)
    console.print()
    console.print(table)
    moved = np.linalg.norm(own - problem.optimum)
    console.print(f"The optimum of all 16 ranks is {moved:.2e} away from that of the 14.")


if __name__ == "__main__":
    main()
