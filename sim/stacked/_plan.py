"""What a neighbour operation does on all ranks at once: one sparse matrix, one list of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from dectool.errors import ArgumentTypeError, ContractError
from dectool.kernels import scale, sparse_product
from dectool.sim.stacked._clocks import Edges

_Array = np.ndarray[Any, Any]


class StackedPlan:
    """The mixing matrix of a neighbour operation and the messages it stands for.

    Args:
        matrix: W, shape (n, n); what each row sums, in the order of its stored entries.
        factors: By what each message is scaled before it is sent, in the order of the edges;
            ``None`` for not at all.
    """

    def __init__(self, matrix: sp.csr_array, factors: _Array | None = None) -> None:
        self.matrix = matrix
        self.factors = factors
        self._converted: dict[tuple[str, str], sp.csr_array] = {}

    @cached_property
    def _rows(self) -> _Array:
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))

    @cached_property
    def _off_diagonal(self) -> _Array:
        apart: _Array = self.matrix.indices != self._rows
        return apart

    @cached_property
    def edges(self) -> Edges:
        """The messages, in the order of W's stored entries."""
        keep = self._off_diagonal
        return Edges(self.matrix.indices[keep], self._rows[keep])

    @cached_property
    def _edges_only(self) -> sp.csr_array:
        """Sums edge arrays with the weights, a rank's own value left out."""
        keep = self._off_diagonal
        count = int(keep.sum())
        return _csr(self.matrix.data[keep], np.arange(count), self._rows[keep], count, self.size)

    @cached_property
    def _edges_and_own(self) -> sp.csr_array:
        """Sums edge arrays stacked on the ranks' own values, each in its place."""
        keep = self._off_diagonal
        count = int(keep.sum())
        columns = np.where(keep, np.cumsum(keep) - 1, count + self._rows)
        return _csr(self.matrix.data, columns, self._rows, count + self.size, self.size)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return int(self.matrix.shape[0])

    def average(self, stacked: _Array, dtype: str) -> _Array:
        """Return W @ stacked with the defined order and rounding."""
        if self.factors is None:
            return self._product("matrix", stacked, dtype)
        sent = scale(stacked[self.edges.sources], self.factors[:, None], dtype)
        return self.mix(sent, stacked, dtype)

    def mix(self, edges: _Array, own: _Array | None, dtype: str) -> _Array:
        """Return the weighted sum of an edge array, with or without the ranks' own values."""
        if own is None:
            return self._product("_edges_only", edges, dtype)
        return self._product("_edges_and_own", np.concatenate([edges, own]), dtype)

    def _product(self, name: str, stacked: _Array, dtype: str) -> _Array:
        matrix = self._converted.get((name, dtype))
        if matrix is None:
            matrix = _csr_of(getattr(self, name), np.dtype(_arithmetic(stacked, dtype)))
            self._converted[name, dtype] = matrix
        return sparse_product(matrix, stacked, dtype)


def _arithmetic(stacked: _Array, dtype: str) -> Any:
    if dtype in ("bfloat16", "float16") or dtype.startswith("float8"):
        return np.float32
    return stacked.real.dtype if stacked.dtype.kind == "c" else stacked.dtype


def _csr_of(matrix: sp.csr_array, dtype: np.dtype[Any]) -> sp.csr_array:
    if matrix.dtype == dtype:
        return matrix
    return sp.csr_array(
        (matrix.data.astype(dtype), matrix.indices, matrix.indptr), shape=matrix.shape
    )


def _csr(data: _Array, columns: _Array, rows: _Array, width: int, size: int) -> sp.csr_array:
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=size))]
    return sp.csr_array((data, columns, indptr), shape=(size, width))


def given_plan(
    size: int,
    self_weights: Any,
    sources: Sequence[Mapping[int, float]],
    destinations: Sequence[Mapping[int, float | None]],
) -> StackedPlan:
    """Return the plan of weights given per rank, after checking that they match.

    Args:
        size: Number of ranks.
        self_weights: One per rank; ``None`` where a rank's own value is no part of the sum.
        sources: ``{source: weight}`` for each rank.
        destinations: ``{destination: factor or None}`` for each rank.

    Raises:
        ContractError: A rank sends to one that does not expect it, or expects what nobody sends.
    """
    sent = {(src, dst) for src, targets in enumerate(destinations) for dst in targets}
    expected = {(src, dst) for dst, origins in enumerate(sources) for src in origins}
    for src, dst in sorted(sent ^ expected):
        if (src, dst) in sent:
            raise ContractError(
                f"rank {src} sends to rank {dst}, which does not expect it: name {src} in the "
                f"src_weights of {dst}, or leave {dst} out of the dst_weights of {src}"
            )
        raise ContractError(
            f"rank {dst} expects a value from rank {src}, which does not send it: name {dst} in "
            f"the dst_weights of {src}, or leave {src} out of the src_weights of {dst}"
        )
    data: list[float] = []
    columns: list[int] = []
    starts = [0]
    factors: list[float | None] = []
    for rank in range(size):
        mine = () if self_weights[rank] is None else (rank,)
        for column in sorted({*sources[rank], *mine}):
            columns.append(column)
            own = column == rank
            data.append(float(self_weights[rank]) if own else float(sources[rank][column]))
            if not own:
                factors.append(destinations[column][rank])
        starts.append(len(columns))
    matrix = sp.csr_array((np.array(data), np.array(columns), np.array(starts)), (size, size))
    scaled = None
    if any(factor is not None for factor in factors):
        scaled = np.array([1.0 if factor is None else factor for factor in factors])
    return StackedPlan(matrix, scaled)


def _is_transposed(value: Any, size: int) -> bool:
    """Tell whether ``comm.per_rank`` stacked the ranks' lists; no list of others is that long."""
    return (
        isinstance(value, (list, tuple))
        and len(value) < size
        and all(isinstance(item, np.ndarray) and item.shape == (size,) for item in value)
    )


def one_per_rank(value: Any, size: int, argument: str) -> Sequence[Any]:
    """Return ``value`` as a sequence with one entry per rank, or explain that it must be one."""
    if _is_transposed(value, size):
        return list(zip(*value, strict=True))
    if isinstance(value, (Mapping, str)) or not hasattr(value, "__len__") or len(value) != size:
        raise ArgumentTypeError(
            f"{argument}: with backend 'stacked' give a sequence with one entry for each of the "
            f"{size} ranks, as comm.per_rank(function) makes"
        )
    return value  # type: ignore[no-any-return]
