"""The law of a random maximal matching, in which edges are kept in random order if they fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dectool.errors import TopologyError
from dectool.topology._circulant import is_circulant
from dectool.topology._edges import Floats, Ints, Matrix
from dectool.topology._law import Few, Law
from dectool.topology._steps import half, partners
from dectool.topology._topology import Topology

_STATES = 20_000
"""So many partial matchings are gone through at most."""


def matching_law(base: Topology, name: str) -> Law:
    """Return the law of the pairs of ``random_matching``.

    Raises:
        TopologyError: The graph has too many matchings.
    """
    n, edges = base.size, base.edges
    if edges.senders.size == n * (n - 1):
        everyone = _Everyone(n)
        return Law(everyone.mean, everyone.forward, projections=True)
    once = edges.receivers < edges.senders
    first, second = edges.receivers[once], edges.senders[once]
    found = maximal_matchings(first, second)
    if found is None:
        raise TopologyError(
            f"the law of a step of {name} is not known: the graph has more than {_STATES} "
            "matchings; study a smaller graph of the same family, or random_pair(graph) or "
            "matcha(graph, budget), whose laws are known at any size"
        )
    matrices = []
    for kept in found:
        chosen = [e for e in range(len(first)) if kept >> e & 1]
        matrices.append(half(partners(n, first[chosen], second[chosen]), name).W)
    few = Few.of(n, matrices, np.array(list(found.values())))
    return Law(few.mean, few.forward, projections=True, rotations=is_circulant(edges))


def maximal_matchings(first: Ints, second: Ints) -> dict[int, float] | None:
    """Return the probability of each maximal matching, a bit for each edge; None if too many.

    Given the edges kept, the next in the random order that fits is uniform among those that fit.
    """
    number = len(first)
    ends = np.stack([first, second])
    touching = [0] * number
    for e in range(number):
        near = np.isin(ends, ends[:, e]).any(axis=0)
        touching[e] = sum(1 << int(f) for f in np.flatnonzero(near))
    level, whole = {(0, (1 << number) - 1): 1.0}, {}
    states = 0
    while level:
        states += len(level)
        following: dict[tuple[int, int], float] = {}
        for (kept, fits), chance in level.items():
            # A level may be a thousand times as large as the one before.
            if states + len(following) > _STATES:
                return None
            if not fits:
                whole[kept] = chance
                continue
            share, left = chance / fits.bit_count(), fits
            while left:
                e = (left & -left).bit_length() - 1
                left &= left - 1
                state = kept | 1 << e, fits & ~touching[e]
                following[state] = following.get(state, 0.0) + share
        level = following
    return whole


@dataclass(frozen=True)
class _Everyone:
    r"""Moments of :math:`W = (I + \Pi)/2`, with each perfect matching Π of all ranks alike.

    If n is odd, one rank is left alone.
    """

    size: int

    @property
    def _alone(self) -> float:
        return self.size % 2 / self.size

    @property
    def mean(self) -> Matrix:
        n = self.size
        pair = (1.0 - self._alone) / max(1, n - 1)
        swap = pair * (np.ones((n, n)) - np.eye(n)) + self._alone * np.eye(n)
        return sparse.csr_array((np.eye(n) + swap) / 2 if n > 1 else np.eye(1))

    def forward(self, X: Floats) -> Floats:
        """Return E[W X Wᵀ], from the chances of what two ranks a and b are paired with."""
        n, alone = self.size, self._alone
        if n == 1:
            return X
        diagonal, total, trace = X.diagonal(), X.sum(), X.trace()
        rows, columns = X.sum(axis=1) - diagonal, X.sum(axis=0) - diagonal
        each = (1.0 - alone) / (n - 1)
        together = each * X.T
        one_alone = (rows[:, None] - X + columns - X) * (alone / max(1, n - 2))
        others = total - trace - (rows[:, None] + rows + columns[:, None] + columns) + X + X.T
        apart = 1.0 - each - 2.0 * alone
        both_apart = others * (apart / max(1, (n - 2) * (n - 3)))
        swapped = together + one_alone + both_apart
        np.fill_diagonal(swapped, alone * diagonal + each * (trace - diagonal))
        swap = 2.0 * self.mean - sparse.eye_array(n)
        return np.asarray((X + swap @ X + (swap @ X.T).T + swapped) / 4)
