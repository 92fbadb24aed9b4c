"""One process that the launcher started: a guard, and the rank under it.

The guard is the process that ``mpiexec`` sees. It forks the rank before MPI is touched, and tells
by which signal it died, if it did. When the guard goes, the kernel ends the rank too (on Linux).
"""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import os
import pickle
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from dectool.backends.mpi._engine import Unsettled
from dectool.backends.mpi._execute import execute
from dectool.backends.mpi._failure import failure_of
from dectool.backends.mpi._guard import SIGNALS, Guard
from dectool.backends.mpi._pack import dumps
from dectool.backends.mpi._pipes import (
    CHUNK,
    ERR,
    OUT,
    REPORT,
    STACK,
    Frame,
    Frames,
    framed,
    write_all,
)
from dectool.backends.mpi._variables import RANK_VARIABLES

if TYPE_CHECKING:
    from mpi4py import MPI

SIZE = struct.Struct("<I")
"""In front of a job: how many ranks take part."""

_PR_SET_PDEATHSIG = 1
_JOB = 7
_SEGMENT = "/dev/shm/mpich_shm_"


def main(channel: int) -> NoReturn:
    """Guard the rank; exit as it exits.

    Args:
        channel: Where packets go: what was the standard error, which nothing else must use.
    """
    rank = int(next(os.environ[name] for name in RANK_VARIABLES if name in os.environ))
    pipes = {stream: os.pipe() for stream in (OUT, ERR, REPORT, STACK)}
    jobs, job_pipe = os.pipe()
    # Ctrl-C reaches the starter, which ends the job.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    _die_with_parent()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        if os.getppid() != guard:
            os._exit(1)
        for inner in (channel, job_pipe, *(read for read, _ in pipes.values())):
            os.close(inner)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream, number in ((OUT, 1), (ERR, 2)):
            os.dup2(pipes[stream][1], number)
            os.close(pipes[stream][1])
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _Rank(jobs, pipes[REPORT][1], pipes[STACK][1]).serve()
    for outer in (jobs, *(write for _, write in pipes.values())):
        os.close(outer)
    inputs = {read: stream for stream, (read, _) in pipes.items()}
    Guard(rank, child, inputs, job_pipe, channel).watch()


def _die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Rank:
    """A rank: it runs job after job.

    Args:
        jobs: Pipe from which rank 0 reads jobs.
        report: Pipe that tells the starter what happened.
        stack: Pipe that takes the stack on SIGUSR1.
    """

    def __init__(self, jobs: int, report: int, stack: int) -> None:
        from mpi4py import MPI

        self._jobs = jobs
        self._frames = Frames()
        self._waiting: list[Frame] = []
        self._report = report
        self._stack = stack
        self._world: MPI.Intracomm = MPI.COMM_WORLD
        self._rank = self._world.rank
        self._groups: dict[int, MPI.Intracomm] = {}

    def serve(self) -> NoReturn:
        """Run jobs until there are no more."""
        faulthandler.register(signal.SIGUSR1, self._stack, all_threads=False)
        self._tell("ready")
        _unname_shared_memory(self._world)
        while True:
            size, packed = self._next()
            if not size:
                break
            self._run(packed, self._group(size))
        from mpi4py import MPI

        MPI.Finalize()
        # Not os._exit: MPICH says goodbye to mpiexec in an exit handler of C, without which
        # mpiexec takes the end of this process for a crash, and kills the others.
        ctypes.CDLL(None).exit(0)
        os._exit(0)

    def _next(self) -> tuple[int, bytes]:
        """Return size and content of the next job; rank 0 sends them to those that take part."""
        if self._rank == 0:
            frame = self._read()
            size = SIZE.unpack_from(frame.content)[0] if frame.kind == "job" else 0
            packed = frame.content[SIZE.size :]
            others = range(1, size or self._world.size)
            sent = [self._world.isend((size, packed), rank, _JOB) for rank in others]
            for request in sent:
                request.wait()
            return size, packed
        pause = 1e-3
        while not self._world.iprobe(0, _JOB):
            # A blocking receive would keep a core busy.
            time.sleep(pause)
            pause = min(1.01 * pause, 1e-2)
        job: tuple[int, bytes] = self._world.recv(source=0, tag=_JOB)
        return job

    def _read(self) -> Frame:
        """Return the next frame of jobs; exit if the guard is gone."""
        while not self._waiting:
            data = os.read(self._jobs, CHUNK)
            if not data:
                os._exit(1)
            self._waiting += self._frames.feed(data)
        return self._waiting.pop(0)

    def _group(self, size: int) -> MPI.Intracomm:
        if size not in self._groups:
            members = self._world.group.Incl(range(size))
            self._groups[size] = self._world.Create_group(members)
        return self._groups[size]

    def _run(self, packed: bytes, world: MPI.Intracomm) -> None:
        paths, sources, terms, job = pickle.loads(packed)
        for name, lines in sources.items():
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        sys.path[:] = [path for path in paths if path not in sys.path] + sys.path
        try:
            outcome = execute(
                lambda: pickle.loads(job), terms, world, tell=_print, failed=self._failed
            )
            if outcome is not None:
                self._tell("done", dumps(outcome))
        except Unsettled:
            time.sleep(60.0)
        except BaseException as error:
            self._failed(error)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self._tell("settled")

    def _failed(self, error: BaseException) -> None:
        """Hand an error over."""
        self._tell("error", dumps(tuple(failure_of(error))))

    def _tell(self, kind: str, content: bytes = b"") -> None:
        write_all(self._report, framed(kind, content))


def _unname_shared_memory(world: MPI.Intracomm) -> None:
    """Remove the name of MPICH's shared memory, or a job that is killed would leave it for good."""
    world.Barrier()
    # Now all have opened it.
    with suppress(OSError), open("/proc/self/maps") as maps:
        for name in {line.split(maxsplit=5)[-1].strip() for line in maps if _SEGMENT in line}:
            with suppress(FileNotFoundError):
                os.unlink(name)


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
