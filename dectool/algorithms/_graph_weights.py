"""Other weights on the graph of a topology than its own."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from dectool.algorithms._algorithm import Curved
from dectool.communicator import Communicator
from dectool.topology import Schedule, Topology, from_graph

_FOUND: weakref.WeakKeyDictionary[Topology, dict[str, Topology]] = weakref.WeakKeyDictionary()


def reweighed(topology: Topology, weights: str) -> Topology:
    """Return the topology on the same graph with weights of a rule; each is made once."""
    found = _FOUND.setdefault(topology, {})
    if weights not in found:
        found[weights] = from_graph(
            topology.graph,
            weights=weights,
            name=f"{topology.name}, {weights}",
            require_connected=False,
        )
    return found[weights]


def row_stochastic(topology: Topology) -> Topology:
    """Return the topology if its rows sum to 1, else with equal weights of what a rank hears."""
    return topology if topology.is_row_stochastic else reweighed(topology, "uniform")


def column_stochastic(topology: Topology) -> Topology:
    """Return the topology if its columns sum to 1, else with equal shares of what a rank sends."""
    return topology if topology.is_column_stochastic else reweighed(topology, "uniform_push")


def tracking_step(problem: Curved, topology: Topology | Schedule, most: float) -> float:
    r"""Return a step size that gradient tracking stands, also on a digraph.

    .. math:: \alpha = \frac{1}{L_{\max}} \min\big(a,\ 4 (1 - |\lambda_2(C)|)^2\big)

    with the second term on digraphs alone, whose complex eigenvalues ask for it: on a directed
    ring steps may be some 8 to 20 gaps squared, and no more. Measured on quadratics.

    Args:
        problem: Whose local functions.
        topology: Of C, or with the graph of it.
        most: a; on a schedule half of it.
    """
    if isinstance(topology, Schedule):
        return most / (2 * problem.L_max)
    gap = 1.0 - column_stochastic(topology).slem if topology.is_directed else 1.0
    return (min(most, 4 * gap**2) if gap > 0.0 else most) / problem.L_max


def laplacian(comm: Communicator, x: Any) -> Any:
    r"""Return :math:`\sum_j (x_i - x_j)` over the neighbours j, whatever the weights.

    By :math:`W = I - \mathcal L / (1 + d_{\max})`, so that the sum over ranks is 0 to rounding.
    """
    W = reweighed(comm.topology, "max_degree")
    return (1 + comm.topology.max_degree) * (x - comm.neighbor_allreduce(x, W))


def degrees(comm: Communicator, x: Any) -> Any:
    """Return the number of neighbours of each rank, in a shape that multiplies ``x``."""
    found = comm.per_rank(lambda rank: np.full(1, float(comm.topology.in_degree(rank))))
    return found.reshape(found.shape[:1] + (1,) * (x.ndim - 1)).astype(x.dtype)
