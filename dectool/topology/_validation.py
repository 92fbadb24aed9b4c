"""Checks that every mixing matrix passes: each failure names the entry, the rule and the fix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dectool._text import listing
from dectool.errors import ArgumentTypeError, TopologyError
from dectool.topology._edges import Edges, Floats, Matrix

TOLERANCE = 1e-9
"""Largest error of a row sum, a column sum or a symmetry that still counts as rounding."""


def as_csr(W: Any) -> Matrix:
    """Return a canonical float64 CSR copy of a dense, sparse or nested-list square matrix.

    Raises:
        ArgumentTypeError: Not a matrix of real numbers.
        TopologyError: Not square, empty, or an entry is not finite.
    """
    if not sparse.issparse(W):
        try:
            W = np.asarray(W)
        except ValueError as error:
            raise TopologyError(
                f"W must be a square matrix, but its rows differ: {error}"
            ) from None
    if np.dtype(W.dtype).kind not in "biuf":
        raise ArgumentTypeError(
            f"W must hold real numbers, got dtype {W.dtype}; convert it with W.real or "
            "W.astype(float)"
        )
    if len(W.shape) != 2 or W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise TopologyError(
            f"W must be square, n x n with n >= 1, got shape {tuple(W.shape)}; "
            "W[i, j] is the weight that rank i gives to rank j"
        )
    matrix: Matrix = sparse.csr_array(W, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        at = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        i, j = int(np.searchsorted(matrix.indptr, at, side="right")) - 1, int(matrix.indices[at])
        raise TopologyError(
            f"W[{i}, {j}] is {matrix.data[at]}; every weight must be finite. "
            "Look for a division by a zero degree or sum"
        )
    matrix.eliminate_zeros()
    return matrix


def row_sums(W: Matrix) -> Floats:
    """Return the sum of each row, shape (n,), by pairwise summation."""
    sums = np.zeros(W.shape[0])
    filled = np.diff(W.indptr) > 0
    if filled.any():
        sums[filled] = np.add.reduceat(W.data, W.indptr[:-1][filled])
    return sums


def column_sums(W: Matrix) -> Floats:
    """Return the sum of each column, shape (n,)."""
    sums = np.zeros(W.shape[1])
    np.add.at(sums, W.indices, W.data)
    return sums


def check_sums(rows: Floats, columns: Floats) -> None:
    """Raise unless every row sums to 1 or every column does."""
    if min(np.abs(rows - 1).max(), np.abs(columns - 1).max()) <= TOLERANCE:
        return
    raise TopologyError(
        f"W is not stochastic: {_worst('row', rows)} and {_worst('column', columns)}; all rows "
        f"or all columns must sum to 1 (to {TOLERANCE:g}). Divide each row by its sum, "
        'W / W.sum(axis=1, keepdims=True), or use from_graph(graph, weights="metropolis_hastings")'
    )


def check_support(W: Matrix, edges: Edges) -> None:
    """Raise if a non-zero W[i, j], i != j, has no edge j -> i."""
    n = W.shape[0]
    if edges.size != n:
        raise TopologyError(
            f"W is {n} x {n} but the graph has {edges.size} nodes; give one node per rank"
        )
    i = np.repeat(np.arange(n), np.diff(W.indptr))
    j = W.indices.astype(np.int64)
    known = np.isin(i * n + j, edges.receivers * n + edges.senders)
    bad = np.flatnonzero(~known & (i != j))
    if bad.size:
        e = bad[0]
        more = f" ({bad.size} entries are outside the graph)" if bad.size > 1 else ""
        raise TopologyError(
            f"W[{i[e]}, {j[e]}] = {W.data[e]:.6g} but the graph has no edge {j[e]} -> {i[e]}"
            f"{more}; set it to 0 or add the edge"
        )


def check_connected(W: Matrix, name: str) -> None:
    """Raise, naming the components, unless every rank can reach every other."""
    from scipy.sparse.csgraph import connected_components

    number, member = connected_components(W, directed=True, connection="strong")
    if number == 1:
        return
    order = np.argsort(member, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(member[order])) + 1)
    groups.sort(key=lambda group: int(group[0]))
    shown = [f"{{{listing(group.tolist(), most=6)}}}" for group in groups]
    raise TopologyError(
        f"{name} is not connected: {number} components {listing(shown, most=4)}; information must "
        "be able to flow from every rank to every other. Add edges between them, or pass "
        "require_connected=False for one member of a schedule"
    )


def _worst(what: str, sums: Floats) -> str:
    """Say which row or column is furthest from 1, and how many are off."""
    errors = np.abs(sums - 1)
    at = int(errors.argmax())
    side = "short" if sums[at] < 1 else "over"
    off = int((errors > TOLERANCE).sum())
    return f"{what} {at} sums to {sums[at]:.10g} ({errors[at]:.3g} {side}; {off} {what}s off)"
