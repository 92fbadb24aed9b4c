"""The standard streams of ``mpiexec``: jobs go in, what ranks say and print comes out.

It comes out of the standard error, since Open MPI gives ranks a terminal for standard output, and a
terminal cuts packets.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from dectool.backends.mpi._pipes import (
    CHUNK,
    ERR,
    OUT,
    STACK,
    Frames,
    Packets,
    framed,
    ready,
    widen,
    write_some,
)

_ROOM = 1 << 20


class Message(NamedTuple):
    """A frame of a rank, or of its guard."""

    kind: str
    rank: int
    content: bytes


class Streams:
    """Nothing here waits, so that ranks can print while a job is sent.

    Args:
        jobs: Standard input of ``mpiexec``.
        output: Its standard error.
    """

    def __init__(self, jobs: int, output: int) -> None:
        self._jobs = jobs
        self._output = output
        self._outgoing = bytearray()
        self._credit = 0
        self._open = True
        self._packets = Packets()
        self._frames: dict[tuple[int, int], Frames] = {}
        self._lines: dict[tuple[int, int], bytes] = {}
        self.stacks: dict[int, bytes] = {}
        for pipe in (jobs, output):
            os.set_blocking(pipe, False)
        widen(output)

    @property
    def said(self) -> str:
        """What ``mpiexec`` and its helpers wrote between the packets."""
        return self._packets.other.decode(errors="replace")

    def send(self, kind: str, content: bytes = b"") -> None:
        """Send a frame to rank 0, as far as :meth:`pump` is called."""
        self._outgoing += framed(kind, content)

    def allow(self, more: int) -> None:
        """Let so many more bytes go out: rank 0 has room for them."""
        self._credit += more

    def pump(self, seconds: float, *, show: bool = True) -> list[Message] | None:
        """Send and receive what can be; print what ranks have printed.

        Args:
            seconds: How long to wait for anything.
            show: Whether to print.

        Returns:
            What ranks and guards say, or ``None`` if nothing came.
        """
        may_send = self._outgoing and self._credit
        read, written = ready(
            [self._output] if self._open else [], [self._jobs] if may_send else [], seconds
        )
        if written:
            self._write()
        if not read:
            return None
        data = os.read(self._output, _ROOM)
        self._open = bool(data)
        messages: list[Message] = []
        shown: dict[tuple[int, int], bytes] = {}
        for rank, stream, content in self._packets.feed(data):
            if stream in (OUT, ERR):
                shown[rank, stream] = shown.get((rank, stream), b"") + content
            elif stream == STACK:
                self.stacks[rank] = self.stacks.get(rank, b"") + content
            else:
                frames = self._frames.setdefault((rank, stream), Frames())
                messages += [Message(f.kind, rank, f.content) for f in frames.feed(content)]
        if show:
            for label, text in shown.items():
                self._show(label, text)
        return messages if data else None

    def _write(self) -> None:
        piece = self._outgoing[: min(self._credit, CHUNK)]
        size = len(piece)
        try:
            write_some(self._jobs, piece)
        except BrokenPipeError:
            # mpiexec is gone, which whoever pumps will see.
            self._outgoing.clear()
            return
        self._credit -= size - len(piece)
        del self._outgoing[: size - len(piece)]

    def _show(self, label: tuple[int, int], text: bytes) -> None:
        *lines, rest = (self._lines.get(label, b"") + text).split(b"\n")
        self._lines[label] = rest
        _print(label, lines)

    def flush(self) -> None:
        """Print lines without an end."""
        for label, rest in self._lines.items():
            if rest:
                _print(label, [rest])
        self._lines.clear()


def _print(label: tuple[int, int], lines: list[bytes]) -> None:
    rank, stream = label
    target: Any = sys.stdout if stream == OUT else sys.stderr
    target.write("".join(f"[{rank}] {line.decode(errors='replace')}\n" for line in lines))
    target.flush()
