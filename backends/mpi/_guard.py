"""The process that ``mpiexec`` sees, between a rank and whoever started the job."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import NoReturn

from dectool.backends.mpi._pipes import (
    CHUNK,
    ERR,
    GUARD,
    OUT,
    REPORT,
    framed,
    packets,
    read_some,
    ready,
    widen,
    write_some,
)
from dectool.backends.mpi._variables import told_size

SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD)
"""Ask for the rank's stack; end the rank; the rank has ended. Blocked until a guard watches."""

_ROOM = 1 << 20
_LOOKS = 5.0
_PRINTED = 8e6
"""Bytes per second that all ranks together may print.

Open MPI's launcher reads before it writes: where ranks print faster than it reads, it keeps all
that they print, and passes on nothing.
"""


class Guard:
    """Passes on what its rank says, and tells how it ended.

    Nothing here waits for one thing alone, so a guard notices whatever happens first.

    Args:
        rank: Number of the rank.
        child: Its process.
        inputs: Which stream comes from which pipe of the rank.
        jobs: Pipe to the rank; only rank 0 gets jobs, from the standard input.
        channel: Where packets go.
    """

    def __init__(
        self, rank: int, child: int, inputs: Mapping[int, int], jobs: int, channel: int
    ) -> None:
        self._rank = rank
        self._child = child
        self._parent = os.getppid()
        self._inputs = dict(inputs)
        self._pipes = {stream: pipe for pipe, stream in inputs.items()}
        self._jobs_pipe = jobs
        self._channel = channel
        self._jobs = bytearray()
        self._outgoing = bytearray()
        self._seconds_per_byte = told_size() / _PRINTED
        self._prints_from = 0.0
        self._listens = rank == 0
        self._leaving = False
        self._code: int | None = None
        for pipe in (0, channel, jobs, *inputs):
            os.set_blocking(pipe, False)
        self._alarm, wakes = os.pipe()
        for pipe in (self._alarm, wakes):
            os.set_blocking(pipe, False)
        signal.set_wakeup_fd(wakes)
        for number in SIGNALS:
            signal.signal(number, _noted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def watch(self) -> NoReturn:
        """Pass on until the rank has ended, and exit."""
        # Pieces that a launcher writes may leave half of each page of a pipe empty.
        about = {"pid": self._child, "host": socket.gethostname(), "room": widen(0) // 2}
        self._say("here", json.dumps(about).encode())
        self._look_after_child()
        while self._code is None or not self._leaving or self._outgoing:
            full = len(self._outgoing) > _ROOM
            rests = self._prints_from - time.monotonic()
            readable = [self._alarm, *(() if full else self._open_inputs(rests > 0.0))]
            if self._listens and len(self._jobs) < _ROOM:
                readable.append(0)
            writable = [pipe for pipe, data in self._writes() if data]
            read, written = ready(readable, writable, rests if rests > 0.0 else _LOOKS)
            if self._alarm in read:
                self._obey()
            if 0 in read:
                self._listen()
            for pipe, data in self._writes():
                if pipe in written:
                    self._write(pipe, data)
            for pipe in read & self._inputs.keys():
                self._pass_on(pipe)
            if os.getppid() != self._parent:
                self._end_child()
                os._exit(1)
        os._exit(0)

    def _open_inputs(self, resting: bool) -> list[int]:
        """Return the pipes of the rank to read from: while it rests, not what it prints."""
        return [
            pipe for pipe, stream in self._inputs.items() if not resting or stream not in (OUT, ERR)
        ]

    def _writes(self) -> list[tuple[int, bytearray]]:
        return [(self._channel, self._outgoing), (self._jobs_pipe, self._jobs)]

    def _write(self, pipe: int, data: bytearray) -> None:
        try:
            write_some(pipe, data)
        except OSError:
            data.clear()
            if pipe == self._channel:
                self._end_child()
                os._exit(1)

    def _say(self, kind: str, content: bytes = b"") -> None:
        self._outgoing += packets(self._rank, GUARD, framed(kind, content))

    def _pass_on(self, pipe: int) -> None:
        """Pass on what a pipe holds; what the rank printed before a frame goes before it."""
        data = read_some(pipe)
        stream = self._inputs.get(pipe)
        if data and stream == REPORT:
            for text in (OUT, ERR):
                if self._pipes[text] in self._inputs:
                    self._pass_on(self._pipes[text])
        if data and stream in (OUT, ERR):
            since = max(self._prints_from, time.monotonic())
            self._prints_from = since + len(data) * self._seconds_per_byte
        if data and stream is not None:
            self._outgoing += packets(self._rank, stream, data)
        elif data is not None:
            self._inputs.pop(pipe, None)

    def _listen(self) -> None:
        """Take in a piece of a job, and say so: a launcher must not send more than we hold."""
        data = read_some(0)
        if data:
            self._jobs += data
            self._say("read", str(len(data)).encode())
        elif data is not None:
            self._listens = False

    def _obey(self) -> None:
        for number in os.read(self._alarm, CHUNK):
            if number == signal.SIGUSR1 and self._code is None:
                os.kill(self._child, signal.SIGUSR1)
            elif number == signal.SIGTERM:
                self._leaving = True
                self._end_child()
        self._look_after_child()

    def _look_after_child(self) -> None:
        """If the rank has ended, pass on its last words and tell how it did."""
        if self._code is not None:
            return
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
            for pipe in list(self._inputs):
                self._pass_on(pipe)
            if not self._leaving:
                self._say("ended", str(self._code).encode())
            # After a failure we stay: a launcher that has lost a process may pass on no signals.
            self._leaving = self._leaving or self._code == 0

    def _end_child(self) -> None:
        if self._code is None:
            os.kill(self._child, signal.SIGKILL)


def _noted(number: int, frame: object) -> None:
    """Do nothing: the number of the signal is written to a pipe."""
