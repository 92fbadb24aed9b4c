"""Spectral quantities of a mixing matrix: LAPACK up to ``DENSE`` ranks, sparse methods above."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dectool.errors import TopologyError
from dectool.topology._balance import symmetrized
from dectool.topology._edges import Floats, Matrix
from dectool.topology._lanczos import (
    arnoldi,
    cheap_to_factor,
    gap_by_factor,
    generic,
    lanczos,
    nilpotent,
    second,
    smallest_by_factor,
)

DENSE = 500
"""Sizes up to this are solved densely."""
DENSE_RESCUE = 3000
"""Sizes up to this are solved densely (some seconds) where a sparse method does not converge."""
FACTOR_FIRST = 20_000
"""Sizes above this, whose gap is small where factors are cheap, are factored at once."""
SHORT, LONG = 10, 2000
"""Restarts (of about 20 products each) before and after a factorisation is considered."""


def symmetric_rest(W: Matrix) -> Floats:
    """Return the eigenvalues of a small symmetric W, descending, without one eigenvalue 1."""
    values = np.linalg.eigvalsh(W.toarray())[::-1]
    return np.delete(values, np.abs(values - 1).argmin())


def eigenvalues(W: Matrix, *, symmetric: bool) -> NDArray[np.inexact[Any]]:
    """Return all eigenvalues, descending if W is symmetric, else by falling modulus."""
    if symmetric:
        return np.asarray(np.linalg.eigvalsh(W.toarray())[::-1])
    values = np.linalg.eigvals(W.toarray())
    return np.asarray(values[np.argsort(-np.abs(values), kind="stable")])


def second_largest(W: Matrix, top: Floats | None = None) -> float:
    """Return λ₂ of a symmetric W (0 for a single rank).

    ``top`` is the unit eigenvector to eigenvalue 1, by default that of equal entries.
    """
    n = W.shape[0]
    if n == 1:
        return 0.0
    if n <= DENSE:
        return float(symmetric_rest(W)[0])
    top = np.full(n, n**-0.5) if top is None else top
    cheap = n > FACTOR_FIRST and cheap_to_factor(W)
    found = None if cheap else second(W, top, restarts=SHORT)
    if found is None and (cheap or cheap_to_factor(W)):
        gap = gap_by_factor(W, top)
        found = None if gap is None else 1.0 - gap
    if found is None:
        found = second(W, top, restarts=LONG)
    return found if found is not None else _rescue(W, lambda M: float(symmetric_rest(M)[0]))


def smallest(W: Matrix, top: Floats | None = None) -> float:
    """Return λ_min of a symmetric W (1 for a single rank); ``top`` as in ``second_largest``."""
    n = W.shape[0]
    if n == 1:
        return 1.0
    if n <= DENSE:
        return float(symmetric_rest(W)[-1])
    top = np.full(n, n**-0.5) if top is None else top
    negative: Matrix = (-W).tocsr()
    found = second(negative, top, restarts=SHORT)
    if found is None and cheap_to_factor(W):
        bottom = smallest_by_factor(W, gershgorin(W))
        found = None if bottom is None else -bottom
    if found is None:
        found = second(negative, top, restarts=LONG)
    return -found if found is not None else _rescue(W, lambda M: float(symmetric_rest(M)[-1]))


def gershgorin(W: Matrix) -> float:
    """Return min_i (W_ii - Σ_{j≠i} |W_ij|), below every eigenvalue of a symmetric W."""
    diagonal = W.diagonal()
    return float((diagonal + np.abs(diagonal) - np.asarray(abs(W).sum(axis=1)).ravel()).min())


def symmetric_norm(
    W: Matrix, lambda_2: Callable[[], float], lambda_min: Callable[[], float]
) -> float:
    """Return ‖W - J‖₂ = max(|λ₂|, |λ_min|), computing λ_min only where it could be the larger."""
    if W.shape[0] == 1:
        return 0.0
    second = lambda_2()
    if -gershgorin(W) <= second:
        return second
    return max(abs(second), abs(lambda_min()))


def norm(W: Matrix, *, rows: bool, columns: bool) -> float:
    """Return ‖W - J‖₂ of any W whose rows (``rows``) or columns (``columns``) sum to 1."""
    n = W.shape[0]
    if n <= DENSE:
        return _dense_norm(W)
    T: Matrix = W.T.tocsr()
    work = int(np.dot(np.diff(W.indptr).astype(np.int64), np.diff(W.indptr)))
    if rows and columns and work <= 20_000_000:
        return float(np.sqrt(max(second_largest((T @ W).tocsr()), 0.0)))
    forth, back = (W, T) if rows else (T, W)

    def square(v: Floats) -> Floats:
        u = forth @ (v - v.mean())
        x = back @ u - u.mean()
        return np.asarray(x - x.mean())

    found = lanczos(square, n, restarts=LONG)
    return float(np.sqrt(max(found, 0.0))) if found is not None else _rescue(W, _dense_norm)


def operator_norm(
    apply: Callable[[Floats], Floats], adjoint: Callable[[Floats], Floats], n: int
) -> float:
    """Return the 2-norm of a linear operator given with its adjoint."""
    found = lanczos(lambda v: adjoint(apply(v)), n, restarts=LONG)
    if found is None:
        raise TopologyError(_failure(n))
    return float(np.sqrt(max(found, 0.0)))


def modulus(W: Matrix, *, rows: bool) -> float:
    """Return the second largest eigenvalue modulus, the spectral radius of W - J.

    W - J has the eigenvalues of W with one 1 replaced by 0, whichever sums are 1 (Brauer). A
    spectrum that vanishes to rounding after some power, as in finite-time averaging, gives 0:
    its eigenvalues are too ill-conditioned for an eigenvalue solver to see that.
    """
    n = W.shape[0]
    A: Matrix = W if rows else W.T.tocsr()

    def deflated(v: Floats) -> Floats:
        return np.asarray(A @ v - v.mean())

    if n <= DENSE:
        return 0.0 if nilpotent(deflated, n) else _dense_modulus(W)
    balanced = symmetrized(A)
    if balanced is not None:
        S, top = balanced
        return max(abs(second_largest(S, top)), abs(smallest(S, top)))
    found = arnoldi(deflated, n, restarts=LONG // 10)
    return found if found is not None else _rescue(W, _dense_modulus)


def radius(apply: Callable[[Floats], Floats], n: int) -> float:
    """Return the spectral radius of a linear operator."""
    if nilpotent(apply, n):
        return 0.0
    if n <= DENSE:
        dense = np.array([apply(unit) for unit in np.eye(n)]).T
        return float(np.abs(np.linalg.eigvals(dense)).max())
    found = arnoldi(apply, n, restarts=LONG // 10)
    if found is None:
        raise TopologyError(_failure(n))
    return found


def is_normal(W: Matrix, T: Matrix) -> bool:
    """Say whether W Wᵀ = Wᵀ W, by applying both to a fixed generic vector (Freivalds' check)."""
    v = generic(W.shape[0])
    return bool(np.linalg.norm(np.asarray(W @ (T @ v) - T @ (W @ v))) <= 1e-12)


def _dense_norm(W: Matrix) -> float:
    return float(np.linalg.norm(W.toarray() - 1.0 / W.shape[0], 2))


def _dense_modulus(W: Matrix) -> float:
    return float(np.abs(np.linalg.eigvals(W.toarray() - 1.0 / W.shape[0])).max())


def _rescue(W: Matrix, dense: Callable[[Matrix], float]) -> float:
    """Solve densely what no sparse method solved, or say that the size forbids it."""
    if W.shape[0] > DENSE_RESCUE:
        raise TopologyError(_failure(W.shape[0]))
    return dense(W)


def _failure(n: int) -> str:
    return (
        f"the spectrum of this {n} x {n} matrix did not converge in about {20 * LONG} products; "
        f"sizes up to {DENSE_RESCUE} are solved densely, so study a smaller graph of the same "
        "family, or a symmetric W"
    )
