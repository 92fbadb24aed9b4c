"""Problems made of samples: a loss summed over each rank's shard, plus an L2 term."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dectool._text import nearest
from dectool.errors import ArgumentError
from dectool.problems._arrays import FloatArray, Rows, positive_int, real_array, real_number
from dectool.problems._calling import Rank, enter
from dectool.problems._dataset import Dataset
from dectool.problems._optimum import Smooth, minimise
from dectool.problems._problem import Curvature, Problem
from dectool.problems._shards import Samples, Shards
from dectool.problems._split import split
from dectool.problems.partition import Partitioner

Objective: TypeAlias = Literal["mean_of_means", "weighted"]
Partition: TypeAlias = str | Partitioner | Sequence[ArrayLike]

_OBJECTIVES = ("mean_of_means", "weighted")


class IntegerSource(Protocol):
    """What `DataProblem.sample_grad` needs of a random generator: NumPy's ``integers``."""

    def integers(self, low: Any, high: Any, *, size: int) -> Any:
        """Return ``size`` integers from low to high - 1; (k, size) if high has shape (k,)."""


class DataProblem(Problem):
    r"""A loss over samples that are spread over the ranks.

    .. math:: f_i(x) = c_i \frac1{m_i} \sum_{s \in S_i} \ell(x; a_s, y_s) + \frac{l_2}2 \|x\|^2

    where :math:`S_i` are the :math:`m_i` samples of rank i and :math:`\ell` the loss of the
    class. With ``objective="mean_of_means"`` every rank counts the same, :math:`c_i = 1`. With
    ``"weighted"`` every sample does, :math:`c_i = n m_i / m`, so that f is the mean loss over
    all m samples (plus the L2 term, which is not weighted). For shards of equal size they are
    the same. A rank without samples has the L2 term only.

    Args:
        A: Features, one row per sample, (m, d), finite.
        y: Targets or labels, (m,).
        n: Number of ranks; not needed where ``partition`` is a list.
        partition: ``"contiguous"``, ``"shuffled"``, ``"by_class"``, ``"dirichlet"``, a
            partitioner of `dectool.problems.partition`, or one index array per rank.
        l2: Factor of the L2 term, at least 0.
        bias: Append a column of ones to A; its weight is regularised as the others.
        objective: ``"mean_of_means"`` or ``"weighted"``.
        seed: Seed for a random partition given by name.
        allow_empty: Let ranks have no sample, for a partition given by name or as a list.
        name: Name of the data, for tables and messages.

    Raises:
        ArgumentError: An argument breaks its rule; the message names it, its value and the fix.
        ArgumentTypeError: An array is not numeric.
        DataError: There are too few classes.
    """

    def __init__(
        self,
        A: ArrayLike,
        y: ArrayLike,
        *,
        n: int | None = None,
        partition: Partition = "contiguous",
        l2: float = 0.0,
        bias: bool = False,
        objective: Objective = "mean_of_means",
        seed: int = 0,
        allow_empty: bool = False,
        name: str = "data",
    ) -> None:
        features = real_array(A, "A")
        if features.ndim != 2 or features.size == 0:
            raise ArgumentError(
                f"A has shape {features.shape}; it must be (samples, features), not empty"
            )
        self._l2 = real_number(l2, "l2")
        if objective not in _OBJECTIVES:
            raise ArgumentError(
                f"objective={objective!r} is not known; {nearest(str(objective), _OBJECTIVES)}"
            )
        self._bias, self._objective_kind = bool(bias), objective
        self._features = features.shape[1]
        labels = self._read_targets(y, features.shape[0])
        parts = split(partition, labels, n, seed=seed, allow_empty=allow_empty)
        samples = self._prepare(features, labels)
        self._shards = Shards(samples, parts, weighted=objective == "weighted")
        self._partition = partition if isinstance(partition, str | Partitioner) else "given"
        super().__init__(len(parts), samples.A.shape[1:] + samples.t.shape[1:], name)

    @classmethod
    def from_data(
        cls,
        data: Dataset,
        *,
        n: int | None = None,
        partition: Partition = "contiguous",
        l2: float = 0.0,
        bias: bool = False,
        objective: Objective = "mean_of_means",
        seed: int = 0,
        allow_empty: bool = False,
    ) -> Self:
        """Return the problem on a `Dataset`; the arguments are those of the class.

        Raises:
            ArgumentError: An argument breaks its rule.
            DataError: There are too few classes.

        Example:
            >>> from dectool import problems
            >>> data = problems.breast_cancer()
            >>> problems.LogisticRegression.from_data(data, n=16, l2=0.01, bias=True)
            LogisticRegression(breast_cancer, n=16, shape=(31,), l2=0.01,
            partition='contiguous', objective='mean_of_means')
        """
        return cls(
            data.X,
            data.y,
            n=n,
            partition=partition,
            l2=l2,
            bias=bias,
            objective=objective,
            seed=seed,
            allow_empty=allow_empty,
            name=data.name,
        )

    @property
    def l2(self) -> float:
        """Factor of the L2 term."""
        return self._l2

    @property
    def samples(self) -> NDArray[np.int64]:
        """Number of samples of each rank, (n,)."""
        return self._shards.counts.copy()

    def sample_grad(self, x: ArrayLike, rank: Rank, rng: IntegerSource, batch_size: int) -> Any:
        """Return an unbiased estimate of `grad` from samples drawn with replacement.

        The indices come from one call ``rng.integers(0, m_i, size=batch_size)``; for an array
        of k ranks the upper limit has shape (k,) and the answer must have shape
        (k, batch_size). For equal indices both forms give the same bits. All batch axes of x
        see the same samples.

        Args:
            x: Point, in one of the two forms of `Problem`.
            rank: Rank i, or an array of k ranks.
            rng: A NumPy generator; for an array of ranks, one that draws for each of them.
            batch_size: Number of samples b, at least 1.

        Returns:
            A new array with the shape and dtype of x.

        Raises:
            ArgumentError: batch_size is below 1, or the generator's answer has another shape.

        Example:
            >>> import numpy as np
            >>> from dectool import problems
            >>> p = problems.LeastSquares([[1.0], [1.0]], [2.0, 2.0], n=1)
            >>> p.sample_grad([0.0], 0, np.random.default_rng(0), batch_size=1)
            array([-2.])
        """
        b = positive_int(batch_size, "batch_size")
        call = enter(x, rank, self._ranks, self._shape)
        rows = self._ranks[call.rows]
        # A rank without samples draws its padding row, which is zero and has weight zero.
        high = np.maximum(self._shards.counts[rows], 1)
        chosen = np.asarray(rng.integers(0, int(high[0]) if call.single else high, size=b))
        expected = (b,) if call.single else (rows.size, b)
        if chosen.shape != expected:
            raise ArgumentError(
                f"rng.integers returned shape {chosen.shape}; for these ranks and "
                f"batch_size={b} it must be {expected}"
            )
        drawn = self._shards.draw(rows, chosen.reshape(rows.size, b), call.X.dtype)
        return call.answer(self._slope(call.X, drawn), self._shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name}, n={self.size}, shape={self.shape}, "
            f"l2={self._l2:g}, partition={self._partition!r}, objective={self._objective_kind!r})"
        )

    @abstractmethod
    def _read_targets(self, y: ArrayLike, samples: int) -> NDArray[Any]:
        """Return y checked, (samples,)."""

    @abstractmethod
    def _encode(self, A: FloatArray, labels: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return rows and targets in the form that the loss wants."""

    @abstractmethod
    def _loss(self, X: FloatArray, s: Samples) -> FloatArray:
        """Return the weighted loss (k, batch), without the L2 term."""

    @abstractmethod
    def _loss_slope(self, X: FloatArray, s: Samples) -> FloatArray:
        """Return its gradient (k, batch, dim), a new array."""

    @abstractmethod
    def _loss_hessian(self, X: FloatArray, s: Samples) -> FloatArray:
        """Return its Hessian (k, batch, dim, dim), a new array."""

    @abstractmethod
    def _loss_product(self, X: FloatArray, V: FloatArray, s: Samples) -> FloatArray:
        """Return its Hessian at X times V, a new array of their shape (k, batch, dim)."""

    @abstractmethod
    def _bend(self) -> float:
        """Return the largest second derivative of the loss in the scores A x."""

    def _prepare(self, features: FloatArray, labels: NDArray[Any]) -> Samples:
        A = features
        if self._bias:
            A = np.concatenate([A, np.ones((len(A), 1))], axis=1)
        rows, targets = self._encode(A, labels)
        return Samples(rows, targets, np.ones(len(A)))

    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._height(X, self._shards.take(rows, X.dtype))

    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._slope(X, self._shards.take(rows, X.dtype))

    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._bow(X, self._shards.take(rows, X.dtype))

    def _objective(self, X: FloatArray) -> FloatArray:
        return self._height(X, self._pool(X.dtype))

    def _gradient(self, X: FloatArray) -> FloatArray:
        return self._slope(X, self._pool(X.dtype))

    def _hessian_of_mean(self, X: FloatArray) -> FloatArray:
        whole: FloatArray = self._bow(X, self._pool(X.dtype))[0, 0]
        return whole

    def _pool(self, dtype: DTypeLike) -> Samples:
        return self._shards.pool(dtype)

    def _height(self, X: FloatArray, s: Samples) -> FloatArray:
        result = self._loss(X, s)
        if self._l2:
            result += 0.5 * self._l2 * (X * X).sum(axis=-1)
        return result

    def _slope(self, X: FloatArray, s: Samples) -> FloatArray:
        result = self._loss_slope(X, s)
        if self._l2:
            result += self._l2 * X
        return result

    def _bow(self, X: FloatArray, s: Samples) -> FloatArray:
        result = self._loss_hessian(X, s)
        if self._l2:
            result += self._l2 * np.eye(self.dim, dtype=X.dtype)
        return result

    def _curvature(self) -> Curvature:
        local = _gram_spectra(self._shards.take(slice(None), np.float64))[:, -1]
        pooled = _gram_spectra(self._pool(np.float64))[:, -1]
        return Curvature(
            L=self._bend() * float(pooled.max()) + self._l2,
            L_max=self._bend() * float(local.max()) + self._l2,
            mu=self._l2,
            mu_min=self._l2,
        )

    def _solve(self) -> NDArray[np.float64]:
        pool = self._pool(np.float64)

        def product(x: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[Any]:
            flat = self._loss_product(x.reshape(1, 1, -1), v.reshape(1, 1, -1), pool).reshape(-1)
            return np.asarray(flat + self._l2 * v)

        f = Smooth(
            value=lambda x: float(self._height(x.reshape(1, 1, -1), pool)[0, 0]),
            grad=lambda x: self._slope(x.reshape(1, 1, -1), pool).reshape(-1),
            product=product,
            hessian=lambda x: self._hessian_of_mean(x.reshape(1, 1, -1)),
        )
        return minimise(f, self.dim, self.L, repr(self))


def smallest_gram(s: Samples) -> NDArray[np.float64]:
    """Return the smallest eigenvalue of sum_s w_s a_s a_s^T for every rank."""
    rows, dim = s.A.shape[-2:]
    if rows < dim:
        return np.zeros(len(s.A))
    spectra = _gram_spectra(s)
    # Below this an eigenvalue is rounding, and zero is the better answer.
    rounding = np.finfo(np.float64).eps * dim * spectra[:, -1]
    return np.where(spectra[:, 0] <= rounding, 0.0, spectra[:, 0])


def _gram_spectra(s: Samples) -> NDArray[np.float64]:
    """Return eigenvalues of sum_s w_s a_s a_s^T for every rank, ascending, but for zeros."""
    B = np.asarray(s.A * np.sqrt(s.w)[..., None], dtype=np.float64)
    BT = B.swapaxes(-1, -2)
    gram = BT @ B if B.shape[-1] <= B.shape[-2] else B @ BT
    return np.maximum(np.asarray(np.linalg.eigvalsh(gram), dtype=np.float64), 0.0)
