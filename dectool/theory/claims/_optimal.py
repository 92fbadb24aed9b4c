"""How many gradients and messages the optimal methods need: SSDA, MSDA and OPAPC."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dectool.algorithms import MSDA, OPAPC, SSDA, Algorithm
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Quadratic
from dectool.solve import solve
from dectool.theory._arguments import Floats
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_rate, checked_topologies
from dectool.topology import Topology, ring

_CONDITIONS = (32.0, 64.0, 128.0)
_DIM = 3


def ssda_needs_root_of_kappa_over_gamma(
    topologies: Sequence[Topology] | None = None,
    *,
    conditions: Sequence[float] = _CONDITIONS,
    accuracy: float = 1e-4,
    seed: int = 0,
) -> Evidence:
    r"""Check that SSDA comes to an accuracy in about √(κ/γ) log(1/ε) steps and messages.

    On quadratics of one and the same diagonal Hessian every mode of the graph and every variable
    goes its own way, of

    .. math:: \begin{pmatrix} (1 + \theta)(1 - \lambda) & -\theta (1 - \lambda) \\ 1 & 0
       \end{pmatrix}, \qquad \gamma/\kappa \le \lambda = \eta (1 - \lambda_l(W)) / h_j \le 1

    which predicts the step at which the error is ``accuracy`` times that of the first step. The
    slowest mode has the double root :math:`1 - \sqrt{\gamma/\kappa}`, so no more steps are needed
    than :math:`\lceil t \sqrt{\kappa/\gamma} \rceil + 1` with :math:`(1 + t) e^{-t} = \epsilon`,
    and twice the condition number takes √2 times the steps, but for terms of the order of
    :math:`\sqrt{\gamma/\kappa}`.

    Args:
        topologies: With symmetric doubly stochastic weights; default: rings of 6 and 12.
        conditions: Condition numbers κ, at least two, ascending; √2 is met for large ones, such
            as from 30 on.
        accuracy: ε, above 0 and below 1; small enough that the slowest mode is left.
        seed: Seed of the local minimisers.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: Weights are not symmetric and doubly stochastic, or W does not average.

    Example:
        >>> bool(ssda_needs_root_of_kappa_over_gamma().verdict)
        True

    References:
        K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, Optimal algorithms for smooth and
        strongly convex distributed optimization in networks, ICML 2017.
    """
    sweep = _Sweep.of(topologies, conditions, accuracy, seed)
    counts = [
        sweep.count(case, SSDA.for_problem(case.problem, case.graph), _ssda, 1) for case in sweep
    ]
    claim = "sqrt(kappa/gamma) log(1/eps) steps (Scaman et al. 2017)"
    return sweep.evidence("SSDA", claim, counts, lambda case: math.sqrt(case.gamma))


def msda_needs_root_of_kappa(
    topologies: Sequence[Topology] | None = None,
    *,
    conditions: Sequence[float] = _CONDITIONS,
    accuracy: float = 1e-4,
    seed: int = 0,
) -> Evidence:
    r"""Check that MSDA comes to an accuracy in about √κ log(1/ε) steps, whatever the graph.

    As :func:`ssda_needs_root_of_kappa_over_gamma`, with the eigenvalues of :math:`P_K(I - W)` in
    place of those of I - W. With :math:`K = \lfloor 1/\sqrt\gamma \rfloor` rounds the ratio of its
    smallest and largest is :math:`\tanh^2(K \operatorname{artanh} \sqrt\gamma) \ge
    \tanh^2(1/2)`, so that

    .. math:: \text{steps} \le \Big\lceil \frac{t \sqrt\kappa}{\tanh(1/2)} \Big\rceil + 1,
       \qquad \text{rounds} = K\, \text{steps} \le \frac{1}{\sqrt\gamma}\, \text{steps}

    Args:
        topologies: As there.
        conditions: As there.
        accuracy: As there.
        seed: As there.

    Raises:
        ArgumentError: As there.
        TopologyError: As there.

    Example:
        >>> bool(msda_needs_root_of_kappa().verdict)
        True

    References:
        K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, Optimal algorithms for smooth and
        strongly convex distributed optimization in networks, ICML 2017.
    """
    sweep = _Sweep.of(topologies, conditions, accuracy, seed)
    counts = [
        sweep.count(case, MSDA.for_problem(case.problem, case.graph), _msda, case.rounds)
        for case in sweep
    ]
    claim = "sqrt(kappa) log(1/eps) steps (Scaman et al. 2017)"
    return sweep.evidence("MSDA", claim, counts, lambda case: math.tanh(0.5))


def opapc_needs_root_of_kappa(
    topologies: Sequence[Topology] | None = None,
    *,
    conditions: Sequence[float] = _CONDITIONS,
    accuracy: float = 1e-4,
    seed: int = 0,
) -> Evidence:
    r"""Check that OPAPC comes to an accuracy in about √κ log(1/ε) gradients, whatever the graph.

    As :func:`msda_needs_root_of_kappa`, with the recursion of OPAPC in each mode, and with
    gradients alone. The steps are held against what is predicted, and against √2 for twice the
    condition number.

    Args:
        topologies: As there.
        conditions: As there.
        accuracy: As there.
        seed: As there.

    Raises:
        ArgumentError: As there.
        TopologyError: As there.

    Example:
        >>> bool(opapc_needs_root_of_kappa().verdict)
        True

    References:
        D. Kovalev, A. Salim & P. Richtárik, Optimal and practical algorithms for smooth and
        strongly convex decentralized optimization, NeurIPS 2020.
    """
    sweep = _Sweep.of(topologies, conditions, accuracy, seed)
    counts = [
        sweep.count(case, OPAPC(lr=1 / case.kappa, condition=case.kappa), _opapc, case.rounds)
        for case in sweep
    ]
    return sweep.evidence("OPAPC", "sqrt(kappa) log(1/eps) gradients (Kovalev et al. 2020)", counts)


class _Case(NamedTuple):
    """Quadratics of one Hessian on a graph, by modes of the graph (rows) and variables."""

    graph: Topology
    kappa: float
    h: Floats
    minimisers: Floats
    values: Floats
    vectors: Floats

    @property
    def problem(self) -> Quadratic:
        h = np.tile(self.h, (self.graph.size, 1))
        return Quadratic(h=h, b=h * self.minimisers)

    @property
    def gamma(self) -> float:
        return float((1.0 - self.values[-2]) / (1.0 - self.values[0]))

    @property
    def rounds(self) -> int:
        return math.floor(1.0 / math.sqrt(self.gamma) + 1e-9)

    @property
    def modes(self) -> Floats:
        """The local minimisers in the modes of the graph, the mean last."""
        return np.asarray(self.vectors.T @ self.minimisers)

    @property
    def apart(self) -> float:
        """How far the local minimisers are from their mean."""
        return float(np.linalg.norm(self.modes[:-1]))

    @property
    def gaps(self) -> Floats:
        """Eigenvalues of I - W, a column; 0 is the last."""
        return np.asarray(np.r_[1.0 - self.values[:-1], 0.0][:, None])

    def gossiped(self) -> Floats:
        """Return eigenvalues of I - W after K rounds of Chebyshev gossip in place of one."""
        low, high = self.values[0], self.values[-2]
        if high - low < 1e-12:
            return np.asarray((self.gaps > 0).astype(np.float64))
        T = np.polynomial.chebyshev.Chebyshev.basis(self.rounds, domain=[low, high])
        left = T(self.values) / T(1.0)
        return np.asarray(np.r_[1.0 - left[:-1], 0.0][:, None])


class _Count(NamedTuple):
    """Steps that were needed, and that are predicted; and messages on each edge."""

    case: _Case
    measured: int
    predicted: int
    messages: float
    rounds: int


Errors = Callable[[_Case], Iterator[Floats]]


@dataclass(frozen=True)
class _Sweep:
    """Graphs, condition numbers, and how near is near enough."""

    graphs: tuple[Topology, ...]
    conditions: tuple[float, ...]
    accuracy: float
    seed: int

    @classmethod
    def of(
        cls,
        topologies: Sequence[Topology] | None,
        conditions: Sequence[float],
        accuracy: float,
        seed: int,
    ) -> _Sweep:
        graphs = tuple(checked_topologies(topologies, (ring(6), ring(12))))
        if not graphs:
            raise ArgumentError("topologies is empty; give one at least")
        for graph in graphs:
            weighed = graph.is_symmetric and graph.is_doubly_stochastic
            if not weighed or graph.size < 2 or graph.lambda_2 > 1.0 - 1e-12:
                raise TopologyError(
                    f"{graph.name}: two ranks at least, and symmetric doubly stochastic weights, "
                    "are needed; use a connected undirected graph"
                )
        kappas = tuple(float(kappa) for kappa in conditions)
        if len(kappas) < 2 or not all(a < b for a, b in zip((1.0, *kappas), kappas, strict=False)):
            raise ArgumentError(
                f"conditions={list(conditions)} must be two or more numbers above 1, ascending"
            )
        return cls(graphs, kappas, checked_rate("accuracy", accuracy, 1.0), seed)

    @property
    def units(self) -> float:
        """The t with (1 + t) exp(-t) = accuracy."""
        return float(brentq(lambda t: math.log1p(t) - t - math.log(self.accuracy), 0.0, 800.0))

    def __iter__(self) -> Iterator[_Case]:
        for graph in self.graphs:
            values, vectors = np.linalg.eigh(graph.to_dense())
            u = np.random.default_rng(self.seed).standard_normal((graph.size, _DIM))
            for kappa in self.conditions:
                yield _Case(graph, kappa, np.geomspace(1.0, kappa, _DIM), u, values, vectors)

    def count(self, case: _Case, algorithm: Algorithm, errors: Errors, rounds: int) -> _Count:
        """Return when an algorithm has come near enough, and when its modes have."""
        target = self.accuracy * case.apart
        predicted = next(
            k for k, error in enumerate(errors(case)) if np.linalg.norm(error) <= target
        )
        history = solve(
            algorithm,
            case.problem,
            topology=case.graph,
            steps=2 * predicted + 10,
            stop={"distance": target},
            progress=False,
        )
        edges = float(case.graph.in_degrees.sum())
        return _Count(case, history.step, predicted, history.last["messages"] / edges, rounds)

    def evidence(
        self,
        name: str,
        claim: str,
        counts: list[_Count],
        root: Callable[[_Case], float] | None = None,
    ) -> Evidence:
        """Return the checks of all counts, and their curves over the condition number.

        The bound is that of a gossip matrix of which ``root`` is the square root of the ratio of
        smallest and largest eigenvalue, or less.
        """
        checks: list[Check] = []
        for count in counts:
            where = f"{name} on {count.case.graph.name}, kappa={count.case.kappa:g}"
            # Rounding may decide at the step where the accuracy is just met.
            checks.append(
                Check.equal(f"{where}: steps", count.measured, count.predicted, 1.0, scale=1.0)
            )
            if root is not None:
                slow = self.units * math.sqrt(count.case.kappa) / root(count.case)
                bound = float(math.ceil(slow) + 1)
                checks.append(Check.at_most(f"{where}: steps", count.measured, bound))
            checks.append(
                Check.equal(
                    f"{where}: messages on each edge, in each direction",
                    count.messages,
                    count.measured * count.rounds,
                    tolerance=0.0,
                )
            )
        size, curves = len(self.conditions), []
        doublings = math.log2(self.conditions[-1] / self.conditions[0])
        for j, graph in enumerate(self.graphs):
            part = counts[j * size : (j + 1) * size]
            growth = (part[-1].measured / part[0].measured) ** (1.0 / doublings)
            checks.append(
                Check.equal(
                    f"{name} on {graph.name}: steps grow, with each doubling of kappa, by",
                    growth,
                    math.sqrt(2.0),
                    tolerance=0.04,
                )
            )
            curves.append(
                Curve(
                    f"{name} on {graph.name}",
                    np.array(self.conditions),
                    np.array([float(count.measured) for count in part]),
                    np.array([float(count.predicted) for count in part]),
                )
            )
        return Evidence(
            f"{name} comes to {self.accuracy:g} in about {claim}",
            tuple(checks),
            tuple(curves),
            x="condition number",
            y="steps",
            scale="loglog",
        )


def _ascent(case: _Case, gaps: Floats, largest: float, gamma: float) -> Iterator[Floats]:
    """Yield errors of x in each mode, of Nesterov's method on the dual from zero."""
    root = math.sqrt(gamma / case.kappa)
    theta = (1.0 - root) / (1.0 + root)
    # The dual optimum is minus the local gradients there; the mean of x is right at once.
    y = y_prev = np.where(gaps > 0, case.h * case.modes, 0.0)
    yield np.full(1, np.inf)
    while True:
        z = (1.0 + theta) * y - theta * y_prev
        yield z / case.h
        y, y_prev = z - gaps * z / (largest * case.h), y


def _ssda(case: _Case) -> Iterator[Floats]:
    return _ascent(case, case.gaps, 1.0 - float(case.values[0]), case.gamma)


def _msda(case: _Case) -> Iterator[Floats]:
    c = _left(case)
    return _ascent(case, case.gossiped(), (1 + c) ** 2 / (1 + c**2), ((1 - c) / (1 + c)) ** 2)


def _opapc(case: _Case) -> Iterator[Floats]:
    """Yield errors of x in each mode, of OPAPC from x = 0."""
    c, gaps = _left(case), case.gossiped()
    low, high = (1 - c) ** 2 / (1 + c**2), (1 + c) ** 2 / (1 + c**2)
    tau = min(1.0, 0.5 * math.sqrt(high / (low * case.kappa)))
    # Smoothness kappa and strong convexity 1.
    eta = 1.0 / (4.0 * tau * case.kappa)
    mean = np.zeros_like(case.modes)
    mean[-1] = case.modes[-1]
    x = x_f = -mean
    y = -case.h * (case.modes - mean)
    while True:
        yield x
        x_g = tau * x + (1.0 - tau) * x_f
        half = (x - eta * (case.h * x_g - x_g + y)) / (1.0 + eta)
        change = gaps * half / (eta * high)
        moved = half - eta / (1.0 + eta) * change
        x_f, x, y = x_g + 2.0 * tau / (2.0 - tau) * (moved - x), moved, y + change


def _left(case: _Case) -> float:
    """Return ((1 - sqrt gamma) / (1 + sqrt gamma))^K: what Chebyshev gossip leaves, about half."""
    root = math.sqrt(case.gamma)
    return float(((1.0 - root) / (1.0 + root)) ** case.rounds)
