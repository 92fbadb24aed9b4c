"""The pipes between a job and whoever started it: what ranks print, and what happens to them."""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path
from typing import Literal

_CHUNK = 1 << 16


class Streams:
    """Named pipes in a folder, one for each rank's output and errors, and one for events.

    Each rank writes into pipes of its own, so that lines of ranks, and what ``mpiexec`` says,
    never mix.

    Args:
        folder: Where the pipes are made.
        n: Number of ranks.
    """

    def __init__(self, folder: Path, n: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._rests: dict[int, bytes] = {}
        self._events = self._open(folder / "events", None)
        for rank in range(n):
            self._open(folder / f"out-{rank}", (rank, "stdout"))
            self._open(folder / f"err-{rank}", (rank, "stderr"))

    def _open(self, path: Path, label: tuple[int, str] | None) -> int:
        os.mkfifo(path, 0o600)
        # Open for writing as well: then it is never at its end, whoever comes and goes.
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rests[pipe] = b""
        self._selector.register(pipe, selectors.EVENT_READ, label)
        return pipe

    def pump(self, seconds: float) -> list[list[str]]:
        """Print what ranks have printed; return the events, each as words.

        Args:
            seconds: How long to wait for anything.
        """
        events: list[list[str]] = []
        for key, _ in self._selector.select(seconds):
            lines = self._read(key.fd)
            if key.data is None:
                events += [line.split() for line in lines]
            else:
                _show(lines, *key.data)
        return events

    def flush(self) -> None:
        """Print what is left, lines without an end included."""
        while self._selector.select(0):
            self.pump(0)
        for key in self._selector.get_map().values():
            rest, self._rests[key.fd] = self._rests[key.fd], b""
            if rest and key.data is not None:
                _show([rest.decode(errors="replace")], *key.data)

    def close(self) -> None:
        """Close the pipes."""
        self._selector.close()
        for pipe in self._rests:
            os.close(pipe)

    def _read(self, pipe: int) -> list[str]:
        *lines, self._rests[pipe] = (self._rests[pipe] + os.read(pipe, _CHUNK)).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def _show(lines: list[str], rank: int, stream: Literal["stdout", "stderr"]) -> None:
    target = getattr(sys, stream)
    target.write("".join(f"[{rank}] {line}\n" for line in lines))
    target.flush()
