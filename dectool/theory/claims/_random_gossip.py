"""Averaging by random steps, in mean and in mean square."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dectool.errors import ArgumentError, TopologyError
from dectool.theory._arguments import Floats, real, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_topology
from dectool.theory.claims._samples import follow, mean_is, so_far, squares
from dectool.topology import (
    Schedule,
    Topology,
    as_schedule,
    complete,
    equidyn,
    expected_contraction,
    matcha_plan,
    mean_square_rate,
    random_one_peer,
    random_pair,
    ring,
    torus,
)

_MATCHINGS = 12


def randomized_gossip_contracts_in_mean_square(
    topology: Topology | None = None, *, steps: int = 12, runs: int = 80, seed: int = 0
) -> Evidence:
    r"""Check the mean and the mean square of gossip in which one random pair averages per step.

    Rank i wakes with probability 1/n and picks j with :math:`P_{ij} = 1/d_i`. With

    .. math:: \bar W = I - \frac{D}{2n} + \frac{P + P^\top}{2n}, \qquad
       D_{ii} = \sum_j (P_{ij} + P_{ji})

    the mean is :math:`E[x_k] = \bar W^k x_0`, and :math:`E \|e_k\|^2 \le \lambda_2(\bar W)^k
    \|e_0\|^2`, with equality at k = 1 from the second eigenvector. The exact mean square is that
    of :math:`X \leftarrow E[W X W^\top]`, whose factor in the long run lies between
    :math:`\lambda_2^2` and :math:`\lambda_2`.

    Args:
        topology: Connected and undirected, at least 3 ranks; default: a ring of 8.
        steps: Steps of a run, at least 1.
        runs: Runs of which the mean is taken, at least 2.
        seed: Of the pairs.

    Raises:
        TopologyError: The graph is directed or has fewer ranks.

    Example:
        >>> from dectool import topology
        >>> bool(randomized_gossip_contracts_in_mean_square(topology.star(6), runs=60).verdict)
        True

    References:
        S. Boyd, A. Ghosh, B. Prabhakar & D. Shah, Randomized gossip algorithms, IEEE TIT 52(6),
        2006.
    """
    graph = checked_topology(topology, ring(8))
    steps, runs = whole("steps", steps, 1), whole("runs", runs, 2)
    if graph.size < 3:
        raise TopologyError(f"{graph.name} has {graph.size} ranks; a pair averages exactly, use 3")
    schedule = random_pair(graph, seed=seed)
    mean = _mean_of_pairs(graph)
    values, vectors = np.linalg.eigh(mean)
    second, start = float(values[-2]), vectors[:, -2]
    found = follow(schedule, start, steps, runs)
    X, exact = np.outer(start, start), []
    for _ in range(steps + 1):
        exact.append(float(X.trace()))
        X = schedule.law.forward(X)
    bound = second ** np.arange(steps + 1.0)
    excess = int(np.argmax(np.array(exact) / bound))
    rate, slope = mean_square_rate(schedule), _factor(schedule, X)
    error = squares(found)
    k = np.arange(steps + 1.0)
    return Evidence(
        f"randomized gossip on {graph.name} has the mean Wbar^k x0 and contracts in mean square by "
        f"lambda_2 = {second:.9g} or more (Boyd et al. 2006)",
        (
            mean_is(f"values after {steps} steps", found[:, -1], second**steps * start),
            mean_is("squared error after 1 step", error[:, 1], second),
            mean_is(f"squared error after {steps} steps", error[:, -1], exact[-1]),
            Check.equal("exact mean square after 1 step", exact[1], second, tolerance=1e-12),
            Check.at_most(
                f"exact mean square (worst of {steps} steps: {excess})",
                exact[excess],
                float(bound[excess]),
            ),
            Check.equal("exact factor in the long run", rate, slope, tolerance=1e-8),
            Check.at_most("exact factor in the long run (lambda_2)", rate, second),
            Check.at_least("exact factor in the long run (lambda_2^2)", rate, second**2),
        ),
        (
            Curve(f"mean of {runs} runs", k, error.mean(axis=0), np.array(exact)),
            Curve("bound", k, None, bound),
        ),
        y="mean squared error",
    )


def averaging_time_is_between_its_bounds(
    topology: Topology | None = None, *, eps: float = 0.1, runs: int = 30, seed: int = 0
) -> Evidence:
    r"""Check how many random pairs bring the error within ε, but for a chance of ε.

    The ε-averaging time of randomized gossip is the least k with
    :math:`P(\|e_k\| \ge \epsilon \|x_0\|) \le \epsilon` from the worst start, and

    .. math:: \frac{\log 1/\epsilon}{2 \log 1/\lambda_2(\bar W)} \le T_{ave}(\epsilon) \le
       \frac{3 \log 1/\epsilon}{\log 1/\lambda_2(\bar W)}

    It is measured from the second eigenvector of :math:`\bar W`, from which the lower bound holds
    if :math:`\epsilon \le 1/4`; the upper one holds from every start.

    Args:
        topology: Connected and undirected, at least 3 ranks; default: a ring of 6.
        eps: Above 0, at most 1/4.
        runs: Runs by which chances are measured, at least 1/ε.
        seed: Of the pairs.

    Raises:
        ArgumentError: eps or runs is out of range.
        TopologyError: The graph is directed or has fewer ranks.

    Example:
        >>> found = averaging_time_is_between_its_bounds()
        >>> bool(found.verdict), [round(check.predicted, 1) for check in found.checks]
        (True, [13.2, 80.0])

    References:
        S. Boyd, A. Ghosh, B. Prabhakar & D. Shah, Randomized gossip algorithms, IEEE TIT 52(6),
        2006.
    """
    graph = checked_topology(topology, ring(6))
    eps = real("eps", eps)
    if not 0.0 < eps <= 0.25:
        raise ArgumentError(f"eps must be above 0 and at most 1/4, got {eps:g}")
    runs = whole("runs", runs, math.ceil(1.0 / eps))
    if graph.size < 3:
        raise TopologyError(f"{graph.name} has {graph.size} ranks; a pair averages exactly, use 3")
    schedule = random_pair(graph, seed=seed)
    values, vectors = np.linalg.eigh(_mean_of_pairs(graph))
    time = math.log(1.0 / eps) / math.log(1.0 / float(values[-2]))
    steps = math.ceil(3.0 * time)
    found = squares(follow(schedule, vectors[:, -2], steps, runs))
    # A pair that averages takes no error away from others: once within eps, a run stays there.
    far = (found >= eps**2).mean(axis=0)
    measured = float(np.flatnonzero(far <= eps).min(initial=steps + 1))
    k = np.arange(steps + 1.0)
    return Evidence(
        f"randomized gossip on {graph.name} takes between {0.5 * time:.4g} and {3.0 * time:.4g} "
        f"steps to an error of {eps:g} (Boyd et al. 2006)",
        (
            Check.at_least(f"averaging time of {runs} runs", measured, 0.5 * time),
            # The first whole step beyond it is within the bound too.
            Check.at_most(f"averaging time of {runs} runs", measured, float(steps)),
        ),
        (Curve(f"share of {runs} runs beyond {eps:g}", k, far),),
        y="share",
        scale="linear",
    )


def gossip_in_pairs_contracts_alike(n: int = 8, *, runs: int = 400, seed: int = 0) -> Evidence:
    r"""Check that a random pair of all ranks takes away 1/(n - 1) of the squared error.

    .. math:: E \|e_{k+1}\|^2 = \Big( 1 - \frac{1}{n - 1} \Big) \|e_k\|^2

    for every error, and not at worst only.

    Args:
        n: Number of ranks, at least 2.
        runs: Steps of which the mean is taken, at least 2.
        seed: Of the pairs and of the starting point.

    Raises:
        ArgumentError: An argument is out of range.

    Example:
        >>> bool(gossip_in_pairs_contracts_alike(5).verdict)
        True

    References:
        S. Boyd, A. Ghosh, B. Prabhakar & D. Shah, Randomized gossip algorithms, IEEE TIT 52(6),
        2006.
    """
    n, runs = whole("n", n, 2), whole("runs", runs, 2)
    schedule = random_pair(complete(n), seed=seed)
    start = np.random.default_rng(seed).standard_normal(n)
    factor = 1.0 - 1.0 / (n - 1)
    exact = float(np.vdot(schedule.law.disagreement(), np.outer(start, start)) / squares(start))
    shrunk = squares(follow(schedule, start, 1, runs)[:, 1]) / squares(start)
    return Evidence(
        f"a random pair of {n} ranks leaves 1 - 1/(n - 1) = {factor:.6g} of any squared error",
        (
            Check.equal("mean square of a step", exact, factor, tolerance=1e-12, scale=1.0),
            Check.equal(
                "factor in the long run", mean_square_rate(schedule), factor, 1e-12, scale=1.0
            ),
            mean_is("squared error after a step, relative", shrunk, factor),
        ),
        (so_far("random pairs", shrunk, factor),),
        x="steps drawn",
        y="mean squared error left",
        scale="linear",
    )


def random_steps_contract_as_expected(
    schedule: Schedule | None = None, *, runs: int = 600
) -> Evidence:
    r"""Check the expected contraction of random steps, from the start for which it is worst.

    .. math:: \max_{e \perp 1} \frac{E \| Q W e \|^2}{\|e\|^2}
       = \lambda_{\max}\big( Q\, E[W^\top Q W]\, Q \big), \qquad Q = I - J

    Args:
        schedule: With a ``law``; default: the one-peer exponential graph of 16 ranks with random
            hops, for which it is the mean of :math:`\cos^2(\pi m 2^t / n)` over t, largest in m.
        runs: Steps of which the mean is taken, at least 2.

    Raises:
        TopologyError: The law of the schedule is not known.

    Example:
        >>> from dectool import topology
        >>> found = random_steps_contract_as_expected(topology.random_broadcast(topology.ring(6)))
        >>> bool(found.verdict)
        True

    References:
        B. Ying et al., Exponential graph is provably efficient for decentralized deep training,
        NeurIPS 2021.
    """
    given = random_one_peer(16) if schedule is None else as_schedule(schedule)
    runs = whole("runs", runs, 2)
    values, vectors = np.linalg.eigh(_away(given.law.disagreement()))
    shrunk = squares(follow(given, vectors[:, -1], 1, runs)[:, 1])
    checks = [
        mean_is("squared error after a step, from the worst start", shrunk, float(values[-1])),
        Check.equal(
            "expected contraction", expected_contraction(given), float(values[-1]), 1e-10, scale=1.0
        ),
    ]
    if schedule is None:
        n, hops = given.size, 2.0 ** np.arange(4)
        modes = np.arange(1, n)[:, None]
        closed = float(np.square(np.cos(np.pi * modes * hops / n)).mean(axis=1).max())
        checks.append(Check.equal("largest eigenvalue", float(values[-1]), closed, 1e-12))
    return Evidence(
        f"a step of {given.name} leaves {values[-1]:.9g} of the squared error at worst",
        tuple(checks),
        (so_far(given.name, shrunk, float(values[-1])),),
        x="steps drawn",
        y="mean squared error left",
        scale="linear",
    )


def equidyn_contracts_alike_from_everywhere(
    n: int = 16, *, runs: int = 400, seed: int = 0
) -> Evidence:
    r"""Check that one random hop a step contracts at a rate that hardly depends on n.

    For OD-EquiDyn with η = 1/2, and for every e that sums to 0,

    .. math:: E \|W e\|^2 = \frac{n - 1}{2n} \|e\|^2

    The paper has a bound without n; this is what the mean over all hops gives exactly.

    Args:
        n: Number of ranks, at least 2.
        runs: Steps of which the mean is taken, at least 2.
        seed: Of the hops and of the starting point.

    Raises:
        ArgumentError: An argument is out of range.

    Example:
        >>> bool(equidyn_contracts_alike_from_everywhere(64).verdict)
        True

    References:
        Z. Song, W. Li, K. Jin, L. Shi, M. Yan, W. Yin & K. Yuan, Communication-efficient
        topologies for decentralized learning with O(1) consensus rate, NeurIPS 2022.
    """
    n, runs = whole("n", n, 2), whole("runs", runs, 2)
    schedule = equidyn(n, directed=True, seed=seed)
    start = np.random.default_rng(seed).standard_normal(n)
    factor = (n - 1) / (2.0 * n)
    shrunk = squares(follow(schedule, start, 1, runs)[:, 1]) / squares(start)
    away = start - start.mean()
    exact = float(away @ schedule.law.disagreement() @ away / (away @ away))
    return Evidence(
        f"OD-EquiDyn of {n} leaves (n - 1)/(2n) = {factor:.6g} of any squared error (Song et al. "
        "2022)",
        (
            Check.equal("mean square of a step", exact, factor, tolerance=1e-12),
            Check.equal("factor in the long run", mean_square_rate(schedule), factor, 1e-12),
            mean_is("squared error after a step, relative", shrunk, factor),
        ),
        (so_far(schedule.name, shrunk, factor),),
        x="steps drawn",
        y="mean squared error left",
        scale="linear",
    )


def matcha_contracts_as_planned(
    topology: Topology | None = None, *, budget: float = 0.5, runs: int = 300, seed: int = 0
) -> Evidence:
    r"""Check the second moment of MATCHA, by all choices of matchings and by steps of it.

    With matchings of Laplacians :math:`L_j`, each in use with probability :math:`p_j`,

    .. math:: E[W^\top W] = I - 2 \alpha \bar L + \alpha^2 (\bar L^2 + 2 \tilde L), \qquad
       \bar L = \sum_j p_j L_j, \quad \tilde L = \sum_j p_j (1 - p_j) L_j

    and :math:`E \|W e\|^2 \le \| E[W^\top W] - J \|_2 \|e\|^2`, with equality for some e.

    Args:
        topology: Connected and undirected, with at most 12 matchings; default: a 4 x 4 torus.
        budget: Mean share of the matchings in use, above 0, at most 1.
        runs: Steps of which the mean is taken, at least 2.
        seed: Of the steps.

    Raises:
        ArgumentError: An argument is out of range.
        TopologyError: The graph is directed, not connected, or has more matchings.

    Example:
        >>> from dectool import topology
        >>> bool(matcha_contracts_as_planned(topology.star(6), budget=0.4).verdict)
        True

    References:
        J. Wang, A. K. Sahu, Z. Yang, G. Joshi & S. Kar, MATCHA: speeding up decentralized SGD via
        matching decomposition sampling, arXiv 1905.09435, 2019.
    """
    graph = checked_topology(topology, torus(4, 4))
    plan, runs = matcha_plan(graph, budget), whole("runs", runs, 2)
    if len(plan.matchings) > _MATCHINGS:
        raise TopologyError(
            f"{graph.name} has {len(plan.matchings)} matchings, and all choices of them are gone "
            f"through up to {_MATCHINGS}; use a graph of smaller degree"
        )
    parts = [_laplacian(graph.size, part) for part in plan.matchings]
    every = np.zeros((graph.size, graph.size))
    for used in itertools.product((0, 1), repeat=len(parts)):
        chances = [p if b else 1.0 - p for b, p in zip(used, plan.probabilities, strict=True)]
        W = np.eye(graph.size) - plan.alpha * sum(
            (L for b, L in zip(used, parts, strict=True) if b), start=np.zeros_like(every)
        )
        every += float(np.prod(chances)) * W.T @ W
    values, vectors = np.linalg.eigh(_away(every))
    shrunk = squares(follow(plan.schedule(seed), vectors[:, -1], 1, runs)[:, 1])
    return Evidence(
        f"a step of MATCHA on {graph.name}, budget {budget:g}, leaves {values[-1]:.9g} of the "
        "squared error at worst (Wang et al. 2019)",
        (
            Check.equal(
                f"second moment (largest distance to {2 ** len(parts)} choices)",
                float(np.abs(plan.second_moment() - every).max()),
                0.0,
                tolerance=1e-12,
            ),
            Check.equal("factor of the plan", plan.rho, float(values[-1]), 1e-10, scale=1.0),
            mean_is("squared error after a step, from the worst start", shrunk, values[-1]),
        ),
        (so_far(plan.name, shrunk, float(values[-1])),),
        x="steps drawn",
        y="mean squared error left",
        scale="linear",
    )


def _mean_of_pairs(graph: Topology) -> Floats:
    """Return I - D/(2n) + (P + Pᵀ)/(2n)."""
    n = graph.size
    P = np.zeros((n, n))
    for i in range(n):
        P[i, list(graph.in_neighbors(i))] = 1.0 / graph.in_degree(i)
    D = np.diag((P + P.T).sum(axis=1))
    return np.asarray(np.eye(n) - D / (2 * n) + (P + P.T) / (2 * n))


def _factor(schedule: Schedule, X: Floats) -> float:
    """Return the factor of second moments in the long run, by following them."""
    factor = 0.0
    for _ in range(20_000):
        image = _away(schedule.law.forward(X))
        before, factor = factor, float(image.trace() / X.trace())
        if abs(factor - before) <= 1e-13:
            break
        X = image / image.trace()
    return factor


def _away(X: Floats) -> Floats:
    Q = np.eye(len(X)) - 1.0 / len(X)
    return np.asarray(Q @ X @ Q)


def _laplacian(n: int, part: tuple[tuple[int, int], ...]) -> Floats:
    L = np.zeros((n, n))
    for i, j in part:
        L[[i, j], [i, j]] += 1.0
        L[[i, j], [j, i]] -= 1.0
    return L
