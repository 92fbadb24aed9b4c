"""What the steps of schedules are made of: cycles of topologies, pairs, and half-and-half moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology._edges import Floats, Ints
from dectool.topology._topology import Topology


@dataclass(frozen=True)
class Cycle:
    """Step k is member k mod length."""

    members: tuple[Topology, ...]

    def __call__(self, k: int) -> Topology:
        return self.members[k % len(self.members)]


def members_of(topologies: Any) -> tuple[Topology, ...]:
    """Return topologies as a tuple: at least one, all of one size.

    Raises:
        ArgumentError: There is none.
        ArgumentTypeError: It is no list, or a member is no Topology.
        TopologyError: The sizes differ.
    """
    if not isinstance(topologies, Iterable):
        raise ArgumentTypeError(
            f"topologies must be a list of Topology, got {type(topologies).__name__}; for one "
            "alone use topology.static(t)"
        )
    members = tuple(topologies)
    if not members:
        raise ArgumentError("topologies must hold at least 1 Topology, got none")
    for k, member in enumerate(members):
        need_member(f"topologies[{k}]", member)
        if member.size != members[0].size:
            raise TopologyError(
                f"topologies[{k}] is {member.name} of size {member.size}, but topologies[0] is "
                f"{members[0].name} of size {members[0].size}; every step needs the same ranks"
            )
    return members


def need_member(what: str, value: object) -> None:
    """Refuse what is no Topology."""
    if not isinstance(value, Topology):
        raise ArgumentTypeError(
            f"{what} must be a Topology, got {type(value).__name__}; "
            "make one with topology.ring(n), topology.from_graph(graph) or topology.from_matrix(W)"
        )


def half(sources: Ints, name: str) -> Topology:
    """Return W = (I + Π)/2, rank i averaging its value with that of ``sources[i]``."""
    return toward(sources, 0.5, name, "half")


def toward(sources: Ints, weight: float, name: str, rule: str) -> Topology:
    """Return W = (1 - w) I + w Π, rank i giving the weight w to the value of ``sources[i]``."""
    n = sources.size
    ranks = np.arange(n)
    weights: Floats = np.repeat([1.0 - weight, weight], n)
    rows, columns = np.concatenate([ranks, ranks]), np.concatenate([ranks, sources])
    W = sparse.coo_array((weights, (rows, columns)), shape=(n, n))
    return Topology(W, name=name, weights=rule, require_connected=False)


def partners(n: int, first: Ints, second: Ints) -> Ints:
    """Return each rank's partner, itself if it has none, given disjoint pairs."""
    found = np.arange(n)
    found[first], found[second] = second, first
    return found


def greedy_matching(size: int, first: Ints, second: Ints) -> Ints:
    """Return each rank's partner (itself if none) after keeping every edge, in order, that fits.

    Rounds of array operations give the result of the loop: an edge that comes first at both of
    its ends is kept whatever happens elsewhere, and so removes all edges that touch it.
    """
    partner = np.arange(size)
    place = np.arange(first.size)
    while place.size:
        earliest = np.full(size, first.size)
        np.minimum.at(earliest, first[place], place)
        np.minimum.at(earliest, second[place], place)
        kept = place[(earliest[first[place]] == place) & (earliest[second[place]] == place)]
        partner[first[kept]], partner[second[kept]] = second[kept], first[kept]
        free = partner == np.arange(size)
        place = place[free[first[place]] & free[second[place]]]
    return partner
