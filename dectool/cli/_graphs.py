"""Text forms of topologies: ``torus:4x4``, ``erdos_renyi:0.3,seed=1``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dectool import topology as graphs
from dectool.cli._forms import Convert, Form, made, plain, real, whole, yes_or_no
from dectool.errors import ArgumentError

Graph = graphs.Topology | graphs.Schedule


def topology(text: str, n: int | None, *, weights: str | None = None, default: int = 16) -> Graph:
    """Return the topology of a text.

    Args:
        text: Such as "ring", "torus:4x4", "erdos_renyi:0.3,seed=1".
        n: Number of ranks, if it was given.
        weights: Rule of the weights; ``weights=`` in the text goes before.
        default: Number of ranks where neither ``n`` nor the text says one.

    Raises:
        ArgumentError: The text is no topology, does not fit ``n``, or has weights of its own.
        TopologyError: There is no such topology of that size.

    Example:
        >>> topology("torus:2x4", None), topology("star", 8).name
        (<Topology: 2 x 4 torus, 12 edges, metropolis_hastings, doubly stochastic>, 'star of 8')
    """
    if weights is not None and _has_own_weights(text):
        raise ArgumentError(
            f"topology {text!r} has weights of its own, so weights={weights!r} would change "
            "nothing; leave them out"
        )
    context = {"n": default if n is None else n, "weights": weights}
    graph: Graph = made("topology", text, TOPOLOGIES, context)
    if n is not None and graph.size != n:
        raise ArgumentError(
            f"topology {text!r} has {graph.size} ranks, but n={n}; leave one of them out"
        )
    return graph


def takes_weights(text: str) -> bool:
    """Return whether a topology has the weights it is given, and not its own.

    Example:
        >>> takes_weights("ring"), takes_weights("base_k:2"), takes_weights("star:weights=uniform")
        (True, False, False)
    """
    name, _, rest = text.partition(":")
    known = plain(name) in TOPOLOGIES
    return known and not _has_own_weights(text) and "weights=" not in rest


def _has_own_weights(text: str) -> bool:
    """Return whether nobody chooses the weights of a topology."""
    form = TOPOLOGIES.get(plain(text.partition(":")[0]))
    return form is not None and "weights" not in form.context


def _sides(text: str) -> tuple[int, int]:
    rows, by, columns = text.lower().partition("x")
    if not (by and rows.isdecimal() and columns.isdecimal()):
        raise ArgumentError(f"{text!r} must be ROWSxCOLUMNS")
    return int(rows), int(columns)


def _of_size(make: Callable[..., Graph]) -> Callable[..., Graph]:
    def build(n: int, weights: str | None, **own: Any) -> Graph:
        return make(n, **own) if weights is None else make(n, weights=weights, **own)

    return build


def _of_sides(make: Callable[..., Graph]) -> Callable[..., Graph]:
    def build(n: int, weights: str | None, sides: tuple[int, int] | None = None) -> Graph:
        rows, columns = _most_square(n) if sides is None else sides
        return _of_size(lambda r, **own: make(r, columns, **own))(rows, weights)

    return build


def _most_square(n: int) -> tuple[int, int]:
    rows = next((r for r in range(math.isqrt(max(n, 1)), 0, -1) if n % r == 0), 1)
    return rows, n // rows


def _hypercube(n: int, weights: str | None, dimension: int | None = None) -> Graph:
    if dimension is None:
        dimension = max(n, 1).bit_length() - 1
        if n != 1 << dimension:
            raise ArgumentError(
                f"a hypercube has 2^d ranks, but n={n}; use {1 << dimension} or {2 << dimension}"
            )
    return _of_size(graphs.hypercube)(dimension, weights)


def _dimension(n: int) -> Graph:
    dimension = max(n, 1).bit_length() - 1
    if n != 1 << dimension:
        raise ArgumentError(
            f"a hypercube has 2^d ranks, but n={n}; use {1 << dimension} or {2 << dimension}, or "
            "base_k, which takes any n"
        )
    return graphs.one_peer_hypercube(dimension)


def _on_graph(make: Callable[..., Graph], *, copies: bool = False) -> Callable[..., Graph]:
    """Return what makes a topology from one whose text is the parameter ``graph``."""

    def build(n: int, graph: str, **own: Any) -> Graph:
        size = n // max(1, own["copies"]) if copies else n
        base = topology(graph, None, default=size)
        if not isinstance(base, graphs.Topology):
            raise ArgumentError(f"it needs a fixed graph, but {graph} changes")
        if own.get("weights", "") is None:
            del own["weights"]
        return make(base, **own)

    return build


def _levels(make: Callable[..., Graph]) -> Callable[..., Graph]:
    def build(n: int, sides: tuple[int, int] | None = None) -> Graph:
        return make(*(_most_square(n) if sides is None else sides))

    return build


def _blocks(n: int, weights: str | None, blocks: int = 2, **own: Any) -> Graph:
    sizes = [n * (b + 1) // blocks - n * b // blocks for b in range(max(1, blocks))]
    return _of_size(graphs.stochastic_block)(sizes, weights, **own)


def _square(n: int, weights: str | None, side: int | None = None) -> Graph:
    side = math.isqrt(max(n, 1)) if side is None else side
    return _of_size(graphs.margulis)(side, weights)


def _first(make: Callable[..., Graph], name: str) -> Callable[..., Graph]:
    """Return what makes a topology whose size follows from its own first parameter."""

    def build(weights: str | None, **own: Any) -> Graph:
        return _of_size(make)(own.pop(name), weights, **own)

    return build


def _graph(make: Callable[..., Graph], example: str, *required: str, **parameters: Convert) -> Form:
    read: dict[str, Convert] = {**parameters, "weights": str}
    return Form(make, read, example, required, ("n", "weights"))


def _on_edges(
    make: Callable[..., Graph], example: str, *required: str, **parameters: Convert
) -> Form:
    """Return the form of what takes the edges of a graph, and no weights."""
    read: dict[str, Convert] = {"graph": str, **parameters}
    return Form(_on_graph(make), read, example, ("graph", *required), ("n",))


TOPOLOGIES: dict[str, Form] = {
    "ring": _graph(_of_size(graphs.ring), "ring"),
    "path": _graph(_of_size(graphs.path), "path"),
    "star": _graph(_of_size(graphs.star), "star"),
    "complete": _graph(_of_size(graphs.complete), "complete"),
    "grid": _graph(_of_sides(graphs.grid), "grid:4x4", sides=_sides),
    "torus": _graph(_of_sides(graphs.torus), "torus:4x4", sides=_sides),
    "hypercube": _graph(_hypercube, "hypercube:4", dimension=whole),
    "exponential": _graph(_of_size(graphs.exponential), "exponential"),
    "random_regular": _graph(
        _of_size(graphs.random_regular),
        "random_regular:4,seed=1",
        "degree",
        degree=whole,
        seed=whole,
    ),
    "erdos_renyi": _graph(
        _of_size(graphs.erdos_renyi), "erdos_renyi:0.3,seed=1", "p", p=real, seed=whole
    ),
    "geometric": _graph(
        _of_size(graphs.geometric), "geometric:0.4,seed=1", "radius", radius=real, seed=whole
    ),
    "one_peer_exponential": Form(
        graphs.one_peer_exponential,
        {"symmetric": yes_or_no},
        "one_peer_exponential:symmetric=true",
        context=("n",),
    ),
    "random_one_peer": Form(
        graphs.random_one_peer,
        {"symmetric": yes_or_no, "seed": whole},
        "random_one_peer:symmetric=true",
        context=("n",),
    ),
    "one_peer_hypercube": Form(_dimension, {}, "one_peer_hypercube", context=("n",)),
    "alternating_ring": Form(graphs.alternating_ring, {}, "alternating_ring", context=("n",)),
    "shift_one": Form(graphs.shift_one, {}, "shift_one", context=("n",)),
    "base_k": Form(graphs.base_k, {"k": whole}, "base_k:2", context=("n",)),
    "simple_base_k": Form(graphs.simple_base_k, {"k": whole}, "simple_base_k:2", context=("n",)),
    "hyper_hypercube": Form(graphs.hyper_hypercube, {"k": whole}, "hyper_hypercube:3", (), ("n",)),
    "inner_outer_ring": Form(
        _levels(graphs.inner_outer_ring), {"sides": _sides}, "inner_outer_ring:4x4", (), ("n",)
    ),
    "inner_outer_exponential": Form(
        _levels(graphs.inner_outer_exponential),
        {"sides": _sides},
        "inner_outer_exponential:4x4",
        context=("n",),
    ),
    "equistatic": Form(
        graphs.equistatic,
        {"degree": whole, "directed": yes_or_no, "seed": whole},
        "equistatic:4,directed=true",
        ("degree",),
        ("n",),
    ),
    "equidyn": Form(
        graphs.equidyn,
        {"directed": yes_or_no, "eta": real, "seed": whole},
        "equidyn:directed=true,seed=1",
        context=("n",),
    ),
    "geographic_gossip": Form(
        graphs.geographic_gossip,
        {"radius": real, "seed": whole},
        "geographic_gossip:0.5,seed=1",
        ("radius",),
        ("n",),
    ),
    "named": Form(
        _first(graphs.named, "name"),
        {"name": str, "weights": str},
        "named:moebius_kantor",
        ("name",),
        ("weights",),
    ),
    "paley": Form(
        _first(graphs.paley, "p"), {"p": whole, "weights": str}, "paley:13", ("p",), ("weights",)
    ),
    "complete_bipartite": _graph(
        _of_sides(graphs.complete_bipartite), "complete_bipartite:8x8", sides=_sides
    ),
    "barbell": Form(
        _first(graphs.barbell, "clique"),
        {"clique": whole, "between": whole, "weights": str},
        "barbell:7,2",
        ("clique",),
        ("weights",),
    ),
    "tree": _graph(_of_size(graphs.tree), "tree:3", branching=whole),
    "directed_ring": _graph(_of_size(graphs.directed_ring), "directed_ring"),
    "de_bruijn": _graph(_of_size(graphs.de_bruijn), "de_bruijn:4", degree=whole),
    "random_digraph": _graph(
        _of_size(graphs.random_digraph), "random_digraph:0.4,seed=1", "p", p=real, seed=whole
    ),
    "margulis": _graph(_square, "margulis:4", side=whole),
    "barabasi_albert": _graph(
        _of_size(graphs.barabasi_albert), "barabasi_albert:2,seed=1", "m", m=whole, seed=whole
    ),
    "watts_strogatz": _graph(
        _of_size(graphs.watts_strogatz),
        "watts_strogatz:4,0.1",
        *("neighbors", "p"),
        neighbors=whole,
        p=real,
        seed=whole,
    ),
    "stochastic_block": _graph(
        _blocks,
        "stochastic_block:0.8,0.2,blocks=2",
        *("p_in", "p_out"),
        p_in=real,
        p_out=real,
        blocks=whole,
        seed=whole,
    ),
    "random_lift": _graph(
        _on_graph(graphs.random_lift, copies=True),
        "random_lift:complete,copies=4",
        *("graph", "copies"),
        graph=str,
        copies=whole,
        seed=whole,
    ),
    "random_matching": _on_edges(
        graphs.random_matching, "random_matching:complete,seed=1", seed=whole
    ),
    "random_pair": _on_edges(graphs.random_pair, "random_pair:ring", seed=whole),
    "random_broadcast": _on_edges(
        graphs.random_broadcast, "random_broadcast:ring,gamma=0.5", gamma=real, seed=whole
    ),
    "matcha": _on_edges(
        graphs.matcha, "matcha:torus,budget=0.5", "budget", budget=real, seed=whole
    ),
    "b_connected": _graph(
        _on_graph(graphs.b_connected),
        "b_connected:ring,window=2",
        *("graph", "window"),
        graph=str,
        window=whole,
        seed=whole,
    ),
    "laplacian_sequence": _on_edges(graphs.laplacian_sequence, "laplacian_sequence:torus"),
}
"""The topologies that have a text form."""
