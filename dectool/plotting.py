"""Pictures; matplotlib is imported only here, and only when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dectool.history import History
    from dectool.topology import Topology

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


def draw_topology(topology: Topology, ax: Axes | None = None) -> Axes:
    """Draw the graph of a topology, ranks on a circle, edges as wide as their weights.

    Args:
        topology: What to draw; up to some hundred ranks stay readable.
        ax: Axes to draw on; default: new ones.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    import networkx as nx

    axes = new_axes() if ax is None else ax
    graph = topology.graph
    positions = nx.circular_layout(graph)
    widths = [4.0 * abs(topology.weight(j, i)) + 0.3 for i, j in graph.edges]
    nx.draw_networkx(
        graph,
        positions,
        ax=axes,
        width=widths,
        node_size=float(np.clip(6000 / topology.size, 20, 400)),
        with_labels=topology.size <= 64,
        font_size=8,
        node_color="tab:blue",
        font_color="white",
    )
    axes.set_title(f"{topology.name}: spectral gap {topology.spectral_gap:.4g}")
    axes.set_axis_off()
    return axes
