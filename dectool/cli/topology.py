"""``dectool topology``: graphs next to each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dectool.cli import _options as options, _specs as specs
from dectool.cli._output import check_target, console, new_figure, number, save_figure
from dectool.errors import ArgumentError, DectoolError
from dectool.topology import Schedule, Topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

_RANKS = 16
_DEFAULT = (
    "ring",
    "path",
    "star",
    "grid",
    "torus",
    "hypercube",
    "exponential",
    "one_peer_exponential",
    "complete",
)
_TOLERANCE = 1e-6
_MOST_ROUNDS = 4096
_ITEM = 8
_ROUNDING = 1e-12
_HEADINGS = ("edges", "degree", "rho", "slem", "gap", "lambda_min", "bytes/round", "rounds")


class Row(NamedTuple):
    """What the table says about one topology, NaN where it has no such quantity."""

    edges: int
    degree: int
    rho: float
    slem: float
    gap: float
    lambda_min: float
    bytes: int
    rounds: float


def topology(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Such as ring, torus:4x4; default: the usual ones."),
    ] = None,
    n: options.Ranks = None,
    weights: options.Weights = None,
    numbers: Annotated[
        int, typer.Option("-d", "--numbers", metavar="D", help="Numbers in a message (float64).")
    ] = 1000,
    plot: options.Plot = None,
    debug: options.Debug = False,
) -> None:
    """Compare topologies of N ranks (16 unless -n or the name says) by their mixing matrices."""
    check_target("--plot", plot)
    if numbers < 0:
        raise ArgumentError(f"--numbers {numbers} must be at least 0")
    graphs, refused = _graphs(names, n, weights)
    figure = None if plot is None else _new_figure(len(graphs), plot)
    table = _table(numbers)
    for graph in graphs:
        row = measure(graph, numbers)
        cells = [number(0.0 if 0.0 < abs(value) < _ROUNDING else value) for value in row[:-1]]
        table.add_row(graph.name, *cells, _rounds_text(row.rounds))
    out = console()
    out.print(table)
    for reason in refused:
        out.print(reason)
    if plot is not None and figure is not None:
        _draw(graphs, figure)
        save_figure(figure, plot)
        out.print(f"picture: {plot}")


def measure(graph: Topology | Schedule, numbers: int) -> Row:
    """Return the quantities of a topology, or those of one period of a schedule.

    Of a schedule, edges and bytes are those of a step, ``rho`` is the factor per step over a
    period, and the other spectral quantities are those of no single matrix.

    Example:
        >>> from dectool import topology
        >>> row = measure(topology.ring(16), numbers=1000)
        >>> row.edges, row.bytes, row.rounds
        (16, 256000, 266)
    """
    if isinstance(graph, Schedule):
        first, length = graph.at(0), graph.period or _MOST_ROUNDS // 16
        rho = graph.contraction(0, length) ** (1.0 / length)
        slem, smallest = (math.nan, math.nan) if length > 1 else (first.slem, math.nan)
        averages = first.is_doubly_stochastic
    else:
        first, rho, slem = graph, graph.rho, graph.slem
        smallest = graph.lambda_min if graph.is_symmetric else math.nan
        averages = graph.is_doubly_stochastic
    directed = first.edges.receivers.size
    return Row(
        edges=directed if first.is_directed else directed // 2,
        degree=first.max_degree,
        rho=rho,
        slem=slem,
        gap=1.0 - rho,
        lambda_min=smallest,
        bytes=directed * numbers * _ITEM,
        rounds=_rounds(graph) if averages else math.nan,
    )


def _rounds(graph: Topology | Schedule) -> float:
    """Return the rounds until averaging has shrunk every disagreement to 1e-6 of itself."""
    if isinstance(graph, Topology) and graph.is_normal:
        if graph.rho >= 1.0:
            return math.inf
        return 1 if graph.rho <= _TOLERANCE else math.ceil(math.log(_TOLERANCE, graph.rho))
    from dectool.topology import as_schedule

    steps = as_schedule(graph)
    low, high = 0, 1
    while steps.contraction(0, high) > _TOLERANCE:
        low, high = high, 2 * high
        if high > _MOST_ROUNDS:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if steps.contraction(0, middle) <= _TOLERANCE else (middle, high)
    return high


def _rounds_text(rounds: float) -> str:
    if math.isnan(rounds):
        return "never: no mean"
    return number(rounds) if math.isfinite(rounds) else "never"


def _graphs(
    names: list[str] | None, n: int | None, weights: str | None
) -> tuple[list[Topology | Schedule], list[str]]:
    """Return the topologies; of those that nobody named, the refused ones as reasons."""
    if names:
        return [specs.topology(name, n, weights=weights, default=_RANKS) for name in names], []
    graphs, refused = [], []
    for name in _DEFAULT:
        try:
            graphs.append(specs.topology(name, n, weights=weights, default=_RANKS))
        except DectoolError as error:
            refused.append(f"no {name}: {error}")
    if not graphs:
        raise ArgumentError(refused[0])
    return graphs, refused


def _table(numbers: int) -> Table:
    from rich.table import Table

    table = Table(
        title=f"W for averaging; bytes of all ranks in a round of {numbers} float64; rounds to "
        f"{_TOLERANCE:g}",
        title_justify="left",
    )
    table.add_column("topology")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _shape(panels: int) -> tuple[int, int]:
    columns = min(3, panels)
    return -(-panels // columns), columns


def _new_figure(panels: int, path: Path) -> Figure:
    rows, columns = _shape(panels)
    return new_figure(path, 4.5 * columns, 4.5 * rows)


def _draw(graphs: list[Topology | Schedule], figure: Figure) -> None:
    from dectool.plotting import draw_topology

    panels = figure.subplots(*_shape(len(graphs)), squeeze=False).ravel()
    for panel in panels[len(graphs) :]:
        panel.set_axis_off()
    for graph, panel in zip(graphs, panels, strict=False):
        draw_topology(graph.at(0) if isinstance(graph, Schedule) else graph, ax=panel)
