"""MATCHA: matchings of a graph, each used now and then, within a budget of communication."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._activation import activation
from dectool.topology._coloring import matchings
from dectool.topology._convert import from_graph
from dectool.topology._edges import Edges, Floats, Matrix, count, real
from dectool.topology._law import Law
from dectool.topology._schedule import Schedule
from dectool.topology._topology import Topology
from dectool.topology._weights import fill

if TYPE_CHECKING:
    import networkx as nx


@final
@dataclass(frozen=True)
class MatchaPlan:
    r"""What MATCHA decides before it runs: :math:`W = I - \alpha \sum_j B_j L_j`.

    Attributes:
        size: Number of ranks n.
        name: Name for messages.
        matchings: The edges (i, j), i < j, of each matching; L_j is its Laplacian.
        probabilities: Chance p_j of each matching to be used in a step, independent of the others.
        alpha: Weight α of every edge in use.
        gap: Certified: with other probabilities within the budget, λ₂ of the mean Laplacian is at
            most 1 + gap times as large.
    """

    size: int
    name: str
    matchings: tuple[tuple[tuple[int, int], ...], ...]
    probabilities: tuple[float, ...]
    alpha: float
    gap: float

    @property
    def rho(self) -> float:
        """Mean-square factor of a step, ‖E[WᵀW] - J‖₂: E‖We‖² <= rho ‖e‖²."""
        return _factor(self.alpha, *_moments(self.size, self.matchings, self.probabilities))

    def second_moment(self) -> Floats:
        r"""Return E[WᵀW], (n, n).

        :math:`I - 2\alpha \bar L + \alpha^2 (\bar L^2 + 2 \tilde L)` with
        :math:`\bar L = \sum_j p_j L_j` and :math:`\tilde L = \sum_j p_j (1 - p_j) L_j`.

        Example:
            >>> from dectool import topology
            >>> M = matcha_plan(topology.ring(6), budget=0.5).second_moment()
            >>> [round(float(x), 12) for x in M.sum(axis=0)]
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        mean, square = _moments(self.size, self.matchings, self.probabilities)
        return np.asarray(np.eye(self.size) - 2 * self.alpha * mean + self.alpha**2 * square)

    def schedule(self, seed: int = 0) -> Schedule:
        """Return the schedule: step k draws from ``numpy.random.default_rng([seed, k])``.

        Args:
            seed: Non-negative integer.

        Example:
            >>> from dectool import topology
            >>> matcha_plan(topology.ring(6), budget=0.5).schedule(seed=2).at(7).is_symmetric
            True
        """
        make = _Matcha(self, count("seed", seed, 0))
        return Schedule(make, size=self.size, period=None, name=self.name, law=make.law)


def matcha_plan(graph: nx.Graph[Any] | Topology, budget: float) -> MatchaPlan:
    r"""Return the matchings of a graph, their probabilities, and the weight of an edge.

    Edges are colored with :math:`M \le d_{max} + 1` colors, each a matching. Probabilities
    maximise :math:`\lambda_2(\sum_j p_j L_j)` subject to :math:`\sum_j p_j \le` budget * M, by a
    barrier method with a certificate; α then minimises ``MatchaPlan.rho``, which is convex in α.

    Args:
        graph: Connected undirected networkx graph, or Topology, of at most 3000 ranks.
        budget: Mean share of the matchings in use, above 0, at most 1.

    Raises:
        ArgumentError: The budget is out of range, or the graph too large.
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> plan = matcha_plan(topology.star(4), budget=0.5)
        >>> plan.matchings, [round(p, 6) for p in plan.probabilities]
        ((((0, 3),), ((0, 1),), ((0, 2),)), [0.5, 0.5, 0.5])

    References:
        J. Wang, A. K. Sahu, Z. Yang, G. Joshi, S. Kar, MATCHA: speeding up decentralized SGD via
        matching decomposition sampling, arXiv 1905.09435, 2019.
    """
    base = graph if isinstance(graph, Topology) else from_graph(graph, weights="uniform")
    budget, n = real("budget", budget), base.size
    if not 0 < budget <= 1:
        raise ArgumentError(f"budget must be above 0 and at most 1, got {budget:g}")
    if base.is_directed or not base.is_connected:
        raise TopologyError(
            f"matcha needs a connected undirected graph, and {base.name} is not; use "
            "graph.to_undirected()"
        )
    if n > _spectrum.DENSE_RESCUE:
        raise ArgumentError(
            f"matcha of {base.name}: graphs up to size {_spectrum.DENSE_RESCUE} are planned; use "
            "random_matching(graph)"
        )
    name = f"MATCHA of {base.name}, budget {budget:g}"
    if n == 1:
        return MatchaPlan(1, name, (), (), 0.0, 0.0)
    once = base.edges.receivers < base.edges.senders
    parts = matchings(n, base.edges.receivers[once], base.edges.senders[once])
    first, second, kind = np.array(
        [(i, j, color) for color, part in enumerate(parts) for i, j in part]
    ).T
    found = activation(n, first, second, kind, budget)
    chances = tuple(found.probabilities.tolist())
    alpha = _best_alpha(*_moments(n, parts, chances))
    return MatchaPlan(n, name, parts, chances, alpha, found.gap)


def matcha(graph: nx.Graph[Any] | Topology, budget: float, *, seed: int = 0) -> Schedule:
    r"""Return the schedule of MATCHA: at each step every matching of the graph is used or not.

    :math:`W = I - \alpha \sum_j B_j L_j` with independent :math:`B_j \in \{0, 1\}` of mean
    :math:`p_j`, chosen by ``matcha_plan``, which also has the exact mean-square factor. Step k
    draws from ``numpy.random.default_rng([seed, k])``.

    Args:
        graph: Connected undirected networkx graph, or Topology, of at most 3000 ranks.
        budget: Mean share of the matchings in use, above 0, at most 1.
        seed: Non-negative integer.

    Raises:
        ArgumentError: The budget is out of range, or the graph too large.
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> matcha(topology.torus(4, 4), budget=0.5)
        <Schedule: MATCHA of 4 x 4 torus, budget 0.5, no period>

    References:
        J. Wang et al., 2019 (see ``matcha_plan``).
    """
    return matcha_plan(graph, budget).schedule(seed)


@dataclass(frozen=True)
class _Matcha:
    plan: MatchaPlan
    seed: int

    def __call__(self, k: int) -> Topology:
        plan = self.plan
        drawn = np.random.default_rng([self.seed, k]).random(len(plan.matchings))
        used = np.flatnonzero(drawn < np.array(plan.probabilities)).tolist()
        links = [edge for j in used for edge in plan.matchings[j]]
        pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
        receivers, senders = np.concatenate([pairs, pairs[:, ::-1]]).T
        W = fill(Edges(plan.size, receivers, senders), np.full(receivers.size, plan.alpha))
        name = f"{plan.name}, step {k}"
        return Topology(W, name=name, weights="matcha", require_connected=False)

    def law(self) -> Law:
        mean = sparse.eye_array(self.plan.size, format="csr") - self._mean
        return Law(mean.tocsr(), self.forward)

    @cached_property
    def _laplacians(self) -> tuple[Matrix, ...]:
        """α L_j of each matching."""
        found = []
        for part in self.plan.matchings:
            i, j = np.array(part).T
            ends, weights = np.concatenate([i, j]), np.full(2 * len(i), self.plan.alpha)
            edges = Edges(self.plan.size, ends, np.concatenate([j, i]))
            identity = sparse.eye_array(self.plan.size, format="csr")
            found.append((identity - fill(edges, weights)).tocsr())
        return tuple(found)

    @cached_property
    def _mean(self) -> Matrix:
        zero: Matrix = sparse.csr_array((self.plan.size, self.plan.size))
        parts = zip(self.plan.probabilities, self._laplacians, strict=True)
        return sum((p * L for p, L in parts), start=zero).tocsr()

    def forward(self, X: Floats) -> Floats:
        r"""Return E[W X W] = (I - α L̄) X (I - α L̄) + α² Σ p_j (1 - p_j) L_j X L_j."""
        left = X - self._mean @ X
        total = left - (self._mean @ left.T).T
        for p, L in zip(self.plan.probabilities, self._laplacians, strict=True):
            total += p * (1.0 - p) * (L @ (L @ X).T).T
        return np.asarray(total)


def _moments(
    n: int, parts: tuple[tuple[tuple[int, int], ...], ...], chances: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Return E[L] and E[L²] of the Laplacian L of what is in use; a matching has L_j² = 2 L_j."""
    mean, spread = np.zeros((n, n)), np.zeros((n, n))
    for part, p in zip(parts, chances, strict=True):
        i, j = np.array(part).T
        for total, weight in ((mean, p), (spread, p * (1 - p))):
            total[i, i] += weight
            total[j, j] += weight
            total[i, j] -= weight
            total[j, i] -= weight
    return mean, mean @ mean + 2 * spread


def _factor(alpha: float, mean: Floats, square: Floats) -> float:
    """Return ‖I - J - 2 α E[L] + α² E[L²]‖₂."""
    n = mean.shape[0]
    moment = np.eye(n) - 1.0 / n - 2 * alpha * mean + alpha**2 * square
    return max(0.0, float(np.linalg.eigvalsh(moment)[-1]))


def _best_alpha(mean: Floats, square: Floats) -> float:
    """Minimise ``_factor``, a maximum of convex parabolas; it is above 1 from 2/λ_max on."""
    from scipy.optimize import minimize_scalar

    most = 2.0 / float(np.linalg.eigvalsh(mean)[-1])
    found = minimize_scalar(
        _factor, bounds=(0.0, most), args=(mean, square), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x)
