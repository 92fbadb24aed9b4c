"""Inverses of local gradients: the x with grad f_i(x) + c x = y, for many right-hand sides.

Proximal points and gradients of conjugates are both of this form. Every right-hand side is solved
by itself, so its bits do not depend on what else is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.errors import ArgumentError
from dectool.problems._arrays import FloatArray, IndexArray, Rows
from dectool.problems._calling import Call
from dectool.problems._optimum import TOLERANCE

if TYPE_CHECKING:
    from dectool.problems._problem import Problem

Floats = NDArray[np.float64]

_LARGEST = 4096
_STEPS = 100
_HALVINGS = 40
_NUMBERS_AT_ONCE = 2**22


def weights_of(weight: ArrayLike, call: Call) -> Floats:
    """Return the weight of a proximal term for each row of a call, (k,).

    Raises:
        ArgumentError: There is another number of them, or one is negative or not finite.
    """
    given, k = np.asarray(weight, dtype=np.float64), len(call.X)
    if given.size not in (1, k):
        raise ArgumentError(
            f"weight has shape {given.shape}; give a number, or one for each of the {k} ranks"
        )
    bad = given[~((given >= 0.0) & (given < np.inf))]
    if bad.size:
        raise ArgumentError(f"weight={bad.flat[0]} must be a finite number of at least 0")
    return np.broadcast_to(given.reshape(-1), (k,))


class Spectra:
    """Eigenvalues and eigenvectors of one symmetric matrix per rank, each found when needed.

    Args:
        n: Number of ranks.
        dim: Size of the matrices.
    """

    def __init__(self, n: int, dim: int) -> None:
        self._shape = (n, dim)
        self._known = np.zeros(n, dtype=bool)

    def __getstate__(self) -> tuple[int, int]:
        return self._shape

    def __setstate__(self, shape: tuple[int, int]) -> None:
        Spectra.__init__(self, *shape)

    def at(self, problem: Problem, rows: Rows) -> tuple[Floats, Floats]:
        """Return the eigenvalues (k, dim) and eigenvectors (k, dim, dim) of local Hessians."""
        if not self._known.any():
            self._values = np.empty(self._shape)
            self._vectors = np.empty((*self._shape, self._shape[1]))
        missing = np.unique(problem.ranks[rows])
        missing = missing[~self._known[missing]]
        for rank in missing.tolist():
            H = problem._hessians(np.zeros((1, 1, problem.dim)), slice(rank, rank + 1))[0, 0]
            self._values[rank], self._vectors[rank] = np.linalg.eigh(H)
        self._known[missing] = True
        return self._values[rows], self._vectors[rows]


def spectral_inverse(
    problem: Problem, spectra: Spectra, Y: Floats, weight: Floats, rows: Rows
) -> Floats:
    """Return the inverses of quadratic local functions, from the spectra of their Hessians.

    Raises:
        ArgumentError: A local function plus its weight is not strongly convex, or there are too
            many variables for dense Hessians.
    """
    _check_size(problem)
    values, vectors = spectra.at(problem, rows)
    right = Y - problem._grads(np.zeros((len(Y), 1, problem.dim)), rows)
    check_positive(problem, values, weight, rows)
    parts = np.matmul(right[..., None, :], vectors[:, None])[..., 0, :]
    parts /= (values + weight[:, None])[:, None]
    X: Floats = np.matmul(vectors[:, None], parts[..., None])[..., 0]
    return X


def _check_size(problem: Problem) -> None:
    if problem.dim > _LARGEST:
        raise ArgumentError(
            f"{problem!r} has {problem.dim} variables, and its proximal points and conjugates are "
            f"found with dense Hessians of up to {_LARGEST}; use an algorithm of gradients, such "
            "as EXTRA"
        )


def check_positive(problem: Problem, values: FloatArray, weight: Floats, rows: Rows) -> None:
    """Refuse curvatures (k, dim) that are not positive with the weights added.

    Raises:
        ArgumentError: Names the rank, its curvature and the weight.
    """
    lowest = values.min(axis=-1)
    # Below this a curvature is rounding.
    rounding = np.finfo(np.float64).eps * problem.dim * np.abs(values).max(axis=-1)
    bad = np.flatnonzero(lowest + weight <= rounding)
    if bad.size:
        j = int(bad[0])
        least = 0.0 if abs(lowest[j]) <= rounding[j] else float(lowest[j])
        who = f"f_{problem.ranks[rows][j]} of {problem!r} has the curvature {least:g}"
        if weight[j] > 0.0:
            raise ArgumentError(
                f"{who}, so with weight={weight[j]:g} it has no single proximal point; the weight "
                f"must be above {-least:g}"
            )
        raise ArgumentError(
            f"{who}, so its conjugate has no gradient; every local function must be strongly "
            "convex (h > 0, or l2 > 0)"
        )


def newton_inverse(problem: Problem, Y: Floats, weight: Floats, near: Floats, rows: Rows) -> Floats:
    """Return the inverses of smooth convex local functions, by Newton's method.

    A step is halved until it makes the norm of the gradient smaller, which it does for a small
    part of it, as the direction is one of descent. That ends at rounding.

    Raises:
        ArgumentError: The gradient did not come down to 1e-12 relative to its terms, or there
            are too many variables for a dense Hessian.
    """
    _check_size(problem)
    k, batch, dim = Y.shape
    ranks = np.repeat(problem.ranks[rows], batch)
    c, right, X = np.repeat(weight, batch), Y.reshape(-1, dim), near.reshape(-1, dim).copy()
    at_once = max(1, _NUMBERS_AT_ONCE // dim**2)
    for first in range(0, k * batch, at_once):
        part = slice(first, first + at_once)
        X[part] = _Newton(problem, ranks[part], right[part], c[part]).solve(X[part])
    return X.reshape(Y.shape)


class _Newton:
    """Newton's method on items, each a right-hand side of a rank: arrays (items, dim)."""

    def __init__(self, problem: Problem, ranks: IndexArray, right: Floats, c: Floats) -> None:
        self.problem, self.ranks, self.right, self.c = problem, ranks, right, c
        at_zero = problem._grads(np.zeros((len(right), 1, problem.dim)), ranks)[:, 0]
        self.terms = np.maximum(_norm(right), _norm(at_zero))

    def solve(self, X: Floats) -> Floats:
        """Return the solutions, from the points X to begin with, which are changed."""
        everything = np.arange(len(X))
        G = self.gradient(X, everything)
        left = everything
        for _ in range(_STEPS):
            left = left[_norm(G[left]) > 1e-2 * self.allowed(X)[left]]
            if not left.size:
                break
            left = left[self.improve(X, G, left)]
        # A run that diverges is reported by who runs it.
        reached, allowed = _norm(G), self.allowed(X)
        lost = ~np.isfinite(allowed)
        X[lost] = np.nan
        bad = np.flatnonzero(~(reached <= allowed) & ~lost)
        if bad.size:
            j = int(bad[0])
            raise ArgumentError(
                f"Newton's method for f_{self.ranks[j]} of {self.problem!r} with "
                f"weight={self.c[j]:g} left a gradient of {reached[j]:.3g}, above "
                f"{allowed[j]:.3g}: there may be no minimiser, or it is too badly conditioned; "
                "use a larger weight, or l2 > 0, and standardised data"
            )
        return X

    def improve(self, X: Floats, G: Floats, which: IndexArray) -> NDArray[np.bool_]:
        """Take a step for some items, in X and G; return which of them got better."""
        H = self.problem._hessians(X[which][:, None], self.ranks[which])[:, 0]
        H = H + self.c[which, None, None] * np.eye(X.shape[-1])
        step = _solved(H, G[which])
        better = np.zeros(len(which), dtype=bool)
        norm, done = _norm(G[which]), _norm(G[which]) <= self.allowed(X)[which]
        for _ in range(_HALVINGS):
            open_ = np.flatnonzero(~better)
            moved = X[which[open_]] - step[open_]
            G_moved = self.gradient(moved, which[open_])
            good = _norm(G_moved) < norm[open_]
            X[which[open_[good]]], G[which[open_[good]]] = moved[good], G_moved[good]
            better[open_[good]] = True
            # Where the gradient is small enough, what stops it is rounding.
            if (better | done).all():
                break
            step *= 0.5
        return better

    def gradient(self, X: Floats, which: IndexArray) -> Floats:
        """Return grad f_i(x) + c x - y of some items."""
        g = np.asarray(self.problem._grads(X[:, None], self.ranks[which])[:, 0], np.float64)
        return np.asarray(g + self.c[which, None] * X - self.right[which])

    def allowed(self, X: Floats) -> Floats:
        """Return how large a gradient may be that counts as zero."""
        return TOLERANCE * np.maximum(self.terms, (self.problem.L_max + self.c) * _norm(X))


def _solved(H: Floats, G: Floats) -> Floats:
    """Return the solutions (items, dim) of linear systems; NaN where a matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(H, G[..., None])[..., 0])
    except np.linalg.LinAlgError:
        if len(H) == 1:
            return np.full_like(G, np.nan)
        return np.concatenate([_solved(H[[j]], G[[j]]) for j in range(len(H))])


def _norm(X: FloatArray) -> Floats:
    # Squares would overflow where a run diverges.
    return np.asarray(np.abs(X).max(axis=-1), np.float64)
