"""Averaging with a fixed mixing matrix."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import eval_chebyt, eval_chebyu

from dectool.algorithms import Algorithm, ChebyshevGossip, Gossip, ShiftRegisterGossip
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Averaging
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_topology
from dectool.theory.claims._trajectories import iterates
from dectool.topology import Topology, ring


def gossip_contracts_at_rho(topology: Topology | None = None, *, steps: int = 50) -> Evidence:
    r"""Check that gossip contracts by ρ in each step, no worse and at worst no better.

    .. math:: \|X^k - 1 \bar x^\top\|_F \le \rho^k \|X^0 - 1 \bar x^\top\|_F,
       \qquad \rho = \|W - J\|_2

    with equality from the eigenvector of the eigenvalue of W of modulus ρ. The bound is checked
    from starting points with every mode in them.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 16.
        steps: Rounds of gossip, at least 1.

    Raises:
        TopologyError: W is not symmetric and doubly stochastic, or there is one rank.

    Example:
        >>> from dectool import topology
        >>> gossip_contracts_at_rho(topology.petersen(), steps=20).verdict.agrees
        True

    References:
        L. Xiao & S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53(1), 2004.
    """
    graph = _symmetric(topology)
    steps = whole("steps", steps, 1)
    values, vectors = _modes(graph)
    slowest = vectors[:, np.argmax(np.abs(values))]
    bound = graph.rho ** np.arange(steps + 1.0)
    starts = {"slowest mode": slowest, "all modes": vectors.sum(axis=1)}
    measured = {
        name: solve(Gossip(), Averaging(x[:, None]), topology=graph, steps=steps)["consensus_error"]
        for name, x in starts.items()
    }
    shrunk = {name: error / error[0] for name, error in measured.items()}
    apart = np.abs(shrunk["slowest mode"] - bound)
    worst = int(np.argmax(apart))
    excess = int(np.argmax(shrunk["all modes"] / np.maximum(bound, 1e-14)))
    return Evidence(
        f"gossip on {graph.name} contracts by rho = {graph.rho:.9g} per step (Xiao & Boyd 2004)",
        (
            Check.equal(
                f"error from the slowest mode (worst of {steps} steps: {worst}; relative to the "
                "first)",
                float(shrunk["slowest mode"][worst]),
                float(bound[worst]),
                tolerance=1e-12,
                scale=1.0,
            ),
            Check.at_most(
                f"error from all modes (worst of {steps} steps: {excess})",
                float(shrunk["all modes"][excess]),
                float(bound[excess]) + 1e-14,
            ),
        ),
        tuple(
            Curve(name, np.arange(steps + 1.0), error, bound if name == "slowest mode" else None)
            for name, error in shrunk.items()
        ),
        y="consensus error, relative to the first",
    )


def chebyshev_gossip_follows_its_polynomial(
    topology: Topology | None = None, *, steps: int = 20, interval: str = "symmetric"
) -> Evidence:
    r"""Check that Chebyshev gossip multiplies each mode of W by its own polynomial.

    The mode of the eigenvalue λ is, after k steps, :math:`T_k(y) / T_k(1/\rho)` times the first,
    with :math:`y = \lambda / \rho` and the Chebyshev polynomial :math:`T_k`; so no mode is above

    .. math:: \frac{1}{T_k(1/\rho)} = \frac{2 q^k}{1 + q^{2k}}, \qquad
       q = \frac{\rho}{1 + \sqrt{1 - \rho^2}}

    and the one of :math:`|\lambda| = \rho` is there. With the interval "tight", W is mapped
    affinely such that :math:`[\lambda_n, \lambda_2]` becomes the symmetric one.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 16.
        steps: Rounds of gossip, at least 1.
        interval: Of :class:`dectool.algorithms.ChebyshevGossip`: "symmetric" or "tight".

    Raises:
        ArgumentError: The interval is another one.
        TopologyError: W is not symmetric and doubly stochastic, or its eigenvalues but the first
            are all alike.

    Example:
        >>> from dectool import topology
        >>> bool(chebyshev_gossip_follows_its_polynomial(topology.petersen()).verdict)
        True

    References:
        M. Arioli & J. Scott, Chebyshev acceleration of iterative refinement, Numerical Algorithms
        66, 2014; K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulie, Optimal algorithms for
        smooth and strongly convex distributed optimization in networks, ICML 2017.
    """
    graph, steps = _symmetric(topology), whole("steps", steps, 1)
    if interval not in ("symmetric", "tight"):
        raise ArgumentError(f"interval must be 'symmetric' or 'tight', got {interval!r}")
    values, _ = _modes(graph)
    low, high = (-graph.rho, graph.rho)
    if interval == "tight":
        low, high = float(values.min()), float(values.max())
    half = (high - low) / 2.0
    if half < 1e-9:
        raise TopologyError(
            f"all eigenvalues of {graph.name} but the first are alike, and there is nothing to "
            "accelerate; use a graph that is not complete"
        )
    y = (values - (high + low) / 2.0) / half
    outside = (1.0 - (high + low) / 2.0) / half
    k = np.arange(steps + 1)[:, None]
    polynomial = np.asarray(eval_chebyt(k, y) / eval_chebyt(k, outside), np.float64)
    q = 1.0 / (outside + math.sqrt(outside**2 - 1.0))
    bound = 2.0 * q**steps / (1.0 + q ** (2 * steps))
    run = _run(ChebyshevGossip(interval), graph, steps)
    return Evidence(
        f"Chebyshev gossip on {graph.name} ({interval} interval) multiplies the mode of lambda by "
        "T_k(y) / T_k(1/rho) (Scaman et al. 2017)",
        (
            *_polynomial_checks(run, polynomial, steps),
            Check.at_most(
                f"largest mode after {steps} steps",
                float(np.abs(run.modes[-1]).max()),
                bound + 1e-14,
            ),
        ),
        (
            Curve(
                "Chebyshev gossip",
                np.arange(steps + 1.0),
                run.error,
                np.linalg.norm(polynomial, axis=1),
            ),
        ),
        y="consensus error",
    )


def shift_register_gossip_follows_its_polynomial(
    topology: Topology | None = None, *, steps: int = 30
) -> Evidence:
    r"""Check that shift-register gossip multiplies each mode of W by its own polynomial.

    The mode of the eigenvalue λ is, after k steps and with :math:`y = \lambda / \rho`,

    .. math:: q^k \big( T_k(y) + \sqrt{1 - \rho^2}\, y\, U_{k-1}(y) \big), \qquad
       q = \frac{\rho}{1 + \sqrt{1 - \rho^2}}

    times the first: no larger than :math:`q^k (1 + k \sqrt{1 - \rho^2})`, which the slowest mode
    is, so that it shrinks by q per step in the long run.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 16.
        steps: Rounds of gossip, at least 1.

    Raises:
        TopologyError: W is not symmetric and doubly stochastic, or there is one rank.

    Example:
        >>> from dectool import topology
        >>> bool(shift_register_gossip_follows_its_polynomial(topology.petersen()).verdict)
        True

    References:
        S. Muthukrishnan, B. Ghosh & M. Schultz, First- and second-order diffusive methods for
        rapid, coarse, distributed load balancing, Theory of Computing Systems 31, 1998;
        J. Liu & A. S. Morse, Accelerated linear iterations for distributed averaging, Annual
        Reviews in Control 35(2), 2011.
    """
    graph, steps = _symmetric(topology), whole("steps", steps, 1)
    values, _ = _modes(graph)
    root = math.sqrt(1.0 - graph.rho**2)
    q = graph.rho / (1.0 + root)
    # T_k and U_k of y slightly beyond 1, by rounding alone, would grow.
    y = np.clip(values / graph.rho, -1.0, 1.0) if graph.rho > 1e-12 else values
    k = np.arange(steps + 1)[:, None]
    before = np.where(k > 0, eval_chebyu(np.maximum(k - 1, 0), y), 0.0)
    polynomial = np.asarray(q**k * (eval_chebyt(k, y) + root * y * before), np.float64)
    run = _run(ShiftRegisterGossip(), graph, steps)
    return Evidence(
        f"shift-register gossip on {graph.name} multiplies the mode of lambda by "
        "q^k (T_k(y) + sqrt(1 - rho^2) y U_(k-1)(y)) (Liu & Morse 2011)",
        (
            *_polynomial_checks(run, polynomial, steps),
            Check.at_most(
                f"largest mode after {steps} steps",
                float(np.abs(run.modes[-1]).max()),
                q**steps * (1.0 + steps * root) + 1e-14,
            ),
        ),
        (
            Curve(
                "shift-register gossip",
                np.arange(steps + 1.0),
                run.error,
                np.linalg.norm(polynomial, axis=1),
            ),
        ),
        y="consensus error",
    )


def acceleration_takes_the_root_of_rounds(
    topology: Topology | None = None, *, eps: float = 1e-6
) -> Evidence:
    r"""Check how many rounds plain and accelerated gossip take from the slowest mode.

    To bring the distance to the average within ε times the first,

    .. math:: k = \Big\lceil \frac{\log 1/\epsilon}{\log 1/\rho} \Big\rceil
       \quad \text{and} \quad
       k = \Big\lceil \frac{\operatorname{arcosh} 1/\epsilon}{\operatorname{arcosh} 1/\rho}
       \Big\rceil \le \Big\lceil \frac{\log 2/\epsilon}{\log 1/q} \Big\rceil

    rounds of plain and of Chebyshev gossip: for small gaps :math:`1 - \rho`, the one is as the
    inverse of the gap, and the other as its root.

    Args:
        topology: With symmetric doubly stochastic weights and 0 < ρ < 1; default: a ring of 16.
        eps: Above 0 (at least 1e-12, where rounding begins), below 1.

    Raises:
        ArgumentError: eps is out of range.
        TopologyError: W is not symmetric and doubly stochastic, or ρ is 0 or 1.

    Example:
        >>> found = acceleration_takes_the_root_of_rounds()
        >>> [int(check.measured) for check in found.checks]
        [266, 45, 45]

    References:
        K. Scaman et al., Optimal algorithms for smooth and strongly convex distributed
        optimization in networks, ICML 2017.
    """
    graph = _symmetric(topology)
    if not 1e-12 <= eps < 1:
        raise ArgumentError(f"eps must be at least 1e-12 and below 1, got {eps:g}")
    rho = graph.rho
    if not 1e-9 < rho < 1 - 1e-9:
        raise TopologyError(
            f"rho of {graph.name} is {rho:g}; rounds are compared where it lies between 0 and 1"
        )
    values, vectors = _modes(graph)
    slowest = Averaging(vectors[:, np.argmax(np.abs(values)), None])
    q = rho / (1.0 + math.sqrt(1.0 - rho**2))
    # Rounding must not add a round, where an error is eps itself.
    reached = min(1.0, eps * (1.0 + 1e-9))
    plain = math.ceil(math.log(1.0 / reached) / math.log(1.0 / rho))
    fast = math.ceil(math.acosh(1.0 / reached) / math.acosh(1.0 / rho))
    counts, curves = [], []
    for algorithm, rounds in ((Gossip(), plain), (ChebyshevGossip(), fast)):
        history = solve(algorithm, slowest, topology=graph, steps=rounds + 3, progress=False)
        error = history["consensus_error"] / history["consensus_error"][0]
        counts.append(float(np.flatnonzero(error <= reached).min(initial=rounds + 4)))
        curves.append(Curve(algorithm.name, np.arange(rounds + 4.0), error))
    return Evidence(
        f"on {graph.name}, rho = {rho:.6g}, Chebyshev gossip takes about the root of the rounds "
        f"of plain gossip to an error of {eps:g} (Scaman et al. 2017)",
        (
            Check.equal("rounds of plain gossip", counts[0], plain, tolerance=0.0),
            Check.equal("rounds of Chebyshev gossip", counts[1], fast, tolerance=0.0),
            Check.at_most(
                "rounds of Chebyshev gossip (log(2/eps) / log(1/q))",
                counts[1],
                math.ceil(math.log(2.0 / eps) / math.log(1.0 / q)),
            ),
        ),
        tuple(curves),
        y="consensus error, relative to the first",
    )


class _Run(NamedTuple):
    """The error and what is left of each mode, after each step from all modes at 1."""

    error: Floats
    modes: Floats


def _run(algorithm: Algorithm, graph: Topology, steps: int) -> _Run:
    _, vectors = _modes(graph)
    start = Averaging(vectors.sum(axis=1)[:, None])
    history = solve(algorithm, start, topology=graph, steps=steps, progress=False)
    return _Run(
        history["consensus_error"], iterates(algorithm, start, graph, steps)[:, :, 0] @ vectors
    )


def _polynomial_checks(run: _Run, polynomial: Floats, steps: int) -> tuple[Check, ...]:
    predicted = np.linalg.norm(polynomial, axis=1)
    apart = np.abs(run.error - predicted)
    worst = int(np.argmax(apart))
    off = np.abs(run.modes - polynomial)
    step, mode = np.unravel_index(int(np.argmax(off)), off.shape)
    return (
        Check.equal(
            f"error (worst of {steps} steps: {worst}; relative to the first)",
            float(run.error[worst]),
            float(predicted[worst]),
            tolerance=1e-11,
            scale=float(predicted[0]),
        ),
        Check.equal(
            f"mode (worst of {off.shape[1]} in {steps} steps: step {step}; relative to the first)",
            float(run.modes[step, mode]),
            float(polynomial[step, mode]),
            tolerance=1e-11,
            scale=1.0,
        ),
    )


def _symmetric(topology: Topology | None) -> Topology:
    graph = checked_topology(topology, ring(16))
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"{graph.name} has weights that are not symmetric and doubly stochastic, and rho is "
            "reached from an eigenvector only then; for other weights see "
            "topology.consensus_rate"
        )
    if graph.size < 2:
        raise TopologyError(f"{graph.name} has one rank, with nothing to average; use 2 or more")
    return graph


def _modes(graph: Topology) -> tuple[Floats, Floats]:
    """Return the eigenvalues of W but for that of equal entries, and unit eigenvectors."""
    # 3 J moves the eigenvalue of equal entries from 1 to -2, below and apart from all others.
    values, vectors = np.linalg.eigh(graph.to_dense() - 3.0 / graph.size)
    return values[1:], vectors[:, 1:]
