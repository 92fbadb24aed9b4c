"""Where descent with local mixing ends, and what that depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool import algorithms
from dectool.algorithms import Algorithm
from dectool.errors import ArgumentError, TopologyError
from dectool.history import History
from dectool.problems import Problem, Quadratic
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._iteration import rate
from dectool.theory.claims._blocks import Blocks, blocks
from dectool.theory.claims._given import (
    CURVATURES,
    checked_quadratic,
    checked_rate,
    checked_topologies,
    checked_topology,
)
from dectool.topology import Topology, path, ring

_LIMITS: dict[str, Callable[[float, Blocks], Any]] = {
    "DGD": lambda a, q: a * np.linalg.solve(np.eye(len(q.b)) - q.W + a * q.H, q.b),
    "ATC": lambda a, q: a * np.linalg.solve(np.eye(len(q.b)) - q.W + a * q.W @ q.H, q.W @ q.b),
    "CTA": lambda a, q: a * np.linalg.solve(np.eye(len(q.b)) - q.W + a * q.H @ q.W, q.b),
}


def diffusion_ends_at_its_fixed_point(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.1,
    steps: int = 400,
) -> Evidence:
    r"""Check where DGD, ATC and CTA end on quadratics of curvatures H and linear terms b.

    .. math:: X_\infty = \alpha (I - W + \alpha H)^{-1} b, \qquad
       \alpha (I - W + \alpha W H)^{-1} W b, \qquad \alpha (I - W + \alpha H W)^{-1} b

    Args:
        topology: With doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, enough to come within 1e-9 of the end.

    Raises:
        ArgumentError: An argument breaks its rule, or a method does not converge.
        TopologyError: The weights are not as asked for.

    Example:
        >>> bool(diffusion_ends_at_its_fixed_point().verdict)
        True

    References:
        K. Yuan, Q. Ling & W. Yin, On the convergence of decentralized gradient descent, SIAM J.
        Optim. 26(3), 2016; A. H. Sayed, Foundations and Trends in Machine Learning 7(4-5), 2014.
    """
    graph = checked_topology(topology, ring(8))
    quadratic = checked_quadratic(problem, graph.size)
    q, steps = blocks(quadratic, graph), whole("steps", steps, 1)
    checks, curves = [], []
    for name, formula in _LIMITS.items():
        history = _run(algorithms.get(name, lr=lr), quadratic, graph, steps)
        limit = formula(checked_rate("lr", lr), q)
        bias = _away(quadratic, limit)
        checks += _ends_at(name, history, limit, bias)
        curves.append(_settling(name, history, bias))
    return Evidence(
        f"diffusion on {graph.name} with step {lr:g} ends at its fixed point (Yuan, Ling & Yin "
        "2016)",
        tuple(checks),
        tuple(curves),
        y="distance from the optimum",
    )


def bias_is_proportional_to_step_and_inverse_gap(
    topologies: Sequence[Topology] | None = None, *, lr: float = 1e-4, steps: int = 400
) -> Evidence:
    r"""Check that the bias of DGD and ATC grows as α, and as 1 / (1 - λ₂) from graph to graph.

    With one curvature h and linear terms along an eigenvector of W, of eigenvalue λ, the mean of
    the ranks is exact, and they end apart by

    .. math:: \frac{\alpha}{1 - \lambda + \alpha h} \|b\| \quad \text{(DGD)}, \qquad
       \frac{\alpha \lambda}{1 - \lambda + \alpha \lambda h} \|b\| \quad \text{(ATC)}

    Here b is along the eigenvector of λ₂, and h = 1.

    Args:
        topologies: Two or more, with symmetric doubly stochastic weights and different λ₂ > 0;
            default: rings of 6, 8, 12 and 16.
        lr: The smallest step size α, much smaller than every 1 - λ₂; twice, four times and eight
            times as much are tried too.
        steps: Steps of each run.

    Raises:
        ArgumentError: An argument breaks its rule, or a method does not converge.
        TopologyError: A matrix is not symmetric and doubly stochastic, or its λ₂ is not above 0.

    Example:
        >>> bool(bias_is_proportional_to_step_and_inverse_gap().verdict)
        True

    References:
        K. Yuan, Q. Ling & W. Yin, On the convergence of decentralized gradient descent, SIAM J.
        Optim. 26(3), 2016.
    """
    graphs = checked_topologies(topologies, [ring(n) for n in (6, 8, 12, 16)])
    for graph in graphs:
        if not (graph.is_symmetric and graph.is_doubly_stochastic and graph.lambda_2 > 1e-9):
            raise TopologyError(
                f"{graph.name} must have symmetric doubly stochastic weights and lambda_2 above 0: "
                "with others it does not tell the bias; use topology.lazy()"
            )
    gaps = np.array([1.0 - graph.lambda_2 for graph in graphs])
    if len(graphs) < 2 or np.ptp(gaps) < 1e-9:
        raise ArgumentError("topologies must be two or more, with different lambda_2")
    if not checked_rate("lr", lr) < 0.05 * gaps.min():
        raise ArgumentError(
            f"lr={lr:g} must be below a twentieth of the smallest 1 - lambda_2, {gaps.min():.3g}: "
            "the bias of larger steps is not proportional to them"
        )
    steps = whole("steps", steps, 1)
    rates = lr * 2.0 ** np.arange(4)
    checks, curves = [], []
    for name in ("DGD", "ATC"):
        by_rate = np.array([_bias_of_slowest_mode(name, a, graphs[0], steps) for a in rates])
        by_gap = np.array([_bias_of_slowest_mode(name, lr, graph, steps) for graph in graphs])
        gain = 1.0 - gaps if name == "ATC" else np.ones_like(gaps)
        expected = rates * gain[0] / (gaps[0] + rates * gain[0])
        over_graphs = lr * gain / (gaps + lr * gain)
        for what, found, predicted in (
            ("step sizes", by_rate, expected),
            ("topologies", by_gap, over_graphs),
        ):
            worst = int(np.argmax(np.abs(found / predicted - 1.0)))
            checks.append(
                Check.equal(
                    f"{name}: bias (worst of {len(found)} {what})",
                    float(found[worst]),
                    float(predicted[worst]),
                    tolerance=1e-8,
                )
            )
        # Mixing once before the end makes the bias of ATC smaller by the eigenvalue itself.
        slopes = {"step": _slope(rates, by_rate), "inverse gap": _slope(1 / gaps, by_gap / gain)}
        checks += [
            Check.equal(f"{name}: slope of log bias in log {what}", slope, 1.0, tolerance=0.05)
            for what, slope in slopes.items()
        ]
        curves.append(Curve(name, 1.0 / gaps, by_gap, over_graphs))
    return Evidence(
        "the bias of diffusion is proportional to the step and to 1 / (1 - lambda_2) (Yuan, Ling "
        "& Yin 2016)",
        tuple(checks),
        tuple(curves),
        x="1 / (1 - lambda_2)",
        y=f"bias with step {lr:g}",
        scale="loglog",
    )


def bias_is_proportional_to_heterogeneity(
    topology: Topology | None = None,
    *,
    lr: float = 0.05,
    scales: Sequence[float] = (0.5, 1.0, 2.0),
    steps: int = 600,
) -> Evidence:
    r"""Check that diffusion is biased by heterogeneous data, and exact methods are not.

    The ranks' gradients at the optimum are scaled by s while optimum and curvatures stay:
    :math:`b_i = H_i x^* - s g_i`. The bias of DGD, ATC and CTA is s times that of s = 1, which is
    a closed form; EXTRA, exact diffusion, NIDS, D², gradient tracking and RelaySGD (on a path) end
    at the optimum.

    Args:
        topology: With symmetric doubly stochastic weights, positive definite; default: a lazy
            ring of 8.
        lr: Step size α.
        scales: Values of s, above 0.
        steps: Steps of each run.

    Raises:
        ArgumentError: An argument breaks its rule, or a method does not converge.
        TopologyError: The weights are not as asked for.

    Example:
        >>> bool(bias_is_proportional_to_heterogeneity().verdict)
        True

    References:
        A. Koloskova, N. Loizou, S. Boreiri, M. Jaggi & S. U. Stich, A unified theory of
        decentralized SGD with changing topology and local updates, ICML 2020.
    """
    graph = checked_topology(topology, ring(8).lazy())
    steps = whole("steps", steps, 1)
    factors = [checked_rate("scales", s) for s in scales]
    if not factors:
        raise ArgumentError("scales is empty; give one or more factors above 0")
    checks, curves = [], []
    for name, formula in _LIMITS.items():
        one = _scaled(graph.size, 1.0)
        unit = _away(one, formula(checked_rate("lr", lr), blocks(one, graph)))
        size = float(np.linalg.norm(one.optimum) * np.sqrt(graph.size))
        found = [
            _run(algorithms.get(name, lr=lr), _scaled(graph.size, s), graph, steps).last["distance"]
            for s in factors
        ]
        checks += [
            Check.equal(
                f"{name}: bias with s = {s:g}",
                bias,
                s * unit,
                1e-8,
                scale=max(s * unit, 1e-6 * size),
            )
            for s, bias in zip(factors, found, strict=True)
        ]
        curves.append(Curve(name, np.array(factors), np.array(found), np.array(factors) * unit))
    most = max(factors)
    hardest = _scaled(graph.size, most)
    reach = float(np.linalg.norm(hardest.optimum) * np.sqrt(graph.size))
    for algorithm, where in _exact(lr, graph):
        bias = _run(algorithm, hardest, where, steps).last["distance"]
        checks.append(
            Check.equal(
                f"{algorithm.name}: bias with s = {most:g} (relative to the optimum)",
                bias,
                0.0,
                tolerance=1e-8,
                scale=reach,
            )
        )
    return Evidence(
        f"on {graph.name} the bias of diffusion is proportional to heterogeneity, and that of "
        "exact methods is zero (Koloskova et al. 2020)",
        tuple(checks),
        tuple(curves),
        x="scale of the local gradients at the optimum",
        y="bias",
        scale="linear",
    )


def momentum_enlarges_the_bias(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.02,
    beta: float = 0.8,
    steps: int = 1500,
) -> Evidence:
    r"""Check what momentum does to the bias of adapt-then-combine.

    On quadratics DmSGD with step α and momentum β ends where ATC ends with
    :math:`\alpha / (1 - \beta)`. Quasi-global momentum and DecentLaM, whose momenta know of the
    mixing, end where ATC ends with α.

    Args:
        topology: With doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        beta: Momentum β, above 0 and below 1.
        steps: Steps of each run.

    Raises:
        ArgumentError: An argument breaks its rule, or a method does not converge.
        TopologyError: The weights are not as asked for.

    Example:
        >>> bool(momentum_enlarges_the_bias().verdict)
        True

    References:
        K. Yuan, Y. Chen, X. Huang, Y. Zhang, P. Pan, Y. Xu & W. Yin, DecentLaM, ICCV 2021; T. Lin,
        S. P. Karimireddy, S. U. Stich & M. Jaggi, Quasi-global momentum, ICML 2021.
    """
    graph = checked_topology(topology, ring(8))
    quadratic = checked_quadratic(problem, graph.size)
    q, steps = blocks(quadratic, graph), whole("steps", steps, 1)
    large = checked_rate("lr", lr) / (1.0 - checked_rate("beta", beta, 1.0))
    checks, curves = [], []
    for algorithm, alike in (
        (algorithms.DmSGD(lr=lr, beta=beta), large),
        (algorithms.QuasiGlobalMomentum(lr=lr, beta=beta), lr),
        (algorithms.DecentLaM(lr=lr, beta=beta), lr),
    ):
        history = _run(algorithm, quadratic, graph, steps)
        limit = _LIMITS["ATC"](alike, q)
        bias = _away(quadratic, limit)
        checks += _ends_at(f"{algorithm.name}, as ATC({alike:g})", history, limit, bias)
        curves.append(_settling(algorithm.name, history, bias))
    return Evidence(
        f"on {graph.name} momentum {beta:g} multiplies the step that counts for the bias by "
        f"{1 / (1 - beta):.3g}, unless it knows of the mixing (Yuan et al. 2021)",
        tuple(checks),
        tuple(curves),
        y="distance from the optimum",
    )


def _run(algorithm: Algorithm, problem: Problem, graph: Topology, steps: int) -> History:
    factor = rate(algorithm, problem, graph)
    if factor >= 1.0:
        raise ArgumentError(
            f"{algorithm.name} does not converge on {graph.name}: its rate is {factor:.6g}; lower "
            "lr (see theory.largest_stable_lr), or use topology.lazy()"
        )
    every = max(1, steps // 40)
    return solve(
        algorithm, problem, topology=graph, steps=steps, record_every=every, progress=False
    )


def _away(problem: Problem, limit: Floats) -> float:
    return float(np.linalg.norm(limit.reshape(problem.size, -1) - problem.optimum))


def _ends_at(what: str, history: History, limit: Floats, bias: float) -> list[Check]:
    apart, size = float(np.linalg.norm(history.x.ravel() - limit)), float(np.linalg.norm(limit))
    # A bias that is zero is found to rounding.
    unit = max(bias, 1e-6 * size)
    return [
        Check.equal(f"{what}: bias", history.last["distance"], bias, tolerance=1e-8, scale=unit),
        Check.equal(
            f"{what}: distance of the last iterates from the formula (relative to it)",
            apart,
            0.0,
            tolerance=1e-8,
            scale=size,
        ),
    ]


def _settling(name: str, history: History, bias: float) -> Curve:
    return Curve(
        name, history["step"].astype(np.float64), history["distance"], np.full(len(history), bias)
    )


def _bias_of_slowest_mode(name: str, lr: float, graph: Topology, steps: int) -> float:
    values, vectors = np.linalg.eigh(graph.to_dense())
    b = vectors[:, [np.argsort(values)[-2]]]
    quadratic = Quadratic(h=np.ones((graph.size, 1)), b=b - b.mean())
    return _run(algorithms.get(name, lr=lr), quadratic, graph, steps).last["distance"]


def _slope(x: Any, y: Any) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _scaled(size: int, scale: float) -> Quadratic:
    """Return quadratics of optimum 1 whose gradients there are multiplied by ``scale``."""
    h = np.resize(CURVATURES, size)
    g = np.cos(1.0 + np.arange(size))
    return Quadratic(h=h[:, None], b=(h - scale * (g - g.mean()))[:, None])


def _exact(lr: float, graph: Topology) -> list[tuple[Algorithm, Topology]]:
    names = ("EXTRA", "ExactDiffusion", "NIDS", "D2", "ATCGradientTracking")
    found: list[tuple[Algorithm, Topology]] = [
        (algorithms.get(name, lr=lr), graph) for name in names
    ]
    return [*found, (algorithms.RelaySGD(lr=lr), path(graph.size))]
