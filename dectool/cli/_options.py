"""Options that several commands have, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dectool._hosts import checked_hosts, slots_of
from dectool.topology import WEIGHTS
from dectool.topology._weights import FASTEST

_RULES = ", ".join((*WEIGHTS, *FASTEST))

Ranks = Annotated[
    int | None,
    typer.Option("-n", "--ranks", metavar="N", help="Number of ranks.", show_default=False),
]
Graph = Annotated[
    str,
    typer.Option(
        metavar="SPEC", help="Such as ring, torus:4x4, exponential, random_regular:4,seed=1."
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="RULE", help=f"Mixing weights: {_RULES}.", show_default=False),
]
ManyWeights = Annotated[
    list[str] | None,
    typer.Option(
        "--weights",
        metavar="RULE",
        help=f"Mixing weights, again and again: {_RULES}.",
        show_default=False,
    ),
]
Backend = Annotated[str, typer.Option(metavar="NAME", help="stacked, sim or mpi.")]
Network = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Such as ethernet:10 (gigabits per second), alphabeta:latency=1e-5,bandwidth=1.25e9 "
        "or loggp:L=1e-5,G=1e-9 (seconds, bytes per second); default: messages arrive at once.",
        show_default=False,
    ),
]
Compute = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Such as exponential:mean=1e-3 or per_rank:3=10,base=constant:1e-3 (seconds); "
        "default: computing takes no time.",
        show_default=False,
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="SPEC",
        help="What goes wrong (sim only), again and again: message_loss:0.1, crash:3,at=1.5, "
        "link_down:0,1,start=1,stop=2, slow_period:3,factor=4, late_join:3,at=1.5, ...",
        show_default=False,
    ),
]
Detection = Annotated[
    float, typer.Option(metavar="SECONDS", help="When a rank notices that nothing comes.")
]
Missing = Annotated[
    str,
    typer.Option(metavar="POLICY", help="What averages do then: error, renormalize or self."),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
RanksPerNode = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Ranks on each node; default: 1, on mpi what it finds.",
        show_default=False,
    ),
]
Hosts = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Where the processes of mpi run, such as first:2,second:2; default: here.",
        show_default=False,
    ),
]
Launcher = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="The command that reaches hosts, called as ssh is, the default.",
        show_default=False,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a picture (png, pdf, svg).", show_default=False),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def split_hosts(hosts: str | None, ranks: int) -> tuple[list[str] | None, int]:
    """Return the hosts of a list with commas, and how many ranks they take.

    Args:
        hosts: The list, or ``None``.
        ranks: How many ranks there are without hosts.

    Example:
        >>> split_hosts("first:2,second:2", 16)
        (['first:2', 'second:2'], 4)
    """
    if hosts is None:
        return None, ranks
    names = hosts.split(",")
    return names, slots_of(checked_hosts(names))
