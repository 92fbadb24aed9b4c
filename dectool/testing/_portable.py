"""Programs of the suite that run on every backend, the stacked one included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool import topology
from dectool.topology import Topology


def is_stacked(comm: Any) -> bool:
    """Tell whether the communicator stands for all ranks at once."""
    return bool(np.ndim(comm.rank))


def rows(comm: Any, per_rank: Sequence[Any]) -> Any:
    """Return this rank's array, whose leading axis differs among ranks (stacked: all in a row)."""
    if not is_stacked(comm):
        return per_rank[comm.rank]
    if hasattr(per_rank[0], "detach"):
        import torch

        return torch.cat(list(per_rank))
    return np.concatenate(list(per_rank))


def cut(comm: Any, edges: Any, graph: Topology) -> Any:
    """Return ``{"rows": ...}`` with this rank's share of an edge array, as a program's value."""
    if not is_stacked(comm):
        return {"rows": edges}
    ends = np.cumsum([graph.in_degree(rank) for rank in range(graph.size)])
    starts = [0, *ends[:-1]]
    return [{"rows": edges[a:b]} for a, b in zip(starts, ends, strict=True)]


def random_topology(n: int, seed: int, *, loops: bool = True) -> Topology:
    """Return a strongly connected directed graph with random weights, some of them negative.

    Args:
        n: Number of ranks.
        seed: It follows from this.
        loops: Whether every rank has a weight for itself; else only some have.
    """
    rng = np.random.default_rng([seed, n])
    W = np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0)
    order = rng.permutation(n)
    for i, j in zip(order, np.roll(order, 1), strict=True):
        W[i, j] = 1.0 + rng.random()
    if loops:
        np.fill_diagonal(W, rng.random(n) + 0.1)
    elif n > 1:
        np.fill_diagonal(W, np.where(rng.random(n) < 0.5, W.diagonal(), 0.0))
    # Rows that sum to almost nothing would give huge weights.
    W[np.abs(W.sum(axis=1)) < 0.5] = np.abs(W[np.abs(W.sum(axis=1)) < 0.5])
    W /= W.sum(axis=1, keepdims=True)
    return topology.from_matrix(W, name=f"random topology of {n}")
