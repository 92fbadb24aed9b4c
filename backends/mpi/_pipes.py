"""What goes through the pipes between a job and whoever started it.

Ranks, and the processes that guard them, share the standard error of ``mpiexec``. They write
*packets*: pieces of a stream with their rank and their stream in front, all of one size, which
divides what launchers read at once, so that none is ever cut; a line's end closes each, since
Open MPI keeps back what is no whole line. Streams that are not text carry
*frames*: a kind and some bytes.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

OUT, ERR, REPORT, STACK, GUARD = range(5)
"""Streams of a rank: output, errors, its frames, its stack on request, its guard's frames."""

CHUNK = 1 << 16
"""Bytes to read or write at once; what a pipe holds."""

_WIDE = 1 << 20
_PACKET = select.PIPE_BUF
_MAGIC = b"\0dectool"
_HEADER = struct.Struct("<8sIHH")
_PAYLOAD = _PACKET - _HEADER.size - 1
_FRAME = struct.Struct("<8sQ")
# Linux cuts a write only between pages, and so between packets.
_AT_ONCE = CHUNK if sys.platform == "linux" else _PACKET


class Frame(NamedTuple):
    """What a stream that is not text carries."""

    kind: str
    content: bytes


def packets(rank: int, stream: int, data: bytes) -> bytes:
    """Return the packets that carry a piece of a stream."""
    pieces = (data[at : at + _PAYLOAD] for at in range(0, len(data), _PAYLOAD))
    return b"".join(
        (_HEADER.pack(_MAGIC, rank, stream, len(piece)) + piece).ljust(_PACKET - 1, b"\0") + b"\n"
        for piece in pieces
    )


class Packets:
    """Finds packets in what ``mpiexec`` wrote, and keeps what else it said.

    Example:
        >>> found = Packets()
        >>> list(found.feed(b"A banner." + packets(3, OUT, b"hello") + b"That is"))
        [(3, 0, b'hello')]
        >>> bytes(found.other)
        b'A banner.That is'
    """

    def __init__(self) -> None:
        self._rest = b""
        self.other = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take in what was read; yield rank, stream and content of each packet."""
        data = self._rest + data
        at = 0
        while at < len(data):
            if not data.startswith(_MAGIC[: len(data) - at], at):
                start = data.find(_MAGIC[:1], at + 1)
                end = len(data) if start < 0 else start
                self.other += data[at:end]
                at = end
            elif len(data) - at < _PACKET:
                break
            else:
                _, rank, stream, size = _HEADER.unpack_from(data, at)
                begin = at + _HEADER.size
                yield rank, stream, data[begin : begin + size]
                at += _PACKET
        self._rest = data[at:]


def framed(kind: str, content: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    return _FRAME.pack(kind.encode(), len(content)) + content


class Frames:
    """Finds the frames in a stream.

    Example:
        >>> found = Frames()
        >>> list(found.feed(framed("a", b"12") + framed("b")[:9]))
        [Frame(kind='a', content=b'12')]
        >>> list(found.feed(framed("b")[9:]))
        [Frame(kind='b', content=b'')]
    """

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in a piece of the stream; yield the frames that it completes."""
        self._data += data
        while len(self._data) >= _FRAME.size:
            kind, size = _FRAME.unpack_from(self._data)
            end = _FRAME.size + size
            if len(self._data) < end:
                return
            frame = Frame(kind.rstrip(b"\0").decode(), bytes(self._data[_FRAME.size : end]))
            del self._data[:end]
            yield frame


def ready(
    readable: Collection[int], writable: Collection[int], seconds: float | None
) -> tuple[set[int], set[int]]:
    """Wait until something can be read or written, or the other end of a pipe is gone.

    Returns:
        What can be read, its end included; and what can be written, or never again.
    """
    poll = select.poll()
    for pipe in readable:
        poll.register(pipe, select.POLLIN)
    for pipe in writable:
        poll.register(pipe, select.POLLOUT)
    found = {pipe for pipe, _ in poll.poll(None if seconds is None else 1000.0 * seconds)}
    return found & set(readable), found & set(writable)


def write_some(pipe: int, data: bytearray) -> None:
    """Write what a pipe takes without waiting, and drop it from ``data``."""
    with memoryview(data) as view:
        try:
            written = os.write(pipe, view[:_AT_ONCE])
        except BlockingIOError:
            return
    del data[:written]


def write_all(pipe: int, data: bytes) -> None:
    """Write everything, waiting where the pipe is full."""
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]


def widen(pipe: int) -> int:
    """Let a pipe hold more, if it can; return how much."""
    if sys.platform == "linux":
        with suppress(OSError):
            return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)
    return CHUNK


def read_some(pipe: int) -> bytes | None:
    """Return what a pipe holds: nothing at its end, ``None`` if nothing is there now."""
    try:
        return os.read(pipe, CHUNK)
    except BlockingIOError:
        return None
