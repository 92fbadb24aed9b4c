"""What quantities of topologies and schedules need, checked with one wording."""

from __future__ import annotations

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._edges import real
from dectool.topology._schedule import Schedule
from dectool.topology._topology import Topology


def need_topology(who: str, topology: object) -> None:
    """Refuse what is no Topology."""
    if not isinstance(topology, Topology):
        raise ArgumentTypeError(
            f"{who}: topology must be a Topology, got {type(topology).__name__}; use "
            "topology.from_graph(graph), or schedule.at(k)"
        )


def need_either(who: str, topology: object) -> None:
    """Refuse what is neither a Topology nor a Schedule."""
    if not isinstance(topology, Schedule):
        need_topology(who, topology)


def need_size(who: str, topology: Topology | Schedule, hint: str = "use rho") -> None:
    """Refuse what is too large for dense matrices."""
    if topology.size > _spectrum.DENSE_RESCUE:
        raise ArgumentError(
            f"{who} of {topology.name}: it is computed up to size {_spectrum.DENSE_RESCUE}; study "
            f"a smaller graph of the same family, or {hint}"
        )


def need_doubly(who: str, topology: Topology) -> None:
    """Refuse W whose rows and columns do not all sum to 1."""
    need_topology(who, topology)
    if not topology.is_doubly_stochastic:
        raise TopologyError(
            f"{who} needs rows and columns that sum to 1, and those of {topology.name} "
            f"({topology.weights}) do not; use weights='metropolis_hastings' or 'sinkhorn'"
        )


def need_chain(who: str, topology: Topology) -> None:
    """Refuse W that are no transition matrices of a Markov chain."""
    need_topology(who, topology)
    if not (topology.is_row_stochastic and topology.is_nonnegative):
        raise TopologyError(
            f"{who} needs W >= 0 with rows that sum to 1, and that of {topology.name} "
            f"({topology.weights}) is not so; use weights='metropolis_hastings' or 'uniform'"
        )


def need_undirected(who: str, topology: Topology) -> None:
    """Refuse graphs that are directed or not connected."""
    need_topology(who, topology)
    if topology.is_directed or not topology.is_connected:
        raise TopologyError(
            f"{who} needs a connected undirected graph, and {topology.name} is not; "
            "use graph.to_undirected()"
        )


def period_of(who: str, schedule: Schedule) -> int:
    """Return the period of a schedule that has one."""
    if schedule.period is None:
        raise TopologyError(
            f"{who} needs a periodic schedule, and {schedule.name} has no period; use "
            "topology.mean_square_rate(schedule) for random ones, or "
            "topology.periodic([schedule.at(k) for k in range(length)])"
        )
    return schedule.period


def fraction(name: str, value: float) -> float:
    """Return a number above 0 and below 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ArgumentError(f"{name} must be above 0 and below 1, got {number:g}")
    return number
