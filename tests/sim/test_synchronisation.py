"""Neighbour synchronisation with random computations: exact cycle times of the literature.

The values for undirected graphs come from the Markov chain of completed counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.topology import Topology


def cycle_time(graph: Topology, steps: int, backend: str = "sim") -> float:
    """Return the mean seconds of a step with unit exponential computations."""

    def program(comm: Any) -> None:
        x = comm.per_rank(lambda rank: np.zeros(1))
        for _ in range(steps):
            with comm.computing():
                pass
            comm.neighbor_allreduce(x)

    model = sim.Exponential(1.0)
    result = dectool.run(program, backend=backend, topology=graph, compute=model, seed=1)
    return result.time / steps


def directed_ring(n: int) -> Topology:
    return topology.from_matrix((np.eye(n) + np.roll(np.eye(n), 1, axis=0)) / 2)


def harmonic(n: int) -> float:
    return float(sum(Fraction(1, k) for k in range(1, n + 1)))


@pytest.mark.parametrize("n", [2, 4, 8])
def test_directed_ring_takes_two_minus_one_over_n(n: int) -> None:
    assert cycle_time(directed_ring(n), 64_000 // n) == pytest.approx(2 - 1 / n, rel=0.01)


STEPS = 200

EXACT = {
    "ring of 4": (lambda: topology.ring(4), 47 / 24),
    "ring of 5": (lambda: topology.ring(5), 6569 / 3210),
    "path of 3": (lambda: topology.path(3), 45 / 26),
    "path of 4": (lambda: topology.path(4), 4301 / 2306),
    "star of 4": (lambda: topology.star(4), 175 / 93),
    "complete of 4": (lambda: topology.complete(4), harmonic(4)),
    "exponential of 4": (lambda: topology.exponential(4), 47 / 24),
}


@pytest.mark.parametrize("name", EXACT)
def test_cycle_times_of_small_graphs(name: str) -> None:
    make, exact = EXACT[name]
    graph = make()
    assert cycle_time(graph, 40_000 // graph.size) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("backend", ["sim", "stacked"])
@pytest.mark.parametrize("n", [4, 16])
def test_barrier_takes_the_harmonic_number(n: int, backend: str) -> None:
    steps = 40_000 // n

    def program(comm: Any) -> None:
        for _ in range(steps):
            with comm.computing():
                pass
            comm.barrier()

    result = dectool.run(program, n, backend=backend, compute=sim.Exponential(0.5), seed=2)
    assert result.time / steps == pytest.approx(0.5 * harmonic(n), rel=0.01)


def test_stacked_has_the_same_times() -> None:
    for graph in (directed_ring(5), topology.star(4)):
        assert cycle_time(graph, 300, "stacked") == cycle_time(graph, 300)


def test_two_nodes_in_a_circuit() -> None:
    """The cycle time is (c_0 + c_1 + 2 d) / 2, or the slower computation."""
    for c0, c1, d in ((1.0, 3.0, 2.0), (1.0, 9.0, 0.5), (2.0, 2.0, 0.0)):

        def program(comm: Any) -> float:
            x = np.zeros(1)
            for k in range(2 * STEPS):
                if k == STEPS:
                    half = comm.now()
                with comm.computing():
                    pass
                comm.neighbor_allreduce(x)
            return (comm.now() - half) / STEPS

        result = dectool.run(
            program,
            topology=topology.ring(2),
            network=sim.AlphaBeta(latency=d),
            compute=sim.PerRank([c0, c1]),
        )
        cycle = max((c0 + c1 + 2 * d) / 2, c0, c1)
        assert result.values == pytest.approx([cycle, cycle], rel=1e-2)


def test_a_permanently_slow_rank_sets_the_pace() -> None:
    """Without delays the cycle time is the slowest rank's, after some steps."""

    def program(comm: Any) -> float:
        x = np.zeros(1)
        for k in range(40):
            if k == 20:
                half = comm.now()
            with comm.computing():
                pass
            comm.neighbor_allreduce(x)
        return (comm.now() - half) / 20

    slow = sim.PerRank({2: 4.0}, sim.Constant(0.5))
    result = dectool.run(program, topology=topology.ring(6), compute=slow)
    assert result.values == pytest.approx([2.0] * 6)
