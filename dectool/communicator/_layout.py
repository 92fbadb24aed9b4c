"""Where arrays lie in flat buffers: one rule for containers and for buckets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from dectool.communicator._arrays import BFLOAT16, Leaf
from dectool.communicator._tree import shape_of
from dectool.errors import ArgumentTypeError, ContractError


class Group(NamedTuple):
    """The arrays of one flat buffer.

    Attributes:
        dtype: Theirs, and that of the buffer.
        members: Their positions among all arrays, in the order in which they lie.
        starts: The element at which each begins.
        counts: Elements of each.
        elements: Elements of the buffer, those between arrays included.
    """

    dtype: str
    members: tuple[int, ...]
    starts: tuple[int, ...]
    counts: tuple[int, ...]
    elements: int

    @property
    def padded(self) -> bool:
        """Whether there are elements between the arrays that belong to none."""
        return sum(self.counts) < self.elements


class _Open:
    """A buffer that still takes arrays in."""

    __slots__ = ("counts", "dtype", "elements", "members", "starts")

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.members: list[int] = []
        self.starts: list[int] = []
        self.counts: list[int] = []
        self.elements = 0

    def closed(self) -> Group:
        return Group(
            self.dtype, tuple(self.members), tuple(self.starts), tuple(self.counts), self.elements
        )


def lay_out(leaves: Sequence[Leaf], align: int = 1, limit: int | None = None) -> list[Group]:
    """Put arrays into flat buffers of one dtype each, in the order given.

    Args:
        leaves: What the arrays are; meta tensors lie in buffers of their own.
        align: Bytes of which each array's offset is a multiple, a power of two.
        limit: Most bytes of a buffer. The next array that does not fit opens the next buffer, so
            that a larger one has a buffer of its own; ``None``: one buffer for each dtype.

    Returns:
        The buffers; those of one dtype in the order of their arrays.
    """
    current: dict[tuple[str, bool], _Open] = {}
    buffers: list[_Open] = []
    for index, leaf in enumerate(leaves):
        count = 1
        for extent in leaf.shape:
            count *= extent
        key = (leaf.dtype, leaf.origin == "meta")
        buffer = current.get(key)
        start = 0
        if buffer is not None and buffer.elements:
            start = buffer.elements
            if align > 1:
                step = max(1, align // itemsize(leaf.dtype))
                start = -(-start // step) * step
            if limit is not None and (start + count) * itemsize(leaf.dtype) > limit:
                buffer, start = None, 0
        if buffer is None:
            buffer = current[key] = _Open(leaf.dtype)
            buffers.append(buffer)
        buffer.members.append(index)
        buffer.starts.append(start)
        buffer.counts.append(count)
        buffer.elements = start + count
    return [buffer.closed() for buffer in buffers]


@lru_cache(maxsize=128)
def itemsize(dtype: str) -> int:
    """Return the bytes of one element of a dtype, by its name."""
    if dtype == BFLOAT16:
        return 2
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return 1  # the small floats of ml_dtypes


class Layout:
    """Where each array of a container lies in the buffers of its parcel.

    Two ranks agree on an operation exactly when the ``signature`` of their layouts is equal: the
    same structure, shapes and dtypes; the libraries may differ, but a meta tensor has no data
    that the others could use.

    Attributes:
        leaves: What each array was.
        structure: The container, or ``None`` for a single array.
        groups: The arrays of each buffer.
        dtypes: The dtype of each buffer.
        averageable: Whether no leaf has an integer or bool dtype.
        numpy_shape: Shape of a single NumPy array, which needs no more than that to be rebuilt;
            ``None`` for anything else.
        code: What the bytes of compressed arrays stand for, in words, and the signature of that;
            ``None`` for arrays as they are.
        align: Bytes of which offsets are multiples in a bucket; 0 where this is none.
    """

    __slots__ = (
        "align",
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
        self.align: Final[int] = bucket_align(structure)
        self.groups: Final = tuple(lay_out(leaves, self.align) if code is None else alone(leaves))
        self.dtypes: Final = tuple(group.dtype for group in self.groups)
        self.averageable: Final = not any("int" in d or d == "bool" for d in self.dtypes)
        self.signature: Final[tuple[Any, ...]] = code or (
            ("bucket", self.align) if self.align else shape_of(structure),
            tuple((leaf.dtype, leaf.shape, is_meta(leaf)) for leaf in leaves),
        )
        plain = structure is None and leaves[0].origin == "numpy" and leaves[0].dtype != BFLOAT16
        self.numpy_shape: Final = leaves[0].shape if plain else None

    @property
    def padded(self) -> bool:
        """Whether some buffer has elements that belong to no array."""
        return self.align > 1 and any(group.padded for group in self.groups)

    def require_averageable(self, operation: str) -> None:
        """Refuse integers and bools, whose averages would be rounded or lost.

        Raises:
            ArgumentTypeError: A leaf has an integer or bool dtype.
        """
        if not self.averageable:
            dtype = next(d for d in self.dtypes if "int" in d or d == "bool")
            raise ArgumentTypeError(
                f"{operation} averages, and the average of {dtype} values is no {dtype}; "
                "cast first, for example x.astype('float64') or x.double()"
            )

    def __str__(self) -> str:
        if self.code is not None:
            return self.code[0]
        parts = [
            f"{'meta ' if is_meta(leaf) else ''}{leaf.dtype}{list(leaf.shape)}"
            for leaf in self.leaves[:6]
        ]
        if len(self.leaves) > 6:
            parts.append(f"... ({len(self.leaves)} arrays)")
        text = ", ".join(parts)
        if self.align:
            return f"bucket (align={self.align}) of {text}"
        return text if self.structure is None else f"{shape_of(self.structure)} of {text}"


BUCKET = "bucket"
"""What stands in the place of a container's type in the structure of a bucket."""


def bucket_align(structure: Any) -> int:
    """Return the alignment of a bucket's structure, or 0 for other structures."""
    return int(structure[1]) if structure is not None and structure[0] == BUCKET else 0


def alone(leaves: Sequence[Leaf]) -> list[Group]:
    """Return a buffer for each array, as for payloads, whose bytes have no common order."""
    counts = [math.prod(leaf.shape) for leaf in leaves]
    return [
        Group(leaf.dtype, (index,), (0,), (count,), count)
        for index, (leaf, count) in enumerate(zip(leaves, counts, strict=True))
    ]


def share_layout(
    layout: Layout, spans: Sequence[tuple[int, int]], per_tensor: bool = False
) -> Layout:
    """Return what lies in a part of each buffer: vectors.

    Args:
        layout: Of the whole buffers.
        spans: First element of each part, and the one after its last.
        per_tensor: Whether what belongs to different arrays are vectors of their own.
    """
    leaves = []
    for group, (first, last) in zip(layout.groups, spans, strict=True):
        origin = "meta" if is_meta(layout.leaves[group.members[0]]) else "numpy"
        cuts = [first, last]
        if per_tensor:
            inner = [start for start in group.starts if first < start < last]
            cuts = [first, *sorted(set(inner)), last]
        leaves += [Leaf(origin, group.dtype, (b - a,)) for a, b in itertools.pairwise(cuts)]
    if len(leaves) == 1:
        return Layout(tuple(leaves), None)
    return Layout(tuple(leaves), (list, [None] * len(leaves), ()))


def is_meta(leaf: Leaf) -> bool:
    """Tell whether an array has no data."""
    return leaf.origin == "meta"


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
