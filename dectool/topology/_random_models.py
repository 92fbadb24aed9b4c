"""Random graphs with hubs, shortcuts or communities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._edges import count, real
from dectool.topology._graphs import DEFAULT, build
from dectool.topology._random import draw
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights


def barabasi_albert(n: int, m: int, *, seed: int = 0, weights: Weights = DEFAULT) -> Topology:
    """Return a Barabási-Albert graph: each new rank joins m others, more likely those with many.

    Args:
        n: Number of ranks, above m.
        m: Edges that each new rank brings, at least 1.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n, m or the rule's name is wrong.

    Example:
        >>> t = barabasi_albert(100, 2, seed=1)
        >>> t.edges.senders.size // 2, t.is_connected
        (196, True)

    References:
        A.-L. Barabási, R. Albert, Emergence of scaling in random networks, Science 286, 1999.
    """
    import networkx as nx

    n, m = count("n", n, 2), count("m", m, 1)
    if m >= n:
        raise ArgumentError(f"m must be below n, got m={m} with n={n}")
    name = f"Barabasi-Albert graph of {n} (m={m})"
    edges = draw(lambda s: nx.barabasi_albert_graph(n, m, seed=s), seed, name, "use another seed")
    return build(edges, weights, name)


def watts_strogatz(
    n: int, neighbors: int, p: float, *, seed: int = 0, weights: Weights = DEFAULT
) -> Topology:
    """Return a connected Watts-Strogatz graph: a ring lattice with some edges moved at random.

    Args:
        n: Number of ranks, at least 3.
        neighbors: Nearest ranks on the ring that each rank is joined to, even, 2 to n - 1.
        p: Probability that an edge is moved, 0 to 1.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: An argument or the rule's name is wrong.
        TopologyError: None of 100 draws was connected.

    Example:
        >>> watts_strogatz(20, 4, 0.1).edges.senders.size // 2
        40

    References:
        D. Watts, S. Strogatz, Collective dynamics of "small-world" networks, Nature 393, 1998.
    """
    import networkx as nx

    n, neighbors, p = count("n", n, 3), count("neighbors", neighbors, 2), real("p", p)
    if neighbors % 2 or neighbors >= n:
        raise ArgumentError(
            f"neighbors must be even and below n, got neighbors={neighbors} with n={n}; half of "
            "them are on each side"
        )
    if not 0 <= p <= 1:
        raise ArgumentError(f"p must be a probability between 0 and 1, got {p:g}")
    name = f"Watts-Strogatz graph of {n} (neighbors={neighbors}, p={p:g})"
    edges = draw(
        lambda s: nx.watts_strogatz_graph(n, neighbors, p, seed=s),
        seed,
        name,
        "use neighbors=4 or more, or a smaller p",
    )
    return build(edges, weights, name)


def stochastic_block(
    sizes: Sequence[int],
    p_in: float,
    p_out: float,
    *,
    seed: int = 0,
    weights: Weights = DEFAULT,
) -> Topology:
    """Return a connected stochastic block graph: communities with denser edges inside.

    Args:
        sizes: Ranks of each community, each at least 1; ranks are numbered community by community.
        p_in: Probability of an edge inside a community, 0 to 1.
        p_out: Probability of an edge between communities, 0 to 1.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: An argument or the rule's name is wrong.
        TopologyError: None of 100 draws was connected.

    Example:
        >>> stochastic_block([8, 8], 0.8, 0.1).name
        'stochastic block graph of 8 + 8 (p_in=0.8, p_out=0.1)'

    References:
        P. Holland, K. Laskey, S. Leinhardt, Stochastic blockmodels: first steps, Social Networks
        5, 1983.
    """
    import networkx as nx

    sizes = [count(f"sizes[{b}]", size, 1) for b, size in enumerate(sizes)]
    if not sizes:
        raise ArgumentError("sizes must name at least 1 community, got none")
    inside, between = real("p_in", p_in), real("p_out", p_out)
    for what, p in (("p_in", inside), ("p_out", between)):
        if not 0 <= p <= 1:
            raise ArgumentError(f"{what} must be a probability between 0 and 1, got {p:g}")
    chances = np.full((len(sizes), len(sizes)), between)
    np.fill_diagonal(chances, inside)
    blocks = " + ".join(map(str, sizes)) if len(sizes) <= 4 else f"{len(sizes)} communities"
    name = f"stochastic block graph of {blocks} (p_in={inside:g}, p_out={between:g})"
    edges = draw(
        lambda s: nx.stochastic_block_model(sizes, chances.tolist(), seed=s),
        seed,
        name,
        "raise p_in or p_out",
    )
    return build(edges, weights, name)
