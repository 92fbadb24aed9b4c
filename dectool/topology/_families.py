"""More fixed graphs, from the generators of networkx."""

from __future__ import annotations

from dectool._text import nearest
from dectool.errors import ArgumentError
from dectool.topology._convert import from_graph
from dectool.topology._edges import count, of_graph
from dectool.topology._graphs import DEFAULT, build
from dectool.topology._topology import Topology
from dectool.topology._weights import Weights

NAMED: tuple[str, ...] = (
    *("bull", "chvatal", "cubical", "davis_southern_women", "desargues", "diamond"),
    *("dodecahedral", "florentine_families", "frucht", "heawood", "hoffman_singleton", "house"),
    *("house_x", "icosahedral", "karate_club", "krackhardt_kite", "les_miserables"),
    *("moebius_kantor", "octahedral", "pappus", "petersen", "sedgewick_maze", "tetrahedral"),
    *("truncated_cube", "truncated_tetrahedron", "tutte"),
)
"""Names that ``named`` knows."""


def named(name: str, *, weights: Weights = DEFAULT) -> Topology:
    """Return a graph of the literature by its name, such as "petersen" or "karate_club".

    Ranks follow the order of the nodes in networkx, whose labels stay in ``.labels``. Edge
    attributes, such as the weights of the karate club, are ignored.

    Args:
        name: One of ``NAMED``.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: The graph's or the rule's name is unknown.

    Example:
        >>> named("petersen")
        <Topology: petersen graph, 15 edges, metropolis_hastings, doubly stochastic>
        >>> round(named("petersen").rho, 12), named("karate_club").size
        (0.5, 34)

    References:
        A. Hagberg, D. Schult, P. Swart, Exploring network structure, dynamics, and function using
        NetworkX, SciPy 2008; each generator there names its source.
    """
    import networkx as nx

    if name not in NAMED:
        raise ArgumentError(f"named graph {name!r} is unknown; {nearest(str(name), NAMED)}")
    graph = getattr(nx, f"{name}_graph")()
    return from_graph(graph, weights=weights, name=f"{name.replace('_', ' ')} graph")


def petersen(*, weights: Weights = DEFAULT) -> Topology:
    r"""Return the Petersen graph: 10 ranks of 3 neighbors, any two with one path of length <= 2.

    Its adjacency matrix has the eigenvalues 3, 1 and -2, so :math:`\rho = 1/2` with the default
    weights, and 3/7 with "best_constant".

    Args:
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: The rule's name is unknown.

    Example:
        >>> petersen(weights="best_constant").rho * 7
        3.0
    """
    return named("petersen", weights=weights)


def complete_bipartite(first: int, second: int, *, weights: Weights = DEFAULT) -> Topology:
    r"""Return the complete bipartite graph: each of the ``first`` ranks hears all of the others.

    With m on both sides and "best_constant" weights, :math:`\rho = 1/3`.

    Args:
        first: Ranks 0 to first - 1, at least 1.
        second: Ranks first to first + second - 1, at least 1.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: A size or the rule's name is wrong.

    Example:
        >>> complete_bipartite(2, 3).in_neighbors(0)
        (2, 3, 4)
    """
    import networkx as nx

    first, second = count("first", first, 1), count("second", second, 1)
    graph = nx.complete_bipartite_graph(first, second)
    name = f"complete bipartite graph of {first} and {second}"
    return build(of_graph(graph), weights, name)


def barbell(clique: int, between: int = 0, *, weights: Weights = DEFAULT) -> Topology:
    """Return two complete graphs joined by a path: the textbook bottleneck.

    Args:
        clique: Ranks of each complete graph, at least 2.
        between: Ranks on the path that joins them, at least 0.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: A size or the rule's name is wrong.

    Example:
        >>> barbell(4, 1).size, barbell(4, 1).in_neighbors(4)
        (9, (3, 5))
    """
    import networkx as nx

    clique, between = count("clique", clique, 2), count("between", between, 0)
    graph = nx.barbell_graph(clique, between)
    return build(of_graph(graph), weights, f"barbell of 2 x {clique} and {between} between")


def tree(n: int, branching: int = 2, *, weights: Weights = DEFAULT) -> Topology:
    """Return the full tree in which every rank has up to ``branching`` children; 0 is the root.

    Args:
        n: Number of ranks, at least 1.
        branching: Children per rank b, at least 1; rank i hangs on rank (i - 1) // b.
        weights: Rule name, function of the graph, or mapping {(i, j): W_ij}.

    Raises:
        ArgumentError: n, branching or the rule's name is wrong.

    Example:
        >>> tree(7).in_neighbors(1)
        (0, 3, 4)
    """
    import networkx as nx

    n, branching = count("n", n, 1), count("branching", branching, 1)
    graph = nx.full_rary_tree(branching, n)
    return build(of_graph(graph), weights, f"{branching}-ary tree of {n}")
