"""Compression of each array of a container by itself."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, final

from dectool.communicator._arrays import Leaf, Phantom
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array
from dectool.compression._payload import Payload
from dectool.errors import ArgumentTypeError, ContractError


@final
@dataclasses.dataclass(frozen=True)
class PerTensor(Compressor):
    r"""Compresses each array of a container by itself, not all of one dtype as one vector.

    So each has its own scale, or its own k of k numbers, and :class:`LowRank` its matrix: a tensor
    of shape (m, ...) is one of m rows, as in PowerSGD. All payloads of a container are still one
    message, one after the other in the order of the arrays.

    Where an operation cuts vectors into blocks (``allreduce``, and the shards of
    ``hierarchical_neighbor_allreduce``), what a block holds of each array is a vector by itself.

    Of a single array it is the inner compressor, with its properties. A container has the
    contraction of the worst of its arrays, and likewise the variance.

    Wire: the payload of the inner compressor, for each array.

    Args:
        inner: Any compressor without a memory.

    Example:
        >>> import numpy as np
        >>> from dectool import compression
        >>> c = compression.PerTensor(compression.LowRank(1))
        >>> c.name, c.compress(np.ones((20, 30)), np.random.default_rng(0), lead=0).nbytes
        ('pertensor:lowrank:1', 400)
        >>> import dectool
        >>> def program(comm):
        ...     x = [np.array([9.0, 8.0]), np.array([1.0, 2.0])]
        ...     return comm.broadcast(x, compressor=compression.get("pertensor:topk:1"))
        >>> dectool.run(program, n=2, backend="sim").values[1]
        [array([9., 0.]), array([0., 2.])]
    """

    per_tensor: ClassVar[bool] = True

    inner: Compressor

    def __post_init__(self) -> None:
        """Check what is wrapped."""
        inner: Any = self.inner
        if not isinstance(inner, Compressor) or inner.per_tensor:
            raise ArgumentTypeError(
                f"PerTensor({inner!r}): wrap a compressor without memory, such as TopK(0.01); "
                "a memory goes around it, ErrorFeedback(PerTensor(...))"
            )

    @property
    def needs_reference(self) -> bool:  # type: ignore[override]
        """Whether the inner compressor does."""
        return self.inner.needs_reference

    @property
    def fixed_size(self) -> bool:
        """Whether the inner compressor's is."""
        return self.inner.fixed_size

    @property
    def uses_rng(self) -> bool:
        """Whether the inner compressor does."""
        return self.inner.uses_rng

    @property
    def unbiased(self) -> bool:
        """Whether the inner compressor is."""
        return self.inner.unbiased

    def contraction(self, count: int) -> float | None:
        """Return that of the inner compressor."""
        return self.inner.contraction(count)

    def variance(self, count: int) -> float | None:
        """Return that of the inner compressor."""
        return self.inner.variance(count)

    def bound(self, x: Array) -> Array:
        """Return that of the inner compressor."""
        return self.inner.bound(x)

    def compress_buffer(
        self, buffer: Array | Phantom, leaf: Leaf, shape: tuple[int, ...], rng: Any
    ) -> Payload:
        """Compress with what fits the shape of the array."""
        made = self.inner.for_tensor(leaf.shape).compress_buffer(buffer, leaf, shape, rng)
        return Payload(self, made.data, leaf, shape, made.sizes)

    def decompress_buffer(
        self, payload: Payload, reference: Array | None = None
    ) -> Array | Phantom:
        """Decompress with what fits the shape of the array."""
        if payload.compressor != self:
            raise ContractError(
                f"decompress: the payload was made by {payload.compressor.name}, "
                f"and {self.name} cannot read it; sender and receiver must use one compressor"
            )
        within = self._within(payload)
        return within.compressor.decompress_buffer(within, reference)

    def payload_bytes(self, leaf: Leaf) -> int:
        """Return the exact size of the payload of an array, by what it is."""
        return self.inner.for_tensor(leaf.shape).payload_bytes(leaf)

    def check(self, payload: Payload) -> None:
        """Refuse bytes that the inner compressor cannot have made for such an array."""
        within = self._within(payload)
        within.compressor.check(within)

    def _within(self, payload: Payload) -> Payload:
        kind = self.inner.for_tensor(payload.leaf.shape)
        return Payload(kind, payload.data, payload.leaf, payload.lead, payload.sizes)

    def _size(self, count: int, dtype: str) -> int:
        return self.inner._size(count, dtype)

    def _encode(self, rows: Array, dtype: str, draw: Draw) -> Array | list[Array]:
        return self.inner._encode(rows, dtype, draw)

    def _decode(self, data: Array, count: int, dtype: str, reference: Array | None) -> Array:
        return self.inner._decode(data, count, dtype, reference)

    def _wrong(self, row: Array, count: int, dtype: str) -> str:
        return self.inner._wrong(row, count, dtype)
