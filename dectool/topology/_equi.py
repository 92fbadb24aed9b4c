"""EquiTopo: graphs of random hops whose gap does not depend on the number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.topology._edges import Floats, Ints, Matrix, count, real
from dectool.topology._law import Few, Law
from dectool.topology._schedule import Schedule
from dectool.topology._steps import partners, toward
from dectool.topology._topology import Topology


def equistatic(n: int, degree: int, *, directed: bool = False, seed: int = 0) -> Topology:
    r"""Return the EquiStatic graph: the same few random hops for every rank.

    With :math:`A^{(u)} = \frac{n-1}{n} \Pi_u + \frac1n I`, where :math:`\Pi_u` sends from i to
    i + u (mod n), W is the mean of :math:`A^{(u)}` over M random hops u (D-EquiStatic), and of
    that and its transpose if not ``directed`` (U-EquiStatic). For independent hops,
    :math:`\rho \le \epsilon` with probability 1 - δ once
    :math:`M \ge \frac{8}{3 \epsilon^2} \ln\frac{2n}{\delta}` (matrix Bernstein). Here hops differ,
    also from each other's opposites where edges go both ways, so that every rank has exactly
    ``degree`` neighbors.

    Args:
        n: Number of ranks, at least 2.
        degree: Neighbors that a rank hears, 1 to n - 1: M hops if ``directed``, otherwise 2 M, or
            2 M - 1 with the hop n/2. Hops that share a divisor with n leave ranks unconnected and
            are drawn again.
        directed: Each rank sends along the hops, and hears from those behind it.
        seed: Non-negative integer; the same seed gives the same graph.

    Raises:
        ArgumentError: n or degree is out of range, or such a graph does not exist.

    Example:
        >>> equistatic(64, degree=6)
        <Topology: U-EquiStatic graph of 64, degree 6, 192 edges, hops, doubly stochastic>
        >>> equistatic(64, degree=6, directed=True).is_directed
        True

    References:
        Z. Song et al., Communication-efficient topologies for decentralized learning with O(1)
        consensus rate, NeurIPS 2022.
    """
    n, degree = count("n", n, 2), count("degree", degree, 1)
    seed = count("seed", seed, 0)
    if degree >= n:
        raise ArgumentError(f"degree must be below n, got degree={degree} with n={n}")
    if not directed:
        _check_degree(n, degree)
    hops = _hops(n, degree, directed, seed)
    forth = _mean_of_hops(n, hops)
    W = forth if directed else (forth + forth.T) / 2
    kind = "D" if directed else "U"
    return Topology(W, name=f"{kind}-EquiStatic graph of {n}, degree {degree}", weights="hops")


def equidyn(
    n: int,
    *,
    directed: bool = False,
    eta: float = 0.5,
    hops: Sequence[int] | None = None,
    seed: int = 0,
) -> Schedule:
    r"""Return the EquiDyn schedule: one random hop a step, with one peer for every rank.

    :math:`W = (1 - \eta) I + \eta A`. If ``directed`` (OD-EquiDyn), :math:`A = A^{(u)}` of
    ``equistatic`` with a random hop u. Otherwise (OU-EquiDyn)
    :math:`A = \frac{n-1}{n} P + \frac1n I`, where P exchanges i with i + u for the ranks i from a
    random one on whose peer is still free. With :math:`\eta = 1/2` and all hops, the first has
    :math:`\mathbb E \lVert W e \rVert^2 = \frac{n-1}{2n} \lVert e \rVert^2` for every e that sums
    to 0. Step k draws from ``numpy.random.default_rng([seed, k])``.

    Args:
        n: Number of ranks, at least 2.
        directed: Send to one peer and hear another, in place of an exchange.
        eta: Weight of the step, above 0, at most 1.
        hops: Hops to draw from, each 1 to n - 1; default all of them.
        seed: Non-negative integer.

    Raises:
        ArgumentError: n, eta or a hop is out of range.
        ArgumentTypeError: n, seed, eta or a hop is no such number, or hops no sequence.

    Example:
        >>> s = equidyn(16, directed=True, seed=3)
        >>> s.period is None, s.at(0).max_degree, s.at(0).is_doubly_stochastic
        (True, 1, True)

    References:
        Z. Song et al., NeurIPS 2022 (see ``equistatic``).
    """
    n, seed, eta = count("n", n, 2), count("seed", seed, 0), real("eta", eta)
    if not 0 < eta <= 1:
        raise ArgumentError(f"eta must be above 0 and at most 1, got {eta:g}")
    if not isinstance(hops, Iterable | None):
        raise ArgumentTypeError(f"hops must be a list of integers, got {hops!r}; use [{hops!r}]")
    known = range(1, n) if hops is None else [count("hop", hop, 1) for hop in hops]
    if not known or max(known) >= n:
        raise ArgumentError(
            f"hops must be numbers from 1 to n - 1 = {n - 1}, at least one; got {hops!r}"
        )
    name = f"{'OD' if directed else 'OU'}-EquiDyn of {n}"
    make = _EquiDyn(n, directed, eta, tuple(known), seed, name)
    return Schedule(make, size=n, period=None, name=name, law=make.law)


@dataclass(frozen=True)
class _EquiDyn:
    size: int
    directed: bool
    eta: float
    hops: tuple[int, ...]
    seed: int
    name: str

    def __call__(self, k: int) -> Topology:
        rng = np.random.default_rng([self.seed, k])
        n, hop = self.size, int(rng.choice(self.hops))
        if self.directed:
            sources = (np.arange(n) - hop) % n
        else:
            sources = _exchange(n, hop, int(rng.integers(n)))
        return self._step(sources, f"{self.name}, hop {hop}")

    def law(self) -> Law:
        all_hops = np.array(self.hops)
        if not self.directed:
            all_hops = np.minimum(all_hops, self.size - all_hops)
        hops, times = np.unique(all_hops, return_counts=True)
        chances = times / times.sum()
        if self.directed:
            steps = [self._step((np.arange(self.size) - hop) % self.size, "") for hop in hops]
            few = Few.of(self.size, [step.W for step in steps], chances)
            back = None if few.symmetric else few.backward
            return Law(few.mean, few.forward, back, rotations=True)
        steps = [self._step(_exchange(self.size, int(hop), 0), "") for hop in hops]
        turned = _Turned(Few.of(self.size, [step.W for step in steps], chances))
        return Law(turned.mean, turned.forward, rotations=True)

    def _step(self, sources: Ints, name: str) -> Topology:
        return toward(sources, self.eta * (self.size - 1) / self.size, name, "one peer")


@dataclass(frozen=True)
class _Turned:
    """A law from whose steps every rotation of the ranks makes others, all alike."""

    few: Few

    @property
    def mean(self) -> Matrix:
        n, once = self.few.size, self.few.mean.tocoo()
        weights = np.bincount((once.row - once.col) % n, once.data, minlength=n) / n
        hops = np.flatnonzero(weights)
        rows, step = np.repeat(np.arange(n), len(hops)), np.tile(hops, n)
        entries = (np.tile(weights[hops], n), (rows, (rows - step) % n))
        return sparse.coo_array(entries, shape=(n, n)).tocsr()

    def forward(self, X: Floats) -> Floats:
        """Return E[W X Wᵀ], from one rotation alone if X is the same in all."""
        if np.array_equal(X[1:, 1:], X[:-1, :-1]) and np.array_equal(X[1:, 0], X[:-1, -1]):
            return _over_rotations(self.few.forward(X))
        total = np.zeros_like(X)
        for turn in range(len(X)):
            seen = np.roll(X, (-turn, -turn), (0, 1))
            total += np.roll(self.few.forward(seen), (turn, turn), (0, 1))
        return total / len(X)


def _over_rotations(X: Floats) -> Floats:
    """Return the circulant matrix of the mean of X along its diagonals."""
    n = len(X)
    ranks = np.arange(n)
    means = X[(ranks[:, None] + ranks) % n, ranks].mean(axis=1)
    return np.asarray(means[(ranks[:, None] - ranks) % n])


def _exchange(n: int, hop: int, start: int) -> Ints:
    """Return each rank's partner when the ranks from ``start`` on take their peer if it is free.

    In that order, ranks fall into blocks of ``hop``, and every other block takes the next. A hop
    above n/2 is its opposite, which makes the same pairs from another start.
    """
    hop = min(hop, n - hop)
    place = np.arange(n - hop)
    takes = place[(place // hop) % 2 == 0]
    return partners(n, (start + takes) % n, (start + takes + hop) % n)


def _check_degree(n: int, degree: int) -> None:
    if degree % 2 and n % 2:
        raise ArgumentError(
            f"degree={degree} and n={n} are both odd, so no such graph exists: each hop brings two "
            f"neighbors; use degree={degree + 1} or degree={max(2, degree - 1)}, or directed=True"
        )
    if degree == 1 and n > 2:
        raise ArgumentError(f"degree=1 cannot connect n={n} ranks; use degree=2 or more")


def _hops(n: int, degree: int, directed: bool, seed: int) -> Ints:
    """Draw distinct hops until they connect the ranks, that is, share no divisor with n."""
    middle = [] if directed or degree % 2 == 0 else [n // 2]
    pool = np.arange(1, n if directed else (n + 1) // 2)
    number = degree if directed else degree // 2
    rng = np.random.default_rng(seed)
    while True:
        drawn = rng.choice(pool, number, replace=False) if number else pool[:0]
        hops = np.append(np.sort(drawn), middle).astype(np.int64)
        if np.gcd.reduce(hops, initial=n) == 1:
            return hops


def _mean_of_hops(n: int, hops: Ints) -> sparse.csr_array[np.float64, tuple[int, int]]:
    senders = np.repeat(np.arange(n), hops.size)
    receivers = (senders + np.tile(hops, n)) % n
    weights: Floats = np.full(senders.size, (n - 1) / (n * hops.size))
    ranks = np.arange(n)
    entries = np.concatenate([weights, np.full(n, 1.0 / n)])
    rows, columns = np.concatenate([receivers, ranks]), np.concatenate([senders, ranks])
    return sparse.coo_array((entries, (rows, columns)), shape=(n, n)).tocsr()
