"""Weights that average fastest: the W on a graph with the least ‖W - J‖₂, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dectool.errors import TopologyError
from dectool.topology._edges import Edges, Floats, Matrix
from dectool.topology._fastest_barrier import barrier
from dectool.topology._fastest_problem import Directed, Problem, Undirected
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
        bound: No W of the kind on the graph has a smaller ‖W - J‖₂ than this.
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
    r"""Minimise :math:`\lVert W - J \rVert_2` over W on the graph with rows and columns of sum 1.

    "fastest_averaging" (FDLA) lets weights have any sign; "fastest_mixing" (FMMC) wants none
    negative, so that W is the matrix of a Markov chain. On an undirected graph W is symmetric,
    and no other is faster: if W is feasible, so is :math:`(W + W^T) / 2`, whose norm is no larger.
    On a directed graph W cannot be symmetric, and ‖W - J‖₂ bounds what one step leaves, from
    above its eigenvalues.

    Graphs of at most ``EXACT`` ranks and edges are solved by a barrier method, to a gap of 1e-9
    to 1e-6; larger ones by an accelerated gradient method on a smoothed norm, from the largest
    singular vectors alone, to a gap of some percent, and never slower than by a simple rule. Either
    way the gap is computed, from a dual point (``Problem.bound``); for weights of any sign on large
    graphs with hubs that says little.

    Args:
        edges: A (strongly) connected graph.
        weights: "fastest_mixing" or "fastest_averaging".

    Raises:
        TopologyError: The graph is not (strongly) connected.

    Example:
        >>> from dectool import topology
        >>> t = topology.star(5, weights="fastest_mixing")
        >>> round(t.rho, 6), t.certified_gap < 1e-6
        (0.75, True)
        >>> directed = topology.exponential(32, weights="fastest_mixing")
        >>> round(directed.rho, 3), round(topology.exponential(32).rho, 3)
        (0.532, 0.667)

    References:
        S. Boyd, P. Diaconis, L. Xiao, Fastest mixing Markov chain on a graph, SIAM Review 46(4),
        2004; L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53, 2004.
    """
    _check(edges, weights)
    problem = _problem(edges, weights == "fastest_mixing")
    if edges.size == 1:
        return Weighed(problem.matrix(np.zeros(0)), 0.0)
    small = max(edges.size, problem.first.size) <= EXACT
    if small:
        w, bound = barrier(problem)
    else:
        # What is found without negative weights is a start for those of any sign.
        first = () if problem.mixing else (smooth(_problem(edges, True))[0],)
        w, bound = smooth(problem, *first)
    return Weighed(problem.matrix(w), bound)


def _problem(edges: Edges, mixing: bool) -> Problem:
    if edges.one_way is not None:
        return Directed(edges.size, edges.receivers, edges.senders, mixing)
    once = edges.receivers < edges.senders
    return Undirected(edges.size, edges.receivers[once], edges.senders[once], mixing)


def _check(edges: Edges, weights: str) -> None:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n = edges.size
    ones: Floats = np.ones(edges.receivers.size)
    links = sparse.coo_array((ones, (edges.receivers, edges.senders)), shape=(n, n))
    parts, label = connected_components(links.tocsr(), directed=True, connection="strong")
    if parts > 1:
        other = int(np.flatnonzero(label != label[0])[0])
        strongly = "" if edges.one_way is None else "strongly "
        raise TopologyError(
            f"weights={weights!r} needs a {strongly}connected graph, but ranks 0 and {other} are "
            f"in different ones of its {parts} parts; add edges, or weigh each part by itself"
        )
