"""The wire format: one message with a header and the data, or, when large, data that follow.

A message begins with 8 bytes, the length of its header. The header is a pickle of the channel, the
sequence number, the layout and each buffer's dtype and shape. The data of small parcels follow in
the same message; those of large ones come in messages of their own, cut where MPI's counts end.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dectool.communicator import Channel, Parcel
from dectool.communicator._arrays import Buffer, Leaf, Phantom
from dectool.communicator._parcel import Layout
from dectool.kernels import empty

INLINE = 64 * 1024
CUT = 1 << 30
PIECE = 64 * 1024
"""Bytes of a message to another node: MPI sends so little at once, without asking first."""

ALIGNED = 64

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_Specs = tuple[tuple[str, tuple[int, ...], int], ...]


class Header(NamedTuple):
    """What is known of a parcel before its data: all but the numbers.

    ``number`` counts what goes to one rank on one channel where some of it goes through shared
    memory (-1 elsewhere), and ``ticket`` tells where that is. Data that follow come in messages of
    ``piece`` bytes.
    """

    channel: Channel
    sequence: int
    layout: bytes
    buffers: _Specs
    inline: bool
    piece: int
    number: int = -1
    ticket: Any = None


def encode(
    parcel: Parcel, channel: Channel, piece: int, number: int = -1, ticket: Any = None
) -> tuple[_Bytes, list[_Bytes]]:
    """Return the first message of a parcel, and the data messages that follow it."""
    inline = parcel.nbytes <= INLINE
    specs = tuple(_spec(buffer) for buffer in parcel.buffers)
    layout = _layout_bytes(parcel.layout)
    header = pickle.dumps(
        Header(channel, parcel.sequence, layout, specs, inline, piece, number, ticket),
        pickle.HIGHEST_PROTOCOL,
    )
    data = [as_bytes(buffer) for buffer in parcel.buffers if isinstance(buffer, np.ndarray)]
    head = np.frombuffer(len(header).to_bytes(8, "little") + header, np.uint8)
    if inline:
        return (np.concatenate([head, *data]) if data else head), []
    return head, [part for flat in data for part in pieces(flat, piece)]


def decode(message: _Bytes) -> tuple[Header, _Bytes]:
    """Return the header of a first message, and the data in it."""
    length = int.from_bytes(message[:8].tobytes(), "little")
    header: Header = pickle.loads(message[8 : 8 + length].data)
    return header, message[8 + length :]


def empty_buffers(header: Header) -> tuple[Buffer, ...]:
    """Return room for the data of a parcel."""
    return tuple(
        Phantom(shape, itemsize) if not dtype else empty(shape, dtype)
        for dtype, shape, itemsize in header.buffers
    )


def fill(buffers: Sequence[Buffer], data: _Bytes) -> None:
    """Copy inline data into the buffers."""
    start = 0
    for buffer in buffers:
        if isinstance(buffer, np.ndarray):
            flat = as_bytes(buffer)
            flat[:] = data[start : start + flat.size]
            start += flat.size


def pieces(flat: _Bytes, size: int) -> Iterator[_Bytes]:
    """Cut the bytes of a buffer into those of each MPI call."""
    for start in range(0, flat.size, size):
        yield flat[start : start + size]


def raw(buffers: Sequence[Buffer], size: int) -> Iterator[_Bytes]:
    """Return the bytes of each buffer as views, cut as the sender cuts them."""
    for buffer in buffers:
        if isinstance(buffer, np.ndarray):
            yield from pieces(as_bytes(buffer), size)


def as_bytes(buffer: np.ndarray[Any, Any]) -> _Bytes:
    """Return the bytes of a buffer as a flat view, or as a copy where it is not contiguous."""
    return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)


def _spec(buffer: Buffer) -> tuple[str, tuple[int, ...], int]:
    if isinstance(buffer, Phantom):
        return ("", buffer.shape, buffer.itemsize)
    # ml_dtypes types have no portable code in dtype.str; their name is one once imported.
    code = buffer.dtype.name if buffer.dtype.kind == "V" else buffer.dtype.str
    return (code, buffer.shape, buffer.itemsize)


_SENT: dict[int, tuple[Layout, bytes]] = {}


def _layout_bytes(layout: Layout | None) -> bytes:
    if layout is None:
        return b""
    known = _SENT.get(id(layout))
    if known is not None and known[0] is layout:
        return known[1]
    if len(_SENT) > 4096:
        _SENT.clear()
    parts = (layout.leaves, layout.structure, layout.code)
    packed = pickle.dumps(parts, pickle.HIGHEST_PROTOCOL)
    _SENT[id(layout)] = (layout, packed)
    return packed


@lru_cache(maxsize=4096)
def layout_of(packed: bytes) -> Layout | None:
    """Return the layout of a header; equal bytes give the same object."""
    if not packed:
        return None
    leaves, structure, code = pickle.loads(packed)
    return Layout(tuple(Leaf(*leaf) for leaf in leaves), structure, code)


def pack_layout(layout: Layout, buffers: Sequence[Buffer]) -> bytes:
    """Return what :func:`unpack_layout` needs to know."""
    specs = tuple(_spec(buffer) for buffer in buffers)
    return pickle.dumps((_layout_bytes(layout), specs), pickle.HIGHEST_PROTOCOL)


def unpack_layout(
    packed: bytes, memory: Any, offset: int
) -> tuple[Layout | None, tuple[Buffer, ...]]:
    """Return the layout and the buffers of a parcel in memory, each at the next :data:`ALIGNED`."""
    layout, specs = _unpickled(packed)
    buffers: list[Buffer] = []
    for dtype, shape, _ in specs:
        buffer = np.ndarray(shape, dtype, memory, offset)
        offset += -(-buffer.nbytes // ALIGNED) * ALIGNED
        buffers.append(buffer)
    return layout_of(layout), tuple(buffers)


@lru_cache(maxsize=4096)
def _unpickled(packed: bytes) -> tuple[bytes, _Specs]:
    layout, specs = pickle.loads(packed)
    return layout, specs
