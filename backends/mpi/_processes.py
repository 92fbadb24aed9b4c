"""The processes of a job, as whoever started them sees them."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dectool.backends.mpi._engine import GRACE
from dectool.backends.mpi._execute import Terms
from dectool.backends.mpi._failure import Failure, error_of, line_of_stack
from dectool.backends.mpi._pack import pack_job, source_of, unpack_values
from dectool.backends.mpi._streams import Streams
from dectool.backends.mpi._variables import environment, mpiexec
from dectool.communicator import Outcome, Settings
from dectool.errors import BackendError

_TICK = 0.1
_START = 60.0


class Processes:
    """Processes that run job after job.

    Args:
        n: Number of processes.
        env: Further environment variables.
    """

    def __init__(self, n: int, env: Mapping[str, str]) -> None:
        self.n = n
        command = [mpiexec(), "-n", str(n), sys.executable, "-u"]
        self._folder = Path(tempfile.mkdtemp(prefix="dectool-mpi-"))
        self._streams = Streams(self._folder, n)
        os.mkfifo(self._folder / "jobs", 0o600)
        self._jobs = os.open(self._folder / "jobs", os.O_RDWR)
        self._number = 0
        self._ready: set[int] = set()
        self._pids: dict[int, int] = {}
        with (self._folder / "launcher").open("w") as said:
            self._process = subprocess.Popen(
                [*command, "-m", "dectool.backends.mpi._worker", str(self._folder)],
                env=environment(env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._said = ""
        self.alive = True

    def run(self, program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> Outcome:
        """Run a program on the first ``settings.size`` of the processes.

        Raises:
            BackendError: A process died.
            Exception: What the program raised.
        """
        job = pack_job(program, args, settings)
        terms = Terms(settings.stall_timeout, settings.timeout, settings.local_size)
        self._number += 1
        file = self._folder / f"job-{self._number}"
        file.write_bytes(pickle.dumps((list(sys.path), source_of(program), terms, job)))
        try:
            os.write(self._jobs, f"{self._number} {settings.size}\n".encode())
            outcome = self._await(settings)
        except BaseException:
            # Whatever is under way (Ctrl-C, say), the processes would not know of it.
            self.kill()
            raise
        finally:
            file.unlink(missing_ok=True)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome._replace(values=unpack_values(outcome.values))

    def _await(self, settings: Settings) -> Outcome | BaseException:
        """Print and wait until the job is done, or has failed on all ranks or for good."""
        failures: dict[int, Failure] = {}
        settled: set[int] = set()
        done = False
        began = time.monotonic()
        limit = float("inf")
        while len(settled) < settings.size:
            exited = self._process.poll() is not None
            for event, rank, *more in self._streams.pump(0 if exited else _TICK):
                number = int(rank)
                if event == "pid":
                    self._pids[number] = int(more[0])
                elif event == "ready":
                    self._ready.add(number)
                elif event == "settled":
                    settled.add(number)
                elif event == "done":
                    done = True
                elif event == "error":
                    failures.setdefault(number, self._read_failure(number))
                    limit = min(limit, time.monotonic() + GRACE)
                elif event == "ended":
                    failures[number] = Failure("ended", None, more[0])
                    limit = 0.0
            now = time.monotonic()
            if exited or now > limit:
                break
            if now - began > max(_START, settings.timeout) and len(self._ready) < self.n:
                break
        self._streams.flush()
        if done and len(settled) == settings.size:
            outcome: Outcome = pickle.loads((self._folder / "outcome").read_bytes())
            return outcome
        if len(settled) < settings.size:
            self._look_at(set(range(settings.size)) - settled - failures.keys(), failures)
            self.kill()
        return error_of(failures, settings.size) or self._unexplained()

    def _read_failure(self, rank: int) -> Failure:
        return Failure(*pickle.loads((self._folder / f"error-{rank}").read_bytes()))

    def _look_at(self, ranks: set[int], failures: dict[int, Failure]) -> None:
        """Ask ranks that do not answer at which line they are."""
        there = [rank for rank in sorted(ranks) if rank in self._pids]
        if not failures or any(failure.kind == "ended" for failure in failures.values()):
            return
        for rank in there:
            os.kill(self._pids[rank], signal.SIGUSR1)
        time.sleep(0.2 if there else 0.0)
        for rank in there:
            line = line_of_stack((self._folder / f"stack-{rank}").read_text())
            failures[rank] = Failure("busy", None, f"rank {rank} does not wait: it is at {line}")

    def _unexplained(self) -> BackendError:
        missing = sorted(set(range(self.n)) - self._ready)
        what = f"; ranks {missing} of {self.n} did not start" if missing else ""
        status = self._process.poll()
        return BackendError(
            f"the job did not complete: mpiexec ended with status {status}{what}. "
            f"It said: {self._said.strip() or 'nothing'}"
        )

    def close(self) -> None:
        """Let the processes end, and wait for that."""
        if self.alive:
            os.write(self._jobs, b"0 0\n")
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                pass
            finally:
                self._streams.flush()
                self.kill()

    def kill(self) -> None:
        """End the processes at once; nothing is left of them."""
        if not self.alive:
            return
        self.alive = False
        os.close(self._jobs)
        try:
            for pid in self._pids.values():
                _signal(os.kill, pid)
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # Guards end with their ranks, and mpiexec with the guards; this is for when not.
            _signal(os.killpg, self._process.pid)
            self._process.wait()
            # mpiexec may be gone before the kernel has taken the last rank away.
            _await_end(self._pids.values())
            self._streams.close()
            self._said = (self._folder / "launcher").read_text(errors="replace")
            shutil.rmtree(self._folder, ignore_errors=True)


def _await_end(pids: Iterable[int]) -> None:
    """Wait until none of the processes is there any more, :data:`GRACE` seconds at most."""
    limit = time.monotonic() + GRACE
    for pid in pids:
        while time.monotonic() < limit:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            time.sleep(1e-3)


def _signal(send: Callable[[int, int], None], pid: int) -> None:
    try:
        send(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
