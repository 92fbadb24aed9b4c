"""Fusion: a container of arrays becomes one parcel, with one flat buffer for each dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.communicator import _tree
from dectool.communicator._arrays import (
    BFLOAT16,
    Buffer as Buffer,
    Leaf,
    Phantom as Phantom,
    close_array,
    columns,
    is_array,
    open_array,
)
from dectool.communicator._bucket import Bucket, bucket_of, dense_layout
from dectool.communicator._layout import Layout as Layout, same_layout as same_layout
from dectool.kernels import weighted_sum

_SINGLE: dict[Leaf, Layout] = {}


def _single(leaf: Leaf) -> Layout:
    layout = _SINGLE.get(leaf)
    if layout is None:
        if len(_SINGLE) > 4096:
            _SINGLE.clear()
        layout = _SINGLE[leaf] = Layout((leaf,), None)
    return layout


_FAST: dict[tuple[np.dtype[Any], tuple[int, ...], int], Layout] = {}
"""Layouts of plain arrays that were seen before, by dtype, shape and leading axes."""


def pack(x: Any, lead: int = 0) -> tuple[tuple[Buffer, ...], Layout]:
    """Flatten ``x`` into one buffer per dtype.

    A single array is not copied where its memory order allows, a bucket never is; the arrays of a
    container are.

    Args:
        x: An array, a bucket, or nested lists, tuples and dicts of arrays.
        lead: Leading axes to keep: 0, or 1 for the rank axis of the stacked backend.

    Returns:
        The buffers, each of shape (*lead axes, elements), and the layout.

    Raises:
        ArgumentTypeError: Something in the container is no array.
    """
    if type(x) is np.ndarray:
        shape = x.shape
        known = _FAST.get((x.dtype, shape, lead))
        if known is not None and x.flags.c_contiguous:
            flat = x if len(shape) == lead + 1 else x.reshape((*shape[:lead], -1))
            return (flat,), known
        buffer, leaf = open_array(x, lead)
        layout = _single(leaf)
        if x.size and x.dtype.isnative and leaf.dtype != BFLOAT16 and len(_FAST) < 4096:
            _FAST[x.dtype, shape, lead] = layout
        return (buffer,), layout
    if is_array(x):
        buffer, leaf = open_array(x, lead)
        return (buffer,), _single(leaf)
    if isinstance(x, Bucket):
        return (x.opened(lead),), x.layout
    leaves: list[tuple[Buffer, Leaf]] = []
    structure = _tree.flatten(x, leaves, lead)
    layout = Layout(tuple(leaf for _, leaf in leaves), structure)
    return tuple(_join([leaves[i][0] for i in group.members]) for group in layout.groups), layout


def dense(buffers: tuple[Buffer, ...], layout: Layout) -> tuple[tuple[Buffer, ...], Layout]:
    """Return a bucket without what lies between its arrays, which ``unpack`` puts back."""
    if not layout.padded:
        return buffers, layout
    (group,) = layout.groups
    pieces = [
        columns(buffers[0], start, start + count)
        for start, count in zip(group.starts, group.counts, strict=True)
    ]
    return (_join(pieces),), dense_layout(layout)


def _join(buffers: Sequence[Buffer]) -> Buffer:
    if len(buffers) == 1:
        return buffers[0]
    first = buffers[0]
    if isinstance(first, Phantom):
        return Phantom((*first.shape[:-1], sum(b.shape[-1] for b in buffers)), first.itemsize)
    return np.concatenate([b for b in buffers if not isinstance(b, Phantom)], axis=-1)


def unpack(
    buffers: Sequence[Buffer],
    layout: Layout,
    lead_shape: tuple[int, ...] = (),
) -> Any:
    """Rebuild the container that :func:`pack` flattened; the inverse of it.

    Args:
        buffers: One per dtype of the layout, each of shape (*lead_shape, elements).
        layout: Where each array lies.
        lead_shape: Axes in front of each leaf's shape.
    """
    if layout.numpy_shape is not None:
        only: Any = buffers[0]
        if len(layout.numpy_shape) == 1:
            return only
        return only.reshape((*lead_shape, *layout.numpy_shape))
    if layout.align:
        return bucket_of(buffers[0], layout)
    pieces: list[Any] = [None] * len(layout.leaves)
    for buffer, group in zip(buffers, layout.groups, strict=True):
        for index, start, count in zip(group.members, group.starts, group.counts, strict=True):
            piece = buffer if len(group.members) == 1 else columns(buffer, start, start + count)
            pieces[index] = close_array(piece, layout.leaves[index], lead_shape)
    if layout.structure is None:
        return pieces[0]
    return _tree.unflatten(layout.structure, iter(pieces))


class Parcel:
    """What travels in one message: buffers, their layout, and a sequence number to check.

    Args:
        buffers: Flat arrays, never changed once sent.
        layout: What they hold.
        sequence: Number of the operation within its kind; ranks must agree on it.
    """

    __slots__ = ("buffers", "layout", "nbytes", "sequence")

    def __init__(
        self, buffers: tuple[Buffer, ...], layout: Layout | None, sequence: int = 0
    ) -> None:
        self.buffers = buffers
        self.layout = layout
        self.sequence = sequence
        self.nbytes: int = (
            buffers[0].nbytes if len(buffers) == 1 else sum(b.nbytes for b in buffers)
        )


def own(buffers: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Return copies that later changes of the sender's arrays cannot reach."""
    if len(buffers) == 1:
        only = buffers[0]
        return buffers if isinstance(only, Phantom) else (only.copy(),)
    return tuple(b if isinstance(b, Phantom) else b.copy() for b in buffers)


def average(weights: Sequence[float], rows: Sequence[Buffer], dtype: str) -> Buffer:
    """Return the weighted sum of buffers of one shape; see :func:`dectool.kernels.weighted_sum`."""
    first = rows[0]
    if isinstance(first, Phantom):
        return first
    return weighted_sum(weights, rows, dtype)  # type: ignore[arg-type]


def stack(rows: Sequence[Buffer], like: Buffer) -> Buffer:
    """Return the buffers as rows of one, of shape (rows, elements); ``like`` gives the type."""
    if isinstance(like, Phantom):
        return Phantom((len(rows), *like.shape), like.itemsize)
    if not rows:
        return np.empty((0, *like.shape), like.dtype)
    return np.stack([row for row in rows if not isinstance(row, Phantom)])


def segment(buffer: Buffer, start: int, stop: int) -> Buffer:
    """Return the elements of a flat buffer from ``start`` to ``stop``, as a view."""
    return buffer.segment(start, stop) if isinstance(buffer, Phantom) else buffer[start:stop]


def row(buffer: Buffer, index: int) -> Buffer:
    """Return one row of a buffer of shape (rows, elements)."""
    if isinstance(buffer, Phantom):
        return Phantom(buffer.shape[1:], buffer.itemsize)
    return buffer[index]  # type: ignore[no-any-return]


def empty_row(buffer: Buffer) -> Buffer:
    """Return a row of zeros of a buffer of shape (rows, elements)."""
    if isinstance(buffer, Phantom):
        return row(buffer, 0)
    return np.zeros(buffer.shape[1:], buffer.dtype)


def row_bytes(buffers: Sequence[Buffer]) -> int:
    """Return the bytes that one rank's elements of the buffers take."""
    if len(buffers) == 1:
        return buffers[0].shape[-1] * buffers[0].itemsize
    return sum(buffer.shape[-1] * buffer.itemsize for buffer in buffers)


def join(pieces: Sequence[Buffer]) -> Buffer:
    """Return flat buffers one after the other."""
    return _join(pieces)
