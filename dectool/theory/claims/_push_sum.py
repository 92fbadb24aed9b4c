"""Averaging on directed graphs, by values and weights."""

from __future__ import annotations

import networkx as nx
import numpy as np

from dectool.algorithms import PushSum
from dectool.errors import TopologyError
from dectool.problems import Averaging
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.topology import Topology, from_graph

_FLOOR = 1e-11


def push_sum_converges_at_the_second_eigenvalue(
    topology: Topology | None = None, *, steps: int = 120
) -> Evidence:
    r"""Check that push-sum keeps two sums, and how fast its weights and ratios settle.

    With :math:`s^{k+1} = C s^k` and :math:`w^{k+1} = C w^k`, the sums of s and w stay, the weights
    tend to :math:`n \pi` with :math:`C \pi = \pi`, and the ratios :math:`s_i / w_i` tend to the
    average, both as :math:`|\lambda_2(C)|^k`.

    Args:
        topology: Strongly connected, with columns that sum to 1 and no negative weights; default:
            a directed ring of 8 with three chords.
        steps: Rounds, at least 10.

    Raises:
        TopologyError: The weights are others.

    Example:
        >>> from dectool import topology
        >>> graph = topology.random_digraph(10, 0.4, seed=1, weights="uniform_push")
        >>> bool(push_sum_converges_at_the_second_eigenvalue(graph).verdict)
        True

    References:
        D. Kempe, A. Dobra & J. Gehrke, Gossip-based computation of aggregate information, FOCS
        2003.
    """
    graph = _ring_with_chords() if topology is None else topology
    steps, n = whole("steps", steps, 10), graph.size
    if not (graph.is_column_stochastic and graph.is_nonnegative and graph.is_connected):
        raise TopologyError(
            f"{graph.name} ({graph.weights}) must be strongly connected, with columns of W that "
            "sum to 1 and no negative weights; use weights='uniform_push'"
        )
    C = graph.to_dense()
    values, vectors = np.linalg.eig(C)
    order = np.argsort(-np.abs(values))
    second, slowest = float(abs(values[order[1]])), vectors[:, order[1]]
    perron = np.real(vectors[:, order[0]])
    limit = n * perron / perron.sum()
    # Both parts of the slowest mode: where its eigenvalue is complex, one turns into the other.
    start = 1.0 + np.column_stack([slowest.real, slowest.imag])
    history = solve(PushSum(), Averaging(start), topology=graph, steps=steps, progress=False)
    s, w, errors = start, np.ones((n, 1)), []
    for _ in range(steps + 1):
        errors.append(float(np.linalg.norm(s / w - start.mean(axis=0))))
        s, w = C @ s, C @ w
    measured, predicted = history["distance"], np.array(errors)
    apart = np.abs(measured - predicted)
    worst = int(np.argmax(apart))
    weights = history.state["w"].ravel()
    remaining = float(10.0 * n * second**steps + _FLOOR)
    return Evidence(
        f"push-sum on {graph.name} converges at |lambda_2(C)| = {second:.9g} (Kempe, Dobra & "
        "Gehrke 2003)",
        (
            Check.equal(
                f"error (worst of {steps} steps: {worst}; relative to the first)",
                float(measured[worst]),
                float(predicted[worst]),
                tolerance=1e-11,
                scale=float(predicted[0]),
            ),
            Check.equal("slope", _slope(measured), second, tolerance=5e-3),
            Check.equal(
                "weights less n pi (farthest)",
                float(np.abs(weights - limit).max()),
                0.0,
                tolerance=remaining,
            ),
            Check.equal("sum of the weights", float(weights.sum()), n, tolerance=1e-12),
            Check.equal(
                "sum of the values",
                float(history.state["s"][:, 0].sum()),
                float(start[:, 0].sum()),
                tolerance=1e-12,
            ),
        ),
        (Curve("push-sum", np.arange(steps + 1.0), measured, predicted),),
    )


def _slope(error: Floats) -> float:
    """Return the factor per step, from the last two thirds of what is above rounding."""
    kept = np.flatnonzero(error > _FLOOR * error[0])
    kept = kept[len(kept) // 3 :]
    if len(kept) < 2:
        return 0.0
    return float(np.exp(np.polyfit(kept, np.log(error[kept]), 1)[0]))


def _ring_with_chords() -> Topology:
    graph: nx.DiGraph[int] = nx.DiGraph([(i, (i + 1) % 8) for i in range(8)])
    graph.add_edges_from([(0, 3), (2, 6), (5, 1)])
    return from_graph(graph, weights="uniform_push", name="ring of 8 with three chords")
