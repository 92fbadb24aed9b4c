"""Averaging and descent on graphs that change from step to step."""

from __future__ import annotations

import numpy as np

from dectool.algorithms import ATC, Gossip
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Averaging, Problem
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._iteration import rate
from dectool.theory.claims._blocks import blocks
from dectool.theory.claims._given import checked_quadratic, checked_rate, checked_topology
from dectool.topology import (
    Schedule,
    Topology,
    as_schedule,
    b_connected,
    complete,
    dobrushin,
    from_matrix,
    one_peer_exponential,
    random_matching,
    ring,
)


def products_contract_by_the_product_of_factors(
    schedule: Schedule | None = None, *, steps: int = 24
) -> Evidence:
    r"""Check two bounds of what many steps of averaging do, by factors of single steps.

    .. math:: \| W_{K-1} \cdots W_0 - J \|_2 \le \prod_k \| W_k - J \|_2, \qquad
       \tau(W_{K-1} \cdots W_0) \le \prod_k \tau(W_k)

    with Dobrushin's coefficient :math:`\tau(W) = \frac12 \max_{ij} \sum_k |W_{ik} - W_{jk}|`, which
    bounds how far apart any two ranks are. The product is measured as gossip from unit vectors.

    Args:
        schedule: With doubly stochastic W >= 0; default: random matchings of 8 ranks and complete
            graphs that keep half, in turn.
        steps: Number of steps K, at least 1.

    Raises:
        TopologyError: Some W is negative or not doubly stochastic.

    Example:
        >>> from dectool import topology
        >>> mixed = topology.periodic([topology.star(6), topology.ring(6)])
        >>> bool(products_contract_by_the_product_of_factors(mixed, steps=10).verdict)
        True

    References:
        E. Seneta, Non-negative matrices and Markov chains, Springer 1981;
        J. Hajnal, Weak ergodicity in non-homogeneous Markov chains, Math. Proc. Cambridge Phil.
        Soc. 54, 1958.
    """
    steps = whole("steps", steps, 1)
    given = _matchings_between_lazy_cliques() if schedule is None else as_schedule(schedule)
    members = [given.at(k) for k in range(steps)]
    for member in members:
        if not (member.is_doubly_stochastic and member.is_nonnegative):
            raise TopologyError(
                f"{member.name} has weights that are negative or do not sum to 1 in rows and "
                "columns; use weights='metropolis_hastings'"
            )
    norms = np.cumprod(np.array([1.0, *(member.rho for member in members)]))
    spreads = np.cumprod(np.array([1.0, *(dobrushin(member) for member in members)]))
    found = [_product(given, k) for k in range(steps + 1)]
    n = given.size
    norm = np.array([float(np.linalg.norm(P - 1.0 / n, 2)) for P in found])
    spread = np.array([_farthest(P) for P in found])
    k = np.arange(steps + 1.0)
    checks = []
    for name, measured, bound in (("norm", norm, norms), ("Dobrushin", spread, spreads)):
        worst = 1 + int(np.argmax((measured / np.maximum(bound, 1e-14))[1:]))
        checks.append(
            Check.at_most(
                f"{name} factor of the product (worst of {steps} steps: {worst})",
                float(measured[worst]),
                float(bound[worst]) + 1e-14,
            )
        )
    return Evidence(
        f"{steps} steps of {given.name} contract by at most the product of their factors "
        "(Seneta 1981)",
        tuple(checks),
        (Curve("norm less J", k, norm, norms), Curve("Dobrushin", k, spread, spreads)),
        y="factor",
    )


def averaging_needs_joint_connectivity(
    topology: Topology | None = None, *, window: int = 3, windows: int = 20, seed: int = 0
) -> Evidence:
    r"""Check that graphs need to be connected over time, and at no single time.

    The edges of a connected graph are dealt anew to the B steps of each window, so that the
    product of a window contracts, :math:`\| W_{lB + B - 1} \cdots W_{lB} - J \|_2 < 1`, and gossip
    averages. With the edges between the first half of the ranks and the others left out for ever,
    the means of the two parts stay as they were.

    Args:
        topology: Connected and undirected, at least 2 ranks; default: a ring of 8.
        window: Number of steps B, at least 1.
        windows: Windows to run, at least 1.
        seed: Of how edges are dealt.

    Raises:
        TopologyError: The graph is directed or not connected.

    Example:
        >>> bool(averaging_needs_joint_connectivity(window=2, windows=20).verdict)
        True

    References:
        A. Jadbabaie, J. Lin & A. S. Morse, Coordination of groups of mobile autonomous agents
        using nearest neighbor rules, IEEE TAC 48(6), 2003.
    """
    graph = checked_topology(topology, ring(8))
    window, windows = whole("window", window, 1), whole("windows", windows, 1)
    if graph.is_directed or graph.size < 2:
        raise TopologyError(f"{graph.name} must be undirected, of at least 2 ranks")
    dealt = b_connected(graph, window, seed=seed)
    n, steps = graph.size, window * windows
    parted = Schedule(
        lambda k: _without_bridges(dealt.at(k)), size=n, period=None, name=f"two parts of {n}"
    )
    values = Averaging(np.arange(float(n))[:, None])
    errors, ends = {}, {}
    for name, schedule in (("connected", dealt), ("parted", parted)):
        history = solve(
            Gossip(), values, topology=schedule, steps=steps, check=False, progress=False
        )
        errors[name], ends[name] = history["consensus_error"], history.x[:, 0]
    factors = [dealt.contraction(start, window) for start in range(0, steps, window)]
    halves = np.arange(n) < n // 2
    apart = np.where(halves, np.mean(np.flatnonzero(halves)), np.mean(np.flatnonzero(~halves)))
    away = float(np.linalg.norm(apart - apart.mean()))
    k = np.arange(steps + 1.0)
    return Evidence(
        f"gossip averages on {dealt.name}, and not once two parts are never connected (Jadbabaie, "
        "Lin & Morse 2003)",
        (
            Check.at_most(
                f"largest factor of {windows} windows of {window} (below 1)",
                max(factors),
                1.0 - 1e-9,
                tolerance=0.0,
            ),
            Check.at_most(
                f"error after {windows} windows, relative to the first (product of their factors)",
                float(errors["connected"][-1] / errors["connected"][0]),
                float(np.prod(factors)) + 1e-14,
            ),
            Check.at_least(
                "error of two parts (distance of their means)", float(errors["parted"][-1]), away
            ),
            Check.equal(
                "mean of the first part",
                float(ends["parted"][halves].mean()),
                float(apart[0]),
                tolerance=1e-12,
                scale=1.0,
            ),
        ),
        (Curve("connected", k, errors["connected"]), Curve("parted", k, errors["parted"])),
        y="consensus error",
    )


def descent_on_a_cycle_follows_its_period_map(
    problem: Problem | None = None,
    schedule: Schedule | None = None,
    *,
    lr: float = 0.1,
    periods: int = 60,
) -> Evidence:
    r"""Check at which rate and where descent on a periodic schedule ends, on quadratics.

    A period of p steps :math:`x \leftarrow W_t (x - \alpha (H x - b))` is the affine map of

    .. math:: M = \prod_{t=p-1}^{0} W_t (I - \alpha H), \qquad
       c = \sum_{t=0}^{p-1} \Big( \prod_{s=p-1}^{t+1} W_s (I - \alpha H) \Big) W_t\, \alpha b

    so that after each period the iterates are :math:`x_\infty + M^l (x_0 - x_\infty)` with
    :math:`x_\infty = (I - M)^{-1} c`, and shrink by :math:`\rho(M)^{1/p}` per step.

    Args:
        problem: A :class:`dectool.problems.Quadratic`, of as many ranks; default: scalar ones on
            eight ranks, random ones on others.
        schedule: With a period, and doubly stochastic; default: the one-peer exponential graph.
        lr: Step size α, such that it converges.
        periods: Periods to run, at least 2.

    Raises:
        ArgumentError: An argument breaks its rule, or the iterates diverge.
        TopologyError: The schedule has no period, or is not doubly stochastic.

    Example:
        >>> found = descent_on_a_cycle_follows_its_period_map()
        >>> [round(check.measured, 9) for check in found.checks[-2:]]
        [0.762020697, 0.155612971]

    References:
        A. Koloskova, N. Loizou, S. Boreiri, M. Jaggi & S. U. Stich, A unified theory of
        decentralized SGD with changing topology and local updates, ICML 2020; B. Ying et al.,
        Exponential graph is provably efficient for decentralized deep training, NeurIPS 2021.
    """
    size = None if schedule is None else as_schedule(schedule).size
    quadratic, alpha = checked_quadratic(problem, size), checked_rate("lr", lr)
    periods, n = whole("periods", periods, 2), quadratic.size
    given = one_peer_exponential(n) if schedule is None else as_schedule(schedule)
    if given.period is None:
        raise TopologyError(f"{given.name} has no period; give a periodic schedule")
    period = given.period
    M, c = np.eye(n * quadratic.dim), np.zeros(n * quadratic.dim)
    for t in range(period):
        W, H, b = blocks(quadratic, given.at(t))
        step = W @ (np.eye(len(H)) - alpha * H)
        M, c = step @ M, step @ c + alpha * (W @ b)
    radius = float(np.abs(np.linalg.eigvals(M)).max())
    if radius >= 1.0:
        raise ArgumentError(
            f"lr={lr:g} is too large: the iterates grow by {radius:.4g} per period; see "
            "theory.largest_stable_lr"
        )
    end = np.linalg.solve(np.eye(len(M)) - M, c)
    predicted = [np.zeros(len(M))]
    for _ in range(periods):
        predicted.append(M @ predicted[-1] + c)
    history = solve(
        ATC(lr=lr), quadratic, topology=given, steps=period * periods, record_every=period,
        x0=np.zeros(quadratic.shape), progress=False,
    )  # fmt: skip
    measured = history.x.ravel()
    target = np.tile(quadratic.optimum.ravel(), n)
    error = np.array([float(np.linalg.norm(x - target)) for x in predicted])
    apart = np.abs(history["distance"] - error)
    worst = int(np.argmax(apart))
    return Evidence(
        f"diffusion with step {lr:g} on {given.name} follows the map of a period of {period}",
        (
            Check.equal(
                f"distance to the optimum (worst of {periods} periods: {worst}; relative to the "
                "largest)",
                float(history["distance"][worst]),
                float(error[worst]),
                tolerance=1e-11,
                scale=float(error.max()) or 1.0,
            ),
            Check.equal(
                f"iterates after {periods} periods (farthest; relative to the limit)",
                float(np.linalg.norm(measured - predicted[-1])),
                0.0,
                tolerance=1e-10,
                scale=float(np.linalg.norm(end)) or 1.0,
            ),
            Check.equal(
                "slope per step",
                _slope(history["change"][1:], period),
                radius ** (1.0 / period),
                tolerance=1e-2,
            ),
            Check.equal(
                "rate per step, read off the algorithm",
                rate(ATC(lr=lr), quadratic, given),
                radius ** (1.0 / period),
                tolerance=1e-9,
            ),
            Check.equal(
                "distance to the optimum in the limit",
                float(np.linalg.norm(measured - target)),
                float(np.linalg.norm(end - target)),
                tolerance=1e-9 + float(np.linalg.norm(predicted[-1] - end)),
                scale=1.0,
            ),
        ),
        (Curve(given.name, period * np.arange(periods + 1.0), history["distance"], error),),
        y="distance to the optimum",
    )


def _matchings_between_lazy_cliques() -> Schedule:
    pairs, clique = random_matching(ring(8)), complete(8).lazy()
    return Schedule(
        lambda k: clique if k % 4 == 3 else pairs.at(k),
        size=8,
        period=None,
        name="random matchings of a ring of 8 and lazy cliques",
    )


def _product(schedule: Schedule, steps: int) -> Floats:
    """Return W_{K-1} ... W_0, as gossip from unit vectors."""
    units = np.eye(schedule.size)
    if steps == 0:
        return units
    history = solve(
        Gossip(), Averaging(units), topology=schedule, steps=steps, record_every=steps,
        check=False, progress=False,
    )  # fmt: skip
    return np.asarray(history.x)


def _farthest(P: Floats) -> float:
    """Return the largest distance in total variation of two rows."""
    return float(max(0.5 * np.abs(P - row).sum(axis=1).max() for row in P))


def _without_bridges(step: Topology) -> Topology:
    """Return W without edges between the first half of the ranks and the others."""
    W = step.to_dense()
    half = step.size // 2
    W[:half, half:] = W[half:, :half] = 0.0
    np.fill_diagonal(W, W.diagonal() + 1.0 - W.sum(axis=1))
    return from_matrix(W, name=f"{step.name}, parted", require_connected=False)


def _slope(values: Floats, period: int) -> float:
    """Return the factor per step, from the last half of what is above rounding."""
    kept = np.flatnonzero(values > 1e-11 * values.max(initial=0.0))
    kept = kept[len(kept) // 2 :]
    if len(kept) < 2:
        return 0.0
    slope = np.polyfit(period * kept, np.log(values[kept]), 1)[0]
    return float(np.exp(slope))
