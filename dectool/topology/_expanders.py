"""Graphs of constant degree whose gap stays away from 0 as they grow."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, TopologyError
from dectool.topology._convert import undirected_base
from dectool.topology._edges import count, of_graph, undirected
from dectool.topology._graphs import DEFAULT, build
from dectool.topology._random import DRAWS
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights

if TYPE_CHECKING:
    import networkx as nx


def margulis(side: int, *, weights: Weights | None = None) -> Topology:
    r"""Return the Margulis-Gabber-Galil expander of side² ranks; rank side * x + y sits at (x, y).

    (x, y) is joined to (x ± 2y, y), (x ± (2y + 1), y), (x, y ± 2x) and (x, y ± (2x + 1)), all mod
    side. Without ``weights``, :math:`W = A/8` with the counts A of these edges, loops included:
    then :math:`\lambda_2 \le 5\sqrt2/8 \approx 0.884`, whatever the size.

    Args:
        side: Ranks on a side, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}; loops and repeated
            edges are dropped.

    Raises:
        ArgumentError: The side or the rule's name is wrong.

    Example:
        >>> t = margulis(8)
        >>> t.size, t.is_doubly_stochastic, t.lambda_2 < 5 * 2**0.5 / 8
        (64, True, True)

    References:
        O. Gabber, Z. Galil, Explicit constructions of linear-sized superconcentrators, J. Computer
        and System Sciences 22(3), 1981.
    """
    import networkx as nx

    side = count("side", side, 1)
    name = f"Margulis expander of {side * side}"
    graph = nx.margulis_gabber_galil_graph(side)
    index = {place: place[0] * side + place[1] for place in graph}
    if weights is not None:
        return build(of_graph(nx.Graph(graph), index), weights, name)
    counted = Counter((index[u], index[v]) for u, v in graph.edges())
    # An edge that networkx lists once is two entries, as is a loop, which has two ends.
    entries = np.array([(i, j, c) for (i, j), c in counted.items()])
    half = sparse.coo_array((entries[:, 2] / 8, entries[:, :2].T), shape=(side**2, side**2))
    return Topology(half + half.T, name=name, weights="counts")


def paley(p: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the Paley graph: ranks are joined if their difference is a square modulo p.

    Each rank has (p - 1)/2 neighbors, and the other eigenvalues of its adjacency matrix are
    :math:`(-1 \pm \sqrt p)/2`. So :math:`\rho = (1 + \sqrt p)/(p + 1)` with the default weights.

    Args:
        p: Number of ranks, a prime that is 1 modulo 4.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: p is no such prime, or the rule's name is wrong.

    Example:
        >>> paley(13).in_neighbors(0)
        (1, 3, 4, 9, 10, 12)

    References:
        P. Erdős, A. Rényi, Asymmetric graphs, Acta Math. Hungar. 14, 1963.
    """
    p = count("p", p, 5)
    if p % 4 != 1 or any(p % d == 0 for d in range(3, int(p**0.5) + 1, 2)):
        raise ArgumentError(f"p must be a prime that is 1 modulo 4, such as 13, 17 or 29; got {p}")
    squares = np.unique(np.arange(1, p, dtype=np.int64) ** 2 % p)
    ranks = np.repeat(np.arange(p), squares.size)
    return build(
        undirected(p, ranks, (ranks + np.tile(squares, p)) % p), weights, f"Paley graph of {p}"
    )


def random_lift(
    graph: nx.Graph[Any] | Topology, copies: int, *, seed: int = 0, weights: Weights = DEFAULT
) -> Topology:
    r"""Return a connected random lift: copies of a graph whose edges are crossed at random.

    Rank i of the graph becomes ranks i * copies to (i + 1) * copies - 1, and each edge {i, j} a
    random one-to-one pairing of i's copies with j's. Degrees stay, old eigenvalues stay, and the
    new ones are, with high probability, hardly above those of the infinite tree: for degree d,
    :math:`2\sqrt{d-1} + o(1)`.

    Args:
        graph: Connected undirected networkx graph, or Topology.
        copies: Copies of each rank, at least 1.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: An argument or the rule's name is wrong.
        TopologyError: The graph is directed or not connected, or no draw was connected.

    Example:
        >>> from dectool import topology
        >>> t = random_lift(topology.complete(4), 16)
        >>> t.name, t.size, t.max_degree
        ('lift of complete graph of 4, 16 copies', 64, 3)

    References:
        J. Friedman, Relative expanders or weakly relatively Ramanujan graphs, Duke Math. J.
        118(1), 2003. C. Bordenave, B. Collins, Eigenvalues of random lifts and polynomials of
        random permutation matrices, Annals of Mathematics 190(3), 2019.
    """
    from scipy.sparse.csgraph import connected_components

    base = undirected_base(graph, "random_lift")
    copies, seed = count("copies", copies, 1), count("seed", seed, 0)
    once = base.edges.receivers < base.edges.senders
    low, high = base.edges.receivers[once], base.edges.senders[once]
    size, own = base.size * copies, np.arange(copies)
    name = f"lift of {base.name}, {copies} copies"
    for attempt in range(DRAWS):
        rng = np.random.default_rng([seed, attempt])
        crossed = np.array([rng.permutation(copies) for _ in low], dtype=np.int64).ravel()
        first = np.repeat(low * copies, copies) + np.tile(own, low.size)
        edges = undirected(size, first, np.repeat(high * copies, copies) + crossed)
        joined = sparse.coo_array(
            (np.ones(edges.senders.size), (edges.receivers, edges.senders)), shape=(size, size)
        )
        number, _ = connected_components(joined)
        if number == 1:
            return build(edges, weights, name)
    raise TopologyError(
        f"{name}: none of {DRAWS} draws from seed={seed} was connected; use a graph with two or "
        "more circuits: lifts of a tree fall apart, and those of a ring mostly do"
    )
