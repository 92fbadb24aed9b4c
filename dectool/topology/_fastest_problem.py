"""The convex problem of the fastest weights: its matrix, its constraints, its dual bound."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from scipy import sparse

from dectool.topology import _spectrum
from dectool.topology._edges import Edges, Floats, Ints, Matrix
from dectool.topology._sinkhorn import sinkhorn
from dectool.topology._weights import best_constant, fill


class Multipliers(NamedTuple):
    """Multipliers of the constraints of mixing: of the sums at ranks (n,), and of w >= 0 (m,)."""

    ranks: Floats
    weights: Floats


@dataclass(frozen=True)
class Problem(abc.ABC):
    r"""Minimise :math:`\lVert W(w) - J \rVert_2` over one weight for each edge.

    :math:`W = I - \sum_e w_e p_e a_e^T` with :math:`a_e = e_i - e_j` for an edge (i, j); its rows
    sum to 1 for every w, its columns for those w that ``balance`` leaves alone.

    Attributes:
        n: Number of ranks.
        first: One end i of each edge, shape (m,); the receiver.
        second: The other end j.
        mixing: Whether w >= 0 and the weights at a rank sum to at most 1.
    """

    n: int
    first: Ints
    second: Ints
    mixing: bool

    @abc.abstractmethod
    def inside(self) -> Floats:
        """Return weights that are inside all constraints."""

    def starts(self) -> tuple[Floats, ...]:
        """Return feasible weights to start from."""
        return (self.inside(),)

    def others(self) -> tuple[Floats, ...]:
        """Return feasible weights of simple rules, to be taken if nothing faster is found."""
        return ()

    @abc.abstractmethod
    def arcs(self, w: Floats) -> tuple[Edges, Floats]:
        """Return the entries of W off its diagonal."""

    @abc.abstractmethod
    def norm(self, w: Floats) -> float:
        """Return ‖W - J‖₂."""

    @abc.abstractmethod
    def left(self, X: Floats) -> Floats:
        """Return the rows p_eᵀ X, (m, k)."""

    @abc.abstractmethod
    def balance(self, w: Floats) -> Floats:
        """Return the nearest weights with which the columns of W sum to 1."""

    @cached_property
    @abc.abstractmethod
    def basis(self) -> Floats | None:
        """Orthonormal basis (m, k) of those weights; None if all are."""

    @cached_property
    @abc.abstractmethod
    def sums(self) -> Matrix:
        """The matrix (n, m) that adds up the weights in the row of each rank."""

    @abc.abstractmethod
    def cover(self, stretch: Floats, near: Multipliers | None) -> float:
        r"""Return a number that :math:`\sum_e c_e w_e` does not exceed for any weights of mixing.

        Args:
            stretch: c, shape (m,).
            near: A dual solution up to an error; default the best one, by a linear program.
        """

    @abc.abstractmethod
    def project(self, y: Floats, dual: Floats | None) -> tuple[Floats, Floats]:
        """Return weights of mixing next to y, and what helps to find the next ones from.

        Feasible to rounding, nearest to y to some digits.

        Args:
            y: Weights, feasible or not.
            dual: What the last call returned beside the weights.
        """

    def matrix(self, w: Floats) -> Matrix:
        """Return W."""
        return fill(*self.arcs(w))

    def deviation(self, w: Floats) -> Floats:
        """Return W - J as an array, without the detour of ``matrix``."""
        edges, values = self.arcs(w)
        M = np.full((self.n, self.n), -1.0 / self.n)
        M[edges.receivers, edges.senders] += values
        M[np.diag_indices(self.n)] += 1.0 - self.at_ranks(w)
        return M

    def right(self, X: Floats) -> Floats:
        """Return the columns X a_e, (k, m)."""
        # Several times faster than X[:, self.first].
        return np.asarray(np.take(X, self.first, axis=1) - np.take(X, self.second, axis=1))

    def at_ranks(self, w: Floats) -> Floats:
        """Return 1 - W_ii of each rank, shape (n,)."""
        return np.asarray(self.sums @ w)

    def stretch(self, U: Floats, V: Floats, sizes: Floats) -> Floats:
        r"""Return :math:`c_e = p_e^T D a_e` of each edge, :math:`D = \sum_k s_k u_k v_k^T`.

        Args:
            U: Vectors u_k, (n, k).
            V: Vectors v_k.
            sizes: s, (k,).
        """
        return np.asarray((self.left(U) * (V[self.first] - V[self.second])) @ sizes)

    def bound(
        self, trace: float, stretch: Floats, reached: float, near: Multipliers | None = None
    ) -> float:
        r"""Return a number that no :math:`\lVert W - J \rVert_2` is below, from a dual matrix D.

        D has nuclear norm at most 1, and its rows and columns sum to 0; then
        :math:`\lVert W - J \rVert_2 \ge \langle D, W - J \rangle = tr D - \sum_e c_e w_e` with
        :math:`c_e = p_e^T D a_e`. Where weights may have any sign, an optimal W still has
        :math:`|W_{ij} - 1/n| \le` reached.

        Args:
            trace: tr D.
            stretch: c, shape (m,).
            reached: ‖W - J‖₂ of some feasible W.
            near: As in ``cover``.
        """
        if self.mixing:
            return max(0.0, trace - self.cover(stretch, near))
        rest = self.balance(stretch)
        most = float(rest.sum()) / self.n + reached * float(np.abs(rest).sum())
        return max(0.0, trace - most)


@final
@dataclass(frozen=True)
class Undirected(Problem):
    """The same weight both ways: W = I - L(w), with a Laplacian."""

    def inside(self) -> Floats:
        """Return the weights of Metropolis and Hastings."""
        return 1.0 / (1.0 + self._larger_degrees())

    def starts(self) -> tuple[Floats, ...]:
        """Return the weights of Metropolis and Hastings, in both conventions."""
        return self.inside(), 0.999 / self._larger_degrees()

    def others(self) -> tuple[Floats, ...]:
        """Return those of the second convention as they are, and equal ones."""
        larger = self._larger_degrees()
        edges, _ = self.arcs(larger)
        equal = float(best_constant(edges)[self.first[0], self.second[0]])
        if self.mixing:
            equal = min(equal, 1.0 / float(larger.max()))
        return 1.0 / larger, np.full(larger.size, equal)

    def _larger_degrees(self) -> Floats:
        degrees = self.at_ranks(np.ones(self.first.size))
        return np.asarray(np.maximum(degrees[self.first], degrees[self.second]))

    def arcs(self, w: Floats) -> tuple[Edges, Floats]:
        """Return both directions of each edge."""
        receivers = np.concatenate([self.first, self.second])
        senders = np.concatenate([self.second, self.first])
        return Edges(self.n, receivers, senders), np.concatenate([w, w])

    def norm(self, w: Floats) -> float:
        """Return the larger of λ₂ and -λ_min."""
        W = self.matrix(w)
        return max(_spectrum.second_largest(W), -_spectrum.smallest(W))

    def left(self, X: Floats) -> Floats:
        """Return differences: p_e = a_e."""
        return np.asarray(X[self.first] - X[self.second])

    def balance(self, w: Floats) -> Floats:
        """Return w."""
        return w

    @cached_property
    def basis(self) -> None:
        """All weights are balanced."""

    @cached_property
    def sums(self) -> Matrix:
        """Each edge counts at both ends."""
        return _at(self.n, self.first, 1.0) + _at(self.n, self.second, 1.0)

    def cover(self, stretch: Floats, near: Multipliers | None) -> float:
        """Return the least Σ z_i over z >= 0 with z_i + z_j >= c_e, or a little more."""
        solved = _program(self.n, self.sums, stretch) if near is None else near.ranks
        z = np.maximum(solved, 0.0)
        lack = np.maximum(stretch - z[self.first] - z[self.second], 0.0) / 2
        extra = np.zeros(self.n)
        np.maximum.at(extra, self.first, lack)
        np.maximum.at(extra, self.second, lack)
        return float((z + extra).sum())

    def project(self, y: Floats, dual: Floats | None) -> tuple[Floats, Floats]:
        """Project by accelerated ascent in the multipliers of the sums at ranks."""
        first, second = self.first, self.second
        old = np.zeros(self.n) if dual is None else dual
        stiff = 2.0 * self.at_ranks(np.ones(first.size)).max()
        z, momentum = old, 1.0
        for _ in range(60):
            w = np.maximum(0.0, y - z[first] - z[second])
            new = np.maximum(0.0, z + (self.at_ranks(w) - 1.0) / stiff)
            done = np.abs(new - z).max() < 1e-9
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            z = new + (momentum - 1) / grown * (new - old)
            old, momentum = new, grown
            if done:
                break
        w = np.maximum(0.0, y - old[first] - old[second])
        return np.asarray(w / max(1.0, float(self.at_ranks(w).max()))), old


@final
@dataclass(frozen=True)
class Directed(Problem):
    """A weight for each direction; what a rank gives away equals what it takes: w circulates."""

    def inside(self) -> Floats:
        """Return the weights of Sinkhorn's scaling."""
        return self._inside

    def arcs(self, w: Floats) -> tuple[Edges, Floats]:
        """Return w_e at (i, j)."""
        return Edges(self.n, self.first, self.second), w

    def norm(self, w: Floats) -> float:
        """Return the largest singular value of W - J."""
        return _spectrum.norm(self.matrix(w), rows=True, columns=True)

    def left(self, X: Floats) -> Floats:
        """Return rows: p_e = e_i."""
        return np.asarray(X[self.first])

    def balance(self, w: Floats) -> Floats:
        """Return the nearest circulation: w less the differences of a potential."""
        w = self._less_potential(w)
        # A second time for the rounding of the first.
        return self._less_potential(w)

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal basis of the circulations."""
        # All rows of the incidence matrix add up to 0, and no fewer do in a connected graph.
        turned = np.linalg.qr(self._incidence[:-1].T.toarray(), mode="complete")[0]
        return np.asarray(turned[:, self.n - 1 :])

    @cached_property
    def sums(self) -> Matrix:
        """Each edge counts at its receiver."""
        return _at(self.n, self.first, 1.0)

    def cover(self, stretch: Floats, near: Multipliers | None) -> float:
        """Return the least Σ z_i over z >= 0 and y with z_i + y_i - y_j >= c_e, or a little more.

        Since w circulates, Σ_e w_e (y_i - y_j) = 0 for every y.
        """
        if near is None:
            both = sparse.vstack([self.sums, self._incidence]).tocsr()
            y = _program(self.n, both, stretch)[self.n :]
        else:
            y = self._potential(stretch - near.ranks[self.first] + near.weights)
        z = np.zeros(self.n)
        np.maximum.at(z, self.first, stretch - y[self.first] + y[self.second])
        return float(z.sum())

    def project(self, y: Floats, dual: Floats | None) -> tuple[Floats, Floats]:
        """Project by Dykstra's method: onto circulations, and onto what each rank may take."""
        p = np.zeros_like(y) if dual is None else dual
        for _ in range(40):
            a = self._less_potential(y - p)
            w = self._capped(a + p)
            p = a + p - w
            if np.abs(a - w).max() < 1e-6:
                break
        w = self.balance(w)
        # So much of weights that are inside makes w feasible.
        inside, rest = self._inside, 1.0 - self.at_ranks(w)
        lack = np.concatenate([-w, -rest])
        depth = lack + np.concatenate([inside, 1.0 - self.at_ranks(inside)])
        share = float((np.maximum(lack, 0.0) / np.maximum(depth, 1e-300)).max())
        return np.asarray((1 - share) * w + share * inside), p

    def _capped(self, y: Floats) -> Floats:
        """Return the nearest w >= 0 with sums of at most 1 at each receiver."""
        order = np.lexsort((-y, self.first))
        ends, values = self.first[order], y[order]
        starts = np.searchsorted(ends, np.arange(self.n))
        total = np.concatenate([[0.0], np.cumsum(values)])
        place = np.arange(y.size) - starts[ends]
        level = (total[1:] - total[starts[ends]] - 1.0) / (place + 1)
        kept = np.bincount(ends, values > level, self.n).astype(np.int64)
        z = np.maximum(level[np.minimum(starts + kept - 1, y.size - 1)], 0.0)
        return np.asarray(np.maximum(0.0, y - z[self.first]))

    @cached_property
    def _inside(self) -> Floats:
        W = sinkhorn(Edges(self.n, self.first, self.second))
        return self.balance(np.asarray(W[self.first, self.second]))

    @cached_property
    def _incidence(self) -> Matrix:
        return _at(self.n, self.first, 1.0) + _at(self.n, self.second, -1.0)

    @cached_property
    def _solve(self) -> Any:
        from scipy.sparse.linalg import splu

        B = self._incidence[:-1]
        return splu((B @ B.T).tocsc()).solve

    def _potential(self, w: Floats) -> Floats:
        """Return the y whose differences are nearest to w."""
        return np.append(self._solve(self._incidence[:-1] @ w), 0.0)

    def _less_potential(self, w: Floats) -> Floats:
        return np.asarray(w - self._incidence.T @ self._potential(w))


def _at(n: int, ends: Ints, value: float) -> Matrix:
    """Return the matrix (n, m) with ``value`` at the end of each edge."""
    entries = (np.full(ends.size, value), (ends, np.arange(ends.size)))
    matrix: Matrix = sparse.coo_array(entries, shape=(n, ends.size)).tocsr()
    return matrix


def _program(n: int, A: Matrix, c: Floats) -> Floats:
    """Return x with Aᵀ x >= c whose first n entries are not negative and have the least sum.

    Zeros if the solver gives up: any x makes a bound.
    """
    from scipy.optimize import linprog

    free = A.shape[0] - n
    cost = np.concatenate([np.ones(n), np.zeros(free)])
    bounds = [(0.0, None)] * n + [(None, None)] * free
    # The types of SciPy know no sparse constraints, which HiGHS takes.
    limits: Any = (-A.T).tocsr()
    found = linprog(cost, A_ub=limits, b_ub=-c, bounds=bounds, method="highs")
    x: Floats | None = found.x
    return np.zeros(n + free) if x is None else x
