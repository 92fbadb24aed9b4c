"""Constructors of fixed graphs. Each edge is made once, however small or wrapped the graph."""

from __future__ import annotations

import numpy as np

from dectool.topology._edges import Edges, count, directed, to_graph, undirected
from dectool.topology._fastest import weigh_whole
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights

DEFAULT = "metropolis_hastings"


def build(edges: Edges, weights: Weights, name: str) -> Topology:
    """Return the topology of ``edges``, weighted by rule, function or mapping."""
    W, bound = weigh_whole(edges, weights, lambda: to_graph(edges))
    rule = weights if isinstance(weights, str) else "given"
    return Topology(W, name=name, weights=rule, rho_bound=bound)


def ring(n: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the undirected ring of n ranks; for n = 2, that is one edge.

    With the default weights of 1/3, :math:`\rho = \frac13 + \frac23 \cos(2\pi/n)` for n >= 3.

    Args:
        n: Number of ranks, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.

    Example:
        >>> ring(8)
        <Topology: ring of 8, 8 edges, metropolis_hastings, doubly stochastic>
        >>> round(ring(8).rho, 6)
        0.804738
    """
    n = count("n", n, 1)
    i = np.arange(n)
    return build(undirected(n, i, (i + 1) % n), weights, f"ring of {n}")


def path(n: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the path 0 - 1 - ... - (n-1).

    With the default weights, :math:`\rho = \frac13 + \frac23 \cos(\pi/n)` for n >= 3.

    Args:
        n: Number of ranks, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.

    Example:
        >>> path(8, weights="max_degree").in_neighbors(0)
        (1,)
    """
    n = count("n", n, 1)
    i = np.arange(n - 1)
    return build(undirected(n, i, i + 1), weights, f"path of {n}")


def star(n: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the star whose hub is rank 0; with the default weights, :math:`\rho = 1 - 1/n`.

    Args:
        n: Number of ranks, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.

    Example:
        >>> star(4).rho
        0.75
    """
    n = count("n", n, 1)
    leaves = np.arange(1, n)
    return build(undirected(n, np.zeros_like(leaves), leaves), weights, f"star of {n}")


def complete(n: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the complete graph; with the default weights, W = J and :math:`\rho = 0`.

    Args:
        n: Number of ranks, at least 1. W then has n² entries.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.

    Example:
        >>> complete(4).weight(1, 2)
        0.25
    """
    n = count("n", n, 1)
    i, j = np.triu_indices(n, k=1)
    return build(undirected(n, i, j), weights, f"complete graph of {n}")


def grid(rows: int, cols: int, *, weights: Weights = DEFAULT) -> Topology:
    """Return the 2-D grid without wrap-around; rank r * cols + c sits at (r, c).

    Args:
        rows: Number of rows, at least 1.
        cols: Number of columns, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: A side or the rule's name is wrong.

    Example:
        >>> grid(4, 4).in_neighbors(5)
        (1, 4, 6, 9)
    """
    rows, cols = count("rows", rows, 1), count("cols", cols, 1)
    place = np.arange(rows * cols).reshape(rows, cols)
    first = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    second = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    return build(undirected(rows * cols, first, second), weights, f"{rows} x {cols} grid")


def torus(rows: int, cols: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the 2-D torus; rank r * cols + c sits at (r, c).

    Sides of 2 wrap onto the same edge, which is made once: torus(2, 2) is a ring of 4. A square
    torus of side m >= 3 has :math:`\rho = \frac35 + \frac25 \cos(2\pi/m)`, or 3/5 if that is more
    and m is even.

    Args:
        rows: Number of rows, at least 1; torus(1, n) is a ring.
        cols: Number of columns, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: A side or the rule's name is wrong.

    Example:
        >>> torus(4, 4).in_neighbors(0)
        (1, 3, 4, 12)
    """
    rows, cols = count("rows", rows, 1), count("cols", cols, 1)
    place = np.arange(rows * cols).reshape(rows, cols)
    both = np.concatenate([place.ravel(), place.ravel()])
    wrapped = np.concatenate(
        [np.roll(place, -1, axis=1).ravel(), np.roll(place, -1, axis=0).ravel()]
    )
    return build(undirected(rows * cols, both, wrapped), weights, f"{rows} x {cols} torus")


def hypercube(dimension: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the hypercube of 2^dimension ranks, neighbors differing in one bit.

    With the default weights, :math:`\rho = (d - 1)/(d + 1)`, d the dimension.

    Args:
        dimension: Number of bits d, at least 0.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: The dimension or the rule's name is wrong.

    Example:
        >>> hypercube(4).in_neighbors(0)
        (1, 2, 4, 8)
    """
    dimension = count("dimension", dimension, 0)
    n = 1 << dimension
    i = np.tile(np.arange(n), dimension)
    flipped = i ^ np.repeat(1 << np.arange(dimension), n)
    return build(undirected(n, i, flipped), weights, f"hypercube of {n}")


def exponential(n: int, *, weights: Weights = "uniform") -> Topology:
    r"""Return the static exponential graph: i sends to i + 2^j (mod n) for every 2^j < n.

    Directed and circulant. With :math:`\tau = \lceil\log_2 n\rceil` offsets and the default
    weights :math:`1/(\tau+1)`, :math:`\rho = (\tau-1)/(\tau+1)` for even n, and less for odd n.

    Args:
        n: Number of ranks, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.
        TopologyError: The rule needs an undirected graph.

    Example:
        >>> exponential(16).out_neighbors(0)
        (1, 2, 4, 8)

    References:
        B. Ying et al., Exponential graph is provably efficient for decentralized deep training,
        NeurIPS 2021.
    """
    n = count("n", n, 1)
    tau = (n - 1).bit_length()
    i = np.tile(np.arange(n), tau)
    onward = (i + np.repeat(1 << np.arange(tau), n)) % n
    return build(directed(n, i, onward), weights, f"exponential graph of {n}")
