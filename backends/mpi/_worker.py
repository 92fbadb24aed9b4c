"""One process that the launcher started: a guard, and the rank under it.

The guard is the process that ``mpiexec`` sees. It forks the rank before MPI is touched, and tells
by which signal it died, if it did. It ends the rank when whoever started the job is gone; when the
guard goes, the kernel ends the rank too (on Linux).
"""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import os
import pickle
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dectool.backends.mpi._engine import Unsettled
from dectool.backends.mpi._execute import execute
from dectool.backends.mpi._failure import failure_of
from dectool.backends.mpi._pack import dumps
from dectool.backends.mpi._variables import RANK_VARIABLES

if TYPE_CHECKING:
    from mpi4py import MPI

_PR_SET_PDEATHSIG = 1
_JOB = 7


def main() -> NoReturn:
    """Guard the rank; exit as it exits."""
    folder = Path(sys.argv[1])
    rank = next(os.environ[name] for name in RANK_VARIABLES if name in os.environ)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{name}-{rank}", os.O_WRONLY), number)
    events = os.open(folder / "events", os.O_WRONLY)
    _die_with_parent()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        if os.getppid() == guard:
            _Rank(folder, events).serve()
        os._exit(1)
    os.write(events, f"pid {rank} {child}\n".encode())
    threading.Thread(target=_end_with_starter, args=(folder / "jobs", child), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(events, f"ended {rank} {code}\n".encode())
    os._exit(0)


def _die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_starter(jobs: Path, child: int) -> None:
    """Wait until nobody can give jobs any more; then end the rank, if it has not ended."""
    poll = select.poll()
    poll.register(os.open(jobs, os.O_RDONLY | os.O_NONBLOCK), 0)
    poll.poll()
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)


class _Rank:
    """A rank: it runs job after job.

    Args:
        folder: Where jobs come from and results go to.
        events: Descriptor of the pipe that tells the starter what happened.
    """

    def __init__(self, folder: Path, events: int) -> None:
        from mpi4py import MPI

        self._folder = folder
        self._events = events
        self._world: MPI.Intracomm = MPI.COMM_WORLD
        self._rank = self._world.rank
        self._groups: dict[int, MPI.Intracomm] = {}

    def serve(self) -> NoReturn:
        """Run jobs until there are no more."""
        # Ctrl-C reaches the starter, which ends the job.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stacks = (self._folder / f"stack-{self._rank}").open("w")
        faulthandler.register(signal.SIGUSR1, stacks, all_threads=False)
        self._tell("ready")
        jobs = (self._folder / "jobs").open() if self._rank == 0 else None
        while True:
            size, packed = self._next(jobs.readline().split() if jobs else [])
            if not size:
                break
            self._run(packed, self._group(size))
        from mpi4py import MPI

        MPI.Finalize()
        os._exit(0)

    def _next(self, line: list[str]) -> tuple[int, bytes]:
        """Return size and content of the next job; rank 0 sends them to those that take part."""
        if self._rank == 0:
            number, size = map(int, line or ("0", "0"))
            packed = (self._folder / f"job-{number}").read_bytes() if size else b""
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
                self._write("outcome", outcome)
                self._tell("done")
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
        self._write(f"error-{self._rank}", tuple(failure_of(error)))
        self._tell("error")

    def _write(self, name: str, value: object) -> None:
        (self._folder / name).write_bytes(dumps(value))

    def _tell(self, event: str) -> None:
        os.write(self._events, f"{event} {self._rank}\n".encode())


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
