"""Topology: a graph and its checked mixing matrix."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _perron, _spectrum, _validation
from dectool.topology._edges import Edges, Floats, Ints, Matrix, to_graph
from dectool.topology._validation import TOLERANCE

if TYPE_CHECKING:
    import networkx as nx


@final
class Topology:
    r"""An immutable graph with a mixing matrix W; averaging is :math:`x^+ = W x`.

    ``W[i, j]`` is the weight that rank i gives to what it receives from rank j: row i is what
    rank i hears, and an edge j -> i is an off-diagonal W[i, j] ≠ 0. With
    :math:`J = \mathbf 1 \mathbf 1^T / n`, the worst-case factor of one averaging step is
    :math:`\rho = \lVert W - J \rVert_2`. Sums and symmetry are checked to 1e-9. Quantities are
    computed when first asked for.

    Args:
        W: Mixing matrix, (n, n), dense, sparse or nested lists. Its rows sum to 1, or its
            columns do; negative weights are allowed. It is copied.
        name: Name for messages, as in "ring of 8".
        weights: Name of the weight rule, for display.
        labels: Label of each rank, n of them; default 0..n-1.
        require_connected: Refuse a graph that is not (strongly) connected.
        rho_bound: A number that ``rho`` of no W on this graph is below, if one is known.

    Raises:
        TopologyError: W is not square, finite, stochastic and connected.
        ArgumentTypeError: W does not hold real numbers.

    Example:
        >>> t = Topology([[0.75, 0.25], [0.25, 0.75]], name="pair")
        >>> t.rho, t.in_neighbors(0), t.row(0)
        (0.5, (1,), ((0, 1), (0.75, 0.25)))

    References:
        L. Xiao, S. Boyd, Fast linear iterations for distributed averaging, Systems & Control
        Letters 53, 2004.
    """

    W: Matrix
    """Mixing matrix, (n, n) CSR float64, canonical, read-only."""
    size: int
    """Number of ranks n."""
    name: str
    """Name for messages, such as "ring of 8"."""
    weights: str
    """Name of the rule that made W."""

    def __init__(
        self,
        W: Any,
        *,
        name: str | None = None,
        weights: str = "given",
        labels: Sequence[Any] | None = None,
        require_connected: bool = True,
        rho_bound: float | None = None,
    ) -> None:
        matrix = _validation.as_csr(W)
        size = int(matrix.shape[0])
        name = f"topology of {size}" if name is None else name
        rows = _validation.row_sums(matrix)
        columns = _validation.column_sums(matrix)
        _validation.check_sums(rows, columns)
        if require_connected:
            _validation.check_connected(matrix, name)
        if labels is not None and len(labels) != size:
            raise ArgumentError(f"labels must name {size} ranks, got {len(labels)} labels")
        self.__setstate__(
            {
                "W": matrix,
                "size": size,
                "name": name,
                "weights": weights,
                "is_row_stochastic": bool(np.abs(rows - 1).max() <= TOLERANCE),
                "is_column_stochastic": bool(np.abs(columns - 1).max() <= TOLERANCE),
                "_labels": None if labels is None else tuple(labels),
                "_rho_bound": rho_bound,
            }
        )

    is_row_stochastic: bool
    """Every row sums to 1: a constant stays put. Negative weights are allowed."""
    is_column_stochastic: bool
    """Every column sums to 1: the sum over ranks is conserved. Negative weights are allowed."""
    _labels: tuple[Any, ...] | None
    _rho_bound: float | None

    def __getstate__(self) -> dict[str, Any]:
        keep = ("W", "size", "name", "weights", "is_row_stochastic", "is_column_stochastic")
        return {key: self.__dict__[key] for key in (*keep, "_labels", "_rho_bound")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _freeze(state["W"])
        rows: dict[int, tuple[tuple[int, ...], tuple[float, ...]]] = {}
        neighbors: tuple[dict[int, tuple[int, ...]], ...] = ({}, {})
        self.__dict__.update(state, _rows=rows, _in=neighbors[0], _out=neighbors[1])

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(
            f"a Topology is immutable: cannot set {key} of {self.name}; make a new one, "
            "e.g. with topology.from_matrix(W)"
        )

    def __repr__(self) -> str:
        edges = self._transpose.nnz - int(np.count_nonzero(self.W.diagonal()))
        kind = "directed edges" if self.is_directed else "edges"
        sums = {(True, True): "doubly", (True, False): "row", (False, True): "column"}
        word = sums[self.is_row_stochastic, self.is_column_stochastic]
        edges = edges if self.is_directed else edges // 2
        return f"<Topology: {self.name}, {edges} {kind}, {self.weights}, {word} stochastic>"

    # Ranks

    def row(self, rank: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Return the ranks that ``rank`` averages, ascending, itself included, and their weights.

        Args:
            rank: 0 <= rank < size.

        Raises:
            ArgumentError: The rank is out of range.

        Example:
            >>> from dectool import topology
            >>> topology.ring(4, weights="max_degree_boyd").row(0)
            ((1, 3), (0.5, 0.5))
        """
        found = self._rows.get(rank)
        if found is None:
            rank = self._check(rank)
            part = slice(self.W.indptr[rank], self.W.indptr[rank + 1])
            found = tuple(self.W.indices[part].tolist()), tuple(self.W.data[part].tolist())
            self._rows[rank] = found
        return found

    def in_neighbors(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that ``rank`` hears, ascending, without itself."""
        found = self._in.get(rank)
        if found is None:
            rank = self._check(rank)
            found = self._in[rank] = tuple(j for j in self.row(rank)[0] if j != rank)
        return found

    def out_neighbors(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that hear ``rank``, ascending, without itself."""
        found = self._out.get(rank)
        if found is None:
            rank = self._check(rank)
            part = self._transpose.indices[
                self._transpose.indptr[rank] : self._transpose.indptr[rank + 1]
            ]
            found = self._out[rank] = tuple(i for i in part.tolist() if i != rank)
        return found

    def weight(self, i: int, j: int) -> float:
        """Return W[i, j], what rank i gives to rank j; 0.0 where there is no edge j -> i."""
        sources, weights = self.row(i)
        j = self._check(j)
        return weights[sources.index(j)] if j in sources else 0.0

    def self_weight(self, rank: int) -> float:
        """Return W[rank, rank]."""
        return self.weight(rank, rank)

    def in_degree(self, rank: int) -> int:
        """Return the number of in-neighbors of ``rank``, itself not counted."""
        return len(self.in_neighbors(rank))

    def out_degree(self, rank: int) -> int:
        """Return the number of out-neighbors of ``rank``, itself not counted."""
        return len(self.out_neighbors(rank))

    @cached_property
    def in_degrees(self) -> Ints:
        """In-degree of every rank, shape (n,), read-only."""
        return self._degrees(self.W)

    @cached_property
    def out_degrees(self) -> Ints:
        """Out-degree of every rank, shape (n,), read-only."""
        return self._degrees(self._transpose)

    @cached_property
    def max_degree(self) -> int:
        """Largest in- or out-degree."""
        return int(max(self.in_degrees.max(), self.out_degrees.max()))

    @property
    def labels(self) -> tuple[Any, ...]:
        """Label of each rank in the graph that this was made from; 0..n-1 unless given."""
        return tuple(range(self.size)) if self._labels is None else self._labels

    @cached_property
    def graph(self) -> nx.Graph[Any]:
        """The support of W without self-loops, as a frozen networkx graph on 0..n-1.

        A ``DiGraph`` if some edge has no reverse, else a ``Graph``. Use ``graph.copy()`` to edit.
        """
        return to_graph(self.edges)

    @cached_property
    def edges(self) -> Edges:
        """Directed edges as arrays ``receivers`` and ``senders``, in the order of W."""
        receivers = np.repeat(np.arange(self.size), np.diff(self.W.indptr))
        keep = receivers != self.W.indices
        return Edges(self.size, receivers[keep], self.W.indices[keep].astype(np.int64))

    # Properties of W

    @cached_property
    def is_directed(self) -> bool:
        """Some edge has no reverse edge (whatever the weights)."""
        return not (
            np.array_equal(self.W.indptr, self._transpose.indptr)
            and np.array_equal(self.W.indices, self._transpose.indices)
        )

    @cached_property
    def is_symmetric(self) -> bool:
        """W = Wᵀ."""
        if self.is_directed:
            return False
        return bool(np.abs(self.W.data - self._transpose.data).max(initial=0.0) <= TOLERANCE)

    @property
    def is_doubly_stochastic(self) -> bool:
        """Rows and columns sum to 1; see ``is_nonnegative`` for the signs."""
        return self.is_row_stochastic and self.is_column_stochastic

    @cached_property
    def is_nonnegative(self) -> bool:
        """No weight is negative."""
        return bool((self.W.data >= 0).all())

    @cached_property
    def is_normal(self) -> bool:
        """W Wᵀ = Wᵀ W, so that ``slem`` and ``rho`` agree."""
        return self.is_symmetric or _spectrum.is_normal(self.W, self._transpose)

    @cached_property
    def is_connected(self) -> bool:
        """Every rank can reach every other along directed edges."""
        try:
            _validation.check_connected(self.W.copy(), self.name)
        except TopologyError:
            return False
        return True

    # Spectrum

    @cached_property
    def rho(self) -> float:
        """Worst-case factor of one step of averaging, ‖W - J‖₂."""
        if self.is_symmetric:
            return _spectrum.symmetric_norm(self.W, lambda: self.lambda_2, lambda: self.lambda_min)
        return _spectrum.norm(
            self.W, rows=self.is_row_stochastic, columns=self.is_column_stochastic
        )

    @cached_property
    def slem(self) -> float:
        """Second largest eigenvalue modulus; the asymptotic factor, below ``rho`` if not normal."""
        if self.is_normal and self.is_doubly_stochastic:
            return self.rho
        return _spectrum.modulus(self.W, rows=self.is_row_stochastic)

    @property
    def spectral_gap(self) -> float:
        """1 - ``rho``."""
        return 1.0 - self.rho

    @property
    def certified_gap(self) -> float:
        """By how much, at most, the best W has a smaller ``rho`` than this one.

        For weights "fastest_mixing" (among doubly stochastic W >= 0 on the graph) and
        "fastest_averaging" (of any sign): the difference between ``rho`` and the value of a dual
        point.

        Raises:
            TopologyError: The weights are of another kind.

        Example:
            >>> from dectool import topology
            >>> topology.ring(5, weights="fastest_mixing").certified_gap < 1e-6
            True
        """
        if self._rho_bound is None:
            raise TopologyError(
                f"certified_gap of {self.name} is not known for weights={self.weights!r}; use "
                "weights='fastest_mixing' or 'fastest_averaging'"
            )
        return max(0.0, self.rho - self._rho_bound)

    @cached_property
    def lambda_2(self) -> float:
        """Second largest eigenvalue of a symmetric W; 0 for a single rank."""
        self._need_symmetric("lambda_2")
        return _spectrum.second_largest(self.W)

    @cached_property
    def lambda_min(self) -> float:
        """Smallest eigenvalue of a symmetric W; 1 for a single rank."""
        self._need_symmetric("lambda_min")
        return _spectrum.smallest(self.W)

    @cached_property
    def eigenvalues(self) -> NDArray[np.inexact[Any]]:
        """Eigenvalues, shape (n,): descending if W is symmetric, else by falling modulus."""
        if self.size > _spectrum.DENSE_RESCUE:
            raise ArgumentError(
                f"eigenvalues of {self.name}: all of them are computed up to size "
                f"{_spectrum.DENSE_RESCUE}; use rho, slem, lambda_2 or lambda_min"
            )
        values = _spectrum.eigenvalues(self.W, symmetric=self.is_symmetric)
        values.setflags(write=False)
        return values

    @cached_property
    def perron(self) -> Floats:
        """Perron vector, shape (n,), read-only.

        If the rows of W sum to 1: π with πᵀ W = πᵀ and sum 1, the weights of the consensus
        value. Otherwise (the columns do): n π with W π = π, the limit of push-sum weights.

        Raises:
            TopologyError: There is more than one, since parts of the graph settle by themselves.
        """
        if self.is_doubly_stochastic:
            vector = np.full(self.size, 1.0 / self.size)
        elif self.is_row_stochastic:
            vector = _perron.fixed_vector(self._transpose)
        else:
            vector = self.size * _perron.fixed_vector(self.W)
        vector.setflags(write=False)
        return vector

    # New matrices

    def lazy(self) -> Topology:
        """Return the topology with (I + W)/2, whose eigenvalues are (1 + λ)/2.

        Example:
            >>> from dectool import topology
            >>> round(topology.ring(4).lazy().lambda_min, 12)
            0.333333333333
        """
        return Topology(
            (self.W + sparse.eye_array(self.size)) / 2,
            name=f"lazy {self.name}",
            weights=self.weights,
            labels=self._labels,
            require_connected=False,
        )

    def to_dense(self) -> Floats:
        """Return W as a new (n, n) array."""
        return np.asarray(self.W.toarray())

    # Internals

    _rows: dict[int, tuple[tuple[int, ...], tuple[float, ...]]]
    _in: dict[int, tuple[int, ...]]
    _out: dict[int, tuple[int, ...]]

    @cached_property
    def _transpose(self) -> Matrix:
        """The transpose of W in CSR form: row j lists who hears rank j."""
        transpose: Matrix = self.W.T.tocsr()
        _freeze(transpose)
        return transpose

    def _degrees(self, matrix: Matrix) -> Ints:
        stored = np.diff(matrix.indptr).astype(np.int64)
        degrees: Ints = np.subtract(stored, self.W.diagonal() != 0)
        degrees.setflags(write=False)
        return degrees

    def _check(self, rank: int) -> int:
        try:
            number = operator.index(rank)
        except TypeError:
            raise ArgumentTypeError(
                f"rank must be an integer from 0 to {self.size - 1}, got {rank!r} ({self.name})"
            ) from None
        if not 0 <= number < self.size:
            raise ArgumentError(
                f"rank {number} is out of range: {self.name} has size {self.size}, "
                f"so ranks are 0 to {self.size - 1}"
            )
        return number

    def _need_symmetric(self, what: str) -> None:
        if not self.is_symmetric:
            raise TopologyError(
                f"{what} needs a symmetric W, and that of {self.name} ({self.weights}) is not; "
                "use rho, slem or eigenvalues"
            )


def _freeze(matrix: Matrix) -> None:
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
