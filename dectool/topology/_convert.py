"""Topologies from a networkx graph or from a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dectool.errors import TopologyError
from dectool.topology._edges import numbering, of_graph, to_graph
from dectool.topology._fastest import weigh_whole
from dectool.topology._topology import Topology
from dectool.topology._validation import as_csr, check_support
from dectool.topology._weights import Weights

if TYPE_CHECKING:
    import networkx as nx


def from_graph(
    graph: nx.Graph[Any],
    *,
    weights: Weights = "metropolis_hastings",
    name: str | None = None,
    require_connected: bool = True,
) -> Topology:
    """Return the topology of a networkx graph.

    Labels 0..n-1 are the ranks; other labels are ranked in the graph's order and kept in
    ``.labels``. Self-loops are dropped: whether a rank keeps its own value is up to the weights.
    An edge u -> v of a ``DiGraph`` means that u sends to v. Edge attributes are ignored.

    Args:
        graph: ``Graph`` or ``DiGraph``, (strongly) connected, at least one node.
        weights: A rule's name, one of ``WEIGHTS`` or of the optimal ones "fastest_mixing" and
            "fastest_averaging", see ``Topology.certified_gap``; a function of the graph
            (relabelled to ranks) that returns an (n, n) matrix; or a mapping {(i, j): W_ij} over
            ranks, i the receiver, where a missing self-weight becomes 1 - (row sum).
        name: Name for messages; default the graph's own, or "graph of n".
        require_connected: Refuse a graph that is not (strongly) connected; members of a schedule
            need not be.

    Raises:
        ArgumentTypeError: Not a graph, or weights of no known kind.
        ArgumentError: The rule's name is unknown.
        TopologyError: A multigraph; not connected; the rule needs an undirected graph; or the
            weights leave the graph or are not stochastic.

    Example:
        >>> import networkx as nx
        >>> t = from_graph(nx.Graph([("a", "b"), ("b", "c")]))
        >>> t.labels, t.in_neighbors(1)
        (('a', 'b', 'c'), (0, 2))
    """
    labels = numbering(graph)
    edges = of_graph(graph, {label: rank for rank, label in enumerate(labels)})
    W, bound = weigh_whole(edges, weights, lambda: to_graph(edges))
    return Topology(
        W,
        name=name or str(graph.name) or f"graph of {edges.size}",
        weights=weights if isinstance(weights, str) else "given",
        labels=None if labels == tuple(range(edges.size)) else labels,
        require_connected=require_connected,
        rho_bound=bound,
    )


def from_matrix(
    W: Any,
    graph: nx.Graph[Any] | None = None,
    *,
    name: str | None = None,
    require_connected: bool = True,
) -> Topology:
    """Return the topology of a mixing matrix.

    Args:
        W: (n, n) NumPy array, nested lists, ``numpy.matrix`` or SciPy sparse matrix of any
            format; W[i, j] is the weight that rank i gives to rank j. Rows or columns sum to 1.
        graph: If given, nodes 0..n-1, and every off-diagonal weight must lie on an edge.
        name: Name for messages; default "matrix of n".
        require_connected: Refuse a support that is not (strongly) connected.

    Raises:
        ArgumentTypeError: W does not hold real numbers.
        TopologyError: W is not square, finite, stochastic, inside the graph and connected.

    Example:
        >>> import numpy as np
        >>> from_matrix(np.full((3, 3), 1 / 3)).is_doubly_stochastic
        True
    """
    matrix = as_csr(W)
    if graph is not None:
        labels = numbering(graph)
        if labels != tuple(range(len(labels))):
            raise TopologyError(
                f"graph must have the nodes 0 to {len(labels) - 1}, got {labels[0]!r}, ...; "
                "relabel it: networkx.convert_node_labels_to_integers(graph)"
            )
        check_support(matrix, of_graph(graph))
    name = f"matrix of {matrix.shape[0]}" if name is None else name
    return Topology(matrix, name=name, require_connected=require_connected)


def undirected_base(graph: Any, who: str) -> Topology:
    """Return the graph as a topology with uniform weights, unless it is one, for ``who``.

    Raises:
        TopologyError: Some edge has no reverse, or the graph is not connected.
    """
    base = connected_base(graph, who)
    if base.is_directed:
        sender, receiver = base.edges.one_way or (0, 0)
        raise TopologyError(
            f"{who} needs an undirected graph, but the edge {sender} -> {receiver} of "
            f"{base.name} has no reverse; use graph.to_undirected()"
        )
    return base


def connected_base(graph: Any, who: str) -> Topology:
    """Return the graph as a topology with uniform weights, unless it is one, for ``who``.

    Raises:
        TopologyError: The graph is not (strongly) connected.
    """
    base = graph if isinstance(graph, Topology) else from_graph(graph, weights="uniform")
    if not base.is_connected:
        raise TopologyError(
            f"{who} needs a connected graph, and {base.name} is not; add edges between its parts"
        )
    return base
