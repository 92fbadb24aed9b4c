"""Averaging with compressed messages: CHOCO-Gossip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize
from scipy.sparse import linalg as sparse_linalg

from dectool._oracle import Oracle
from dectool.algorithms import CHOCOGossip, choco_gamma
from dectool.communicator import Communicator
from dectool.compression import Compressor, Identity, RandomK, TopK
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.problems import Averaging
from dectool.run import run
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_topology
from dectool.topology import Topology, ring


def choco_gossip_keeps_its_bound(
    topology: Topology | None = None,
    compressor: Compressor | None = None,
    *,
    numbers: int = 16,
    steps: int = 500,
    seed: int = 0,
) -> Evidence:
    r"""Check the rate that CHOCO-Gossip has with the step size of its theorem.

    .. math:: \mathrm E\, e_t \le \Big(1 - \frac{\delta^2 \omega}{82}\Big)^t e_0, \qquad
       e_t = \sum_i \|x_i^t - \bar x\|^2 + \|x_i^t - \hat x_i^{t+1}\|^2

    with the gap :math:`\delta = 1 - \rho`, the contraction ω of the compressor and the γ of
    :func:`dectool.algorithms.choco_gamma`. Where gaps are small the bound stays above what is left
    once the replicas :math:`\hat x` have come, so the factor per step is checked in the last half
    of the run too. One run stands for the expectation where the compressor is random, since the
    bound is far above it.

    Args:
        topology: With symmetric doubly stochastic weights that average; default: a ring of 8.
        compressor: One with a contraction; default: the largest quarter of the numbers.
        numbers: Numbers of each rank, at least 1.
        steps: At least 1.
        seed: Of the starting points, and of a random compressor.

    Raises:
        ArgumentError: The compressor has no contraction, or a number is out of range.
        TopologyError: W is not symmetric and doubly stochastic, or does not average.

    Example:
        >>> choco_gossip_keeps_its_bound(steps=50).verdict.agrees
        True

    References:
        A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic optimization and gossip
        algorithms with compressed communication, ICML 2019. The factor is quoted by the same
        authors with T. Lin in ICLR 2020, Theorem 4.1.
    """
    graph = _checked(topology)
    numbers, steps = whole("numbers", numbers, 1), whole("steps", steps, 1)
    Q = TopK(max(1, numbers // 4)) if compressor is None else compressor
    if not isinstance(Q, Compressor):
        raise ArgumentTypeError(f"compressor is {Q!r}; give one of dectool.compression")
    omega = Q.contraction(numbers)
    if omega is None or not 0.0 < omega <= 1.0:
        raise ArgumentError(f"{Q!r} has no contraction above 0, which the theorem needs; use TopK")
    start = np.random.default_rng(seed).normal(size=(graph.size, numbers))
    gamma = choco_gamma(graph, omega)
    measured = _errors(CHOCOGossip(gamma=gamma, compressor=Q), graph, start, steps, seed)
    factor = 1.0 - (1.0 - graph.rho) ** 2 * omega / 82.0
    bound = measured[0] * factor ** np.arange(steps + 1.0)
    worst = 1 + int(np.argmax(measured[1:] / bound[1:]))
    return Evidence(
        f"CHOCO-Gossip with {Q!r} on {graph.name} contracts by 1 - delta^2 omega/82 = "
        f"{factor:.9g} per step (Koloskova, Stich & Jaggi 2019)",
        (
            Check.at_most(
                f"error (worst of {steps} steps: {worst})",
                float(measured[worst]),
                float(bound[worst]),
            ),
            Check.at_most("factor per step in the last half", _last_factor(measured), factor),
        ),
        (Curve("error", np.arange(steps + 1.0), measured, bound),),
        y="sum of squares",
    )


def choco_gossip_slows_down_with_the_contraction(
    topology: Topology | None = None,
    *,
    contractions: tuple[float, ...] = (0.015625, 0.03125, 0.0625, 0.125),
    steps: int = 20,
    seed: int = 0,
) -> Evidence:
    r"""Check that the best rate of CHOCO-Gossip is proportional to the contraction ω.

    Where each number is sent with probability ω, as by random-k, all numbers are alike, and the
    second moments S of (x, x̂) of one of them obey, with A the mean map,

    .. math:: S^+ = A S A^\top + \omega (1 - \omega) \sum_i (v_i^\top S v_i)\, u_i u_i^\top, \qquad
       v_i = (e_i, -e_i), \quad u_i = (\gamma (W - I) e_i, e_i)

    A run of the library's code with many numbers is held against this. Its growth factor at the
    best γ gives the best rate, whose exponent of ω is fitted. With ω = γ = 1 it is gossip, whose
    squares contract by ρ².

    Args:
        topology: As for :func:`choco_gossip_keeps_its_bound`.
        contractions: At least two different ω, multiples of 1/2048 above 0 and at most 1/2; for
            the exponent small ones.
        steps: Of the run, at least 1.
        seed: Of the starting points, and of the compressor.

    Raises:
        ArgumentError: A contraction or a number is out of range.
        TopologyError: As there.

    Example:
        >>> choco_gossip_slows_down_with_the_contraction().verdict.agrees
        True

    References:
        A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic optimization and gossip
        algorithms with compressed communication, ICML 2019.
    """
    graph = _checked(topology)
    steps = whole("steps", steps, 1)
    omegas = np.array(contractions, np.float64)
    if len(set(contractions)) < 2 or not ((omegas > 0.0) & (omegas <= 0.5)).all():
        raise ArgumentError(
            f"contractions={contractions} must be two numbers or more, above 0 and at most 1/2"
        )
    kept = np.rint(omegas * _NUMBERS).astype(int)
    if not np.allclose(kept / _NUMBERS, omegas, rtol=0.0, atol=1e-12):
        raise ArgumentError(f"contractions={contractions} must be multiples of 1/{_NUMBERS}")
    W = graph.to_dense()
    found = [_best(W, omega) for omega in omegas]
    rates = np.array([-math.log(factor) for factor, _ in found])
    exponent = float(np.polyfit(np.log(omegas), np.log(rates), 1)[0])
    middle = len(omegas) // 2
    omega, gamma = float(omegas[middle]), found[middle][1]
    start = np.random.default_rng(seed).normal(size=(graph.size, _NUMBERS))
    choco = CHOCOGossip(gamma=gamma, compressor=RandomK(int(kept[middle])))
    measured = _errors(choco, graph, start, steps, seed)
    expected = _expected(W, omega, gamma, start, steps)
    apart = np.abs(measured / expected - 1.0)
    worst = int(np.argmax(apart))
    plain = np.linalg.eigh(W - 1.0 / graph.size)
    slowest = plain[1][:, [int(np.argmax(np.abs(plain[0])))]]
    gossip = CHOCOGossip(gamma=1.0, compressor=Identity())
    squares = _errors(gossip, graph, slowest, 10, seed)
    return Evidence(
        f"the best rate of CHOCO-Gossip on {graph.name} is proportional to the contraction "
        "(Koloskova, Stich & Jaggi 2019)",
        (
            Check.equal(
                f"error with {choco.compressor!r} of {_NUMBERS} (worst of {steps} steps: {worst})",
                float(measured[worst]),
                float(expected[worst]),
                tolerance=0.05,
            ),
            Check.equal("exponent of the contraction", exponent, 1.0, tolerance=0.1),
            Check.equal(
                "error after 10 steps without compression",
                float(squares[10]),
                float(graph.rho**20),
                tolerance=1e-12,
                scale=1.0,
            ),
        ),
        (Curve("-log of the best factor", omegas, rates, rates[0] * omegas / omegas[0]),),
        x="contraction",
        y="rate",
        scale="loglog",
    )


_NUMBERS = 2048
_FLOOR = 1e-20


def _checked(topology: Topology | None) -> Topology:
    graph = checked_topology(topology, ring(8))
    averages = graph.is_symmetric and graph.is_doubly_stochastic and graph.rho < 1.0 - 1e-12
    if not averages or graph.size < 2:
        raise TopologyError(
            f"{graph.name} must have symmetric doubly stochastic weights that average, rho < 1, "
            "and two ranks or more; use weights='metropolis_hastings'"
        )
    return graph


def _errors(
    algorithm: CHOCOGossip, graph: Topology, start: Floats, steps: int, seed: int
) -> Floats:
    """Return e_0, ..., e_steps of a run of the library's code."""

    def program(comm: Communicator) -> None:
        oracle = Oracle(comm, Averaging(start))
        state = algorithm.init(comm, start, oracle)
        for _ in range(steps + 1):
            x, state = state.x, algorithm.step(comm, state, oracle)
            found.append(np.sum((x - x.mean(axis=0)) ** 2) + np.sum((x - state.x_hat) ** 2))

    found: list[Any] = []
    run(program, graph.size, backend="stacked", topology=graph, seed=seed)
    return np.array(found, np.float64)


def _last_factor(errors: Floats) -> float:
    """Return the factor per step in the last half of what is above rounding."""
    last = int(np.flatnonzero(errors > _FLOOR * errors[0])[-1])
    first = last // 2
    return float((errors[last] / errors[first]) ** (1.0 / max(1, last - first)))


def _moments(W: Floats, omega: float, gamma: float) -> Any:
    """Return the function from second moments of (x, x_hat) to those a step later."""
    n = len(W)
    eye, pull = np.eye(n), gamma * (W - np.eye(n))
    mean = np.block(
        [[eye + omega * pull, (1.0 - omega) * pull], [omega * eye, (1.0 - omega) * eye]]
    )
    U, V = np.vstack([pull, eye]), np.vstack([eye, -eye])

    def after(S: Floats) -> Floats:
        scatter = omega * (1.0 - omega) * np.einsum("ki,kl,li->i", V, S, V)
        following: Floats = mean @ S @ mean.T + (U * scatter) @ U.T
        return following

    return after


def _error(S: Floats, omega: float) -> float:
    n = len(S) // 2
    x, far = S[:n, :n], np.trace(S[:n, :n] - S[:n, n:] - S[n:, :n] + S[n:, n:])
    return float(np.trace(x) - x.sum() / n + (1.0 - omega) * far)


def _expected(W: Floats, omega: float, gamma: float, start: Floats, steps: int) -> Floats:
    n, after = len(W), _moments(W, omega, gamma)
    S = np.zeros((2 * n, 2 * n))
    S[:n, :n] = start @ start.T
    found = []
    for _ in range(steps + 1):
        found.append(_error(S, omega))
        S = after(S)
    return np.array(found)


def _best(W: Floats, omega: float) -> tuple[float, float]:
    """Return the least growth factor of the error per step, and its gamma."""
    n, size = len(W), 2 * len(W)
    # The mean of x is kept; without it, x_hat is the larger by as much.
    around = np.eye(size) - np.outer(np.ones(size), np.repeat([1.0 / n, 0.0], n))
    start = (around @ around.T).ravel()

    def factor(gamma: float) -> float:
        after = _moments(W, omega, gamma)

        def step(vector: Floats) -> Floats:
            following: Floats = (around @ after(vector.reshape(size, size)) @ around.T).ravel()
            return following

        operator: Any = sparse_linalg.LinearOperator((size**2, size**2), matvec=step, dtype=float)
        # It keeps positive matrices so, and hence its largest eigenvalue is real.
        values = sparse_linalg.eigs(operator, k=1, v0=start, tol=1e-8, return_eigenvectors=False)
        return float(np.abs(values[0]))

    found = optimize.minimize_scalar(
        factor, bounds=(0.01 * omega, 1.0), method="bounded", options={"xatol": 1e-3}
    )
    return float(found.fun), float(found.x)
