"""Edges as arrays, so that a ring of a million ranks takes no Python loop."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError

if TYPE_CHECKING:
    import networkx as nx

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"


@dataclass(frozen=True)
class Edges:
    """Every directed edge once, without self-loops: ``receivers[e]`` hears ``senders[e]``."""

    size: int
    receivers: Ints
    senders: Ints

    @cached_property
    def in_degrees(self) -> Ints:
        """Number of ranks that each rank hears, shape (n,)."""
        return np.bincount(self.receivers, minlength=self.size).astype(np.int64)

    @cached_property
    def out_degrees(self) -> Ints:
        """Number of ranks that hear each rank, shape (n,)."""
        return np.bincount(self.senders, minlength=self.size).astype(np.int64)

    @cached_property
    def one_way(self) -> tuple[int, int] | None:
        """Some edge (sender, receiver) that has no reverse, or None in an undirected graph."""
        forth = self.receivers * self.size + self.senders
        back = self.senders * self.size + self.receivers
        if np.array_equal(np.sort(forth), np.sort(back)):
            return None
        alone = np.setdiff1d(forth, back)
        return int(alone[0] % self.size), int(alone[0] // self.size)


def undirected(size: int, first: Ints, second: Ints) -> Edges:
    """Return both directions of each pair; self-loops and repeated pairs are dropped."""
    keep = first != second
    low, high = np.minimum(first, second)[keep], np.maximum(first, second)[keep]
    low, high = np.divmod(_distinct(low * size + high), size)
    return Edges(size, np.concatenate([low, high]), np.concatenate([high, low]))


def directed(size: int, senders: Ints, receivers: Ints) -> Edges:
    """Return the edges sender -> receiver; self-loops and repeated edges are dropped."""
    keep = senders != receivers
    codes = _distinct(receivers[keep] * size + senders[keep])
    return Edges(size, *np.divmod(codes, size))


def of_graph(graph: nx.Graph[Any], index: dict[Any, int] | None = None) -> Edges:
    """Return the edges of a networkx graph, its nodes numbered by ``index`` (default: by label)."""
    pairs = np.array(
        [(u, v) if index is None else (index[u], index[v]) for u, v in graph.edges()],
        dtype=np.int64,
    ).reshape(-1, 2)
    build = directed if graph.is_directed() else undirected
    return build(graph.number_of_nodes(), pairs[:, 0], pairs[:, 1])


def to_graph(edges: Edges) -> nx.Graph[Any]:
    """Return the edges as a frozen networkx graph: a DiGraph only if some edge has no reverse."""
    import networkx as nx

    one_way = edges.one_way is not None
    graph: nx.Graph[Any] = nx.DiGraph() if one_way else nx.Graph()
    graph.add_nodes_from(range(edges.size))
    keep = slice(None) if one_way else edges.senders < edges.receivers
    senders, receivers = edges.senders[keep].tolist(), edges.receivers[keep].tolist()
    graph.add_edges_from(zip(senders, receivers, strict=True))
    nx.freeze(graph)
    return graph


def numbering(graph: nx.Graph[Any]) -> tuple[Any, ...]:
    """Return the node labels in rank order: 0..n-1 as they are, others as the graph lists them.

    Raises:
        ArgumentTypeError: Not a networkx graph.
        TopologyError: A multigraph, or a graph without nodes.
    """
    if not hasattr(graph, "is_multigraph"):
        raise ArgumentTypeError(
            f"graph must be a networkx Graph or DiGraph, got {type(graph).__name__}; "
            "for a matrix use topology.from_matrix(W)"
        )
    if graph.is_multigraph():
        raise TopologyError(
            f"graph is a {type(graph).__name__}, whose parallel edges have no single weight; "
            "convert it: networkx.Graph(graph) or networkx.DiGraph(graph)"
        )
    size = graph.number_of_nodes()
    if size == 0:
        raise TopologyError("graph has no nodes; a topology needs at least 1 rank")
    if all(isinstance(node, int | np.integer) and 0 <= node < size for node in graph):
        return tuple(range(size))
    return tuple(graph)


def count(name: str, value: object, minimum: int) -> int:
    """Return ``value`` as an int, at least ``minimum``.

    Raises:
        ArgumentTypeError: Not an integer.
        ArgumentError: Too small.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{name} must be an integer, got {value!r} ({type(value).__name__}); use int({name})"
        ) from None
    if number < minimum:
        raise ArgumentError(f"{name} must be at least {minimum}, got {number}")
    return number


def real(name: str, value: object) -> float:
    """Return ``value`` as a float.

    Raises:
        ArgumentTypeError: Not a number.
    """
    if not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    return float(value)


def _distinct(codes: Ints) -> Ints:
    """Return the distinct codes, ascending; ``np.unique`` hashes, at six times the cost."""
    codes = np.sort(codes)
    return codes[np.diff(codes, prepend=-1) > 0]
