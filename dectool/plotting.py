"""Pictures; matplotlib is imported only here, and only when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._optional import require
from dectool.topology import Schedule, Topology, from_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dectool.comparison import Comparison
    from dectool.history import History
    from dectool.theory import Evidence

_LABELS = {
    "step": "step",
    "time": "time [s]",
    "bytes": "bytes sent",
    "messages": "messages sent",
    "gap": r"$f(\bar x) - f(x^*)$",
    "objective": r"$f(\bar x)$",
    "grad_norm": r"$\|\nabla f(\bar x)\|$",
    "consensus_error": r"$\|X - 1\bar x^T\|_F$",
    "distance": r"$\|X - 1x^{*T}\|_F$",
    "change": r"$\|X^k - X^{k-1}\|_F$",
    "worst_distance": r"$\max_i \|x_i - x^*\|$",
}


_DASHES = ("-", "--", ":", "-.")
_MARKS = ("", "o", "s", "^", "x")
_STEPS = 64


def new_axes() -> Axes:
    """Return fresh axes.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    pyplot = require("matplotlib.pyplot", extra="plot", purpose="drawing")
    _, ax = pyplot.subplots(layout="constrained")
    axes: Axes = ax
    return axes


def draw_history(history: History, y: str, x: str, ax: Axes | None, line: dict[str, Any]) -> Axes:
    """Draw one column of a history over another; see :meth:`dectool.History.plot`."""
    values, along = history[y].astype(float), history[x].astype(float)
    axes = new_axes() if ax is None else ax
    above = values > 0
    label = f"{history.about['algorithm']}, {history.about['topology']}"
    axes.plot(along[above], values[above], **{"label": label, **line})
    axes.set_yscale("log")
    axes.set_xlabel(_LABELS.get(x, x))
    axes.set_ylabel(_LABELS.get(y, y))
    axes.legend()
    return axes


def draw_comparison(
    comparison: Comparison, y: str, x: str, ax: Axes | None, line: dict[str, Any]
) -> Axes:
    """Draw every combination of a comparison; see :meth:`dectool.Comparison.plot`."""
    axes = new_axes() if ax is None else ax
    runs = [run for run in comparison if run.records]
    colors = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(r.algorithm for r in runs))}
    graphs = dict.fromkeys(run.topology for run in runs)
    dashes = {name: _DASHES[i % len(_DASHES)] for i, name in enumerate(graphs)}
    models = dict.fromkeys((run.network, run.compute) for run in runs)
    marks = {pair: _MARKS[i % len(_MARKS)] for i, pair in enumerate(models)}
    varied = [k for k in ("network", "compute") if len({getattr(run, k) for run in runs}) > 1]
    for group in comparison.groups().values():
        tables = [run.records for run in group if run.records]
        if not tables:
            continue
        first = group[0]
        length = min(len(table[y]) for table in tables)
        values = np.array([table[y][:length] for table in tables], dtype=np.float64)
        along = np.mean([table[x][:length] for table in tables], axis=0)
        above = (values > 0).all(axis=0)
        values, along = values[:, above], along[above]
        names = (first.algorithm, first.topology, *(getattr(first, k) for k in varied))
        style: dict[str, Any] = {
            "color": colors[first.algorithm],
            "linestyle": dashes[first.topology],
            "marker": marks[first.network, first.compute],
            "markevery": max(1, above.size // 8),
        }
        drawn = {"label": ", ".join(names), **style, **line}
        axes.plot(along, np.exp(np.log(values).mean(axis=0)), **drawn)
        if len(tables) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(along, low, high, color=drawn["color"], alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    axes.set_xlabel(_LABELS.get(x, x))
    axes.set_ylabel(_LABELS.get(y, y))
    if runs:
        axes.legend(fontsize="small")
    return axes


def draw_evidence(evidence: Evidence, ax: Axes | None) -> Axes:
    """Draw measurements as points and predictions dashed; see ``theory.Evidence.plot``."""
    axes = new_axes() if ax is None else ax
    for number, curve in enumerate(evidence.curves):
        color, points = f"C{number}", max(1, -(-len(curve.x) // 40))
        if curve.measured is not None:
            values = _shown(curve.measured, evidence.scale)
            axes.plot(curve.x, values, ".", color=color, markevery=points, label=curve.label)
        if curve.predicted is not None:
            values = _shown(curve.predicted, evidence.scale)
            label = curve.label if curve.measured is None else f"{curve.label}, predicted"
            axes.plot(curve.x, values, "--", color=color, linewidth=1.0, label=label)
    axes.set_xscale("log" if evidence.scale == "loglog" else "linear")
    axes.set_yscale("linear" if evidence.scale == "linear" else "log")
    axes.set(xlabel=evidence.x, ylabel=evidence.y)
    axes.set_title(evidence.claim, fontsize="small", wrap=True)
    axes.legend(fontsize="small")
    return axes


def _shown(values: Any, scale: str) -> Any:
    """Return values, with gaps where a logarithm has none."""
    return values if scale == "linear" else np.where(np.asarray(values) > 0.0, values, np.nan)


def draw_topology(topology: Topology | Schedule, ax: Axes | None = None) -> Axes:
    """Draw the graph of a topology, ranks on a circle, edges as wide as their weights.

    Of a schedule, all edges of a period are drawn, or those of the first 64 steps if it has none,
    as wide as their weights on average.

    Args:
        topology: What to draw; up to some hundred ranks stay readable.
        ax: Axes to draw on; default: new ones.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    import networkx as nx

    axes = new_axes() if ax is None else ax
    drawn, text = _union(topology) if isinstance(topology, Schedule) else _one(topology)
    graph = drawn.graph
    positions = nx.circular_layout(graph)
    widths = [4.0 * abs(drawn.weight(j, i)) + 0.3 for i, j in graph.edges]
    nx.draw_networkx(
        graph,
        positions,
        ax=axes,
        width=widths,
        node_size=float(np.clip(6000 / drawn.size, 20, 400)),
        with_labels=drawn.size <= 64,
        font_size=8,
        node_color="tab:blue",
        font_color="white",
    )
    axes.set_title(f"{topology.name}\n{text}", fontsize="medium")
    axes.set_axis_off()
    return axes


def _one(topology: Topology) -> tuple[Topology, str]:
    return topology, f"{topology.weights}, spectral gap {topology.spectral_gap:.4g}"


def _union(schedule: Schedule) -> tuple[Topology, str]:
    """Return the mean of the steps of a schedule, and how many they are."""
    steps = schedule.period or _STEPS
    matrices = [schedule.at(k).W for k in range(steps)]
    mean = sum(matrices[1:], start=matrices[0]) / steps
    text = f"all {steps} steps" if schedule.period else f"the first {steps} steps"
    return from_matrix(mean, name=schedule.name, require_connected=False), text
