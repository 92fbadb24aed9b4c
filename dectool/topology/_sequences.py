"""Sequences made of one graph: some of its edges at a time, or all with changing weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._convert import connected_base, from_graph
from dectool.topology._edges import Edges, Floats, count, to_graph
from dectool.topology._schedule import Schedule
from dectool.topology._topology import Topology
from dectool.topology._weights import fill, weigh

if TYPE_CHECKING:
    import networkx as nx

_SAME = 1e-9
"""Eigenvalues of the Laplacian that differ by less, relative to the largest, count as one."""


def b_connected(
    graph: nx.Graph[Any] | Topology, window: int, *, seed: int = 0, weights: str | None = None
) -> Schedule:
    r"""Return a schedule that is connected over every B steps, if at no single one.

    Steps lB to lB + B - 1 share the edges of the graph at random, each edge at one of them, dealt
    anew for every l from ``numpy.random.default_rng([seed, l])``. So the union over each of these
    windows is the graph, which is what "B-strongly-connected" means.

    Args:
        graph: (Strongly) connected networkx graph, or Topology.
        window: Number of steps B, at least 1.
        seed: Non-negative integer.
        weights: Name of a rule, applied to the edges of each step; default
            "metropolis_hastings", or "uniform_push" if the graph is directed.

    Raises:
        ArgumentError: window or the rule's name is wrong.
        TopologyError: The graph is not connected, or the rule needs an undirected graph.

    Example:
        >>> from dectool import topology
        >>> s = b_connected(topology.ring(6), window=3)
        >>> sum(s.at(k).edges.senders.size // 2 for k in range(3)), s.at(0).is_connected
        (6, False)

    References:
        A. Nedić, A. Olshevsky, Distributed optimization over time-varying directed graphs, IEEE
        Trans. Automatic Control 60(3), 2015.
    """
    base = connected_base(graph, "b_connected")
    window, seed = count("window", window, 1), count("seed", seed, 0)
    if weights is None:
        weights = "uniform_push" if base.is_directed else "metropolis_hastings"
    weigh(base.edges, weights, lambda: to_graph(base.edges))
    name = f"{base.name} over {window} steps"
    make = _Shares(base.edges, window, seed, weights, base.is_directed, name)
    return Schedule(make, size=base.size, period=None, name=name)


def laplacian_sequence(graph: nx.Graph[Any] | Topology) -> Schedule:
    r"""Return the finite-time sequence of an undirected graph: exact averaging on its edges.

    Step k is :math:`W_k = I - L / l_k`, over the K distinct non-zero eigenvalues of the Laplacian
    L; their product is J, from any start of the cycle. K is 1 for the complete graph, 2 for a
    star, :math:`\lfloor n/2 \rfloor` for a ring. Weights are negative where they must be. The
    eigenvalues are taken in Leja order: from the largest down, as is common, rounding errors
    grow without bound (to :math:`10^{30}` on a ring of 200 ranks).

    Args:
        graph: Connected undirected networkx graph, or Topology, of at most 3000 ranks.

    Raises:
        ArgumentError: The graph is larger.
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> s = laplacian_sequence(topology.petersen())
        >>> s.period, round(s.contraction(), 12)
        (2, 0.0)

    References:
        A. Kibangou, Graph Laplacian based matrix design for finite-time distributed average
        consensus, American Control Conference 2012. L. Reichel, Newton interpolation at Leja
        points, BIT 30, 1990.
    """
    base = graph if isinstance(graph, Topology) else from_graph(graph, weights="uniform")
    if base.is_directed or not base.is_connected:
        raise TopologyError(
            f"laplacian_sequence needs a connected undirected graph, and {base.name} is not; use "
            f"base_k({base.size})"
        )
    if base.size > _spectrum.DENSE_RESCUE:
        raise ArgumentError(
            f"laplacian_sequence of {base.name}: all eigenvalues are computed up to size "
            f"{_spectrum.DENSE_RESCUE}; use base_k({base.size})"
        )
    values = _leja(_distinct(base.edges))
    name = f"Laplacian sequence of {base.name}"
    period = max(1, values.size)
    return Schedule(_Steps(base.edges, values, name), size=base.size, period=period, name=name)


@dataclass(frozen=True)
class _Shares:
    edges: Edges
    window: int
    seed: int
    weights: str
    directed: bool
    name: str

    def __call__(self, k: int) -> Topology:
        n, receivers, senders = self.edges.size, self.edges.receivers, self.edges.senders
        rng = np.random.default_rng([self.seed, k // self.window])
        if self.directed:
            turn = rng.integers(self.window, size=senders.size)
        else:
            # Both directions of an edge have one turn.
            low, high = np.minimum(receivers, senders), np.maximum(receivers, senders)
            codes, edge = np.unique(low * n + high, return_inverse=True)
            turn = rng.integers(self.window, size=codes.size)[edge]
        now = turn == k % self.window
        share = Edges(n, receivers[now], senders[now])
        W = weigh(share, self.weights, lambda: to_graph(share))
        name = f"{self.name}, step {k}"
        return Topology(W, name=name, weights=self.weights, require_connected=False)


@dataclass(frozen=True)
class _Steps:
    edges: Edges
    values: Floats
    name: str

    def __call__(self, k: int) -> Topology:
        size = self.edges.receivers.size
        weights = np.full(size, 1.0 / self.values[k] if size else 0.0)
        name = f"{self.name}, step {k}"
        return Topology(fill(self.edges, weights), name=name, weights="exact")


def _distinct(edges: Edges) -> Floats:
    """Return the distinct non-zero eigenvalues of the Laplacian, ascending."""
    L = np.diag(edges.in_degrees.astype(np.float64))
    L[edges.receivers, edges.senders] = -1.0
    values = np.linalg.eigvalsh(L)[1:]
    apart = np.diff(values, prepend=-np.inf) > _SAME * values.max(initial=0.0)
    return np.asarray(values[apart])


def _leja(values: Floats) -> Floats:
    """Return the largest value, then ever the one whose distances to those before multiply best."""
    left, order = values, values[-1:]
    score = np.zeros(values.size)
    for _ in values[1:]:
        keep = left != order[-1]
        left, score = left[keep], score[keep]
        score = score + np.log(np.abs(left - order[-1]))
        order = np.append(order, left[score.argmax()])
    return order
