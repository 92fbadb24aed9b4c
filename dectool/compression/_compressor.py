"""What a compressor is: parameters, bytes from numbers, and numbers from bytes."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from dectool.communicator._arrays import Leaf, Phantom, close_array
from dectool.compression._draw import Draw
from dectool.compression._formats import (
    ITEMSIZE,
    Array,
    check_dtype,
    narrow,
    saturated,
    widen,
    working,
)  # fmt: skip
from dectool.compression._payload import Payload, open_rows
from dectool.errors import ContractError, UnsupportedOperation


@dataclasses.dataclass(frozen=True)
class Compressor(abc.ABC):
    r"""A map from vectors to fewer bytes, and back to vectors that are near.

    A subclass is a frozen dataclass of parameters; it keeps nothing between calls, so a
    compressor may be shared, compared and put into an algorithm's parameters. What needs a memory
    is a :class:`StatefulCompressor`.

    Write :math:`C(x)` for ``decompress(compress(x, rng))`` and d for the number of elements. Two
    properties say what the theory may use; both are of exact arithmetic, so up to rounding, and up
    to numbers that under- or overflow their dtype:

    * contraction δ: :math:`E\|C(x) - x\|^2 \le (1 - \delta) \|x\|^2`,
    * variance ω: :math:`E\,C(x) = x` and :math:`E\|C(x) - x\|^2 \le \omega \|x\|^2`.

    Attributes:
        fixed_size: Whether the size in bytes follows from the number of elements alone.
        uses_rng: Whether something is drawn at random.
        needs_reference: Whether ``decompress`` needs a vector that is near.
        per_tensor: Whether each array of a container is a vector of its own.
        unbiased: Whether :math:`E\,C(x) = x` for every x.
    """

    needs_reference: ClassVar[bool] = False
    per_tensor: ClassVar[bool] = False

    @property
    def fixed_size(self) -> bool:
        """Whether the size in bytes follows from the number of elements alone."""
        return True

    @property
    def uses_rng(self) -> bool:
        """Whether something is drawn at random, so that ``compress`` needs ``rng``."""
        return False

    @property
    def unbiased(self) -> bool:
        """Whether E C(x) = x for every x."""
        return False

    @property
    def name(self) -> str:
        """The compressor in words that :func:`get` reads, such as "topk:0.01"."""
        from dectool.compression._registry import spell

        return spell(self)

    def contraction(self, count: int) -> float | None:
        """Return δ for vectors of ``count`` elements, or ``None`` where no δ > 0 holds for all.

        An unbiased compressor of variance ω < 1 has δ = 1 - ω.
        """
        omega = self.variance(count)
        return None if omega is None or omega >= 1.0 else 1.0 - omega

    def variance(self, count: int) -> float | None:
        """Return ω for vectors of ``count`` elements, or ``None`` where it is biased."""
        del count
        return None

    @abc.abstractmethod
    def bound(self, x: Array) -> Array:
        """Return a bound on the error of each element of C(x), whatever is drawn.

        Args:
            x: Array of shape (..., d), float32 or float64.

        Returns:
            Array that broadcasts to the shape of x. Rounding adds a few units in the last place
            of the largest element.
        """

    def compress(self, x: Any, rng: Any = None, *, lead: int | None = None) -> Payload:
        """Return the payload of ``x``.

        Vectors lie along the last axis: each is compressed on its own, and an x of shape (n, d)
        gives row by row the bytes that each row alone would give. So the rank axis of the stacked
        backend needs no care. A tensor of several axes that is one vector takes ``lead=0``.

        Args:
            x: Array of NumPy or PyTorch, or a number: float16, bfloat16, float32 or float64. It
                is not changed, and the payload does not share its memory.
            rng: Where random numbers come from: a ``numpy.random.Generator``, or
                ``comm.rng(...)``, which in the stacked backend draws for all ranks at once.
                Compressors without chance ignore it.
            lead: Axes in front that count vectors; all but the last unless given.

        Returns:
            The payload: one row of bytes for each vector. That of a meta tensor has only a size.

        Raises:
            ArgumentTypeError: ``x`` is no array of real floating-point numbers.
            ArgumentError: The compressor draws at random and ``rng`` is missing; or it refuses
                infinity and NaN (its documentation says so) and x has some.
        """
        return self.compress_buffer(*open_rows(x, lead), rng)

    def compress_buffer(
        self, buffer: Array | Phantom, leaf: Leaf, shape: tuple[int, ...], rng: Any
    ) -> Payload:
        """Compress what is already a buffer; the inner half of :meth:`compress`.

        Args:
            buffer: Shape (rows, elements); the bits of bfloat16 as ``uint16``.
            leaf: What one row is.
            shape: The leading axes, whose product is the number of rows.
            rng: Random numbers.
        """
        rows, count = buffer.shape
        if isinstance(buffer, Phantom):
            data = Phantom((rows, self.wire_bytes(count, leaf.dtype)), 1)
            return Payload(self, data, leaf, shape)
        if not count:
            return Payload(self, np.empty((rows, 0), np.uint8), leaf, shape)
        wide = np.ascontiguousarray(widen(buffer, leaf.dtype))
        draw = Draw(rng, rows, type(self).__name__)
        with np.errstate(all="ignore"):
            encoded = self._encode(wide, leaf.dtype, draw)
        if isinstance(encoded, list):
            return Payload(self, *_padded(encoded, leaf, shape))
        return Payload(self, encoded, leaf, shape)

    def decompress(self, payload: Payload, reference: Any = None) -> Any:
        """Return the array that ``payload`` stands for, of the kind, shape and dtype of x.

        Where rounding exceeds the largest number of a half-precision dtype, it is that number.

        Args:
            payload: What :meth:`compress` or :meth:`Payload.from_bytes` returned.
            reference: A vector that is near, for the compressors that need one
                (``needs_reference``); others refuse it.

        Raises:
            ContractError: The payload is another compressor's.
        """
        near = None if reference is None else self._opened(payload, reference)
        return close_array(self.decompress_buffer(payload, near), payload.leaf, payload.lead)

    def decompress_buffer(
        self, payload: Payload, reference: Array | None = None
    ) -> Array | Phantom:
        """Return the buffer (rows, elements) of a payload; the inner half of :meth:`decompress`.

        Args:
            payload: What is decompressed.
            reference: A buffer that is near, in the type of the arithmetic.
        """
        if payload.compressor != self:
            raise ContractError(
                f"decompress: the payload was made by {payload.compressor.name}, "
                f"and {self.name} cannot read it; sender and receiver must use one compressor"
            )
        dtype = payload.dtype
        if isinstance(payload.data, Phantom):
            return Phantom((payload.data.shape[0], payload.count), ITEMSIZE[dtype])
        if (reference is not None) != self.needs_reference:
            raise ContractError(
                f"{self.name} sends only what tells x from a vector that is near: "
                "decompress(payload, reference) needs that vector, such as the receiver's own"
                if self.needs_reference
                else f"{self.name} needs no reference: call decompress(payload)"
            )
        with np.errstate(all="ignore"):
            values = self._values(payload, payload.data, reference)
            return narrow(saturated(values, dtype), dtype)

    def _values(self, payload: Payload, data: Array, reference: Array | None) -> Array:
        count, dtype = payload.count, payload.dtype
        if count and (self.fixed_size or len(data) == 1):
            return self._decode(data[:, : payload.sizes.max(initial=0)], count, dtype, reference)
        values = np.empty((len(data), count), working(dtype))
        for index, size in enumerate(payload.sizes if count else ()):
            one = data[index : index + 1, :size]
            values[index] = self._decode(one, count, dtype, None)[0]
        return values

    def wire_bytes(self, count: int, dtype: str = "float32") -> int:
        """Return the exact size of the payload of ``count`` numbers, without compressing any.

        Raises:
            UnsupportedOperation: The size depends on the data (``fixed_size`` is false).
        """
        check_dtype(dtype)
        if not self.fixed_size:
            raise UnsupportedOperation(
                f"{self.name}: how many bytes it needs depends on the numbers, so a size alone "
                "(a meta tensor) cannot tell; use a compressor of fixed size, such as topk"
            )
        return self._size(count, dtype) if count else 0

    def payload_bytes(self, leaf: Leaf) -> int:
        """Return the exact size of the payload of an array, by what it is."""
        return self.wire_bytes(math.prod(leaf.shape), leaf.dtype)

    def for_tensor(self, shape: tuple[int, ...]) -> Compressor:
        """Return what :class:`PerTensor` compresses a tensor of this shape with."""
        del shape
        return self

    def check(self, payload: Payload) -> None:
        """Refuse bytes that this compressor cannot have made for such an array.

        Raises:
            ContractError: Truncated, too long, or foreign.
        """
        data = payload.data
        if isinstance(data, Phantom):
            return
        if self.fixed_size or not payload.count:
            want = self.wire_bytes(payload.count, payload.dtype) if payload.count else 0
            if data.shape[1] != want:
                raise ContractError(
                    f"{self.name}: {data.shape[1]} bytes arrived where {payload.count} numbers of "
                    f"{payload.dtype} take {want}; the message is cut, or another compressor's"
                )
        if not payload.count:
            return
        for index, size in enumerate(payload.sizes):
            wrong = self._wrong(data[index, :size], payload.count, payload.dtype)
            if wrong:
                raise ContractError(
                    f"{self.name}: {wrong}; the {size} bytes are cut, or another compressor's"
                )

    def __str__(self) -> str:
        return self.name

    def __or__(self, second: Compressor) -> Compressor:
        from dectool.compression._compose import Compose

        if isinstance(self, Compose):
            return Compose(self.first, self.second | second)
        return Compose(self, second)  # type: ignore[arg-type]

    @abc.abstractmethod
    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array | list[Array]:
        """Return the bytes of each row.

        Args:
            rows: Shape (n, count) with count > 0, contiguous, float32 or float64.
            dtype: Dtype that the array had; numbers that are sent as they are take its size.
            draw: Random numbers.

        Returns:
            ``uint8`` of shape (n, size); where sizes depend on data, a list of n flat arrays.
        """

    @abc.abstractmethod
    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        """Return the numbers, shape (n, count), in the type of the arithmetic.

        Where sizes depend on data, n is 1.
        """

    def _size(self, count: int, dtype: str) -> int:
        """Return the bytes of ``count`` > 0 numbers, where that is all it depends on."""
        raise NotImplementedError(
            f"{type(self).__name__} has fixed_size = True and no size: define "
            "_size(count, dtype), or set fixed_size = False"
        )

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        """Return what is wrong with the bytes of a row beyond their number, or ""."""
        del row, count, dtype
        return ""

    def _opened(self, payload: Payload, reference: Any) -> Array:
        """Return a reference as numbers, if it is like what was compressed."""
        buffer, leaf, shape = open_rows(reference, len(payload.lead))
        if (leaf.dtype, leaf.shape, shape) != (payload.dtype, payload.leaf.shape, payload.lead):
            raise ContractError(
                f"decompress: reference is {leaf.dtype}{[*shape, *leaf.shape]}, "
                f"but the payload is of {payload.dtype}{[*payload.lead, *payload.leaf.shape]}"
            )
        if isinstance(buffer, Phantom):
            return np.empty(buffer.shape)
        return widen(buffer, leaf.dtype)


def _padded(rows: list[Array], leaf: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return rows of different sizes as one array, with the rest of what a payload takes."""
    sizes = np.array([len(row) for row in rows], np.int64)
    data = np.zeros((len(rows), int(sizes.max(initial=0))), np.uint8)
    for index, row in enumerate(rows):
        data[index, : len(row)] = row
    return data, leaf, shape, sizes
