"""Quantities of topologies and schedules by which the theory speaks of mixing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._circulant import circulant_eigenvalues
from dectool.topology._edges import Floats, Matrix, count
from dectool.topology._guards import (
    fraction,
    need_chain,
    need_doubly,
    need_either,
    need_size,
    period_of,
)
from dectool.topology._mean_square import expected_contraction
from dectool.topology._schedule import Schedule
from dectool.topology._topology import Topology
from dectool.topology._validation import TOLERANCE

_WORK = 20_000_000_000
"""Multiplications after which a walk that has not settled is given up (half a minute)."""


def consensus_rate(topology: Topology | Schedule) -> float:
    r"""Return p, the share of the squared distance to the mean that a step takes away.

    :math:`\lVert W X - \bar X \rVert_F^2 \le (1 - p) \lVert X - \bar X \rVert_F^2` with
    :math:`p = 1 - \rho^2`, with equality for some X. Of a periodic schedule, W is the product of
    one period from step 0 on; of a random one with a ``law``, the left-hand side is its mean, and
    :math:`1 - p` the ``expected_contraction``.

    Args:
        topology: With rows and columns of W that sum to 1, or a schedule of such.

    Raises:
        TopologyError: W is not doubly stochastic, or a schedule has neither period nor law.

    Example:
        >>> from dectool import topology
        >>> round(topology.consensus_rate(topology.hypercube(3)), 12)
        0.75
        >>> topology.consensus_rate(topology.one_peer_exponential(8))
        1.0
        >>> round(topology.consensus_rate(topology.equidyn(8, directed=True)), 12)
        0.5625

    References:
        A. Koloskova, N. Loizou, S. Boreiri, M. Jaggi, S. U. Stich, A unified theory of
        decentralized SGD with changing topology and local updates, ICML 2020, assumption 4.
    """
    need_either("consensus_rate", topology)
    if isinstance(topology, Topology):
        need_doubly("consensus_rate", topology)
        return 1.0 - topology.rho**2
    if topology.period is None:
        _need_sums_kept("consensus_rate", topology)
        return 1.0 - expected_contraction(topology)
    for k in range(topology.period):
        need_doubly("consensus_rate", topology.at(k))
    return 1.0 - topology.contraction() ** 2


def consensus_rounds(topology: Topology | Schedule, eps: float) -> int:
    r"""Return the least k with :math:`\rho^k \le` eps.

    So many steps bring every start within eps times its distance to the mean; for normal W, as
    symmetric ones are, fewer do not. Of a periodic schedule, it is the least k for which the first
    k steps do so; of a random one with a ``law``, the least k with :math:`c^{k/2} \le` eps and c
    the ``expected_contraction``, which brings the mean squared distance within eps².

    Args:
        topology: With rows and columns of W that sum to 1, and rho < 1, or a schedule of such.
        eps: Above 0, below 1.

    Raises:
        ArgumentError: eps is out of range, or a periodic schedule has more than 3000 ranks.
        TopologyError: W is not doubly stochastic, rho is 1, or a schedule has neither period nor
            law.

    Example:
        >>> from dectool import topology
        >>> topology.consensus_rounds(topology.hypercube(3), eps=0.01)
        7
        >>> topology.consensus_rounds(topology.one_peer_exponential(8), eps=0.01)
        3

    References:
        L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53, 2004.
    """
    need_either("consensus_rounds", topology)
    eps = fraction("eps", eps)
    if isinstance(topology, Topology):
        need_doubly("consensus_rounds", topology)
        return rounds_within(topology.rho, eps, topology.name)
    if topology.period is None:
        _need_sums_kept("consensus_rounds", topology)
        return rounds_within(math.sqrt(expected_contraction(topology)), eps, topology.name)
    for k in range(topology.period):
        need_doubly("consensus_rounds", topology.at(k))
    need_size("consensus_rounds", topology, "use mean_square_rate")
    steps = [topology.at(k).W for k in range(topology.period)]
    return _first(
        "consensus_rounds",
        topology,
        steps,
        lambda P: float(np.linalg.norm(P - 1.0 / len(P), 2)) <= eps + 1e-12,
    )


def mixing_time(
    topology: Topology | Schedule, eps: float = 0.25, *, start: int | None = None
) -> int:
    r"""Return the least k with :math:`\max_i \frac12 \lVert e_i^T W^k - \pi^T \rVert_1 \le` eps.

    W is taken as the Markov chain of a walk that moves from i to j with probability W[i, j]. Of a
    periodic schedule of doubly stochastic W, the walk goes back in time: row i of
    :math:`W_{k-1} \cdots W_0` says whom rank i has averaged after k steps, and π is 1/n.

    Args:
        topology: W >= 0 with rows that sum to 1, and slem < 1; at most 3000 ranks, more if W is
            circulant (as of rings and exponential graphs) or with ``start``.
        eps: Distance in total variation, above 0, below 1.
        start: Only from this rank, which on graphs that look alike from all ranks is the same.

    Raises:
        ArgumentError: eps or start is out of range, or the graph too large.
        TopologyError: W has negative weights or other sums, the walk never settles, or a schedule
            has no period.

    Example:
        >>> from dectool import topology
        >>> topology.mixing_time(topology.complete(8)), topology.mixing_time(topology.ring(8))
        (1, 5)
        >>> topology.mixing_time(topology.torus(60, 60), start=0)
        563

    References:
        D. A. Levin, Y. Peres, E. L. Wilmer, Markov chains and mixing times, AMS 2009, section 4.5.
    """
    need_either("mixing_time", topology)
    eps = fraction("eps", eps)
    if isinstance(topology, Schedule):
        return _mixing_time_of(topology, eps, start)
    need_chain("mixing_time", topology)
    if topology.slem >= 1.0 - 1e-12:
        raise TopologyError(
            f"mixing_time of {topology.name}: the walk is periodic (slem is 1) and never settles; "
            "use topology.lazy()"
        )
    if start is not None:
        topology.row(start)  # refuses what is no rank
        return _from_one(topology, eps, start)
    if topology.size > _spectrum.DENSE_RESCUE:
        values = circulant_eigenvalues(topology.W)
        if values is not None:
            return _from_any(values, eps)
    need_size("mixing_time", topology, "give start=")
    return _first("mixing_time", topology, [topology.W], _settled(topology.perron, eps))


def dobrushin(topology: Topology | Schedule, *, start: int = 0, length: int | None = None) -> float:
    r"""Return :math:`\tau(W) = \frac12 \max_{i,j} \sum_k |W_{ik} - W_{jk}|`.

    :math:`\max W x - \min W x \le \tau(W) (\max x - \min x)`, and τ(AB) <= τ(A) τ(B), also
    where W is not symmetric and for products of different matrices. Of a schedule, it is that of
    the product :math:`W_{s+l-1} \cdots W_s`.

    Args:
        topology: W >= 0 with rows that sum to 1; of a schedule, at most 3000 ranks.
        start: First step s of a schedule, at least 0.
        length: Number of steps l of a schedule, at least 0; default one period.

    Raises:
        ArgumentError: The graph is too large, or no length given and the schedule has no period.
        TopologyError: W has negative weights or other sums.

    Example:
        >>> from dectool import topology
        >>> topology.dobrushin(topology.complete(4)), topology.dobrushin(topology.ring(8))
        (0.0, 1.0)
        >>> topology.dobrushin(topology.one_peer_exponential(8), length=2)
        1.0

    References:
        R. L. Dobrushin, Central limit theorem for nonstationary Markov chains, Theory Probab.
        Appl. 1, 1956.
    """
    need_either("dobrushin", topology)
    if isinstance(topology, Topology):
        need_chain("dobrushin", topology)
        return _of_rows(topology)
    start = count("start", start, 0)
    if length is None and topology.period is None:
        raise ArgumentError(f"length must be given: {topology.name} has no period")
    length = count("length", topology.period if length is None else length, 0)
    need_size("dobrushin", topology, "use schedule.contraction()")
    product = np.eye(topology.size)
    for k in range(start, start + length):
        need_chain("dobrushin", topology.at(k))
        product = np.asarray(topology.at(k).W @ product)
    return float(max(0.5 * np.abs(product[i:] - row).sum(1).max() for i, row in enumerate(product)))


def _need_sums_kept(who: str, schedule: Schedule) -> None:
    """Refuse random steps whose columns do not all sum to 1; rows are checked elsewhere."""
    law = schedule.law
    if law.is_symmetric or law.size > _spectrum.DENSE_RESCUE:
        return
    # The second moment of the sums of columns.
    if np.abs(law.backward(np.ones((law.size, law.size))) - 1.0).max() > TOLERANCE:
        raise TopologyError(
            f"{who} needs rows and columns that sum to 1, and some columns in steps of "
            f"{schedule.name} do not, so that the mean moves; use expected_contraction, which is "
            "about the distance to the mean of the moment"
        )


def rounds_within(rho: float, eps: float, name: str) -> int:
    """Return the least k with rho^k <= eps, at least 1; ``name`` for the message."""
    if rho >= 1.0 - 1e-15:
        raise TopologyError(
            f"consensus_rounds of {name}: rho is {rho:g}, so a start may never come "
            "closer; use topology.lazy()"
        )
    # Rounding in rho or in the quotient must not add a round: 0.5**2 is 0.25.
    return 1 if rho < 1e-12 else max(1, math.ceil(math.log(eps) / math.log(rho) - 1e-9))


def _first(
    who: str,
    topology: Topology | Schedule,
    steps: list[Matrix],
    close: Callable[[Floats], bool],
) -> int:
    """Return the least k for which W_{k-1} ... W_0 is close, where more steps keep it so."""
    n = topology.size
    if close(np.eye(n)):
        return 0
    powers = [np.eye(n)]
    for W in steps:
        powers[0] = np.asarray(W @ powers[0])
    while not close(powers[-1]):
        if len(powers) > 50:
            raise TopologyError(
                f"{who} of {topology.name}: it never comes within eps, since the product of a "
                "period does not tend to J; use members that are connected together, or lazy ones"
            )
        powers.append(powers[-1] @ powers[-1])
    # More periods never take it away, so the last number of them that is too far has these digits.
    periods, reached = 0, np.eye(n)
    for digit in range(len(powers) - 2, -1, -1):
        candidate = powers[digit] @ reached
        if not close(candidate):
            periods, reached = periods + 2**digit, candidate
    k = 0
    while not close(reached):
        reached = np.asarray(steps[k] @ reached)
        k += 1
    return periods * len(steps) + k


def _settled(limit: Floats, eps: float) -> Callable[[Floats], bool]:
    return lambda P: bool(0.5 * np.abs(P - limit).sum(axis=1).max() <= eps + 1e-12)


def _mixing_time_of(schedule: Schedule, eps: float, start: int | None) -> int:
    if start is not None:
        raise ArgumentError(
            f"start={start} is for one topology, and {schedule.name} is a schedule, of which all "
            "ranks are followed; leave it out"
        )
    for k in range(period_of("mixing_time", schedule)):
        need_doubly("mixing_time", schedule.at(k))
        need_chain("mixing_time", schedule.at(k))
    need_size("mixing_time", schedule, "use mean_square_rate")
    steps = [schedule.at(k).W for k in range(schedule.period or 1)]
    limit = np.full(schedule.size, 1.0 / schedule.size)
    return _first("mixing_time", schedule, steps, _settled(limit, eps))


def _from_one(topology: Topology, eps: float, start: int) -> int:
    """Follow the walk from one rank step by step."""
    back: Matrix = topology.W.T.tocsr()
    place = np.zeros(topology.size)
    place[start] = 1.0
    limit = topology.perron
    for k in range(max(1, _WORK // max(1, back.nnz))):
        if 0.5 * np.abs(place - limit).sum() <= eps + 1e-12:
            return k
        place = np.asarray(back @ place)
    raise ArgumentError(
        f"mixing_time of {topology.name} from {start}: the walk has not settled after {k + 1} "
        "steps, which is where this gives up; study a smaller graph of the same family"
    )


def _from_any(values: NDArray[np.complexfloating[Any]], eps: float) -> int:
    """Bisect, by Fourier transforms, where all ranks are alike."""
    n = len(values)

    def far(k: int) -> bool:
        place = np.fft.ifft(values**k).real
        return bool(0.5 * np.abs(place - 1.0 / n).sum() > eps + 1e-12)

    high = 1
    while far(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if far(middle) else (low, middle)
    return high


def _of_rows(topology: Topology) -> float:
    """Return 1 - min_ij Σ_k min(W_ik, W_jk), which is 1 once two ranks hear nobody in common."""
    W, n = topology.W, topology.size
    heard: Matrix = W.T.tocsr()
    work, least = 0, 1.0
    for i in range(n):
        shared = np.zeros(n)
        for k, weight in zip(*topology.row(i), strict=True):
            part = slice(heard.indptr[k], heard.indptr[k + 1])
            shared[heard.indices[part]] += np.minimum(heard.data[part], weight)
            work += int(heard.indptr[k + 1] - heard.indptr[k])
        least = min(least, float(shared.min()))
        if least == 0.0:
            return 1.0
        if work + n > _WORK // 40:
            raise ArgumentError(
                f"dobrushin of {topology.name}: each rank hears somebody in common with all "
                "others, and that takes too long at this size; study a smaller graph of the same "
                "family, or use rho"
            )
        work += n
    return max(0.0, 1.0 - least)
