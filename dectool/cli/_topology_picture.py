"""The picture of ``dectool topology``: what helps to choose, then the graphs themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.cli._measures import Row
from dectool.cli._output import new_figure, number
from dectool.topology import Schedule, Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_PANEL = 4.5
_BAR = 0.28
_MARKS = "osD^vPX*<>"


def new_picture(many: int, path: Path) -> Figure:
    """Return a figure for a number of graphs.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        ArgumentError: It writes no such format.
    """
    return new_figure(path, _PANEL * _COLUMNS, _upper(many) + _PANEL * -(-many // _COLUMNS))


def draw(found: Sequence[tuple[Topology | Schedule, Row]], figure: Figure, to: float) -> None:
    """Draw totals as bars, rounds against what a round costs, and every graph.

    Args:
        found: The graphs and their rows.
        figure: What to draw on; see :func:`new_picture`.
        to: The accuracy that is to be reached.
    """
    from dectool.plotting import draw_topology

    lines = -(-len(found) // _COLUMNS)
    heights = [_upper(len(found)), _PANEL * lines]
    parts: Any = figure.subfigures(2, 1, height_ratios=heights)
    upper, lower = parts
    rows = [row for _, row in found]
    bars, costs = upper.subplots(1, 2)
    _draw_totals(rows, to, bars)
    _draw_costs(rows, to, costs)
    panels = lower.subplots(lines, _COLUMNS, squeeze=False).ravel()
    for panel in panels[len(found) :]:
        panel.set_axis_off()
    for (graph, _), panel in zip(found, panels, strict=False):
        draw_topology(graph, ax=panel)


def _upper(many: int) -> float:
    return max(5.0, _BAR * many + 1.5)


def _draw_totals(rows: Sequence[Row], to: float, axes: Axes) -> None:
    """Draw what it takes until the accuracy is reached, one line for each row."""
    for place, row in enumerate(rows):
        total = row.rounds * _cost(row)
        if math.isfinite(total):
            color, mark = _style(rows, row)
            axes.plot([total], [place], color=color, marker=mark)
            axes.annotate(f"  {number(total)}", (total, place), va="center", fontsize="small")
        else:
            where = (0.02, place)
            never = "no mean" if math.isnan(row.rounds) else "never"
            axes.annotate(never, where, xycoords=("axes fraction", "data"), fontsize="small")
    axes.set_yticks(range(len(rows)), [_label(rows, row) for row in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", linewidth=0.5)
    axes.set_xlabel(f"{_unit(rows)} to {to:g}")
    if any(row.rounds * _cost(row) > 0.0 for row in rows):
        axes.set_xscale("log")
    axes.margins(x=0.25)


def _draw_costs(rows: Sequence[Row], to: float, axes: Axes) -> None:
    """Draw what a round costs over how many it takes; equal totals lie on a dotted line."""
    there = [row for row in rows if math.isfinite(row.rounds) and _cost(row) > 0.0]
    for row in there:
        color, mark = _style(rows, row)
        axes.plot([row.rounds], [_cost(row)], color=color, marker=mark)
    axes.set_xlabel(f"rounds to {to:g}")
    axes.set_ylabel(f"{_unit(rows)} in a round")
    axes.set_title("marks as on the left; totals are equal along a dotted line", fontsize="small")
    if there:
        axes.loglog()
        axes.margins(0.15)
        _draw_equal_totals(axes)


def _draw_equal_totals(axes: Axes) -> None:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    along = np.array([left, right])
    first, last = math.floor(math.log10(left * low)), math.ceil(math.log10(right * high))
    for power in range(first, last + 1):
        axes.plot(along, 10.0**power / along, ":", color="0.7", linewidth=0.8, zorder=0)
    axes.set(xlim=(left, right), ylim=(low, high))


def _cost(row: Row) -> float:
    """Return the seconds of a round, or the bytes of the busiest rank if there is no network."""
    return row.bytes_per_rank if math.isnan(row.seconds_per_round) else row.seconds_per_round


def _unit(rows: Sequence[Row]) -> str:
    return "bytes of the busiest rank" if math.isnan(rows[0].seconds_per_round) else "seconds"


def _label(rows: Sequence[Row], row: Row) -> str:
    alone = sum(other.topology == row.topology for other in rows) == 1
    return row.topology if alone else f"{row.topology}, {row.weights}"


def _style(rows: Sequence[Row], row: Row) -> tuple[str, str]:
    """Return the color of a graph and the mark of its weights."""
    graphs = list(dict.fromkeys(other.topology for other in rows))
    rules = list(dict.fromkeys(other.weights for other in rows))
    color = f"C{graphs.index(row.topology) % 10}"
    return color, _MARKS[rules.index(row.weights) % len(_MARKS)]
