"""A bucket: one flat buffer, and the arrays that are views of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from dectool.communicator._arrays import BFLOAT16, Buffer, Leaf, Phantom, columns, view_array
from dectool.communicator._layout import BUCKET, Layout, itemsize
from dectool.errors import ContractError


@final
class Bucket:
    """One flat buffer and the arrays in it, which are views of it.

    Any operation of a communicator that takes one array takes a bucket: it is one message, goes
    in without a copy, and a bucket of the same arrays comes out. Made by :class:`Buckets`.

    What lies between two arrays so that the next is aligned is zero, and travels with them; a
    compressor does not see it.

    Example:
        >>> import numpy as np
        >>> from dectool import fusion
        >>> (bucket,) = fusion.Buckets([np.ones(3), np.zeros((2, 2))], align=64)
        >>> bucket.flat.shape, bucket.starts, bucket.nbytes
        ((12,), (0, 8), 96)
        >>> bucket.views[1][0, 1] = 5.0
        >>> float(bucket.flat[9])
        5.0
    """

    __slots__ = ("_buffer", "_layout", "indices")

    instead: ClassVar[str] = "a bucket is a message by itself; pass it alone, or bucket.views"

    indices: tuple[int, ...]
    """Positions of the arrays among those that the :class:`Buckets` were made of."""

    def __init__(
        self, buffer: Buffer, layout: Layout, indices: tuple[int, ...] | None = None
    ) -> None:
        self._buffer = buffer
        self._layout = layout
        self.indices = tuple(range(len(layout.leaves))) if indices is None else indices

    @property
    def layout(self) -> Layout:
        """Where the arrays lie; equal on all ranks that take part in an operation."""
        return self._layout

    @property
    def flat(self) -> Any:
        """The whole buffer as an array, flat behind the leading axes; not a copy.

        A PyTorch tensor if all arrays are such, else a NumPy array.
        """
        origins = {leaf.origin for leaf in self._layout.leaves}
        origin = origins.pop() if len(origins) == 1 and origins <= {"torch", "meta"} else "numpy"
        leaf = Leaf(origin, self.dtype, self._buffer.shape[-1:])
        return view_array(self._buffer, leaf, self.lead)

    @property
    def views(self) -> tuple[Any, ...]:
        """The arrays, in the order in which they lie; what is written to them is in ``flat``."""
        (group,) = self._layout.groups
        return tuple(
            view_array(columns(self._buffer, start, start + count), leaf, self.lead)
            for leaf, start, count in zip(
                self._layout.leaves, group.starts, group.counts, strict=True
            )
        )

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes in front of each array, such as that of the ranks with ``"stacked"``."""
        return self._buffer.shape[:-1]

    @property
    def dtype(self) -> str:
        """The dtype of all arrays, such as "float32" or "bfloat16"."""
        return self._layout.dtypes[0]

    @property
    def starts(self) -> tuple[int, ...]:
        """The element of ``flat`` at which each array begins."""
        return self._layout.groups[0].starts

    @property
    def nbytes(self) -> int:
        """Bytes of one message [byte]: those of the arrays, and of the gaps between them."""
        return self._layout.groups[0].elements * itemsize(self.dtype)

    def opened(self, lead: int) -> Buffer:
        """Return the buffer.

        Raises:
            ContractError: It has not as many axes in front as are needed.
        """
        if len(self.lead) != lead:
            raise ContractError(
                f"a bucket with axes {self.lead} in front was given, and {lead} are needed; make "
                "it with comm.buckets(arrays), with rows=1 for what has a row for each neighbor"
            )
        return self._buffer

    def row(self, index: int) -> Bucket:
        """Return the bucket of one row of the first axis."""
        buffer = self._buffer
        part = (
            Phantom(buffer.shape[1:], buffer.itemsize)
            if isinstance(buffer, Phantom)
            else buffer[index]
        )
        return Bucket(part, self._layout, self.indices)

    def __repr__(self) -> str:
        count = len(self._layout.leaves)
        return f"<Bucket of {count} arrays, {self.nbytes} bytes of {self.dtype}>"


def layout_of(leaves: Sequence[Leaf], align: int) -> Layout:
    """Return the layout of a bucket of arrays of one dtype."""
    return Layout(tuple(leaves), (BUCKET, align, 0))


def dense_layout(layout: Layout) -> Layout:
    """Return the layout of a bucket's arrays one after the other; ``bucket_of`` undoes it."""
    return Layout(layout.leaves, (BUCKET, 1, layout.align))


def bucket_of(buffer: Buffer, layout: Layout) -> Bucket:
    """Return the bucket whose buffer, or that without what lies between arrays, is given."""
    align = layout.structure[2]
    if not align:
        return Bucket(buffer, layout)
    wide = layout_of(layout.leaves, align)
    from_, to = layout.groups[0], wide.groups[0]
    spread = zeros((*buffer.shape[:-1], to.elements), to.dtype, align, buffer)
    if isinstance(buffer, np.ndarray) and isinstance(spread, np.ndarray):
        for count, here, there in zip(to.counts, from_.starts, to.starts, strict=True):
            spread[..., there : there + count] = buffer[..., here : here + count]
    return Bucket(spread, wide)


def zeros(shape: tuple[int, ...], dtype: str, align: int, like: Buffer | None) -> Buffer:
    """Return a buffer of zeros whose memory begins at a multiple of ``align`` bytes."""
    if isinstance(like, Phantom):
        return Phantom(shape, like.itemsize)
    kind = np.dtype(np.uint16 if dtype == BFLOAT16 else dtype) if like is None else like.dtype
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = np.zeros(nbytes + align, np.uint8)
    first = -memory.ctypes.data % align
    return memory[first : first + nbytes].view(kind).reshape(shape)
