"""Runs on quadratics held against powers of the matrices that papers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dectool.algorithms import Algorithm
from dectool.problems import Quadratic
from dectool.solve import solve
from dectool.theory._arguments import Floats
from dectool.theory._evidence import Check, Curve
from dectool.theory._iteration import rate
from dectool.topology import Topology

Matrix = Callable[[float], Floats]
"""The matrix of a method, by its step size."""


class Found(NamedTuple):
    """Checks, and a curve to draw."""

    checks: tuple[Check, ...]
    curve: Curve


def powers(
    algorithm: Algorithm,
    quadratic: Quadratic,
    graph: Topology,
    iterates: Floats,
    matrix: Floats,
    conserved: int,
) -> Found:
    """Hold a run against iterates, and the rate read off the code against a spectral radius.

    Args:
        algorithm: What is run, from the problem's own start.
        quadratic: On which functions.
        graph: On which topology.
        iterates: What is predicted, shape (steps + 1, n d).
        matrix: Whose spectral radius is the rate.
        conserved: How many eigenvalues 1 belong to conserved quantities.
    """
    history = solve(algorithm, quadratic, topology=graph, steps=len(iterates) - 1, check=False)
    optimum = np.tile(quadratic.optimum, graph.size)
    distance = np.linalg.norm(iterates - optimum, axis=1)
    measured = history["distance"]
    scale = float(distance.max()) or 1.0
    worst = int(np.argmax(np.abs(measured - distance[: len(measured)])))
    name, found = algorithm.name, rate(algorithm, quadratic, graph)
    apart = float(np.abs(history.x.ravel() - iterates[history.step]).max())
    return Found(
        (
            Check.equal(
                f"{name}: distance from the optimum (worst step: {worst}; relative to the largest)",
                float(measured[worst]),
                float(distance[worst]),
                tolerance=1e-11,
                scale=scale,
            ),
            Check.equal(
                f"{name}: how far the last iterates are from the predicted ones (relative)",
                apart,
                0.0,
                tolerance=1e-11,
                scale=scale,
            ),
            # A double eigenvalue is found to the square root of rounding.
            Check.equal(f"{name}: rate", found, radius(matrix, conserved), tolerance=1e-6),
        ),
        Curve(name, np.arange(float(len(measured))), measured, distance[: len(measured)]),
    )


def radius(matrix: Floats, conserved: int) -> float:
    """Return the spectral radius but for as many eigenvalues, those closest to 1."""
    values = np.linalg.eigvals(matrix)
    return float(np.abs(values[np.argsort(np.abs(values - 1.0))][conserved:]).max(initial=0.0))


def largest_step(matrix: Matrix, conserved: int, first: float) -> float:
    """Return the step size at which a spectral radius comes to 1, by growth and bisection."""
    high = first
    while radius(matrix(high), conserved) < 1.0:
        high *= 1.25
    low = high / 1.25
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if radius(matrix(middle), conserved) < 1.0 else (low, middle)
    return low
