"""Weights that average fastest: the symmetric W on a graph with the least ‖W - J‖₂, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dectool.errors import TopologyError
from dectool.topology._edges import Edges, Floats, Matrix
from dectool.topology._fastest_barrier import barrier
from dectool.topology._fastest_problem import Problem
from dectool.topology._fastest_smooth import smooth
from dectool.topology._weights import FASTEST, Weights, weigh

if TYPE_CHECKING:
    import networkx as nx

EXACT = 500
"""Graphs of at most so many ranks and edges are solved by the barrier method."""


class Weighed(NamedTuple):
    """A mixing matrix and, if its rule is an optimal one, what bounds it.

    Attributes:
        W: Mixing matrix.
        bound: No symmetric W of the kind on the graph has a smaller ‖W - J‖₂ than this.
    """

    W: Matrix
    bound: float | None


def weigh_whole(edges: Edges, weights: Weights, graph: Callable[[], nx.Graph[Any]]) -> Weighed:
    """Return the mixing matrix of a whole graph, by one of the rules or an optimal one.

    Args:
        edges: The graph.
        weights: As in ``weigh``, or "fastest_mixing" or "fastest_averaging".
        graph: Makes the graph for a function of it.
    """
    if isinstance(weights, str) and weights in FASTEST:
        return fastest(edges, weights)
    return Weighed(weigh(edges, weights, graph), None)


def fastest(edges: Edges, weights: str) -> Weighed:
    r"""Minimise :math:`\lVert W - J \rVert_2` over symmetric W on the graph with W 1 = 1.

    "fastest_averaging" (FDLA) lets weights have any sign; "fastest_mixing" (FMMC) wants none
    negative, so that the norm is the SLEM of a Markov chain. Graphs of at most ``EXACT`` ranks
    and edges are solved by a barrier method, to a gap of 1e-8 to 1e-6; larger ones by an
    accelerated gradient method on a smoothed norm, from the extreme eigenvectors alone, to a gap
    of some percent. Either way the gap is computed, from a dual point (``Problem.bound``).

    Args:
        edges: A connected undirected graph.
        weights: "fastest_mixing" or "fastest_averaging".

    Raises:
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> t = topology.star(5, weights="fastest_mixing")
        >>> round(t.rho, 6), t.certified_gap < 1e-6
        (0.75, True)

    References:
        S. Boyd, P. Diaconis, L. Xiao, Fastest mixing Markov chain on a graph, SIAM Review 46(4),
        2004; L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53, 2004.
    """
    _check(edges, weights)
    once = edges.receivers < edges.senders
    first, second = edges.receivers[once], edges.senders[once]
    problem = Problem(edges.size, first, second, weights == "fastest_mixing")
    if edges.size == 1:
        return Weighed(problem.matrix(np.zeros(0)), 0.0)
    small = max(edges.size, first.size) <= EXACT
    w, bound = barrier(problem) if small else smooth(problem)
    return Weighed(problem.matrix(w), bound)


def _check(edges: Edges, weights: str) -> None:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    if edges.one_way is not None:
        sender, receiver = edges.one_way
        raise TopologyError(
            f"weights={weights!r} needs an undirected graph, but the edge {sender} -> {receiver} "
            "has no reverse; use graph.to_undirected(), or weights='sinkhorn'"
        )
    n = edges.size
    ones: Floats = np.ones(edges.receivers.size)
    links = sparse.coo_array((ones, (edges.receivers, edges.senders)), shape=(n, n))
    parts, label = connected_components(links.tocsr(), directed=False)
    if parts > 1:
        other = int(np.flatnonzero(label != label[0])[0])
        raise TopologyError(
            f"weights={weights!r} needs a connected graph, but ranks 0 and {other} are in "
            f"different ones of its {parts} parts; add edges, or weigh each part by itself"
        )
