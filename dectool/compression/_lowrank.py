"""Low-rank factors of a matrix, by one step of the power method, as in PowerSGD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.compression import _norms
from dectool.compression._checks import check_count
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import ITEMSIZE, LARGEST, Array, from_bytes, to_bytes
from dectool.errors import ArgumentError, ArgumentTypeError


@final
@dataclass(frozen=True)
class LowRank(Compressor):
    r"""A matrix of rank r that is near: PowerSGD's compressor.

    .. math:: P = \mathrm{orth}(X Q_0), \quad Q = X^T P, \quad C(X) = P Q^T = P P^T X

    where :math:`Q_0` is drawn from the normal distribution: a projection, so that the error is
    never above :math:`\|X\|`, and zero where X has rank r or less. With :class:`WarmStart`,
    :math:`Q_0` is the last Q, which makes the steps of an optimizer one power iteration.

    A flat x of d numbers is read by rows as a matrix of ``shape``, or else as one that is as
    nearly square as can be, ceil(√d) wide, filled up with zeros. :class:`PerTensor` gives each
    tensor of two axes and more the matrix of its own rows.

    Wire, (rows + columns) r i bytes, little-endian, in the dtype of x, which has i bytes:

    * 0 .. rows r i - 1: P by rows,
    * rows r i ..: Q by rows.

    Sums are those of the linear algebra library that NumPy uses, so bits may differ between
    machines or numbers of threads, but not between backends where these are alike. If x holds
    infinity or NaN, all of it comes back as NaN; where Q overflows it is the largest finite number.

    Args:
        rank: r ≥ 1; at most the smaller side counts.
        shape: (rows, columns) of the matrix.

    Example:
        >>> c = LowRank(1, shape=(2, 3))
        >>> x = np.outer([1.0, 2.0], [3.0, 0.0, -1.0]).ravel()
        >>> np.allclose(c.decompress(c.compress(x, np.random.default_rng(0))), x)
        True
        >>> LowRank(2).wire_bytes(1_000_000)
        16000

    References:
        T. Vogels, S. P. Karimireddy & M. Jaggi, PowerSGD, NeurIPS 2019, Algorithm 1.
    """

    rank: int
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_count("LowRank", "rank", self.rank)
        if self.shape is None:
            return
        shape: Any = self.shape
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise ArgumentTypeError(
                f"LowRank(shape={self.shape!r}): shape is (rows, columns), such as (64, 100)"
            )
        for extent in self.shape:
            check_count("LowRank", "shape", extent)

    @property
    def uses_rng(self) -> bool:
        """Always."""
        return True

    def matrix_shape(self, count: int) -> tuple[int, int]:
        """Return rows and columns of the matrix of ``count`` numbers.

        Raises:
            ArgumentError: ``shape`` has another number of elements.
        """
        if self.shape is None:
            columns = math.isqrt(count - 1) + 1 if count else 0
            return (-(-count // columns) if count else 0), columns
        if self.shape[0] * self.shape[1] != count:
            raise ArgumentError(
                f"LowRank(shape={self.shape}): x has {count} numbers and the matrix "
                f"{self.shape[0] * self.shape[1]}; leave shape out, or pass lead=0 for a tensor"
            )
        return self.shape

    def for_tensor(self, shape: tuple[int, ...]) -> LowRank:
        """Return that for a matrix of as many rows as the first axis of a tensor has."""
        if self.shape is not None or len(shape) < 2 or 0 in shape:
            return self
        return LowRank(self.rank, (shape[0], math.prod(shape[1:])))

    def rank_of(self, count: int) -> int:
        """Return the rank, at most the smaller side of the matrix."""
        return min(self.rank, *self.matrix_shape(count))

    def contraction(self, count: int) -> float:
        """Return r / min(rows, columns).

        Directions of larger singular values are captured with at least the probability of smaller
        ones, and r of min(rows, columns) are captured in all. With WarmStart no such bound holds.
        """
        return self.rank_of(count) / max(1, min(self.matrix_shape(count)))

    def bound(self, x: Array) -> Array:
        """Return the norm of x."""
        rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
        return _norms.norm(rows).reshape(*x.shape[:-1], 1)

    def matrices(self, rows: Array) -> Array:
        """Return vectors (n, d) as matrices (n, rows, columns)."""
        n, count = rows.shape
        high, wide = self.matrix_shape(count)
        if high * wide != count:
            rows = np.concatenate([rows, np.zeros((n, high * wide - count), rows.dtype)], axis=1)
        return rows.reshape(n, high, wide)

    def start(self, count: int, draw: Draw, kind: np.dtype[Any]) -> Array:
        """Draw the first right factors, shape (n, columns, r)."""
        wide, rank = self.matrix_shape(count)[1], self.rank_of(count)
        return draw.normal(wide * rank).reshape(-1, wide, rank).astype(kind)

    def factor(self, x: Array, right: Array) -> tuple[Array, Array]:
        """Return P and Q of one matrix, from the right factor to begin with."""
        largest = float(np.abs(x).max())
        if not math.isfinite(largest):
            nan = x.dtype.type(np.nan)
            return np.full((len(x), right.shape[1]), nan), np.full_like(right, nan)
        if largest == 0 or 2.0**-60 < largest < 2.0**60:
            left = orthonormal(x @ right)
            return left, x.T @ left
        exponent = math.frexp(largest)[1]
        scaled = np.ldexp(x, -exponent)
        left = orthonormal(scaled @ right)
        return left, np.ldexp(scaled.T @ left, exponent)

    def pack(self, left: Array, right: Array, dtype: str) -> Array:
        """Return the payload's bytes of the factors of one matrix."""
        most = LARGEST.get(dtype, float(np.finfo(right.dtype).max))
        bounded = np.clip(right, -most, most)
        return np.concatenate([to_bytes(left.ravel(), dtype), to_bytes(bounded.ravel(), dtype)])

    def unpack(self, data: Array, count: int, dtype: str) -> tuple[Array, Array]:
        """Return the factors (n, rows, r) and (n, columns, r) that the bytes hold."""
        high, wide = self.matrix_shape(count)
        rank = self.rank_of(count)
        numbers = from_bytes(data, dtype)
        left = numbers[:, : high * rank].reshape(-1, high, rank)
        return left, numbers[:, high * rank :].reshape(-1, wide, rank)

    def _size(self, count: int, dtype: str) -> int:
        return sum(self.matrix_shape(count)) * self.rank_of(count) * ITEMSIZE[dtype]

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array:
        starts = self.start(rows.shape[1], draw, rows.dtype)
        return self.encode_from(rows, starts, dtype)[0]

    def encode_from(self, rows: Array, starts: Array, dtype: str) -> tuple[Array, Array]:
        """Return the bytes of vectors (n, d) and their right factors, from those to begin with."""
        factors = [
            self.factor(x, right) for x, right in zip(self.matrices(rows), starts, strict=True)
        ]
        data = np.stack([self.pack(left, right, dtype) for left, right in factors])
        return data, np.stack([right for _, right in factors])

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        del reference
        left, right = self.unpack(data, count, dtype)
        products = [p @ q.T for p, q in zip(left, right, strict=True)]
        return np.stack([product.reshape(-1)[:count] for product in products])


def orthonormal(matrix: Array) -> Array:
    """Return orthonormal columns of the same span, by Gram-Schmidt, done twice.

    A column that depends on those before it becomes zero.

    Example:
        >>> orthonormal(np.array([[3.0, 0.0], [4.0, 0.0]]))
        array([[0.6, 0. ], [0.8, 0. ]])
    """
    columns = matrix.T.astype(np.float64)
    tiny = 32 * np.finfo(matrix.dtype).eps
    for index, column in enumerate(columns):
        largest = np.abs(column).max(initial=0.0)
        if not largest > 0:
            continue
        column /= largest
        before = math.sqrt(float(column @ column))
        for _ in range(2):
            for other in columns[:index]:
                column -= float(other @ column) * other
        after = math.sqrt(float(column @ column))
        column *= 0.0 if after <= tiny * before else 1.0 / after
    return columns.T.astype(matrix.dtype)
