"""Averaging on directed graphs, by values and weights."""

from __future__ import annotations

import networkx as nx
import numpy as np

from dectool.algorithms import PushSum
from dectool.errors import TopologyError
from dectool.problems import Averaging
from dectool.solve import solve
from dectool.theory._arguments import whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_topology
from dectool.topology import Topology, from_graph

_FLOOR = 1e-11
# Of the first error, so much has seven digits left.
_ABOVE = 1e-9


def push_sum_converges_at_the_second_eigenvalue(
    topology: Topology | None = None, *, steps: int = 120
) -> Evidence:
    r"""Check that push-sum keeps two sums, and how fast its weights and ratios settle.

    With :math:`s^{k+1} = C s^k` and :math:`w^{k+1} = C w^k`, the sums of s and w stay, the weights
    tend to :math:`n \pi` with :math:`C \pi = \pi`, and the ratios :math:`s_i / w_i` tend to the
    average, both as :math:`|\lambda_2(C)|^k`. From :math:`s^0 = 1 + v` with the mode v of
    :math:`\lambda_2` the distance of the ratios from the average is

    .. math:: |\lambda_2|^k \left( \sum_i |v_i / w_i^k|^2 \right)^{1/2}

    Args:
        topology: Strongly connected, with columns that sum to 1 and no negative weights; default:
            a directed ring of 8 with three chords.
        steps: Rounds, at least 10.

    Raises:
        TopologyError: The weights are others, shares go round in circles, or there is one rank.

    Example:
        >>> from dectool import topology
        >>> graph = topology.random_digraph(10, 0.4, seed=1, weights="uniform_push")
        >>> bool(push_sum_converges_at_the_second_eigenvalue(graph).verdict)
        True

    References:
        D. Kempe, A. Dobra & J. Gehrke, Gossip-based computation of aggregate information, FOCS
        2003.
    """
    graph = checked_topology(topology, _ring_with_chords())
    steps, n = whole("steps", steps, 10), graph.size
    if n < 2 or not (graph.is_column_stochastic and graph.is_nonnegative and graph.is_connected):
        raise TopologyError(
            f"{graph.name} ({graph.weights}) must be strongly connected, of two ranks or more, "
            "with columns of W that sum to 1 and no negative weights; use weights='uniform_push'"
        )
    C = graph.to_dense()
    values, vectors = np.linalg.eig(C)
    order = np.argsort(-np.abs(values))
    second, slowest = float(abs(values[order[1]])), vectors[:, order[1]]
    if second > 1.0 - 1e-9:
        raise TopologyError(
            f"{graph.name} has more than one eigenvalue of modulus 1, so shares go round in "
            "circles for ever; let ranks keep a share, as weights='uniform_push' does"
        )
    perron = np.real(vectors[:, order[0]])
    limit = n * perron / perron.sum()
    # Both parts of the slowest mode: where its eigenvalue is complex, one turns into the other.
    start = 1.0 + np.column_stack([slowest.real, slowest.imag])
    history = solve(PushSum(), Averaging(start), topology=graph, steps=steps, progress=False)
    s, w, errors, modes = start, np.ones((n, 1)), [], []
    for _ in range(steps + 1):
        errors.append(float(np.linalg.norm(s / w - start.mean(axis=0))))
        modes.append(float(np.linalg.norm(slowest[:, None] / w)))
        s, w = C @ s, C @ w
    measured, predicted = history["distance"], np.array(errors)
    apart = np.abs(measured - predicted)
    worst = int(np.argmax(apart))
    last = max(1, int(np.flatnonzero(measured > _ABOVE * measured[0])[-1]))
    weights = history.state["w"].ravel()
    # The first weights, all 1, in the modes of C: what each adds to a weight is at most this.
    parts = np.abs(np.linalg.lstsq(vectors, np.ones(n))[0]) * np.abs(vectors).max(axis=0)
    remaining = float(parts[order[1:]].sum() * second**steps + _FLOOR)
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
            Check.equal(
                f"factor per step, over {last} steps",
                float(measured[last] / modes[last]) ** (1.0 / last),
                second,
                tolerance=1e-6,
                scale=1.0,
            ),
            Check.at_most(
                "weights less n pi (farthest)", float(np.abs(weights - limit).max()), remaining
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


def _ring_with_chords() -> Topology:
    graph: nx.DiGraph[int] = nx.DiGraph([(i, (i + 1) % 8) for i in range(8)])
    graph.add_edges_from([(0, 3), (2, 6), (5, 1)])
    return from_graph(graph, weights="uniform_push", name="ring of 8 with three chords")
