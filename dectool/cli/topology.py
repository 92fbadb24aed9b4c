"""``dectool topology``: graphs and weights next to each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dectool import theory
from dectool._text import nearest
from dectool.cli import _options as options, _specs as specs
from dectool.cli._measures import ITEM, Row, measure, weights_of
from dectool.cli._output import check_target, console, number, save_figure, size
from dectool.cli._tables import check_table, save_table
from dectool.cli._topology_picture import draw, new_picture
from dectool.errors import ArgumentError, DectoolError
from dectool.topology import Schedule, Topology

if TYPE_CHECKING:
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
_ROUNDING = 1e-12
_TIMES = ("seconds_per_round", "seconds")
_IN_FILES = {"ranks", "slem", "sampled", "factor"}
_DROPPED = ("edges", "lambda_min", "rho", "bytes_per_round", "degree")
"""Columns that a narrow terminal does without, the first one first; files have all."""

_TEXT_WIDTH = 14
_TEXTS = ("topology", "weights")
_BYTES = ("bytes_per_rank", "bytes_per_round")
_MEANS = ("edges", *_BYTES, *_TIMES)
_FACTORS = ("rho", "gap", "rounds")
_BOUNDS = {"rho": "≤", "gap": "≥", "rounds": "≤", "seconds": "≤"}


def topology(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Such as ring, torus:4x4; default: the usual ones."),
    ] = None,
    n: options.Ranks = None,
    weights: options.ManyWeights = None,
    numbers: Annotated[
        int, typer.Option("-d", "--numbers", metavar="D", help="Numbers in a message (float64).")
    ] = 1000,
    network: options.Network = None,
    to: Annotated[
        float, typer.Option("--to", metavar="E", help="What is to be left of a disagreement.")
    ] = 1e-6,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Order by a column, the best first.", show_default=False
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the table (csv, json, md).", show_default=False),
    ] = None,
    plot: options.Plot = None,
    debug: options.Debug = False,
) -> None:
    """Compare topologies of N ranks (16 unless -n or the name says), with each of the weights."""
    check_target("--plot", plot)
    check_table("--table", table)
    if numbers < 0:
        raise ArgumentError(f"--numbers {numbers} must be at least 0")
    if not 0.0 < to < 1.0:
        raise ArgumentError(f"--to {to:g} must be above 0 and below 1, such as 1e-6")
    if numbers == 0 and network is not None:
        raise ArgumentError("--numbers 0 sends nothing over --network; give at least 1")
    column = None if sort is None else _column(sort, network)
    model = specs.network(network)
    graphs, refused = _graphs(names, n, weights)
    figure = None if plot is None else new_picture(len(graphs), plot)
    found = []
    for graph in graphs:
        row = measure(graph, numbers, to)
        if model is not None:
            seconds = theory.seconds_per_round(graph, model, numbers * ITEM)
            row = row._replace(seconds_per_round=seconds, seconds=seconds * row.rounds)
        found.append((graph, row))
    if column is not None:
        found.sort(key=lambda pair: _place(pair[1], column))
    rows = [row for _, row in found]
    out = console()
    out.print(_table(rows, numbers, network, to, out.width))
    for line in (*_notes(rows), *refused):
        out.print(line, markup=False)
    if table is not None:
        about = {"numbers": numbers, "accuracy": to, "network": network or ""}
        save_table([{**row._asdict(), **about} for row in rows], table)
        out.print(f"table: {table}")
    if plot is not None and figure is not None:
        draw(found, figure, to)
        save_figure(figure, plot)
        out.print(f"picture: {plot}")


def _graphs(
    names: list[str] | None, n: int | None, rules: list[str] | None
) -> tuple[list[Topology | Schedule], list[str]]:
    """Return each topology with each weights, and why some pairs are left out.

    A pair may only be left out if nobody asked for just that one: of the usual topologies, or of
    several weights. A name or a rule that is left without any is an error.
    """
    chosen: list[str | None] = list(dict.fromkeys(rules)) if rules else [None]
    # Different words may name the same one.
    made: dict[tuple[str, str], Topology | Schedule] = {}
    refused: list[str] = []
    good: set[str | None] = set()
    errors: dict[str | None, DectoolError] = {}
    for name in names or _DEFAULT:
        own = chosen if specs.takes_weights(name) else [None]
        for rule in own:
            try:
                graph = specs.topology(name, n, weights=rule, default=_RANKS)
            except DectoolError as error:
                if names and len(own) == 1:
                    raise
                what = name if rule is None or len(chosen) == 1 else f"{name} with {rule}"
                refused.append(f"no {what}: {error}")
                errors.setdefault(name, error)
                errors.setdefault(rule, error)
            else:
                good.update({name, rule})
                made.setdefault((name, weights_of(graph)), graph)
    if names and rules and made and not any(map(specs.takes_weights, names)):
        raise ArgumentError(
            f"--weights {', '.join(rules)} would change nothing, since {', '.join(names)} "
            "would keep their own; leave it out, or name a graph, such as ring"
        )
    needed = [*(names or ()), *chosen] if made else list(errors)
    for asked in needed:
        if asked in errors and asked not in good:
            raise errors[asked]
    return list(made.values()), refused


def _column(name: str, network: str | None) -> str:
    """Return the name of the column to order by."""
    column = specs.plain(name).replace(" ", "_")
    if column not in Row._fields:
        raise ArgumentError(f"--sort {name!r} is unknown; {nearest(column, Row._fields)}")
    if column in _TIMES and network is None:
        raise ArgumentError(f"--sort {name} needs --network, such as ethernet:10")
    return column


def _place(row: Row, column: str) -> tuple[bool, Any]:
    """Return a key that puts the best first, and what has no such quantity last."""
    value = getattr(row, column)
    if isinstance(value, str):
        return False, value
    return math.isnan(value), -value if column == "gap" else value


def _table(rows: list[Row], numbers: int, network: str | None, to: float, width: int) -> Table:
    from rich.markup import escape
    from rich.table import Table

    where = "" if network is None else f" on {network}"
    table = Table(
        title=escape(f"W for averaging {numbers} float64 to {to:g}{where}"), title_justify="left"
    )
    left_out = _IN_FILES | set(_TIMES if network is None else ())
    cells = {
        column: [_cell(row, column) for row in rows]
        for column in Row._fields
        if column not in left_out
    }
    _fit(cells, width)
    for column in cells:
        if column in _TEXTS:
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column.replace("_", "\n"), justify="right", no_wrap=True)
    for line in zip(*cells.values(), strict=True):
        table.add_row(*map(escape, line))
    return table


def _fit(cells: dict[str, list[str]], width: int) -> None:
    """Take columns out until a line is not wider than the terminal, if that can be."""
    widths = {
        column: max(map(len, (*column.split("_"), *texts))) for column, texts in cells.items()
    }
    for column in _TEXTS:
        widths[column] = min(widths[column], _TEXT_WIDTH)
    for column in _DROPPED:
        if sum(widths.values()) + 3 * len(widths) + 1 <= width:
            break
        del cells[column], widths[column]


def _cell(row: Row, column: str) -> str:
    value = getattr(row, column)
    if isinstance(value, str):
        return value
    if column in ("rounds", "seconds") and not math.isfinite(row.rounds):
        return "no mean" if math.isnan(row.rounds) else "never"
    about = ""
    if row.factor == "bound" and column in _BOUNDS:
        about = _BOUNDS[column]
    elif row.sampled and (column in _MEANS or (row.factor == "sample" and column in _FACTORS)):
        about = "~"
    if column in _BYTES:
        return about + size(value)
    if column in _TIMES:
        return f"{about}{value:.4g}"
    return about + number(0.0 if 0.0 < abs(value) < _ROUNDING else value)


def _notes(rows: list[Row]) -> list[str]:
    """Return what the reader must know of some of the cells."""
    notes = []
    if any(row.sampled for row in rows):
        notes.append(f"~: measured on the first {max(row.sampled for row in rows)} rounds")
    if any(row.sampled and row.factor != "sample" for row in rows):
        notes.append("random rounds shrink disagreement in mean square")
    if any(math.isnan(row.rounds) for row in rows):
        notes.append("no mean: W does not keep the mean, since rows or columns do not sum to 1")
    return notes
