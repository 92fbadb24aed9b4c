"""Text forms of topologies, models and partitioners: ``name:value,key=value``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dectool import sim, topology as graphs
from dectool._text import nearest
from dectool.errors import ArgumentError
from dectool.problems import partition as cuts

Convert = Callable[[str], Any]
Graph = graphs.Topology | graphs.Schedule


class Form(NamedTuple):
    """What a name stands for.

    Attributes:
        make: Makes it from keyword arguments.
        parameters: What the text may give, in order, and how each is read.
        example: A text that is right.
        required: Parameters without which it cannot be made.
        context: Arguments of ``make`` that come from other options.
    """

    make: Callable[..., Any]
    parameters: Mapping[str, Convert]
    example: str
    required: tuple[str, ...] = ()
    context: tuple[str, ...] = ()


def whole(text: str) -> int:
    """Return an integer."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a whole number, such as 4") from None


def real(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is not a number, such as 1e-3") from None


def value(text: str) -> Any:
    """Return a number, a tuple of them (commas between), true or false, or the text itself.

    Example:
        >>> value("3"), value("1e-2"), value("-0.5,0.9"), value("tight")
        (3, 0.01, (-0.5, 0.9), 'tight')
    """
    if "," in text:
        return tuple(value(part) for part in text.split(","))
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def assignments(option: str, texts: Iterable[str], convert: Convert) -> dict[str, Any]:
    """Return the pairs of an option that takes NAME=VALUE, again and again.

    Example:
        >>> assignments("--stop", ["gap=1e-6"], real)
        {'gap': 1e-06}
    """
    pairs = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not (name and equals and given):
            raise ArgumentError(f"{option} {text!r} must be NAME=VALUE")
        try:
            pairs[name] = convert(given)
        except ArgumentError as error:
            raise ArgumentError(f"{option} {text!r}: {error}") from None
    return pairs


def network(text: str | None) -> sim.NetworkModel | None:
    """Return the network model of a text, and none for none.

    Example:
        >>> network("alphabeta:latency=1e-5,bandwidth=1e9")
        AlphaBeta(latency=1e-05, bandwidth=1000000000.0, port='serial')
    """
    if text is None:
        return None
    model: sim.NetworkModel = _made("network", text, _NETWORKS)
    return model


def compute(text: str | None) -> sim.ComputeModel | None:
    """Return the compute-time model of a text, and none for none.

    ``per_rank`` takes RANK=FACTOR pairs and, at the end, the model of the common time.

    Example:
        >>> compute("per_rank:3=10,base=exponential:mean=1e-3")
        PerRank(factors={3: 10.0}, base=Exponential(mean=0.001))
    """
    if text is None:
        return None
    name, _, rest = text.partition(":")
    if _plain(name) == "per_rank":
        return _per_rank(text, rest)
    model: sim.ComputeModel = _made("compute", text, _COMPUTES)
    return model


def partition(text: str, seed: int) -> cuts.Partitioner:
    """Return the partitioner of a text.

    Example:
        >>> partition("dirichlet:0.1", seed=3)
        Dirichlet(alpha=0.1, seed=3, min_samples=1, allow_empty=False)
    """
    cut: cuts.Partitioner = _made("partition", text, _PARTITIONS, {"seed": seed})
    return cut


def topology(text: str, n: int | None, *, weights: str | None = None, default: int = 16) -> Graph:
    """Return the topology of a text.

    Args:
        text: Such as "ring", "torus:4x4", "erdos_renyi:0.3,seed=1".
        n: Number of ranks, if it was given.
        weights: Rule of the weights; ``weights=`` in the text goes before.
        default: Number of ranks where neither ``n`` nor the text says one.

    Raises:
        ArgumentError: The text is no topology, or does not fit ``n``.
        TopologyError: There is no such topology of that size.

    Example:
        >>> topology("torus:2x4", None), topology("star", 8).name
        (<Topology: 2 x 4 torus, 12 edges, metropolis_hastings, doubly stochastic>, 'star of 8')
    """
    context = {"n": default if n is None else n, "weights": weights}
    made: Graph = _made("topology", text, TOPOLOGIES, context)
    if n is not None and made.size != n:
        raise ArgumentError(
            f"topology {text!r} has {made.size} ranks, but n={n}; leave one of them out"
        )
    return made


def _made(
    what: str, text: str, forms: Mapping[str, Form], context: Mapping[str, Any] | None = None
) -> Any:
    name, _, rest = text.partition(":")
    form = forms.get(_plain(name))
    if form is None:
        raise ArgumentError(f"{what} {name!r} is unknown; {nearest(_plain(name), forms)}")
    try:
        given = _arguments(form, rest)
        for key in form.required:
            if key not in given:
                raise ArgumentError(f"it needs {key}")
    except ArgumentError as error:
        raise ArgumentError(f"{what} {text!r}: {error} (example: {form.example})") from None
    known = {key: (context or {})[key] for key in form.context}
    return form.make(**{**known, **given})


def _arguments(form: Form, rest: str) -> dict[str, Any]:
    """Return the parameters that a text gives, by position first, then by name."""
    given: dict[str, Any] = {}
    order = [key for key in form.parameters if key != "weights"]
    for place, item in enumerate(rest.split(",") if rest else ()):
        key, equals, text = item.partition("=")
        if not equals:
            if place >= len(order):
                raise ArgumentError(f"{item!r} is one value too many")
            key, text = order[place], item
        if key not in form.parameters:
            known = nearest(key, form.parameters) if form.parameters else "it takes none"
            raise ArgumentError(f"there is no {key!r}; {known}")
        if key in given:
            raise ArgumentError(f"{key} is given twice")
        given[key] = form.parameters[key](text)
    return given


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _per_rank(text: str, rest: str) -> sim.PerRank:
    pairs, _, base = rest.partition("base=")
    try:
        factors = {
            whole(rank): real(factor)
            for rank, _, factor in (p.partition("=") for p in pairs.rstrip(",").split(","))
        }
    except ArgumentError as error:
        example = "per_rank:3=10,base=constant:1e-3"
        raise ArgumentError(f"compute {text!r}: {error} (example: {example})") from None
    return sim.PerRank(factors, compute(base or None))


def _sides(text: str) -> tuple[int, int]:
    rows, by, columns = text.lower().partition("x")
    if not (by and rows.isdecimal() and columns.isdecimal()):
        raise ArgumentError(f"{text!r} must be ROWSxCOLUMNS")
    return int(rows), int(columns)


def _yes_or_no(text: str) -> bool:
    known = {"true": True, "false": False, "symmetric": True}
    if text.lower() not in known:
        raise ArgumentError(f"{text!r} must be true or false")
    return known[text.lower()]


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


def _random_matching(n: int, weights: str | None, graph: str, seed: int = 0) -> Graph:
    base = topology(graph, None, weights=weights, default=n)
    if not isinstance(base, graphs.Topology):
        raise ArgumentError(f"random_matching needs a fixed graph, but {graph} changes")
    return graphs.random_matching(base, seed=seed)


def _graph(make: Callable[..., Graph], example: str, *required: str, **parameters: Convert) -> Form:
    read: dict[str, Convert] = {**parameters, "weights": str}
    return Form(make, read, example, required, ("n", "weights"))


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
        {"symmetric": _yes_or_no},
        "one_peer_exponential:symmetric=true",
        context=("n",),
    ),
    "random_matching": _graph(
        _random_matching, "random_matching:complete,seed=1", "graph", graph=str, seed=whole
    ),
}
"""The topologies that have a text form."""

_NETWORKS = {
    "alphabeta": Form(
        sim.AlphaBeta,
        {"latency": real, "bandwidth": real, "port": str},
        "alphabeta:latency=1e-5,bandwidth=1.25e9",
    ),
    "loggp": Form(
        sim.LogGP, dict.fromkeys(("L", "o", "g", "G"), real), "loggp:L=1e-5,o=1e-6,G=1e-9", ("L",)
    ),
}
_COMPUTES = {
    "constant": Form(sim.Constant, {"seconds": real}, "constant:1e-3", ("seconds",)),
    "exponential": Form(sim.Exponential, {"mean": real}, "exponential:mean=1e-3", ("mean",)),
    "shifted_exponential": Form(
        sim.ShiftedExponential,
        {"shift": real, "mean": real},
        "shifted_exponential:shift=1e-3,mean=5e-4",
        ("shift", "mean"),
    ),
    "log_normal": Form(
        sim.LogNormal,
        {"median": real, "sigma": real},
        "log_normal:median=1e-3,sigma=0.5",
        ("median", "sigma"),
    ),
    "pareto": Form(
        sim.Pareto,
        {"minimum": real, "shape": real},
        "pareto:minimum=1e-3,shape=3",
        ("minimum", "shape"),
    ),
    "flop_rate": Form(sim.FlopRate, {"rate": real}, "flop_rate:1e9", ("rate",)),
    # Read by _per_rank; it is here for the names that are offered.
    "per_rank": Form(sim.PerRank, {}, "per_rank:3=10,base=constant:1e-3"),
}
_EMPTY: dict[str, Convert] = {"allow_empty": _yes_or_no}
_PARTITIONS = {
    "contiguous": Form(cuts.Contiguous, _EMPTY, "contiguous"),
    "shuffled": Form(
        cuts.Shuffled, {"seed": whole, **_EMPTY}, "shuffled:seed=1", context=("seed",)
    ),
    "by_class": Form(cuts.ByClass, {"classes_per_rank": whole, **_EMPTY}, "by_class:2"),
    "dirichlet": Form(
        cuts.Dirichlet,
        {"alpha": real, "seed": whole, **_EMPTY},
        "dirichlet:0.1,allow_empty=true",
        context=("seed",),
    ),
}
