"""What a compressor makes: bytes, and what they are the bytes of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from dectool.communicator._arrays import Leaf, Phantom, open_array
from dectool.compression._formats import Array, check_dtype
from dectool.errors import ArgumentTypeError, ContractError

if TYPE_CHECKING:
    from dectool.compression._compressor import Compressor


@final
class Payload:
    """The bytes that travel in place of an array.

    Made by :meth:`Compressor.compress`, or from received bytes by :meth:`from_bytes`. The bytes
    are all that is sent: the receiver knows the compressor, and the shape and dtype of the array
    from its own.

    Attributes:
        compressor: What made it, and alone can read it.
        data: The bytes, an array of ``uint8`` of shape (rows, width), one row for each vector;
            a :class:`~dectool.communicator.Phantom` for a meta tensor. Where rows differ in size
            they are filled up with zeros, which are not sent.
        sizes: Bytes of each row.
        leaf: The array's kind, dtype and the shape of one row.
        lead: The axes in front, such as the rank axis; ``()`` for a single vector.

    Example:
        >>> from dectool import compression
        >>> c = compression.TopK(1)
        >>> p = c.compress(np.array([1.0, -3.0, 2.0], np.float32))
        >>> p
        Payload(topk:1, 5 bytes for float32[3])
        >>> c.decompress(Payload.from_bytes(p.to_bytes(), c, like=np.zeros(3, np.float32)))
        array([ 0., -3.,  0.], dtype=float32)
    """

    __slots__ = ("compressor", "data", "lead", "leaf", "sizes")

    def __init__(
        self,
        compressor: Compressor,
        data: Array | Phantom,
        leaf: Leaf,
        lead: tuple[int, ...] = (),
        sizes: Array | None = None,
    ) -> None:
        self.compressor = compressor
        self.data = data
        self.leaf = leaf
        self.lead = lead
        rows, width = data.shape
        self.sizes: Array = np.full(rows, width, np.int64) if sizes is None else sizes

    @property
    def count(self) -> int:
        """Elements of one vector."""
        count = 1
        for extent in self.leaf.shape:
            count *= extent
        return count

    @property
    def dtype(self) -> str:
        """Dtype of the array, such as "float32" or "bfloat16"."""
        return self.leaf.dtype

    @property
    def nbytes(self) -> int:
        """Bytes on the wire, exactly; of all rows together."""
        return int(self.sizes.sum())

    def to_bytes(self) -> bytes:
        """Return what is sent; the rows one after the other.

        Raises:
            ArgumentTypeError: The array was a meta tensor, which has no data.
        """
        if isinstance(self.data, Phantom):
            raise ArgumentTypeError(
                "to_bytes: the payload of a meta tensor has a size and no bytes; "
                "compress a tensor on device 'cpu'"
            )
        return b"".join(
            row[:size].tobytes() for row, size in zip(self.data, self.sizes, strict=True)
        )

    @classmethod
    def from_bytes(
        cls, data: Any, compressor: Compressor, like: Any, lead: int | None = None
    ) -> Payload:
        """Return the payload whose bytes were received; the inverse of :meth:`to_bytes`.

        Args:
            data: Bytes, or anything with the buffer protocol.
            compressor: What the sender compressed with.
            like: An array of the kind, shape and dtype that ``decompress`` shall return, such
                as the receiver's own.
            lead: As in :meth:`Compressor.compress`.

        Raises:
            ContractError: The bytes are too few or too many, or no such compressor makes them.
        """
        _, leaf, shape = open_rows(like, lead)
        received = np.frombuffer(data, np.uint8)
        rows = int(np.prod(shape, dtype=np.int64))
        if rows != 1 and not compressor.fixed_size:
            raise ContractError(
                f"from_bytes: where one of {rows} rows ends is not told by bytes of "
                f"{compressor.name}, whose size depends on the data; read one row at a time"
            )
        if rows == 0 or received.size % rows:
            raise ContractError(
                f"from_bytes: got {received.size} bytes for {rows} rows of {compressor.name}"
            )
        payload = cls(compressor, received.reshape(rows, -1), leaf, shape)
        compressor.check(payload)
        return payload

    def row(self, index: int) -> Payload:
        """Return the payload of one row, as a rank alone would have made it."""
        data: Array | Phantom
        if isinstance(self.data, Phantom):
            data = Phantom((1, int(self.sizes[index])), 1)
        else:
            data = self.data[index : index + 1, : int(self.sizes[index])]
        return Payload(self.compressor, data, self.leaf)

    def __repr__(self) -> str:
        shape = [*self.lead, *self.leaf.shape]
        return f"Payload({self.compressor.name}, {self.nbytes} bytes for {self.dtype}{shape})"


def open_rows(x: Any, lead: int | None) -> tuple[Array | Phantom, Leaf, tuple[int, ...]]:
    """Return the buffer of ``x`` behind its leading axes, what it was, and those axes.

    Args:
        x: Array or number.
        lead: Leading axes that count vectors; ``None`` for all but the last.
    """
    axes = len(getattr(x, "shape", ()))
    keep = max(0, axes - 1) if lead is None else lead
    if not 0 <= keep <= axes:
        raise ContractError(f"compress: x has {axes} axes, so lead={keep} cannot be in front")
    flat, leaf = open_array(x, 0)
    check_dtype(leaf.dtype)
    shape = tuple(getattr(x, "shape", ()))[:keep]
    leaf = leaf._replace(shape=leaf.shape[keep:])
    rows = int(np.prod(shape, dtype=np.int64))
    count = int(np.prod(leaf.shape, dtype=np.int64))
    if isinstance(flat, Phantom):
        return Phantom((rows, count), flat.itemsize), leaf, shape
    return flat.reshape(rows, count), leaf, shape
