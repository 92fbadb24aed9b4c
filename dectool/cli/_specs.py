"""Text forms of models and partitioners: ``name:value,key=value``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dectool import sim
from dectool.cli._forms import (
    Convert,
    Form as Form,
    made as made,
    plain as plain,
    real as real,
    value as value,
    whole as whole,
    yes_or_no as yes_or_no,
)
from dectool.cli._graphs import (
    TOPOLOGIES as TOPOLOGIES,
    takes_weights as takes_weights,
    topology as topology,
)
from dectool.errors import ArgumentError
from dectool.problems import partition as cuts


def assignments(option: str, texts: Iterable[str], convert: Convert) -> dict[str, Any]:
    """Return the pairs of an option that takes NAME=VALUE, again and again.

    Args:
        option: Its name, for messages.
        texts: What was given.
        convert: How values are read.

    Raises:
        ArgumentError: A text is no pair, a value cannot be read, or a name comes twice.

    Example:
        >>> assignments("--stop", ["gap=1e-6"], real)
        {'gap': 1e-06}
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not (name and equals and given):
            raise ArgumentError(f"{option} {text!r} must be NAME=VALUE")
        if name in pairs:
            raise ArgumentError(f"{option} {text!r}: {name} is given twice")
        try:
            pairs[name] = convert(given)
        except ArgumentError as error:
            raise ArgumentError(f"{option} {text!r}: {error}") from None
    return pairs


def network(text: str | None) -> sim.NetworkModel | None:
    """Return the network model of a text, and none for none.

    ``ethernet`` takes gigabits per second, and a latency in seconds, 5e-5 unless given.

    Example:
        >>> network("alphabeta:latency=1e-5,bandwidth=1e9")
        AlphaBeta(latency=1e-05, bandwidth=1000000000.0, port='serial')
        >>> network("ethernet:10")
        AlphaBeta(latency=5e-05, bandwidth=1250000000.0, port='serial')
    """
    if text is None:
        return None
    model: sim.NetworkModel = made("network", text, _NETWORKS)
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
    if plain(name) == "per_rank":
        return _per_rank(text, rest)
    model: sim.ComputeModel = made("compute", text, _COMPUTES)
    return model


def partition(text: str, seed: int) -> cuts.Partitioner:
    """Return the partitioner of a text.

    Example:
        >>> partition("dirichlet:0.1", seed=3)
        Dirichlet(alpha=0.1, seed=3, min_samples=1, allow_empty=False)
    """
    cut: cuts.Partitioner = made("partition", text, _PARTITIONS, {"seed": seed})
    return cut


def _per_rank(text: str, rest: str) -> sim.PerRank:
    pairs, _, base = rest.partition("base=")
    factors: dict[int, float] = {}
    try:
        for pair in pairs.rstrip(",").split(","):
            name, _, factor = pair.partition("=")
            rank = whole(name)
            if rank in factors:
                raise ArgumentError(f"rank {rank} is given twice")
            factors[rank] = real(factor)
    except ArgumentError as error:
        example = "per_rank:3=10,base=constant:1e-3"
        raise ArgumentError(f"compute {text!r}: {error} (example: {example})") from None
    return sim.PerRank(factors, compute(base or None))


def _ethernet(gigabits: float, latency: float = 5e-5) -> sim.AlphaBeta:
    if not gigabits > 0.0:
        raise ArgumentError(f"ethernet: gigabits={gigabits} must be above 0, such as 10")
    return sim.AlphaBeta(latency=latency, bandwidth=gigabits * 1e9 / 8)


_NETWORKS = {
    "alphabeta": Form(
        sim.AlphaBeta,
        {"latency": real, "bandwidth": real, "port": str},
        "alphabeta:latency=1e-5,bandwidth=1.25e9",
    ),
    "ethernet": Form(
        _ethernet, {"gigabits": real, "latency": real}, "ethernet:10,latency=5e-5", ("gigabits",)
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
_EMPTY: dict[str, Convert] = {"allow_empty": yes_or_no}
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
