"""Sequences and graphs that average exactly after a known number of rounds."""

from __future__ import annotations

import math

import numpy as np

from dectool.algorithms import Gossip
from dectool.problems import Averaging
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_topology
from dectool.topology import (
    Schedule,
    Topology,
    base_k,
    de_bruijn,
    laplacian_sequence,
    one_peer_exponential,
    periodic,
    ring,
)

_EXACT = 1e-12
_SAME = 1e-9


def laplacian_steps_average_exactly(topology: Topology | None = None) -> Evidence:
    r"""Check that gossip by :math:`I - L / l_k` averages exactly in as many rounds as L has l's.

    K is the number of distinct non-zero eigenvalues :math:`l_k` of the Laplacian L: half of the
    ranks for a ring, 2 for a star, d for a hypercube. Every polynomial of degree below K leaves
    some mode, so K - 1 rounds are not enough, and the order does not matter: K rounds are, from
    any step of the sequence on.

    Args:
        topology: Connected and undirected; default: a ring of 16.

    Raises:
        TopologyError: The graph is directed or not connected.

    Example:
        >>> from dectool import topology
        >>> found = laplacian_steps_average_exactly(topology.petersen())
        >>> bool(found.verdict), found.checks[0].measured
        (True, 2.0)

    References:
        A. Kibangou, Graph Laplacian based matrix design for finite-time distributed average
        consensus, American Control Conference 2012.
    """
    graph = checked_topology(topology, ring(16))
    schedule = laplacian_sequence(graph)
    edges = graph.edges
    L = np.diag(edges.in_degrees.astype(np.float64))
    L[edges.receivers, edges.senders] -= 1.0
    values = np.linalg.eigvalsh(L)
    rounds = int((np.diff(values) > _SAME * max(1.0, float(values[-1]))).sum())
    return _exact(schedule, rounds, range(schedule.period or 1))


def one_peer_exponential_averages_exactly(n: int = 16, *, symmetric: bool = False) -> Evidence:
    r"""Check that one-peer exponential graphs average exactly in :math:`\log_2 n` rounds.

    From any step of the cycle on, if n is a power of two. If it is not, m cycles of
    :math:`\tau = \lceil \log_2 n \rceil` rounds leave, from any step on, the part

    .. math:: \max_{0 < k < n} \left|
       \frac{\sin(\pi k 2^\tau / n)}{2^\tau \sin(\pi k / n)} \right|^m

    of the worst start, the largest of the products of the eigenvalues of the rounds; so some error
    stays after any number of them.

    Args:
        n: Number of ranks, at least 2.
        symmetric: Exchange with the partner i XOR 2^t; n must be a power of two.

    Raises:
        ArgumentError: n is below 2, or not a power of two where it must be.

    Example:
        >>> bool(one_peer_exponential_averages_exactly(32).verdict)
        True
        >>> bool(one_peer_exponential_averages_exactly(12).verdict)
        True

    References:
        B. Ying, K. Yuan, Y. Chen, H. Hu, P. Pan & W. Yin, Exponential graph is provably efficient
        for decentralized deep training, NeurIPS 2021.
    """
    schedule = one_peer_exponential(whole("n", n, 2), symmetric=symmetric)
    period = schedule.period or 1
    if n & (n - 1) == 0:
        return _exact(schedule, int(math.log2(n)), range(period))
    errors = np.array([_errors(_from(schedule, start), 2 * period) for start in range(period)])
    k = np.arange(1, n)
    left = np.abs(np.sin(np.pi * k * 2**period / n) / (2**period * np.sin(np.pi * k / n))).max()
    checks = []
    for cycles in (1, 2):
        found, told = errors[:, cycles * period], float(left**cycles)
        worst = int(np.argmax(np.abs(found - told)))
        checks.append(
            Check.equal(
                f"error after {cycles * period} rounds, from each of {period} starts (worst: "
                f"{worst})",
                float(found[worst]),
                told,
                tolerance=1e-9,
            )
        )
    return Evidence(
        f"{schedule.name} does not average exactly, since {n} is not a power of two (Ying et al. "
        "2021)",
        tuple(checks),
        (Curve(schedule.name, np.arange(2.0 * period + 1), errors[0]),),
        x="round",
    )


def base_k_averages_exactly(n: int = 22, *, k: int = 1) -> Evidence:
    r"""Check that Base-(k+1) graphs average exactly any number of ranks with k neighbors at most.

    In one cycle of the sequence, which is no longer than :math:`2 \log_{k+1} n + 2`. From another
    step on, exact averages come at the latest with the end of the next whole cycle.

    Args:
        n: Number of ranks, at least 2.
        k: Most neighbors in a step, at least 1.

    Raises:
        ArgumentError: n or k is out of range.

    Example:
        >>> bool(base_k_averages_exactly(10, k=3).verdict)
        True

    References:
        Y. Takezawa, R. Sato, H. Bao, K. Niwa & M. Yamada, Beyond exponential graph:
        communication-efficient topologies for decentralized learning via finite-time convergence,
        NeurIPS 2023.
    """
    schedule = base_k(whole("n", n, 2), k=whole("k", k, 1))
    period = schedule.period or 1
    degrees = max(schedule.at(step).max_degree for step in range(period))
    whole_cycle = _exact(schedule, period, range(1))
    latest = max(_rounds(_from(schedule, start), 2 * period)[0] for start in range(period))
    return Evidence(
        f"{schedule.name} averages exactly in a cycle of at most 2 log(n) / log(k + 1) + 2 rounds "
        "(Takezawa et al. 2023)",
        (
            *whole_cycle.checks,
            Check.at_most("length of a cycle", period, 2.0 * math.log(n) / math.log(k + 1) + 2.0),
            Check.at_most("neighbors in a step", degrees, k),
            Check.at_most(f"rounds from each of {period} starts", latest, 2 * period - 1),
        ),
        whole_cycle.curves,
        x="round",
    )


def de_bruijn_averages_exactly(degree: int = 2, digits: int = 4) -> Evidence:
    r"""Check that gossip on a de Bruijn graph averages exactly, though :math:`\rho = 1`.

    With :math:`n = d^\tau` ranks and weights 1/d, it takes τ rounds. All eigenvalues of W but the
    first are 0, and yet a start exists which the rounds before the last bring no closer.

    Args:
        degree: Ranks d that each rank hears, at least 2.
        digits: τ, at least 1.

    Raises:
        ArgumentError: An argument is out of range.

    Example:
        >>> bool(de_bruijn_averages_exactly(3, 3).verdict)
        True

    References:
        J.-C. Delvenne, R. Carli & S. Zampieri, Optimal strategies in the average consensus
        problem, Systems & Control Letters 58(10-11), 2009.
    """
    degree, digits = whole("degree", degree, 2), whole("digits", digits, 1)
    graph = de_bruijn(degree**digits, degree)
    exact = _exact(periodic([graph]), digits, range(1))
    before = _errors(periodic([graph]), max(1, digits - 1))[1:]
    stays = 1.0 if digits > 1 else 0.0
    worst = int(np.argmax(np.abs(before - stays)))
    return Evidence(
        f"gossip on {graph.name} averages exactly in {digits} rounds (Delvenne, Carli & Zampieri "
        "2009)",
        (
            *exact.checks,
            Check.equal(
                f"norm of W^k - J (worst of {len(before)} rounds: k = {worst + 1})",
                float(before[worst]),
                stays,
                tolerance=1e-12,
                scale=1.0,
            ),
        ),
        exact.curves,
        x="round",
    )


def _exact(schedule: Schedule, rounds: int, starts: range) -> Evidence:
    """Return that gossip averages exactly after ``rounds``, and not before, from some steps."""
    found = [_rounds(_from(schedule, start), rounds + 2) for start in starts]
    apart = [abs(number - rounds) for number, _ in found]
    worst = int(np.argmax(apart))
    number, errors = found[worst]
    name = schedule.name
    where = f"from each of {len(starts)} starts (worst)" if len(starts) > 1 else "from step 0"
    return Evidence(
        f"gossip on {name} averages exactly in {rounds} rounds",
        (
            Check.equal(
                f"rounds to an error of {_EXACT:g}, {where}", float(number), rounds, tolerance=0.0
            ),
        ),
        (Curve(name, np.arange(len(errors), dtype=np.float64), errors),),
        x="round",
    )


def _rounds(schedule: Schedule, most: int) -> tuple[int, Floats]:
    """Return the first round with an exact average, ``most`` + 1 if there is none; and errors."""
    errors = _errors(schedule, most)
    return int(np.flatnonzero(errors <= _EXACT).min(initial=most + 1)), errors


def _errors(schedule: Schedule, rounds: int) -> Floats:
    """Return the norm of the product less J after each round, as gossip from units shows it."""
    n = schedule.size
    units = Averaging(np.eye(n))
    found = [1.0 if n > 1 else 0.0]
    for steps in range(1, rounds + 1):
        history = solve(
            Gossip(), units, topology=schedule, steps=steps, record_every=steps,
            check=False, progress=False,
        )  # fmt: skip
        found.append(float(np.linalg.norm(history.x - 1.0 / n, 2)))
    return np.array(found)


def _from(schedule: Schedule, start: int) -> Schedule:
    """Return a periodic schedule as it goes on from another step."""
    period = schedule.period or 1
    return periodic([schedule.at(start + step) for step in range(period)])
