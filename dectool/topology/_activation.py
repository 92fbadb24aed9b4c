"""How often to use each matching: the convex problem of MATCHA, solved with a certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dectool.topology._edges import Floats, Ints

_GAP = 1e-6
_FASTER = 8.0
_STAGES = 16
_STEPS = 40
_CENTERED = 1e-11
_ROUNDING = 1e-14


class Activation(NamedTuple):
    """Probabilities and what bounds them.

    Attributes:
        probabilities: p, shape (M,).
        gap: How much better, at most, any other p is, relative to its λ₂.
    """

    probabilities: Floats
    gap: float


def activation(n: int, first: Ints, second: Ints, kind: Ints, budget: float) -> Activation:
    r"""Maximise :math:`\lambda_2(\sum_j p_j L_j)` over 0 <= p <= 1 with sum at most budget * M.

    A barrier method in p and t on :math:`\sum_j p_j L_j - t (I - J) \succeq 0`. Every positive
    semidefinite Z of trace 1 with rows that sum to 0 bounds the optimum by that of
    :math:`\sum_j p_j \langle Z, L_j \rangle`, which takes the largest terms until the budget is
    spent; the method's own Z proves how good p is.

    Args:
        n: Number of ranks, at least 2, connected by the edges.
        first: One end of each edge.
        second: The other.
        kind: Number of the matching that it is in, 0 to M - 1.
        budget: Share of the matchings that a step may use, above 0, at most 1.
    """
    M = int(kind.max()) + 1
    if budget >= 1:
        return Activation(np.ones(M), 0.0)
    barrier = _Barrier(n, first, second, kind, budget * M)
    p = np.full(M, 0.9 * budget)
    t = 0.5 * barrier.connectivity(p)
    force, best = n / t, Activation(p, np.inf)
    for _ in range(_STAGES):
        p, t = barrier.center(p, t, force)
        spent = barrier.spend(p)
        value = barrier.connectivity(spent)
        gap = max(0.0, barrier.bound(p, t) / value - 1.0)
        if gap >= best.gap:
            break
        best = Activation(spent, gap)
        if gap <= _GAP:
            break
        force *= _FASTER
    return best


class _Barrier:
    def __init__(self, n: int, first: Ints, second: Ints, kind: Ints, most: float) -> None:
        self.n, self.kind, self.most = n, kind, most
        edges = np.arange(kind.size)
        self.ends = np.zeros((n, kind.size))
        self.ends[first, edges], self.ends[second, edges] = 1.0, -1.0
        self.of_kind = np.zeros((kind.size, int(kind.max()) + 1))
        self.of_kind[edges, kind] = 1.0

    def laplacian(self, p: Floats) -> Floats:
        """Return the sum of p_j L_j."""
        return np.asarray((self.ends * p[self.kind]) @ self.ends.T)

    def connectivity(self, p: Floats) -> float:
        """Return λ₂."""
        return float(np.linalg.eigvalsh(self.laplacian(p))[1])

    def slack(self, p: Floats, t: float) -> Floats:
        """Return what must stay positive definite; along constants it is 1."""
        return self.laplacian(p) - t * np.eye(self.n) + (1.0 + t) / self.n

    def value(self, p: Floats, t: float, force: float) -> float:
        """Return the barrier function to be minimised, infinite outside."""
        left = self.most - p.sum()
        if left <= 0 or p.min() <= 0 or p.max() >= 1:
            return np.inf
        try:
            factor = np.linalg.cholesky(self.slack(p, t))
        except np.linalg.LinAlgError:
            return np.inf
        logs = 2 * np.log(factor.diagonal()).sum() + np.log(p).sum() + np.log1p(-p).sum()
        return float(-force * t - logs - np.log(left))

    def center(self, p: Floats, t: float, force: float) -> tuple[Floats, float]:
        """Minimise ``value`` by Newton's method."""
        for _ in range(_STEPS):
            inverse = np.linalg.inv(self.slack(p, t))
            turned = inverse @ self.ends
            left = self.most - p.sum()
            own = (self.ends * turned).sum(axis=0) @ self.of_kind
            gradient = np.append(
                -own - 1 / p + 1 / (1 - p) + 1 / left, -force + np.trace(inverse) - 1
            )
            hessian = np.empty((p.size + 1, p.size + 1))
            hessian[:-1, :-1] = self.of_kind.T @ (self.ends.T @ turned) ** 2 @ self.of_kind
            hessian[:-1, :-1] += np.diag(1 / p**2 + 1 / (1 - p) ** 2) + 1 / left**2
            hessian[:-1, -1] = hessian[-1, :-1] = -(turned**2).sum(axis=0) @ self.of_kind
            hessian[-1, -1] = (inverse**2).sum() - 1
            # Terms for p near 0 or 1 exceed the others by 1e16; scaled, the solution keeps digits.
            scale = 1 / np.sqrt(hessian.diagonal())
            step = scale * np.linalg.solve(hessian * np.outer(scale, scale), -gradient * scale)
            slope = float(gradient @ step)
            if -slope <= _CENTERED:
                break
            length, now = 1.0, self.value(p, t, force)
            now += _ROUNDING * abs(now)
            while self.value(p + length * step[:-1], t + length * step[-1], force) > (
                now + 0.1 * length * slope
            ):
                length /= 2
                if length < 1e-4:
                    return p, t
            p, t = p + length * step[:-1], t + length * step[-1]
        return p, t

    def spend(self, p: Floats) -> Floats:
        """Return p and what it leaves of the budget, shared by the room below 1."""
        left = self.most - p.sum()
        room = 1.0 - p
        return np.asarray(np.minimum(1.0, p + left * room / room.sum()))

    def bound(self, p: Floats, t: float) -> float:
        """Return what no probabilities surpass, by Z = the inverse of ``slack``, scaled."""
        inverse = np.linalg.inv(self.slack(p, t))
        weights = (self.ends * (inverse @ self.ends)).sum(axis=0) @ self.of_kind
        largest = np.sort(weights / (np.trace(inverse) - 1))[::-1]
        whole = int(self.most)
        return float(largest[:whole].sum() + (self.most - whole) * largest[whole])
