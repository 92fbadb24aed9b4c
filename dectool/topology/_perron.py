"""The Perron vector: the weights of a row-stochastic average, or where pushed mass rests."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dectool.errors import TopologyError
from dectool.topology._edges import Floats, Ints, Matrix

_POWER_STEPS = 3000


def fixed_vector(A: Matrix) -> Floats:
    """Return v with A v = v and entries that sum to 1, shape (n,); the columns of A sum to 1.

    Ranks that hand all on, and get nothing back, end with nothing.

    Raises:
        TopologyError: There is more than one such v.
    """
    members = _last_holders(A)
    v = np.zeros(A.shape[0])
    v[members] = _of_connected(A if members.size == v.size else A[members][:, members].tocsr())
    return v


def _last_holders(A: Matrix) -> Ints:
    """Return the ranks that pass on to each other alone; they are connected."""
    from scipy.sparse.csgraph import connected_components

    number, member = connected_components(A.copy(), directed=True, connection="strong")
    entries = A.tocoo()
    hands_on = np.zeros(number, dtype=bool)
    origin, target = member[entries.col], member[entries.row]
    hands_on[origin[origin != target]] = True
    closed = np.flatnonzero(~hands_on)
    if closed.size > 1:
        first, second = (int(np.flatnonzero(member == part)[0]) for part in closed[:2])
        raise TopologyError(
            f"this {A.shape[0]} x {A.shape[0]} matrix has no unique Perron vector: its eigenvalue "
            f"1 is repeated, as nothing leads from rank {first} to rank {second} or back; connect "
            "the graph"
        )
    return np.flatnonzero(member == closed[0])


def _of_connected(A: Matrix) -> Floats:
    n = A.shape[0]
    if n == 1:
        return np.ones(1)
    if n > 500:
        v = _by_powers(A)
        if v is not None:
            return v
    return _by_factor(A)


def _by_powers(A: Matrix) -> Floats | None:
    """Iterate the lazy matrix (I + A)/2: quick on graphs that mix well, whose factors fill in."""
    v = np.full(A.shape[0], 1.0 / A.shape[0])
    for _ in range(_POWER_STEPS):
        step = (A @ v - v) / 2
        v = v + step
        if np.abs(step).sum() <= 1e-15:
            return np.asarray(v / v.sum())
    return None


def _by_factor(A: Matrix) -> Floats:
    """Set the last entry to 1 and solve the other equations of (I - A) v = 0."""
    from scipy.sparse.linalg import splu

    n = A.shape[0]
    L = (sparse.eye_array(n) - A).tocsc()
    try:
        head = splu(L[:-1, :-1].tocsc()).solve(-L[:-1, [n - 1]].toarray().ravel())
    except RuntimeError:
        raise TopologyError(
            f"this {n} x {n} matrix has no unique Perron vector: its eigenvalue 1 is repeated; "
            "connect the graph"
        ) from None
    v = np.append(head, 1.0)
    return np.asarray(v / v.sum())
