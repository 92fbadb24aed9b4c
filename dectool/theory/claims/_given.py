"""What claims are given, checked, and what they take if it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import real
from dectool.topology import Topology

CURVATURES = (1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0)


def checked_topology(topology: Topology | None, default: Topology) -> Topology:
    """Return the topology, or the default one.

    Raises:
        ArgumentTypeError: It is no :class:`dectool.topology.Topology`.
    """
    found = default if topology is None else topology
    if not isinstance(found, Topology):
        raise ArgumentTypeError(
            f"topology is {found!r}; give a Topology, such as topology.ring(8) or schedule.at(0)"
        )
    return found


def checked_topologies(
    topologies: Sequence[Topology] | None, default: Sequence[Topology]
) -> list[Topology]:
    """Return the topologies, or the default ones.

    Raises:
        ArgumentTypeError: One is no :class:`dectool.topology.Topology`, or they are no list.
    """
    found = default if topologies is None else topologies
    if not isinstance(found, Sequence):
        raise ArgumentTypeError(f"topologies is {found!r}; give a list of topologies")
    return [checked_topology(one, one) for one in found]


def checked_problem(problem: Problem | None, size: int | None = None) -> Problem:
    """Return the problem, or the default one of so many ranks (eight if it does not matter).

    Raises:
        ArgumentError: It has another number of ranks.
        ArgumentTypeError: It is no problem.
    """
    if problem is None:
        if size is None or size == len(CURVATURES):
            return eight_scalars()
        return Quadratic.random(size, 2, kappa=4.0)
    if not isinstance(problem, Problem):
        raise ArgumentTypeError(f"problem is {problem!r}; give one of dectool.problems")
    if size is not None and problem.size != size:
        raise ArgumentError(
            f"the problem has {problem.size} ranks and the topology {size}; build both for the "
            "same number"
        )
    return problem


def checked_quadratic(problem: Problem | None, size: int | None = None) -> Quadratic:
    """Return the quadratics, or the default ones; see :func:`checked_problem`.

    Raises:
        ArgumentError: They are of another number of ranks.
        ArgumentTypeError: The problem is no :class:`dectool.problems.Quadratic`.
    """
    if problem is not None and not isinstance(problem, Quadratic):
        raise ArgumentTypeError(
            f"problem is a {type(problem).__name__}; closed forms are for problems.Quadratic"
        )
    found = checked_problem(problem, size)
    assert isinstance(found, Quadratic)
    return found


def checked_rate(name: str, value: Any, most: float = np.inf) -> float:
    """Return a number above 0 and below ``most``.

    Raises:
        ArgumentError: It is out of range.
        ArgumentTypeError: It is no number.
    """
    number = real(name, value)
    if not 0.0 < number < most:
        bound = "finite" if most == np.inf else f"below {most:g}"
        raise ArgumentError(f"{name}={value!r} must be above 0 and {bound}")
    return number


def eight_scalars() -> Quadratic:
    """Return eight quadratics of one variable, of curvatures 1 to 4 and linear terms 0 to 7."""
    return Quadratic(h=np.array(CURVATURES)[:, None], b=np.arange(8.0)[:, None])
