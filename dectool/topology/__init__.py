"""Graphs, mixing matrices, and schedules of them.

A :class:`Topology` is a graph with a checked mixing matrix W, where W[i, j] is the weight that
rank i gives to what it receives from rank j; a :class:`Schedule` has a topology for every step.

Example:
    >>> from dectool import topology
    >>> topology.ring(16)
    <Topology: ring of 16, 16 edges, metropolis_hastings, doubly stochastic>
"""

from dectool.topology._convert import from_graph as from_graph, from_matrix as from_matrix
from dectool.topology._graphs import (
    complete as complete,
    exponential as exponential,
    grid as grid,
    hypercube as hypercube,
    path as path,
    ring as ring,
    star as star,
    torus as torus,
)
from dectool.topology._random import (
    erdos_renyi as erdos_renyi,
    geometric as geometric,
    random_regular as random_regular,
)
from dectool.topology._schedule import Schedule as Schedule
from dectool.topology._schedules import (
    as_schedule as as_schedule,
    one_peer_exponential as one_peer_exponential,
    periodic as periodic,
    random_matching as random_matching,
    shift_one as shift_one,
    static as static,
)
from dectool.topology._topology import Topology as Topology
from dectool.topology._validation import TOLERANCE as TOLERANCE
from dectool.topology._weights import WEIGHTS as WEIGHTS, Weights as Weights

__all__ = [
    "TOLERANCE",
    "WEIGHTS",
    "Schedule",
    "Topology",
    "Weights",
    "as_schedule",
    "complete",
    "erdos_renyi",
    "exponential",
    "from_graph",
    "from_matrix",
    "geometric",
    "grid",
    "hypercube",
    "one_peer_exponential",
    "path",
    "periodic",
    "random_matching",
    "random_regular",
    "ring",
    "shift_one",
    "star",
    "static",
    "torus",
]
