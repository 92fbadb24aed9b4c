"""Graphs as networks of resistors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from scipy import sparse

from dectool.errors import ArgumentError, TopologyError
from dectool.topology._edges import Floats, Ints, Matrix
from dectool.topology._guards import need_size, need_undirected
from dectool.topology._lanczos import Operator, cheap_to_factor, positive_factor
from dectool.topology._topology import Topology

_CLOSE = 1e-13
_STEPS = 20_000


@overload
def effective_resistance(topology: Topology) -> Floats: ...
@overload
def effective_resistance(topology: Topology, between: tuple[int, int]) -> float: ...
@overload
def effective_resistance(topology: Topology, between: Sequence[tuple[int, int]]) -> Floats: ...


def effective_resistance(
    topology: Topology, between: tuple[int, int] | Sequence[tuple[int, int]] | None = None
) -> Floats | float:
    r"""Return the resistance between ranks if every edge is a resistor of 1 ohm.

    :math:`R_{ij} = (e_i - e_j)^T L^+ (e_i - e_j)`, L the Laplacian of the graph; the weights do
    not matter. Half the sum over all i, j is n times the sum of 1/l over the eigenvalues l > 0
    of L. Single pairs are solved for by sparse factors where these are cheap, as on grids, and by
    conjugate gradients otherwise, so they have no limit of size.

    Args:
        topology: Connected, undirected; at most 3000 ranks without ``between``.
        between: Two ranks, or a list of such pairs.

    Returns:
        All resistances [ohm], (n, n), without ``between``; one number for two ranks, and (m,) for
        m pairs.

    Raises:
        ArgumentError: The graph is too large, or ``between`` names no ranks of it.
        TopologyError: The graph is directed or not connected, or a solution did not converge.

    Example:
        >>> from dectool import topology
        >>> R = topology.effective_resistance(topology.ring(4))
        >>> [round(float(r), 12) for r in R[0]]
        [0.0, 0.75, 1.0, 0.75]
        >>> round(topology.effective_resistance(topology.ring(10_000), (0, 5_000)), 6)
        2500.0

    References:
        A. Ghosh, S. Boyd, A. Saberi, Minimizing effective resistance of a graph, SIAM Review
        50(1), 2008.
    """
    need_undirected("effective_resistance", topology)
    n = topology.size
    if between is None:
        need_size("effective_resistance", topology, "give between=(i, j)")
        # L + J has the inverse L⁺ + J, and J falls out of the differences.
        inverse = np.linalg.inv(_laplacian(topology).toarray() + 1.0 / n)
        diagonal = inverse.diagonal()
        R: Floats = np.maximum(diagonal[:, None] + diagonal - inverse - inverse.T, 0.0)
        np.fill_diagonal(R, 0.0)
        return R
    pairs = _pairs(between, n)
    if n == 1:
        found = np.zeros(len(pairs))
    else:
        solve = _solver(_laplacian(topology)[:-1, :-1].tocsr(), topology.name)
        found = np.array([_resistance(solve, n, int(i), int(j)) for i, j in pairs])
    return found if np.ndim(between) == 2 else float(found[0])


def _laplacian(topology: Topology) -> Matrix:
    n, edges = topology.size, topology.edges
    ranks = np.arange(n)
    entries = np.concatenate([topology.in_degrees, np.full(len(edges.senders), -1.0)])
    rows = np.concatenate([ranks, edges.receivers])
    columns = np.concatenate([ranks, edges.senders])
    return sparse.coo_array((entries, (rows, columns)), shape=(n, n)).tocsr()


def _pairs(between: tuple[int, int] | Sequence[tuple[int, int]], n: int) -> Ints:
    try:
        pairs = np.asarray(between)
    except ValueError:  # rows of unlike length
        pairs = np.zeros(0)
    good = pairs.dtype.kind in "iu" and pairs.ndim in (1, 2) and pairs.shape[-1] == 2
    if not good or pairs.min(initial=0) < 0 or pairs.max(initial=0) >= n:
        raise ArgumentError(
            f"between must be two ranks from 0 to {n - 1}, or a list of such pairs, got {between!r}"
        )
    return pairs.reshape(-1, 2).astype(np.int64)


def _resistance(solve: Operator, n: int, i: int, j: int) -> float:
    if i == j:
        return 0.0
    current = np.zeros(n)
    current[i], current[j] = 1.0, -1.0
    potential = np.append(solve(current[:-1]), 0.0)
    return float(potential[i] - potential[j])


def _solver(grounded: Matrix, name: str) -> Operator:
    """Return the solver of L x = b with the last rank at potential 0."""
    from scipy.sparse.linalg import LinearOperator, cg

    if cheap_to_factor(grounded):
        factors = positive_factor(grounded.tocsc())
        if factors is not None:
            return factors
    scale = 1.0 / grounded.diagonal()
    n = len(scale)
    jacobi = LinearOperator((n, n), matvec=lambda v: scale * v, dtype=np.float64)

    def solve(b: Floats) -> Floats:
        x, failed = cg(grounded, b, rtol=_CLOSE, maxiter=_STEPS, M=jacobi)
        if failed:
            raise TopologyError(
                f"effective_resistance of {name} did not converge in {_STEPS} steps of conjugate "
                "gradients; study a smaller graph of the same family"
            )
        return np.asarray(x)

    return solve
