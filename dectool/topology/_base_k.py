"""Graphs of few neighbors that average exactly after a fixed number of steps, for any n."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain

import numpy as np

from dectool.errors import ArgumentError
from dectool.topology._edges import Edges, Floats, Ints, count
from dectool.topology._schedule import Schedule
from dectool.topology._steps import Cycle
from dectool.topology._topology import Topology
from dectool.topology._weights import fill

Links = list[tuple[int, int, float]]
"""The edges of a step: two ranks and the weight that each gives to the other."""


def hyper_hypercube(n: int, k: int = 1) -> Schedule:
    r"""Return the k-peer hyper-hypercube graph: exact averaging, one factor of n at a time.

    With :math:`n = n_1 \cdots n_L`, :math:`n_l \le k + 1` and L as small as possible, step l lets
    the ranks that differ in digit l alone (of the mixed-radix number of a rank) take their mean.
    After L steps, :math:`W^{(L)} \cdots W^{(1)} = J`.

    Args:
        n: Number of ranks, at least 1, without a prime factor above k + 1.
        k: Most neighbors in a step, at least 1.

    Raises:
        ArgumentError: n or k is below 1, or n has a larger prime factor.

    Example:
        >>> s = hyper_hypercube(12, k=2)
        >>> s.period, s.at(0).in_neighbors(0), s.at(2).in_neighbors(0)
        (3, (1,), (4, 8))

    References:
        Y. Takezawa et al., Beyond exponential graph: communication-efficient topologies for
        decentralized learning via finite-time convergence, NeurIPS 2023.
    """
    n, k = count("n", n, 1), count("k", k, 1)
    if factors(n, k + 1) is None:
        raise ArgumentError(
            f"n={n} has a prime factor above k + 1 = {k + 1}; use base_k({n}, k={k}), which takes "
            "any n"
        )
    return _schedule(n, _hyper_hypercube(range(n), k), f"{k}-peer hyper-hypercube of {n}")


def simple_base_k(n: int, k: int = 1) -> Schedule:
    r"""Return the Simple Base-(k+1) graph: exact averaging of any number of ranks.

    With :math:`n = \sum_{l=1}^L a_l (k+1)^{p_l}`, :math:`1 \le a_l \le k`, :math:`p_1 > p_2 >
    \cdots`, the ranks fall into L groups, which average inside by hyper-hypercubes, hand their
    means up from the smallest, and average inside again. At most
    :math:`2 \log_{k+1} n + 2` steps.

    Args:
        n: Number of ranks, at least 1.
        k: Most neighbors in a step, at least 1.

    Raises:
        ArgumentError: n or k is below 1.

    Example:
        >>> simple_base_k(6).period, base_k(6).period
        (5, 4)

    References:
        Y. Takezawa et al., NeurIPS 2023 (see ``hyper_hypercube``).
    """
    n, k = count("n", n, 1), count("k", k, 1)
    return _schedule(n, _simple_base(range(n), k), f"Simple Base-{k + 1} graph of {n}")


def base_k(n: int, k: int = 1) -> Schedule:
    r"""Return the Base-(k+1) graph: exact averaging of any number of ranks, with k neighbors.

    n = p q, p the largest divisor without a prime factor above k + 1. Blocks of q ranks run the
    Simple Base-(k+1) graph side by side, then hyper-hypercubes across the blocks finish; if the
    Simple Base-(k+1) graph of all n is shorter, it is taken instead. After
    :math:`m \le 2 \log_{k+1} n + 2` steps, :math:`W^{(m)} \cdots W^{(1)} = J`; each step is
    symmetric.

    Args:
        n: Number of ranks, at least 1.
        k: Most neighbors in a step, at least 1.

    Raises:
        ArgumentError: n or k is below 1.

    Example:
        >>> s = base_k(25, k=2)
        >>> s.period, max(s.at(t).max_degree for t in range(s.period))
        (6, 2)
        >>> round(s.contraction(), 12)
        0.0

    References:
        Y. Takezawa et al., NeurIPS 2023 (see ``hyper_hypercube``).
    """
    n, k = count("n", n, 1), count("k", k, 1)
    steps = _simple_base(range(n), k)
    smooth = _smooth_part(n, k + 1)
    if 1 < smooth < n:
        blocks = np.arange(n).reshape(smooth, n // smooth)
        inside = _side_by_side(_simple_base(block.tolist(), k) for block in blocks)
        across = _side_by_side(_hyper_hypercube(line.tolist(), k) for line in blocks.T)
        steps = min(inside + across, steps, key=len)
    return _schedule(n, steps, f"Base-{k + 1} graph of {n}")


@cache
def factors(n: int, most: int) -> tuple[int, ...] | None:
    """Return the fewest factors, each at most ``most``, whose product is n, ascending."""
    if n == 1:
        return ()
    found = None
    for factor in range(min(n, most), 1, -1):
        if n % factor == 0:
            rest = factors(n // factor, factor)
            if rest is not None and (found is None or len(rest) + 1 < len(found)):
                found = (*rest, factor)
    return found


def _hyper_hypercube(ranks: Iterable[int], k: int) -> list[Links]:
    """Return the steps that average ``ranks``, whose number has no prime factor above k + 1."""
    members = np.array(list(ranks))
    steps, stride = [], 1
    for factor in factors(members.size, k + 1) or ():
        groups = members.reshape(-1, factor, stride).swapaxes(1, 2).reshape(-1, factor)
        steps.append([link for group in groups.tolist() for link in _mean(group)])
        stride *= factor
    return steps


def _simple_base(ranks: Iterable[int], k: int) -> list[Links]:
    members = list(ranks)
    if factors(len(members), k + 1) is not None:
        return _hyper_hypercube(members, k)
    cells = _cells(members, k + 1)
    groups = [list(chain(*group)) for group in cells]
    inside = [_hyper_hypercube(group, k) for group in groups]
    again = [_side_by_side(_hyper_hypercube(cell, k) for cell in group) for group in cells]
    last = len(groups) - 1
    if len(groups[last]) <= k:
        again[last] = inside[last]
    steps = [list(chain(*(_turn(own, m) for own in inside))) for m in range(len(inside[0]))]
    for t in range(1 + len(again[0])):
        links = _hand_up(cells[t], list(chain(*groups[t + 1 :])), k) if t < last else []
        for at, own in enumerate(again):
            first = min(at + 1, last)
            links += _turn(own, t - first) if t >= first else []
        steps.append(links)
    return steps


def _cells(members: list[int], base: int) -> list[list[list[int]]]:
    """Return, for each digit of the number of members that is not 0, that many cells of base^p."""
    size, groups, start = 1, [], 0
    while size * base <= len(members):
        size *= base
    while size:
        digit = (len(members) - start) // size
        cells = [members[start + c * size : start + (c + 1) * size] for c in range(digit)]
        groups += [cells] if cells else []
        start, size = start + digit * size, size // base
    return groups


def _hand_up(cells: list[list[int]], below: list[int], k: int) -> Links:
    """Pair each rank below with one rank of each cell; the other ranks of the cells average.

    With these weights a rank below then holds the mean of both sides, and each cell has the mean
    of both sides as its own.
    """
    own = sum(len(cell) for cell in cells)
    weight = own / (own + len(below)) / len(cells)
    free = [list(cell) for cell in cells]
    links = [(rank, cell.pop(), weight) for rank in below for cell in free]
    left = list(chain(*free))
    for start in range(0, len(left), k + 1):
        links += _mean(left[start : start + k + 1])
    return links


def _mean(group: list[int]) -> Links:
    weight = 1.0 / len(group)
    return [(i, j, weight) for at, i in enumerate(group) for j in group[at + 1 :]]


def _turn(steps: list[Links], m: int) -> Links:
    return steps[m % len(steps)] if steps else []


def _side_by_side(parts: Iterable[list[Links]]) -> list[Links]:
    """Return the steps in which equally long sequences on different ranks run at once."""
    return [list(chain(*links)) for links in zip(*parts, strict=True)]


def _smooth_part(n: int, most: int) -> int:
    """Return the largest divisor of n without a prime factor above ``most``."""
    smooth = 1
    for factor in range(2, most + 1):
        while n % factor == 0:
            n, smooth = n // factor, smooth * factor
    return smooth


def _schedule(n: int, steps: list[Links], name: str) -> Schedule:
    members = tuple(
        _symmetric(n, links, f"{name}, step {m}") for m, links in enumerate(steps or [[]])
    )
    return Schedule(Cycle(members), size=n, period=len(members), name=name)


def _symmetric(n: int, links: Links, name: str) -> Topology:
    pairs: Ints = np.array([link[:2] for link in links], dtype=np.int64).reshape(-1, 2)
    weights: Floats = np.array([link[2] for link in links])
    receivers, senders = np.concatenate([pairs, pairs[:, ::-1]]).T
    W = fill(Edges(n, receivers, senders), np.tile(weights, 2))
    return Topology(W, name=name, weights="exact", require_connected=False)
