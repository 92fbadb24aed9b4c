"""Detailed balance: a row-stochastic W that is a symmetric matrix in other coordinates."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dectool.topology._edges import Floats, Matrix
from dectool.topology._validation import TOLERANCE


def symmetrized(W: Matrix) -> tuple[Matrix, Floats] | None:
    r"""Return S = D^{1/2} W D^{-1/2}, symmetric with W's eigenvalues, and its top eigenvector.

    D = diag(π) exists if π_i W_ij = π_j W_ji for some positive π, as for uniform weights on an
    undirected graph (a reversible chain). π is read off a spanning tree and then checked on every
    edge. None if there is no such π.

    References:
        D. Aldous, J. Fill, Reversible Markov chains and random walks on graphs, ch. 3.
    """
    T: Matrix = W.T.tocsr()
    same = np.array_equal(W.indptr, T.indptr) and np.array_equal(W.indices, T.indices)
    if not same or not np.all(W.data * T.data > 0):
        return None
    root = np.exp(_log_measure(W, T) / 2)
    left = np.repeat(root, np.diff(W.indptr))
    values = W.data * left / root[W.indices]
    mirrored = T.data * root[W.indices] / left
    if not np.isfinite(values).all() or np.abs(values - mirrored).max() > TOLERANCE:
        return None
    S: Matrix = sparse.csr_array(((values + mirrored) / 2, W.indices, W.indptr), shape=W.shape)
    return S, root / np.linalg.norm(root)


def _log_measure(W: Matrix, T: Matrix) -> Floats:
    """Return log π up to a constant, following π_j = π_i W_ij / W_ji along a spanning tree."""
    from scipy.sparse.csgraph import breadth_first_order

    ratios = sparse.csr_array((np.log(W.data / T.data), W.indices, W.indptr), shape=W.shape)
    order, parents = breadth_first_order(W.copy(), 0)
    children = order[1:]
    steps = np.asarray(ratios[parents[children], children]).ravel()
    logs = np.zeros(W.shape[0])
    for child, parent, step in zip(
        children.tolist(), parents[children].tolist(), steps.tolist(), strict=True
    ):
        logs[child] = logs[parent] + step
    return np.asarray(logs - logs.max())
