"""Doubly stochastic weights on a directed graph, by scaling rows and columns."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dectool.errors import TopologyError
from dectool.topology._edges import Edges, Floats, Matrix
from dectool.topology._validation import column_sums, row_sums

_SWEEPS = 300
_NEWTON = 60
_CLOSE = 4e-16
_ENOUGH = 1e-12
_ROUNDING = 1e-14


def sinkhorn(edges: Edges) -> Matrix:
    r"""W_ij = x_i y_j on edges and the diagonal, x and y such that rows and columns sum to 1.

    There is exactly one such W if the graph is strongly connected. Sinkhorn & Knopp, Pacific J.
    Math. 21, 1967; where their alternation is slow, Newton's method on its convex function, as in
    Knight & Ruiz, IMA J. Numer. Anal. 33, 2013.
    """
    ranks = np.arange(edges.size)
    rows = np.concatenate([edges.receivers, ranks])
    columns = np.concatenate([edges.senders, ranks])
    shape = (edges.size, edges.size)
    A: Matrix = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=shape).tocsr()
    _check_circuits(A, edges)
    x, y, best = np.zeros(edges.size), np.zeros(edges.size), np.inf
    for _ in range(_SWEEPS):
        x = x - np.log(row_sums(_scaled(A, x, y)))
        sums = column_sums(_scaled(A, x, y))
        error = np.abs(sums - 1).max()
        if error <= _CLOSE or _ROUNDING >= error >= best:
            break
        best = error
        y = y - np.log(sums)
    else:
        x, y = _newton(A, x, y)
    if edges.one_way is None:
        # They differ by a constant, and from one vector W comes out symmetric to the last bit.
        x = y = (x + y) / 2
    W = _scaled(A, x, y)
    return W


def _check_circuits(A: Matrix, edges: Edges) -> None:
    """Raise, naming an edge on no circuit: a doubly stochastic W would give it no weight."""
    from scipy.sparse.csgraph import connected_components

    _, member = connected_components(A, directed=True, connection="strong")
    alone = np.flatnonzero(member[edges.receivers] != member[edges.senders])
    if alone.size:
        sender, receiver = edges.senders[alone[0]], edges.receivers[alone[0]]
        raise TopologyError(
            "weights='sinkhorn' needs every edge on a circuit, but none leads from "
            f"{receiver} back to {sender}; add edges, or use weights='uniform' or 'uniform_push'"
        )


def _scaled(A: Matrix, x: Floats, y: Floats) -> Matrix:
    """Return diag(e^x) A diag(e^y)."""
    left = np.repeat(x, np.diff(A.indptr))
    data = A.data * np.exp(left + y[A.indices])
    W: Matrix = sparse.csr_array((data, A.indices, A.indptr), shape=A.shape)
    return W


def _newton(A: Matrix, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Minimise the sum of ``_scaled`` minus those of x and y, whose gradient is sums minus 1."""
    from scipy.sparse.linalg import splu

    n = x.size
    best = np.inf
    for _ in range(_NEWTON):
        W = _scaled(A, x, y)
        r, c = row_sums(W), column_sums(W)
        gradient = np.concatenate([r, c]) - 1
        error = np.abs(gradient).max()
        if error <= _CLOSE or (error < _ENOUGH and error >= best):
            break
        best = min(best, error)
        blocks = [[sparse.diags_array(r), W], [W.T, sparse.diags_array(c)]]
        hessian = sparse.csc_array(sparse.block_array(blocks))
        # (1, -1) changes nothing, so the last y stays.
        step = np.append(splu(hessian[:-1, :-1]).solve(-gradient[:-1]), 0.0)
        slope, now, length = gradient @ step, W.sum() - x.sum() - y.sum(), 1.0
        while length > 1e-9:
            ahead = x + length * step[:n], y + length * step[n:]
            value = _scaled(A, *ahead).sum() - ahead[0].sum() - ahead[1].sum()
            if value <= now + 1e-4 * length * slope + 1e-12:
                break
            length /= 2
        x, y = ahead
    return x, y
