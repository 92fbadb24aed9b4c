"""Random graphs, drawn by networkx until one is connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.errors import ArgumentError, TopologyError
from dectool.topology._edges import Edges, count, of_graph, real
from dectool.topology._graphs import DEFAULT, build
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights

if TYPE_CHECKING:
    import networkx as nx

DRAWS = 100
"""How often a random graph is drawn before giving up; draw k uses a seed derived from (seed, k)."""


def random_regular(n: int, degree: int, *, seed: int = 0, weights: Weights = DEFAULT) -> Topology:
    r"""Return a connected random graph in which every rank has ``degree`` neighbors.

    An expander with high probability: :math:`\rho \to (1 + 2\sqrt{d-1})/(d+1)` as n grows.

    Args:
        n: Number of ranks, at least 1; n * degree must be even.
        degree: Neighbors per rank d, 0 <= d < n.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: No such graph exists, or the rule's name is wrong.
        TopologyError: None of 100 draws was connected.

    Example:
        >>> random_regular(16, 3).max_degree
        3
    """
    import networkx as nx

    n, degree = count("n", n, 1), count("degree", degree, 0)
    if degree >= n:
        raise ArgumentError(f"degree must be below n, got degree={degree} with n={n}")
    if n * degree % 2:
        raise ArgumentError(
            f"n * degree must be even, got n={n} and degree={degree}: no such graph exists; "
            f"use degree={degree + 1 if degree + 1 < n else degree - 1} or n={n + 1}"
        )
    if degree < min(n - 1, 2):
        raise ArgumentError(
            f"degree={degree} cannot connect n={n} ranks; use degree=2 or more (3 for an expander)"
        )
    edges = draw(
        lambda s: nx.random_regular_graph(degree, n, seed=s),
        seed,
        f"random {degree}-regular graph of {n}",
        "use degree=3 or more, which is connected with high probability",
    )
    return build(edges, weights, f"random {degree}-regular graph of {n}")


def erdos_renyi(n: int, p: float, *, seed: int = 0, weights: Weights = DEFAULT) -> Topology:
    """Return a connected Erdős-Rényi graph: each pair is an edge with probability p.

    Args:
        n: Number of ranks, at least 1.
        p: Probability of an edge, 0 to 1; well above ln(n)/n, draws are mostly connected.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n, p or the rule's name is wrong.
        TopologyError: None of 100 draws was connected.

    Example:
        >>> erdos_renyi(16, 0.4, seed=1).is_connected
        True
    """
    import networkx as nx

    n, p = count("n", n, 1), real("p", p)
    if not 0 <= p <= 1:
        raise ArgumentError(f"p must be a probability between 0 and 1, got {p:g}")
    name = f"Erdos-Renyi graph of {n} (p={p:g})"
    edges = draw(
        lambda s: nx.fast_gnp_random_graph(n, p, seed=s),
        seed,
        name,
        f"use p well above ln(n)/n = {np.log(n) / n:.3g}, such as {min(1, 2 * np.log(n) / n):.2g}",
    )
    return build(edges, weights, name)


def geometric(n: int, radius: float, *, seed: int = 0, weights: Weights = DEFAULT) -> Topology:
    """Return a connected random geometric graph in the unit square, as of radios in a field.

    Args:
        n: Number of ranks, at least 1.
        radius: Ranks at most this far apart are neighbors (unit: side of the square), above 0.
        seed: Non-negative integer; the same seed gives the same graph.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n, radius or the rule's name is wrong.
        TopologyError: None of 100 draws was connected.

    Example:
        >>> geometric(16, 0.5).is_symmetric
        True
    """
    make, seed, name, fix = geometric_draw(count("n", n, 1), real("radius", radius), seed)
    return build(draw(make, seed, name, fix), weights, name)


def geometric_draw(
    n: int, radius: float, seed: int
) -> tuple[Callable[[int], nx.Graph[Any]], int, str, str]:
    """Return what ``draw`` takes for a random geometric graph, whose nodes have a "pos"."""
    import networkx as nx

    if not radius > 0:
        raise ArgumentError(f"radius must be above 0, got {radius:g}; the unit square has side 1")
    name = f"geometric graph of {n} (radius={radius:g})"
    threshold = np.sqrt(np.log(n) / (np.pi * n))
    fix = (
        f"use a radius well above sqrt(ln(n)/(pi n)) = {threshold:.3g}, such as "
        f"{1.5 * threshold:.2g}"
    )
    return lambda s: nx.random_geometric_graph(n, radius, seed=s), seed, name, fix


def draw(make: Callable[[int], nx.Graph[Any]], seed: int, name: str, fix: str) -> Edges:
    """Return the edges of ``draw_graph``."""
    return of_graph(draw_graph(make, seed, name, fix))


def draw_graph(
    make: Callable[[int], nx.Graph[Any]], seed: int, name: str, fix: str
) -> nx.Graph[Any]:
    """Return the first (strongly) connected one of ``DRAWS`` graphs."""
    import networkx as nx

    seed = count("seed", seed, 0)
    for attempt in range(DRAWS):
        graph = make(int(np.random.default_rng([seed, attempt]).integers(2**63)))
        if isinstance(graph, nx.DiGraph):
            connected = nx.is_strongly_connected(graph)
        else:
            connected = nx.is_connected(graph)
        if connected:
            return graph
    raise TopologyError(f"{name}: none of {DRAWS} draws from seed={seed} was connected; {fix}")
