"""The stacked backend against the products it is made of.

The first rival is SciPy's ``W @ X`` alone. The second is the step of D-PSGD as one would write it
in NumPy for this problem only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import dectool
from benchmarks._table import Row, compare, installed, interleaved, main
from dectool import problems, topology

SIZES = ((1_000, 10), (10_000, 10), (100_000, 10), (1_000_000, 10), (1_000, 100), (100_000, 100))
RANKS, SAMPLES, FEATURES, LR = 100, 50, 20, 0.1
OTHERS = (("decent-bench", "decent_bench"), ("gossipy", "gossipy"))


def mixing(n: int, d: int) -> Row:
    """Time one mixing of n rows of d numbers on a ring."""
    ring = topology.ring(n)
    W = sp.csr_array(ring.W)
    X = np.random.default_rng(0).normal(size=(n, d))
    calls = max(1, 2_000_000 // (n * d))
    found: dict[str, float] = {}

    def program(comm: Any) -> None:
        candidates: dict[str, Callable[[], object]] = {
            "ours": lambda: comm.neighbor_allreduce(X),
            "rival": lambda: W @ X,
        }
        found.update(interleaved(candidates, repetitions=15, calls=calls, timer=time.process_time))

    dectool.run(program, backend="stacked", topology=ring)
    return compare(
        f"neighbor_allreduce, ring of {n:,}, d = {d}; W @ X",
        1e3 * found["ours"],
        1e3 * found["rival"],
        at_most=300.0 if (n, d) == (1_000_000, 10) else None,
        ratio_at_most=1.2,
        unit="ms",
    )


def dpsgd() -> Row:
    """Time one step of D-PSGD on logistic regression."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(RANKS * SAMPLES, FEATURES))
    y = np.where(A @ rng.normal(size=FEATURES) + rng.normal(size=len(A)) > 0, 1.0, -1.0)
    problem = problems.LogisticRegression(A, y, n=RANKS, l2=0.01)
    ring = topology.ring(RANKS)
    W = sp.csr_array(ring.W)
    features, labels = A.reshape(RANKS, SAMPLES, FEATURES), y.reshape(RANKS, SAMPLES)
    found: dict[str, float] = {}

    def plain(x: Any) -> Any:
        margins = labels * (features @ x[:, :, None])[:, :, 0]
        slopes = -labels / (1.0 + np.exp(margins)) / SAMPLES
        gradient = (slopes[:, None, :] @ features)[:, 0, :] + 0.01 * x
        return W @ x - LR * gradient

    def program(comm: Any) -> None:
        def step(x: Any) -> Any:
            return comm.neighbor_allreduce(x) - LR * problem.grad(x, comm.rank)

        x = rng.normal(size=(RANKS, FEATURES))
        if not np.allclose(step(x), plain(x), rtol=1e-12, atol=1e-13):
            raise AssertionError("the two steps differ: the comparison would mean nothing")
        candidates: dict[str, Callable[[], object]] = {
            "ours": lambda: step(x),
            "rival": lambda: plain(x),
        }
        found.update(interleaved(candidates, repetitions=21, calls=200, timer=time.process_time))

    dectool.run(program, backend="stacked", topology=ring)
    case = f"D-PSGD step, {RANKS} ranks, m = {SAMPLES}, d = {FEATURES}; plain NumPy"
    return compare(case, 1e3 * found["ours"], 1e3 * found["rival"], at_most=0.2, unit="ms")


def _about(name: str, module: str) -> str:
    state = "there is no code for it yet" if installed(module) else "it is not installed"
    return f"{name} was not timed: {state}."


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    rows = []
    for n, d in SIZES:
        tell(f"mixing, ring of {n:,}, d = {d}")
        rows.append(mixing(n, d))
    tell("D-PSGD step")
    rows.append(dpsgd())
    return rows, [_about(name, module) for name, module in OTHERS]


if __name__ == "__main__":
    main("Stacked backend", measure, unit="CPU-ms")
