"""Descent in rounds: where local steps end, and what exact averages now and then are good for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dectool.algorithms import ATC, Algorithm, GossipPGA, LocalSGD
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Problem, Quadratic
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._iteration import rate
from dectool.theory.claims._blocks import blocks
from dectool.theory.claims._given import checked_quadratic, checked_rate, checked_topology
from dectool.topology import Topology, ring


def local_descent_ends_at_a_weighted_mean(
    problem: Problem | None = None,
    *,
    lr: float = 0.1,
    periods: Sequence[int] = (1, 4, 16),
    steps: int = 480,
) -> Evidence:
    r"""Check where rounds of H local steps and an exact mean end on quadratics.

    .. math:: x_\infty = \Big( \sum_i A_i \Big)^{-1} \sum_i A_i x_i^*, \qquad
       A_i = I - (I - \alpha H_i)^H

    With H = 1 that is the optimum; with more steps ranks of small curvature count for more, up to
    the plain mean of the ranks' own optima :math:`x_i^*`.

    Args:
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones.
        lr: Step size α.
        periods: Values of H, each a divisor of `steps`.
        steps: Steps of each run.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(local_descent_ends_at_a_weighted_mean().verdict)
        True

    References:
        Z. Charles & J. Konečný, Convergence and accuracy trade-offs in federated learning and
        meta-learning, AISTATS 2021.
    """
    quadratic, steps = checked_quadratic(problem), whole("steps", steps, 1)
    checks, biases, predicted = [], [], []
    for period in _periods(periods):
        if steps % period:
            raise ArgumentError(
                f"steps={steps} is no multiple of the period {period}, so the run would end within "
                "a round; give a multiple"
            )
        expected = _end_of_rounds(quadratic, checked_rate("lr", lr), period)
        history = solve(
            LocalSGD(lr=lr, period=period),
            quadratic,
            topology=ring(quadratic.size),
            steps=steps,
            record_every=steps,
            progress=False,
        )
        apart = float(np.linalg.norm(history.x - expected, axis=1).max())
        size = float(np.linalg.norm(expected)) or 1.0
        name = f"H = {period}: distance of the farthest rank from the formula (relative to it)"
        checks.append(Check.equal(name, apart, 0.0, tolerance=1e-9, scale=size))
        biases.append(float(np.linalg.norm(history.x.mean(axis=0) - quadratic.optimum)))
        predicted.append(float(np.linalg.norm(expected - quadratic.optimum)))
    return Evidence(
        f"{steps} steps in rounds of local descent with step {lr:g} end at the mean that is "
        "weighted by I - (I - lr H_i)^H (Charles & Konecny 2021)",
        tuple(checks),
        (Curve("local SGD", np.array(periods, float), np.array(biases), np.array(predicted)),),
        x="local steps H",
        y="distance of the mean from the optimum",
        scale="linear",
    )


def global_averages_follow_their_period_map(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.1,
    period: int = 4,
    rounds: int = 12,
) -> Evidence:
    r"""Check that a round of Gossip-PGA is its affine map on quadratics.

    .. math:: X^{(r+1) H} = M X^{r H} + c, \qquad
       M = J (I - \alpha H) \, \big(W (I - \alpha H)\big)^{H - 1}

    with J the mean over ranks; the curvatures in parentheses are the matrices of the problem, the
    H in exponents the period.

    Args:
        topology: With doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        period: Steps H of a round.
        rounds: Rounds that are compared.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(global_averages_follow_their_period_map().verdict)
        True

    References:
        Y. Chen, K. Yuan, Y. Zhang, P. Pan, Y. Xu & W. Yin, Accelerating gossip SGD with periodic
        global averaging, ICML 2021.
    """
    graph = checked_topology(topology, ring(8))
    quadratic = checked_quadratic(problem, graph.size)
    W, H, b = blocks(quadratic, graph)
    (period,), rounds = _periods([period]), whole("rounds", rounds, 1)
    a, n, d = checked_rate("lr", lr), quadratic.size, quadratic.dim
    J = np.kron(np.full((n, n), 1.0 / n), np.eye(d))
    M, c = np.eye(n * d), np.zeros(n * d)
    for k in range(period):
        average = J if k == period - 1 else W
        M, c = average @ (M - a * H @ M), average @ (c - a * (H @ c - b))
    algorithm = GossipPGA(lr=a, period=period)
    start = np.random.default_rng(0).normal(size=(n, d))
    history = solve(
        algorithm,
        quadratic,
        topology=graph,
        steps=rounds * period,
        x0=start,
        record_every=period,
        progress=False,
    )
    x, predicted = start.ravel(), []
    for _ in range(rounds + 1):
        predicted.append(float(np.linalg.norm(x.reshape(n, d) - quadratic.optimum)))
        x, last = M @ x + c, x
    measured, expected = history["distance"], np.array(predicted)
    worst = int(np.argmax(np.abs(measured - expected)))
    spectral = float(np.abs(np.linalg.eigvals(M)).max())
    return Evidence(
        f"rounds of {period} steps of Gossip-PGA on {graph.name} are their affine map (Chen et al. "
        "2021)",
        (
            Check.equal(
                f"distance from the optimum (worst of {rounds} rounds: {worst}; relative to the "
                "first)",
                float(measured[worst]),
                predicted[worst],
                tolerance=1e-12,
                scale=predicted[0],
            ),
            Check.equal(
                "distance of the last iterates from the map (relative to the start)",
                float(np.linalg.norm(history.x.ravel() - last)),
                0.0,
                tolerance=1e-12,
                scale=float(np.linalg.norm(start)),
            ),
            Check.equal(
                "contraction per step, read off the algorithm's code",
                rate(algorithm, quadratic, graph),
                float(spectral ** (1.0 / period)),
                tolerance=1e-9,
            ),
        ),
        (Curve("Gossip-PGA", history["step"].astype(np.float64), measured, expected),),
        y="distance from the optimum",
    )


def global_averages_help_up_to_one_over_the_gap(
    topology: Topology | None = None,
    *,
    lr: float = 1e-3,
    periods: Sequence[int] = (2, 4, 8, 13, 26, 52, 104),
) -> Evidence:
    r"""Check how far ranks drift apart between exact averages, and when that is worth it.

    With one curvature h and linear terms b along the eigenvector of λ₂, the ranks of Gossip-PGA
    are :math:`\alpha \lambda (1 - (\lambda q)^{H - 1}) / (1 - \lambda q) \|b\|` apart at the end of
    a round's H - 1 gossip steps, q = 1 - α h. That is a share of :math:`1 - (\lambda q)^{H - 1}` of
    what gossip alone leaves: below 1 - 1/e for all H up to :math:`1 / (1 - \lambda q)`, about
    :math:`1 / (1 - \rho)`, and nearly all of it for several times as many. Here h = 1.

    Args:
        topology: With symmetric doubly stochastic weights and λ₂ > 0; default: a ring of 16.
        lr: Step size α, small against 1 - λ₂.
        periods: Values of H, at least 2.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic, or λ₂ is not above 0.

    Example:
        >>> bool(global_averages_help_up_to_one_over_the_gap().verdict)
        True

    References:
        Y. Chen, K. Yuan, Y. Zhang, P. Pan, Y. Xu & W. Yin, Accelerating gossip SGD with periodic
        global averaging, ICML 2021 (the factor :math:`\sum_{k<H} \rho^k`).
    """
    graph = checked_topology(topology, ring(16))
    if not (graph.is_symmetric and graph.is_doubly_stochastic and graph.lambda_2 > 1e-9):
        raise TopologyError(
            f"{graph.name} must have symmetric doubly stochastic weights and lambda_2 above 0; "
            "use topology.lazy()"
        )
    a = checked_rate("lr", lr, 1.0)
    values, vectors = np.linalg.eigh(graph.to_dense())
    value, b = float(np.sort(values)[-2]), vectors[:, [np.argsort(values)[-2]]]
    quadratic = Quadratic(h=np.ones((graph.size, 1)), b=b - b.mean())
    decay = value * (1.0 - a)
    alone = a * value / (1.0 - decay)
    counts = _periods(periods, least=2)
    settled = 1 + int(np.ceil(np.log(1e-9) / np.log(decay)))
    gossip = _apart(ATC(lr=a), quadratic, graph, settled)
    found = np.array([_apart(GossipPGA(lr=a, period=H), quadratic, graph, 2 * H) for H in counts])
    expected = alone * (1.0 - decay ** (np.array(counts) - 1.0))
    worst = int(np.argmax(np.abs(found / expected - 1.0)))
    checks = [
        Check.equal("gossip alone: disagreement at the end", gossip, alone, tolerance=1e-6),
        Check.equal(
            f"largest disagreement of a round (worst of {len(counts)}: H = {counts[worst]})",
            float(found[worst]),
            float(expected[worst]),
            tolerance=1e-9,
        ),
    ]
    memory = 1.0 / (1.0 - decay)
    for period, share in zip(counts, found / alone, strict=True):
        if period <= memory:
            name = f"H = {period}, up to 1 / (1 - rho): share of gossip alone"
            checks.append(Check.at_most(name, float(share), 1.0 - float(np.exp(-1.0))))
        elif period - 1 >= 5.0 * memory:
            name = f"H = {period}, five times 1 / (1 - rho) or more: share of gossip alone"
            checks.append(Check.at_least(name, float(share), 1.0 - float(np.exp(-5.0))))
    return Evidence(
        f"on {graph.name} exact averages help for periods up to about 1 / (1 - rho) = "
        f"{1 / (1 - graph.rho):.3g} (Chen et al. 2021)",
        tuple(checks),
        (
            Curve("Gossip-PGA", np.array(counts, float), found, expected),
            Curve("gossip alone", np.array(counts, float), None, np.full(len(counts), alone)),
        ),
        x="period H",
        y="largest disagreement",
        scale="linear",
    )


def _periods(periods: Sequence[int], least: int = 1) -> list[int]:
    found = [whole("period", period, least) for period in periods]
    if not found:
        raise ArgumentError("periods is empty; give one or more")
    return found


def _end_of_rounds(problem: Quadratic, lr: float, period: int) -> Floats:
    """Return the common point that a round of local steps and an exact mean does not change."""
    _, H, b = blocks(problem, ring(problem.size))
    n, d = problem.size, problem.dim
    step, way, total = np.eye(n * d) - lr * H, np.eye(n * d), np.zeros(n * d)
    for _ in range(period):
        total, way = step @ total + lr * b, step @ way
    whole_way = np.tile(np.eye(d), n) @ (np.eye(n * d) - way) @ np.tile(np.eye(d), n).T
    end: Floats = np.linalg.solve(whole_way, total.reshape(n, d).sum(axis=0))
    return end


def _apart(algorithm: Algorithm, problem: Quadratic, graph: Topology, steps: int) -> float:
    """Return the largest disagreement in the last period of a run."""
    last = algorithm.period
    history = solve(algorithm, problem, topology=graph, steps=steps, progress=False)
    return float(history["consensus_error"][-last:].max())
