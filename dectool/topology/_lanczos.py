"""Extreme eigenvalues of large sparse matrices: Lanczos, and a factorisation where it stalls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from dectool.topology._edges import Floats, Matrix
from dectool.topology._validation import TOLERANCE

ROUNDOFF = 1e-13
"""An operator that shrinks a generic vector by this factor is zero to working precision."""

Operator = Callable[[Floats], Floats]


def generic(n: int) -> Floats:
    """Return a fixed unit vector with a component along every eigenvector, shape (n,)."""
    v = np.random.default_rng(1911).standard_normal(n)
    return np.asarray(v / np.linalg.norm(v))


def lanczos(
    apply: Operator, n: int, *, restarts: int, tol: float = 1e-12, start: Floats | None = None
) -> float | None:
    """Return the largest eigenvalue of a symmetric operator, or None if it does not converge."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    start = generic(n) if start is None else start
    if np.linalg.norm(apply(start)) <= ROUNDOFF:
        return 0.0
    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    try:
        found = eigsh(
            operator, k=1, which="LA", v0=start, ncv=min(n, 40), maxiter=restarts, tol=tol,
            return_eigenvectors=False,
        )  # fmt: skip
    except ArpackNoConvergence:
        return None
    return float(found[0])


def arnoldi(apply: Operator, n: int, *, restarts: int) -> float | None:
    """Return the spectral radius of an operator, or None if it does not converge."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    if nilpotent(apply, n):
        return 0.0
    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    try:
        found = eigs(
            operator, k=2, which="LM", v0=generic(n), ncv=min(n, 60), maxiter=restarts, tol=1e-12,
            return_eigenvectors=False,
        )  # fmt: skip
    except ArpackNoConvergence:
        return None
    return float(np.abs(found).max())


def nilpotent(apply: Operator, n: int, steps: int = 64) -> bool:
    """Say whether some power up to ``steps`` sends a generic vector to zero, to rounding."""
    v = generic(n)
    for _ in range(steps):
        v = apply(v)
        size = float(np.linalg.norm(v))
        if size <= ROUNDOFF:
            return True
        v = v / size
    return False


def second(A: Matrix, top: Floats, *, restarts: int) -> float | None:
    """Return the largest eigenvalue of symmetric A off its unit eigenvector ``top``.

    No eigenvalue below -2 may matter.
    """

    def deflated(v: Floats) -> Floats:
        part = (top @ v) * top
        # ``top`` gets eigenvalue -2, below the spectrum: rounding that leaks it then dies out.
        return np.asarray(A @ (v - part) - 2 * part)

    start = generic(A.shape[0])
    return lanczos(deflated, A.shape[0], restarts=restarts, start=start - (top @ start) * top)


def cheap_to_factor(W: Matrix, limit: float = 5e10) -> bool:
    """Say if banded factors in reverse Cuthill-McKee order take at most ``limit`` flops."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = W.shape[0]
    order = reverse_cuthill_mckee(W.copy(), symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    width = int(np.abs(place[rows] - place[W.indices]).max())
    return float(n) * width**2 <= limit


def positive_factor(A: sparse.csc_array[np.float64]) -> Operator | None:
    """Return the solver of A x = b if symmetric A is positive definite, else None."""
    from scipy.sparse.linalg import splu

    try:
        lu = splu(
            A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:  # SuperLU's word for an exactly zero pivot
        return None
    if not np.array_equal(lu.perm_r, lu.perm_c) or not (lu.U.diagonal() > 0).all():
        return None
    solve: Operator = lu.solve
    return solve


def gap_by_factor(W: Matrix, top: Floats) -> float | None:
    r"""Return 1 - λ₂ of symmetric W to high relative accuracy, from the pseudo-inverse of I - W.

    ``top`` is the unit eigenvector to eigenvalue 1, without zeros. (I - W)⁺ is applied by
    grounding the last rank: its row and column are removed, which leaves a positive definite
    matrix, and ``top`` is taken out of the solution. None if some eigenvalue exceeds 1.
    """
    n = W.shape[0]
    solve = positive_factor((sparse.eye_array(n) - W).tocsc()[:-1, :-1].tocsc())
    if solve is None:
        return None

    def pseudo_inverse(v: Floats) -> Floats:
        x = np.zeros(n)
        x[:-1] = solve((v - (top @ v) * top)[:-1])
        return np.asarray(x - (top @ x) * top)

    found = lanczos(pseudo_inverse, n, restarts=200)
    return None if found is None else 1.0 / found


def smallest_by_factor(W: Matrix, low: float) -> float | None:
    """Return λ_min of symmetric W: bisect the shift until W - σ is just definite, then invert."""
    n = W.shape[0]
    identity = sparse.eye_array(n, format="csc")
    columns = W.tocsc()
    low, high = low - 1e-3, float(np.mean(W.diagonal()))
    solve = positive_factor((columns - low * identity).tocsc())
    while high - low > 1e-3:
        shift = (low + high) / 2
        candidate = positive_factor((columns - shift * identity).tocsc())
        if candidate is None:
            high = shift
        else:
            low, solve = shift, candidate
    if solve is None:
        return None
    found = lanczos(solve, n, restarts=200, tol=TOLERANCE)
    return None if found is None else low + 1.0 / found
