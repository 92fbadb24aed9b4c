"""Fusion: a container of arrays becomes one parcel, with one flat buffer for each dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dectool.communicator._arrays import (
    BFLOAT16,
    Buffer as Buffer,
    Leaf,
    Phantom as Phantom,
    close_array,
    is_array,
    open_array,
)
from dectool.errors import ArgumentTypeError, ContractError
from dectool.kernels import weighted_sum

_Path = tuple[Any, ...]


class Layout:
    """Where each array of a container lies in the buffers of its parcel.

    Two ranks agree on an operation exactly when the ``signature`` of their layouts is equal: the
    same structure, shapes and dtypes; the libraries may differ, but a meta tensor has no data
    that the others could use.

    Attributes:
        leaves: What each array was.
        structure: The container, or ``None`` for a single array.
        groups: The dtype of each buffer and which leaves lie in it.
        dtypes: The dtype of each buffer.
        averageable: Whether no leaf has an integer or bool dtype.
        numpy_shape: Shape of a single NumPy array, which needs no more than that to be rebuilt;
            ``None`` for anything else.
        code: What the bytes of compressed arrays stand for, in words, and the signature of that;
            ``None`` for arrays as they are.
    """

    __slots__ = (
        "averageable",
        "code",
        "dtypes",
        "groups",
        "leaves",
        "numpy_shape",
        "signature",
        "structure",
    )

    def __init__(
        self, leaves: tuple[Leaf, ...], structure: Any, code: tuple[str, Any] | None = None
    ) -> None:
        self.leaves: Final = leaves
        self.structure: Final = structure
        self.code: Final = code
        groups: dict[tuple[str, bool], list[int]] = {}
        for index, leaf in enumerate(leaves):
            groups.setdefault((leaf.dtype, _is_meta(leaf)), []).append(index)
        self.groups: Final = tuple((key[0], tuple(members)) for key, members in groups.items())
        self.dtypes: Final = tuple(dtype for dtype, _ in self.groups)
        self.averageable: Final = not any("int" in d or d == "bool" for d, _ in groups)
        self.signature: Final[tuple[Any, ...]] = code or (
            _shape_of(structure),
            tuple((leaf.dtype, leaf.shape, _is_meta(leaf)) for leaf in leaves),
        )
        plain = structure is None and leaves[0].origin == "numpy" and leaves[0].dtype != BFLOAT16
        self.numpy_shape: Final = leaves[0].shape if plain else None

    def require_averageable(self, operation: str) -> None:
        """Refuse integers and bools, whose averages would be rounded or lost.

        Raises:
            ArgumentTypeError: A leaf has an integer or bool dtype.
        """
        if not self.averageable:
            dtype = next(d for d, _ in self.groups if "int" in d or d == "bool")
            raise ArgumentTypeError(
                f"{operation} averages, and the average of {dtype} values is no {dtype}; "
                "cast first, for example x.astype('float64') or x.double()"
            )

    def __str__(self) -> str:
        if self.code is not None:
            return self.code[0]
        parts = [
            f"{'meta ' if _is_meta(leaf) else ''}{leaf.dtype}{list(leaf.shape)}"
            for leaf in self.leaves[:6]
        ]
        if len(self.leaves) > 6:
            parts.append(f"... ({len(self.leaves)} arrays)")
        text = ", ".join(parts)
        return text if self.structure is None else f"{_shape_of(self.structure)} of {text}"


def _is_meta(leaf: Leaf) -> bool:
    return leaf.origin == "meta"


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

    A single array is not copied where its memory order allows; the arrays of a container are.

    Args:
        x: An array, or nested lists, tuples and dicts of arrays.
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
    leaves: list[tuple[Buffer, Leaf]] = []
    structure = _flatten(x, leaves, lead)
    layout = Layout(tuple(leaf for _, leaf in leaves), structure)
    return tuple(_join([leaves[i][0] for i in members]) for _, members in layout.groups), layout


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
    reshape: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
) -> Any:
    """Rebuild the container that :func:`pack` flattened; the inverse of it.

    Args:
        buffers: One per dtype of the layout, each of shape (*lead_shape, elements).
        layout: Where each array lies.
        lead_shape: Axes in front of each leaf's shape.
        reshape: Maps the shape that each leaf had to the one it gets; the number of elements
            behind the lead axes must stay.
    """
    if layout.numpy_shape is not None and reshape is None:
        only: Any = buffers[0]
        if len(layout.numpy_shape) == 1:
            return only
        return only.reshape((*lead_shape, *layout.numpy_shape))
    pieces: list[Any] = [None] * len(layout.leaves)
    for buffer, (_, members) in zip(buffers, layout.groups, strict=True):
        start = 0
        for index in members:
            leaf = layout.leaves[index]
            if reshape is not None:
                leaf = leaf._replace(shape=reshape(leaf.shape))
            if len(members) == 1:
                piece = buffer
            else:
                count = 1
                for extent in leaf.shape:
                    count *= extent
                piece = _slice_last(buffer, start, start + count)
                start += count
            pieces[index] = close_array(piece, leaf, lead_shape)
    return pieces[0] if layout.structure is None else _unflatten(layout.structure, iter(pieces))


def _slice_last(buffer: Buffer, start: int, stop: int) -> Buffer:
    if isinstance(buffer, Phantom):
        return Phantom((*buffer.shape[:-1], stop - start), buffer.itemsize)
    return buffer[..., start:stop]


def _flatten(x: Any, leaves: list[tuple[Buffer, Leaf]], lead: int) -> Any:
    if is_array(x):
        leaves.append(open_array(x, lead))
        return None
    if isinstance(x, dict):
        # Sorted, so that ranks which filled their dicts in another order still agree.
        children = {key: _flatten(x[key], leaves, lead) for key in sorted(x, key=repr)}
        return (dict, children, tuple(x))
    if isinstance(x, (list, tuple)):
        return (type(x), [_flatten(item, leaves, lead) for item in x], ())
    open_array(x, lead)
    raise ArgumentTypeError(f"cannot send a {type(x).__name__}")


def _unflatten(structure: Any, pieces: Any) -> Any:
    if structure is None:
        return next(pieces)
    kind, children, order = structure
    if kind is dict:
        rebuilt = {key: _unflatten(child, pieces) for key, child in children.items()}
        return {key: rebuilt[key] for key in order}
    items = [_unflatten(child, pieces) for child in children]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _shape_of(structure: Any) -> Any:
    """Return the hashable form of a structure, in which named tuples and tuples are alike."""
    if structure is None:
        return None
    kind, children, _ = structure
    if kind is dict:
        return ("dict", *((key, _shape_of(child)) for key, child in children.items()))
    name = "list" if issubclass(kind, list) else "tuple"
    return (name, *(_shape_of(child) for child in children))


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


def row_bytes(buffers: Sequence[Buffer]) -> int:
    """Return the bytes that one rank's elements of the buffers take."""
    if len(buffers) == 1:
        return buffers[0].shape[-1] * buffers[0].itemsize
    return sum(buffer.shape[-1] * buffer.itemsize for buffer in buffers)


def join(pieces: Sequence[Buffer]) -> Buffer:
    """Return flat buffers one after the other."""
    return _join(pieces)


def same_layout(mine: Layout, other: Layout | None, who: str) -> None:
    """Refuse layouts that do not agree.

    Raises:
        ContractError: Structures, shapes or dtypes differ.
    """
    if other is None or mine.signature != other.signature:
        raise ContractError(
            f"{who} hold different arrays: {mine} and {other}; "
            "all that take part must pass the same shapes and dtypes"
        )
