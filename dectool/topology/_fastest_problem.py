"""The convex problem of the fastest weights: its matrix, its constraints, its dual bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dectool.topology._edges import Edges, Floats, Ints, Matrix
from dectool.topology._weights import fill


@dataclass(frozen=True)
class Problem:
    r"""Minimise :math:`\lVert I - L(w) - J \rVert_2`, L(w) the Laplacian with weights w.

    Attributes:
        n: Number of ranks.
        first: One end of each edge, shape (m,).
        second: The other.
        mixing: Whether w >= 0 and the weights at a rank sum to at most 1.
    """

    n: int
    first: Ints
    second: Ints
    mixing: bool

    def start(self) -> Floats:
        """Return the weight 1/(1 + d_max) on every edge, inside all constraints."""
        degrees = self.at_ranks(np.ones(self.first.size))
        return np.full(self.first.size, 1.0 / (1.0 + degrees.max()))

    def at_ranks(self, w: Floats) -> Floats:
        """Return the sum of w over the edges of each rank, shape (n,)."""
        n = self.n
        sums = np.bincount(self.first, w, n) + np.bincount(self.second, w, n)
        return np.asarray(sums, dtype=np.float64)

    def matrix(self, w: Floats) -> Matrix:
        """Return W = I - L(w)."""
        receivers = np.concatenate([self.first, self.second])
        senders = np.concatenate([self.second, self.first])
        return fill(Edges(self.n, receivers, senders), np.concatenate([w, w]))

    def stretch(self, vectors: Floats, sizes: Floats) -> Floats:
        """Return c_e = Σ_k sizes_k (v_ik - v_jk)² of each edge (i, j), vectors (n, k)."""
        steps = vectors[self.first] - vectors[self.second]
        return np.asarray(np.square(steps) @ sizes)

    def bound(self, trace: float, stretch: Floats, reached: float, cover: Floats | None) -> float:
        r"""Return a number that no :math:`\lVert W - J \rVert_2` is below, from a dual matrix D.

        D is symmetric, of nuclear norm at most 1, with D 1 = 0; then
        :math:`\lVert W - J \rVert_2 \ge \langle D, W - J \rangle = tr D - \sum_e c_e w_e` with
        :math:`c_e = D_{ii} + D_{jj} - 2 D_{ij}`. With w >= 0 and sums of at most 1 the last sum is
        at most :math:`\sum_i z_i`, for every z >= 0 with :math:`z_i + z_j \ge c_e`. Without, an
        optimal W still has :math:`|W_{ij} - 1/n| \le` reached.

        Args:
            trace: tr D.
            stretch: c, shape (m,).
            reached: ‖W - J‖₂ of some feasible W.
            cover: z up to an error, which is repaired; default the cheapest, by a linear program.
        """
        if not self.mixing:
            most = float(stretch.sum()) / self.n + reached * float(np.abs(stretch).sum())
            return max(0.0, trace - most)
        z = np.maximum(self._cover(stretch) if cover is None else cover, 0.0)
        lack = np.maximum(stretch - z[self.first] - z[self.second], 0.0) / 2
        extra = np.zeros(self.n)
        np.maximum.at(extra, self.first, lack)
        np.maximum.at(extra, self.second, lack)
        return max(0.0, trace - float((z + extra).sum()))

    def _cover(self, stretch: Floats) -> Floats:
        """Return z >= 0 with z_i + z_j >= c_e of the least sum; a simple cover if that fails."""
        from scipy.optimize import linprog

        edge = np.arange(stretch.size)
        ends = sparse.coo_array(
            (
                -np.ones(2 * edge.size),
                (np.concatenate([edge, edge]), np.concatenate([self.first, self.second])),
            ),
            shape=(edge.size, self.n),
        )
        # The types of SciPy know no sparse constraints, which HiGHS takes.
        limits: Any = ends.tocsr()
        found = linprog(np.ones(self.n), A_ub=limits, b_ub=-stretch, method="highs")
        z: Floats | None = found.x
        return np.zeros(self.n) if z is None else z
