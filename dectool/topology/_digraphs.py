"""Directed graphs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError
from dectool.topology._edges import count, directed, real
from dectool.topology._graphs import build
from dectool.topology._random import draw
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights


def directed_ring(n: int, *, weights: Weights = "uniform") -> Topology:
    r"""Return the ring in which rank i sends to i + 1 alone.

    With the default weights of 1/2, :math:`\rho = \cos(\pi/n)`.

    Args:
        n: Number of ranks, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n or the rule's name is wrong.
        TopologyError: The rule needs an undirected graph, and n > 2.

    Example:
        >>> directed_ring(4).out_neighbors(3), round(directed_ring(4).rho ** 2, 12)
        ((0,), 0.5)
    """
    n = count("n", n, 1)
    i = np.arange(n)
    return build(directed(n, i, (i + 1) % n), weights, f"directed ring of {n}")


def de_bruijn(n: int, degree: int = 2, *, weights: Weights | None = None) -> Topology:
    r"""Return the (generalized) de Bruijn graph: i sends to :math:`(d i + c) \bmod n`, c < d.

    Without ``weights``, :math:`W = A / d` with the counts A of these edges, loops included: doubly
    stochastic for every n. If n divides :math:`d^\tau`, then :math:`W^\tau = J` exactly: all
    eigenvalues but the first are 0, and yet :math:`\lVert W - J \rVert_2 = 1`, since some vectors
    wait :math:`\tau` steps. So ``rho`` is 1 where one step promises nothing.

    Args:
        n: Number of ranks, at least 1; :math:`d^\tau` for the de Bruijn graph proper.
        degree: Messages per rank and step d, at least 2.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}; loops are dropped.

    Raises:
        ArgumentError: n, degree or the rule's name is wrong.
        TopologyError: The rule needs an undirected graph.

    Example:
        >>> from dectool.topology import static
        >>> t = de_bruijn(8)
        >>> t.out_neighbors(3), t.out_neighbors(7), t.self_weight(7)
        ((6, 7), (6,), 0.5)
        >>> round(static(t).contraction(length=3), 12), round(t.rho, 12)
        (0.0, 1.0)

    References:
        M. Imase, M. Itoh, Design to minimize diameter on building-block network, IEEE Trans.
        Computers C-30(6), 1981. J.-C. Delvenne, R. Carli, S. Zampieri, Optimal strategies in the
        average consensus problem, Systems & Control Letters 58, 2009.
    """
    n, degree = count("n", n, 1), count("degree", degree, 2)
    senders = np.repeat(np.arange(n), degree)
    receivers = (senders * degree + np.tile(np.arange(degree), n)) % n
    name = f"de Bruijn graph of {n}, degree {degree}"
    if weights is not None:
        return build(directed(n, senders, receivers), weights, name)
    entries = np.full(receivers.size, 1.0 / degree)
    W = sparse.coo_array((entries, (receivers, senders)), shape=(n, n))
    return Topology(W, name=name, weights="counts")


def random_digraph(n: int, p: float, *, seed: int = 0, weights: Weights = "uniform") -> Topology:
    """Return a strongly connected random digraph: each ordered pair is an edge with probability p.

    Args:
        n: Number of ranks, at least 1.
        p: Probability of an edge, 0 to 1; well above ln(n)/n, draws are mostly connected.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: "uniform" (rows sum to 1), "uniform_push" (columns do), "sinkhorn" (both),
            function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n, p or the rule's name is wrong.
        TopologyError: None of 100 draws was strongly connected; or the rule needs an undirected
            graph.

    Example:
        >>> t = random_digraph(12, 0.4, weights="sinkhorn")
        >>> t.is_directed, t.is_doubly_stochastic
        (True, True)
    """
    import networkx as nx

    n, p = count("n", n, 1), real("p", p)
    if not 0 <= p <= 1:
        raise ArgumentError(f"p must be a probability between 0 and 1, got {p:g}")
    name = f"random digraph of {n} (p={p:g})"
    edges = draw(
        lambda s: nx.fast_gnp_random_graph(n, p, seed=s, directed=True),
        seed,
        name,
        f"use p well above ln(n)/n = {np.log(n) / n:.3g}, such as {min(1, 2 * np.log(n) / n):.2g}",
    )
    return build(edges, weights, name)
