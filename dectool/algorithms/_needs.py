"""What an algorithm's theory asks of the topology."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dectool.errors import TopologyError
from dectool.topology import Schedule, Topology

_SLACK = 1e-12


class Needs(NamedTuple):
    """Conditions on the mixing matrix W.

    Attributes:
        weights: "symmetric doubly stochastic", "doubly stochastic", "column stochastic", or
            "any" where W is not used.
        contracts: Whether powers of W must average: ``rho`` < 1.
        lambda_min: The smallest eigenvalue of W must be above this.
        time_varying: Whether the topology may change from step to step.
        undirected: Whether every edge must have its opposite, whatever the weights.
        tree: Whether the graph must be a spanning tree, too.
    """

    weights: str = "doubly stochastic"
    contracts: bool = False
    lambda_min: float | None = None
    time_varying: bool = True
    undirected: bool = False
    tree: bool = False


def check_needs(name: str, needs: Needs, topology: Topology | Schedule) -> None:
    """Refuse a topology that breaks what an algorithm needs.

    Raises:
        TopologyError: Names the algorithm, the condition, the value, and a remedy.
    """
    if isinstance(topology, Schedule):
        if topology.period != 1 and not needs.time_varying:
            raise TopologyError(
                f"{name} needs a fixed topology, but {topology.name} changes from step to step; "
                "use a gradient-tracking method (DIGing, ATCGradientTracking), or one topology. "
                "check=False insists"
            )
        steps = [topology.at(k) for k in range(topology.period or 1)]
        per_step = needs if topology.period == 1 else needs._replace(contracts=False)
        for one in steps:
            check_needs(name, per_step, one)
        return
    for reason in broken(needs, topology):
        raise TopologyError(f"{name} on {topology.name}: {reason}. check=False insists")


def broken(needs: Needs, topology: Topology) -> Iterator[str]:
    """Tell each condition that a topology breaks, with a remedy."""
    yield from _broken_graph(needs, topology)
    if needs.weights in ("doubly stochastic", "symmetric doubly stochastic"):
        if not topology.is_doubly_stochastic:
            which = "columns" if topology.is_row_stochastic else "rows"
            yield (
                f"W must be doubly stochastic, but its {which} do not sum to 1; undirected graphs "
                "have such weights (weights='metropolis_hastings'), on directed ones averaging "
                "needs PushSum, and descent PushPull or PushDIGing"
            )
        if needs.weights.startswith("symmetric") and not topology.is_symmetric:
            yield (
                "W must be symmetric, which directed edges are not; use an undirected graph, or "
                "ATCGradientTracking, which needs only double stochasticity"
            )
    if needs.weights == "column stochastic" and not topology.is_column_stochastic:
        yield (
            "W must be column stochastic (each sender splits its mass), but its columns do not "
            "sum to 1; build the graph with weights='uniform_push'"
        )
    if needs.contracts and topology.rho >= 1.0 - _SLACK and topology.size > 1:
        yield (
            f"W does not average: rho = ||W - J|| = {topology.rho:.6g}, and it must be below 1; "
            "use topology.lazy(), or other weights"
        )
    if needs.lambda_min is not None and topology.size > 1:
        smallest = topology.lambda_min
        if smallest <= needs.lambda_min + _SLACK:
            yield (
                f"the smallest eigenvalue of W is {smallest:.6g}, and it must be above "
                f"{needs.lambda_min:.6g}; use topology.lazy(), whose eigenvalues are above 0"
            )


def _broken_graph(needs: Needs, topology: Topology) -> Iterator[str]:
    if (needs.undirected or needs.tree) and topology.is_directed:
        yield (
            "ranks meet in pairs, but some edges go one way only; use an undirected graph, such "
            "as a ring"
        )
    edges, n = int(topology.in_degrees.sum()) // 2, topology.size
    if needs.tree and (edges != n - 1 or not topology.is_connected):
        yield (
            f"the graph must be a tree, but it has {edges} edges among {n} ranks"
            f"{'' if topology.is_connected else ' and is not connected'}; use a spanning tree of "
            "it, or a path or a star"
        )
