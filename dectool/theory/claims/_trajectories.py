"""Every state of a run, where a history has the last one alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool._oracle import Oracle
from dectool.algorithms import Algorithm, State
from dectool.communicator import Communicator
from dectool.problems import Problem
from dectool.run import run
from dectool.theory._arguments import Floats
from dectool.topology import Topology


def states(
    algorithm: Algorithm, problem: Problem, graph: Topology, steps: int, x0: Any = None
) -> list[State]:
    """Return the states of all ranks after 0 to ``steps`` steps.

    Args:
        algorithm: Any that runs in step.
        problem: On which functions.
        graph: On which topology.
        steps: How many.
        x0: Starting points, shape (n, d); default: those of the problem.
    """
    start = problem.initial(problem.ranks) if x0 is None else x0
    flat = np.asarray(start, np.float64).reshape(problem.size, problem.dim)
    found: list[State] = []

    def program(comm: Communicator) -> None:
        grad = Oracle(comm, problem)
        found.append(algorithm.at(0).init(comm, flat, grad))
        for k in range(steps):
            found.append(algorithm.at(k).step(comm, found[-1], grad))

    run(program, problem.size, backend="stacked", topology=graph)
    return found


def iterates(
    algorithm: Algorithm, problem: Problem, graph: Topology, steps: int, x0: Any = None
) -> Floats:
    """Return the iterates of all ranks after 0 to ``steps`` steps, shape (steps + 1, n, d).

    Args:
        algorithm: As for :func:`states`.
        problem: As there.
        graph: As there.
        steps: As there.
        x0: As there.
    """
    return np.array([s["x"] for s in states(algorithm, problem, graph, steps, x0)])
