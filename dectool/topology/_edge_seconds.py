"""Seconds of each edge, from whatever form they are given in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.topology._edges import Floats, Ints, real
from dectool.topology._topology import Topology

if TYPE_CHECKING:
    import networkx as nx

EdgeSeconds: TypeAlias = "Mapping[tuple[Any, Any], float] | Callable[..., float] | str | Any"
"""Seconds of each edge: a mapping, a function of its ends, an attribute's name, or an array."""

_FORMS = (
    "give a mapping {(u, v): seconds}, a function of u and v, an array (n, n), or the name of an "
    "edge attribute"
)


def seconds_of_edges(
    graph: nx.Graph[Any] | Topology, base: Topology, first: Ints, second: Ints, given: EdgeSeconds
) -> Floats:
    """Return the seconds of each undirected edge, (m,): those of the slower direction.

    Args:
        graph: What the user gave, with attributes if it has some.
        base: The topology of it, with its labels.
        first: One end of each edge, as ranks.
        second: The other.
        given: As in ``fastest_consensus``.

    Raises:
        ArgumentTypeError: ``given`` is of no known kind, or a time is no number.
        ArgumentError: An edge has no time, or a negative one.
    """
    labels = base.labels
    pairs = [(labels[i], labels[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    if isinstance(given, str):
        found = [_attribute(graph, pair, given) for pair in pairs]
    elif isinstance(given, Mapping):
        found = [_slower(given, *pair) for pair in pairs]
    elif callable(given):
        found = [max(_number(given(u, v)), _number(given(v, u))) for u, v in pairs]
    else:
        array = _array(given, base.size)
        found = np.maximum(array[first, second], array[second, first]).tolist()
    times: Floats = np.array(found, dtype=np.float64)
    wrong = np.flatnonzero(~(times >= 0))
    if wrong.size:
        u, v = pairs[wrong[0]]
        raise ArgumentError(
            f"edge_seconds of the edge {u!r} - {v!r} is {times[wrong[0]]:g}; it must be at least "
            "0 seconds, or inf for an edge that must not be used"
        )
    return times


def _number(value: object) -> float:
    return real("edge_seconds", value)


def _slower(given: Mapping[tuple[Any, Any], float], u: Any, v: Any) -> float:
    found = [_number(given[pair]) for pair in ((u, v), (v, u)) if pair in given]
    if not found:
        raise ArgumentError(
            f"edge_seconds has no time for the edge {u!r} - {v!r}; add the key ({u!r}, {v!r})"
        )
    return max(found)


def _attribute(graph: nx.Graph[Any] | Topology, pair: tuple[Any, Any], name: str) -> float:
    if isinstance(graph, Topology):
        raise ArgumentTypeError(
            f"edge_seconds={name!r} names an edge attribute, which a Topology does not have; "
            f"{_FORMS.partition(', or')[0]}, or a networkx graph"
        )
    found = [graph.edges[ends].get(name) for ends in {pair, pair[::-1]} if ends in graph.edges]
    if None in found:
        raise ArgumentError(
            f"edge_seconds={name!r}: the edge {pair[0]!r} - {pair[1]!r} has no attribute {name!r}"
            "; set it on every edge"
        )
    return max(_number(value) for value in found)


def _array(given: Any, n: int) -> Floats:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"edge_seconds is a {type(given).__name__}; {_FORMS}") from None
    if array.shape != (n, n):
        raise ArgumentError(
            f"edge_seconds has shape {array.shape}, but there are {n} ranks: its shape must be "
            f"({n}, {n})"
        )
    return array
