"""Weighted sums by shares that ranks push: the columns of the weights sum to 1."""

from __future__ import annotations

from typing import Any

from dectool.communicator import Communicator, Request
from dectool.topology import Topology


def push(comm: Communicator, x: Any, C: Topology | None = None) -> Any:
    r"""Return :math:`\sum_j C_{ij} x_j`, where no share goes to a rank that is gone.

    .. math:: x_i^+ = \sum_{j \in A} \frac{C_{ij}}{\sum_{l \in A} C_{lj}}\, x_j

    where A are the ranks that are there, as far as is known (``comm.gone``): so columns sum to 1
    among them, and what they hold is kept. Elsewhere than in a simulation with faults, all are
    there; and where a loss is an error, nobody is left out.

    Args:
        comm: Whose rank.
        x: An array, or a container of them.
        C: Column stochastic; default: the topology of ``comm``.
    """
    return comm.neighbor_allreduce(x, C, **_weights(comm, C))


def ipush(comm: Communicator, x: Any, C: Topology | None = None) -> Request[Any]:
    """Start a :func:`push`; the result is there after ``wait()``."""
    return comm.ineighbor_allreduce(x, C, **_weights(comm, C))


def _weights(comm: Communicator, C: Topology | None) -> dict[str, Any]:
    """Return the weights that are given in place of those of C, if any."""
    gone = comm.gone
    if not gone or comm.missing == "error":
        return {}
    i, C = comm.rank, comm.topology if C is None else C
    destinations = [j for j in C.out_neighbors(i) if j not in gone]
    own = C.self_weight(i)
    share = own + sum(C.weight(j, i) for j in destinations)
    if share == 0.0:
        # Who gave all to others, and is left alone, keeps it.
        own = share = 1.0
    return {
        "self_weight": own / share,
        "src_weights": {j: C.weight(i, j) for j in C.in_neighbors(i) if j not in gone},
        "dst_weights": dict.fromkeys(destinations, 1.0 / share),
    }
