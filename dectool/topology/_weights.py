"""Rules that turn a graph into a mixing matrix.

Two conventions of "Metropolis-Hastings" (and of "maximum degree") are in print: with d_i the
number of neighbors, optimisation papers divide by 1 + max(d_i, d_j), Boyd, Diaconis and Xiao by
max(d_i, d_j). The second reaches ρ = 1 on even rings; so it bears their name, and the first is
the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from dectool._text import nearest
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._edges import Edges, Floats, Matrix
from dectool.topology._sinkhorn import sinkhorn
from dectool.topology._validation import as_csr, check_support, row_sums

if TYPE_CHECKING:
    import networkx as nx

Weights: TypeAlias = "str | Callable[[nx.Graph[Any]], Any] | Mapping[tuple[int, int], float]"
"""A rule's name, a function of the graph that returns a matrix, or a mapping {(i, j): W_ij}."""


def metropolis_hastings(edges: Edges) -> Matrix:
    """W_ij = 1/(1 + max(d_i, d_j)). Shi, Ling, Wu & Yin, SIAM J. Optim. 25(2), 2015, sec. 2.4."""
    return fill(edges, 1.0 / (1 + _larger_degree(edges)))


def metropolis_hastings_boyd(edges: Edges) -> Matrix:
    """W_ij = 1/max(d_i, d_j). Boyd, Diaconis & Xiao, SIAM Rev. 46(4), 2004."""
    return fill(edges, 1.0 / _larger_degree(edges))


def max_degree(edges: Edges) -> Matrix:
    """W_ij = 1/(1 + d_max). Xiao & Boyd, Systems & Control Letters 53, 2004, sec. 4.1."""
    return _constant(edges, 1.0 / (1 + edges.in_degrees.max()))


def max_degree_boyd(edges: Edges) -> Matrix:
    """W_ij = 1/d_max. Boyd, Diaconis & Xiao, SIAM Rev. 46(4), 2004."""
    return _constant(edges, 1.0 / max(1, edges.in_degrees.max()))


def best_constant(edges: Edges) -> Matrix:
    """W_ij = 2/(l_2 + l_n), l the Laplacian's eigenvalues. Xiao & Boyd 2004, sec. 4.1.

    The fastest weights that are equal on every edge; self-weights may be negative.
    """
    if edges.receivers.size == 0:
        return max_degree(edges)
    base, scale = max_degree(edges), 1.0 + edges.in_degrees.max()
    l_2 = scale * (1.0 - _spectrum.second_largest(base))
    l_n = scale * (1.0 - _spectrum.smallest(base))
    return _constant(edges, 2.0 / (l_2 + l_n))


def lazy(edges: Edges) -> Matrix:
    """W = (I + W_MH)/2: eigenvalues (1 + λ)/2, none of them negative."""
    return fill(edges, 0.5 / (1 + _larger_degree(edges)))


def uniform(edges: Edges) -> Matrix:
    """W_ij = 1/(1 + in-degree of i): each rank averages what it hears; rows sum to 1."""
    return fill(edges, 1.0 / (1 + edges.in_degrees[edges.receivers]))


def uniform_push(edges: Edges) -> Matrix:
    """W_ij = 1/(1 + out-degree of j): each rank splits its mass evenly; columns sum to 1.

    Kempe, Dobra & Gehrke, FOCS 2003.
    """
    turned = Edges(edges.size, receivers=edges.senders, senders=edges.receivers)
    matrix: Matrix = uniform(turned).T.tocsr()
    return matrix


_SYMMETRIC: dict[str, Callable[[Edges], Matrix]] = {
    "metropolis_hastings": metropolis_hastings,
    "metropolis_hastings_boyd": metropolis_hastings_boyd,
    "max_degree": max_degree,
    "max_degree_boyd": max_degree_boyd,
    "best_constant": best_constant,
    "lazy": lazy,
}
_ANY: dict[str, Callable[[Edges], Matrix]] = {
    "uniform": uniform,
    "uniform_push": uniform_push,
    "sinkhorn": sinkhorn,
}
WEIGHTS: tuple[str, ...] = (*_SYMMETRIC, *_ANY)
"""Names of the weight rules."""
FASTEST: tuple[str, ...] = ("fastest_mixing", "fastest_averaging")
"""Names of the optimal rules, which look at the whole graph."""


def weigh(edges: Edges, weights: Weights, graph: Callable[[], nx.Graph[Any]]) -> Matrix:
    """Return the mixing matrix that ``weights`` describes; ``graph()`` feeds a callable."""
    if isinstance(weights, str):
        return _rule(weights, edges)(edges)
    if isinstance(weights, Mapping):
        matrix = _from_mapping(edges, weights)
    elif callable(weights):
        matrix = as_csr(weights(graph()))
    else:
        raise ArgumentTypeError(
            "weights must be a name, a function of the graph or a mapping {(i, j): weight}, "
            f"got {type(weights).__name__}; for a matrix use topology.from_matrix(W, graph)"
        )
    check_support(matrix, edges)
    return matrix


def fill(edges: Edges, values: Floats) -> Matrix:
    """Return W with ``values`` on the edges and 1 - (row sum) on the diagonal."""
    ranks = np.arange(edges.size)
    shape = (edges.size, edges.size)
    off: Matrix = sparse.coo_array((values, (edges.receivers, edges.senders)), shape=shape).tocsr()
    diagonal = 1.0 - row_sums(off)
    # A residue of rounding is no self-weight: 6 * (1/6) adds up to 1 - 1e-16.
    diagonal[np.abs(diagonal) < 1e-14] = 0.0
    kept = np.flatnonzero(diagonal)
    data = np.concatenate([values, diagonal[kept]])
    rows = np.concatenate([edges.receivers, ranks[kept]])
    columns = np.concatenate([edges.senders, ranks[kept]])
    matrix: Matrix = sparse.coo_array((data, (rows, columns)), shape=shape).tocsr()
    return matrix


def _constant(edges: Edges, value: float) -> Matrix:
    return fill(edges, np.full(edges.receivers.size, value))


def _larger_degree(edges: Edges) -> Floats:
    degrees = edges.in_degrees.astype(np.float64)
    return np.maximum(degrees[edges.receivers], degrees[edges.senders])


def _rule(name: str, edges: Edges) -> Callable[[Edges], Matrix]:
    """Look a rule up; refuse one that needs an undirected graph on a directed one."""
    if name in _ANY:
        return _ANY[name]
    if name in FASTEST:
        raise ArgumentError(
            f"weights={name!r} is for one whole graph, not for the parts of a schedule; weigh "
            f"those with one of {', '.join(WEIGHTS)}"
        )
    if name not in _SYMMETRIC:
        known = (*WEIGHTS, *FASTEST)
        raise ArgumentError(f"weights={name!r} is unknown; {nearest(name, known)}")
    if edges.one_way is not None:
        sender, receiver = edges.one_way
        raise TopologyError(
            f"weights={name!r} needs an undirected graph, but the edge {sender} -> {receiver} has "
            "no reverse; use weights='uniform' (rows sum to 1), 'uniform_push' (columns sum to 1), "
            "'sinkhorn' (both do), or graph.to_undirected()"
        )
    return _SYMMETRIC[name]


def _from_mapping(edges: Edges, weights: Mapping[tuple[int, int], float]) -> Matrix:
    """Return W with W[i, j] = weights[i, j]; a missing self-weight is 1 - (row sum)."""
    n = edges.size
    for key in weights:
        if not _is_entry(key, n):
            raise ArgumentError(
                f"weights has the key {key!r}; each key must be (i, j), receiver and sender, "
                f"with ranks 0 to {n - 1}"
            )
    values = np.array([_number(key, value) for key, value in weights.items()])
    rows, columns = np.array(list(weights), dtype=np.int64).reshape(-1, 2).T
    given: Matrix = sparse.coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
    missing = np.setdiff1d(np.arange(n), rows[rows == columns])
    diagonal = np.zeros(n)
    diagonal[missing] = 1.0 - row_sums(given)[missing]
    return as_csr(given + sparse.diags_array(diagonal))


def _number(key: tuple[int, int], value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"weights[{key[0]}, {key[1]}] must be a number, got {value!r} ({type(value).__name__})"
        ) from None


def _is_entry(key: Any, n: int) -> bool:
    """Say whether a mapping's key is a pair of ranks."""
    return (
        isinstance(key, tuple)
        and len(key) == 2
        and all(isinstance(part, int | np.integer) and 0 <= part < n for part in key)
    )
