"""What ``dectool topology`` says about a graph with its weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from dectool.errors import DectoolError
from dectool.topology import (
    Schedule,
    Topology,
    as_schedule,
    expected_contraction,
    mean_square_rate,
)
from dectool.topology._quantities import rounds_within

Factor = Literal["exact", "bound", "sample"]

ITEM = 8
_DENSE = 500
_LEAST_ROUNDS, _MOST_ROUNDS = 64, 4096
_WORK = 2 * 10**8
_SAMPLE = 512
_EXACT = 1e-12
"""A contraction below this is rounding around 0: the steps average exactly."""


class Row(NamedTuple):
    """The quantities of a topology, NaN where it has no such quantity.

    Of a schedule they are those of one period, and of a random one those of its first rounds: the
    mean of edges and bytes, the largest degree, the factor per round. Where the law of a random
    one is known, the factor is that in mean square, and nothing is measured.

    Attributes:
        topology: Name of the graph.
        weights: Name of the rule of its weights.
        ranks: Number of ranks.
        edges: Edges that are used in a round; directed ones where W is.
        degree: The most neighbors that a rank sends to, or hears from, in a round.
        rho: Factor per round by which disagreement shrinks at worst.
        slem: Second largest modulus of the eigenvalues.
        gap: 1 - rho.
        lambda_min: Smallest eigenvalue of a symmetric W.
        bytes_per_rank: The most that a rank sends in a round.
        bytes_per_round: What all ranks send in a round.
        rounds: Rounds until every disagreement has shrunk to the accuracy; inf: never.
        seconds_per_round: Seconds that a round takes on the network.
        seconds: Seconds until every disagreement has shrunk to the accuracy.
        sampled: Rounds that a random schedule was measured on, else 0.
        factor: How the factor, and so the rounds, are known: "exact", "bound" (they may be
            smaller) or "sample".
    """

    topology: str
    weights: str
    ranks: int
    edges: float
    degree: int
    rho: float
    slem: float
    gap: float
    lambda_min: float
    bytes_per_rank: float
    bytes_per_round: float
    rounds: float
    seconds_per_round: float = math.nan
    seconds: float = math.nan
    sampled: int = 0
    factor: Factor = "exact"


def measure(graph: Topology | Schedule, numbers: int, accuracy: float = 1e-6) -> Row:
    """Return the quantities of a topology, of a period of a schedule, or of a random sample.

    Args:
        graph: What to measure.
        numbers: Numbers in a message, float64.
        accuracy: Above 0, below 1.

    Example:
        >>> from dectool import topology
        >>> row = measure(topology.ring(16), numbers=1000)
        >>> row.edges, row.bytes_per_rank, row.bytes_per_round, row.rounds
        (16, 16000, 256000, 266)
        >>> row = measure(topology.one_peer_exponential(16), numbers=1000)
        >>> row.degree, row.bytes_per_rank, row.rounds
        (1, 8000, 4)
    """
    schedule = as_schedule(graph)
    members = [schedule.at(k) for k in range(schedule.period or _SAMPLE)]
    used = [member.edges.receivers.size for member in members]
    most = [int(member.out_degrees.max()) for member in members]
    directed = any(member.is_directed for member in members)
    rho, rounds, factor = _shrinking(schedule, members, accuracy)
    first = members[0]
    alone = schedule.period == 1
    if not all(member.is_doubly_stochastic for member in members):
        rounds = math.nan
    return Row(
        topology=graph.name,
        weights=weights_of(graph),
        ranks=graph.size,
        edges=_mean([count if directed else count // 2 for count in used]),
        degree=max(member.max_degree for member in members),
        rho=rho,
        slem=_zero(first.slem) if alone else math.nan,
        gap=1.0 - rho,
        lambda_min=_zero(first.lambda_min) if alone and first.is_symmetric else math.nan,
        bytes_per_rank=_mean(most) * numbers * ITEM,
        bytes_per_round=_mean(used) * numbers * ITEM,
        rounds=rounds,
        sampled=0 if schedule.period else len(members),
        factor=factor,
    )


def weights_of(graph: Topology | Schedule) -> str:
    """Return the name of the rule of the weights; of a schedule, of those of its first step."""
    return as_schedule(graph).at(0).weights


def _shrinking(
    schedule: Schedule, members: list[Topology], accuracy: float
) -> tuple[float, float, Factor]:
    """Return factor per round, rounds until the accuracy is reached, and how they are known."""
    first = members[0]
    if schedule.period is None:
        return _random(schedule, members, accuracy)
    if schedule.period > 1:
        rho = _zero(schedule.contraction()) ** (1.0 / schedule.period)
    else:
        rho = _zero(first.rho)
        if first.is_normal:
            return rho, _constant(rho, accuracy), "exact"
    if schedule.size > _DENSE:
        return rho, _searched(schedule, accuracy), "exact"
    return rho, _powers(members, accuracy), "exact"


def _random(
    schedule: Schedule, members: list[Topology], accuracy: float
) -> tuple[float, float, Factor]:
    """Return the same of a random schedule: by its law, or if that is not known, by a sample."""
    known: tuple[tuple[Callable[[Schedule], float], Factor], ...] = (
        (mean_square_rate, "exact"),
        # For more ranks.
        (expected_contraction, "bound"),
    )
    for squared, factor in known if _has_law(schedule) else ():
        try:
            rho = math.sqrt(_zero(squared(schedule)))
        except DectoolError:
            continue
        return rho, _constant(rho, accuracy), factor
    return *_sampled(schedule, members, accuracy), "sample"


def _has_law(schedule: Schedule) -> bool:
    """Return whether it is known; to find out that it is not may take long, so only once."""
    try:
        return bool(schedule.law.size)
    except DectoolError:
        return False


def _constant(rho: float, accuracy: float) -> float:
    """Return the fewest rounds if each shrinks the same disagreement by the same factor."""
    return math.inf if rho >= 1.0 - _EXACT else rounds_within(rho, accuracy, "the steps")


def _powers(members: list[Topology], accuracy: float) -> float:
    """Return the fewest rounds of a periodic schedule, by powers of the product of a period."""
    size = members[0].size
    steps = [member.to_dense() - 1.0 / size for member in members]
    product = np.eye(size)
    for step in steps:
        product = step @ product
    if np.abs(np.linalg.eigvals(product)).max() >= 1.0 - _EXACT:
        return math.inf

    def far(power: np.ndarray) -> bool:
        return bool(np.linalg.norm(power, 2) > accuracy)

    powers = [product]
    while far(powers[-1]):
        powers.append(powers[-1] @ powers[-1])
    # The whole periods after which it is still too far have these binary digits.
    periods, reached = 0, np.eye(size)
    for digit in range(len(powers) - 2, -1, -1):
        candidate = reached @ powers[digit]
        if far(candidate):
            periods, reached = periods + 2**digit, candidate
    for k, step in enumerate(steps, start=1):
        reached = step @ reached
        if not far(reached):
            return periods * len(steps) + k
    return (periods + 1) * len(steps)


def _searched(schedule: Schedule, accuracy: float) -> float:
    """Return the fewest rounds by bisection; beyond some thousand, at the rate of those."""
    low, high = 0, 1
    while (left := schedule.contraction(0, high)) > accuracy:
        if high >= _MOST_ROUNDS:
            return math.inf if left >= 1.0 else math.ceil(high * math.log(accuracy, left))
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if schedule.contraction(0, middle) <= accuracy else (middle, high)
    return high


def _sampled(schedule: Schedule, members: list[Topology], accuracy: float) -> tuple[float, float]:
    """Return factor and mean rounds of stretches of a random schedule, one after the other.

    The last stretch that begins within the sample goes on beyond it; if it is very long, its
    rounds are those that its factor takes.
    """
    size = schedule.size
    most = min(_MOST_ROUNDS, max(_LEAST_ROUNDS, _WORK // size**2))
    k, stretches = 0, 0
    while k < len(members):
        start, product, left = k, np.eye(size) - 1.0 / size, 1.0
        while left > accuracy:
            if k - start == most:
                factor = float(np.linalg.norm(product, 2)) ** (1.0 / most)
                endless = factor >= 1.0 - _EXACT
                return factor, math.inf if endless else math.log(accuracy, factor)
            member = members[k] if k < len(members) else schedule.at(k)
            product = np.asarray(member.W @ product)
            product -= product.mean(axis=0)
            k += 1
            # The norm is at least this part of the sum of squares, which is cheap.
            left = float(np.linalg.norm(product)) / math.sqrt(size)
            left = left if left > accuracy else float(np.linalg.norm(product, 2))
        stretches += 1
    return accuracy ** (stretches / k), k / stretches


def _mean(values: list[int]) -> float:
    total, many = sum(values), len(values)
    return total // many if total % many == 0 else total / many


def _zero(value: float) -> float:
    return 0.0 if abs(value) < _EXACT else value
