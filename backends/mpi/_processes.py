"""The processes of a job, as whoever started them sees them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dectool._hosts import Host
from dectool.backends.mpi._command import CANNOT_START, check_hosts, command
from dectool.backends.mpi._engine import GRACE
from dectool.backends.mpi._execute import Terms
from dectool.backends.mpi._failure import Failure, error_of, line_of_stack
from dectool.backends.mpi._pack import pack_job, source_of, unpack_values
from dectool.backends.mpi._streams import Message, Streams
from dectool.backends.mpi._watch import Watch
from dectool.backends.mpi._worker import SIZE
from dectool.communicator import Outcome, Settings
from dectool.errors import BackendError

_TICK = 0.1
_START = 60.0
_ANSWER = 1.0
_QUIET = 0.1
_MOMENT = 0.2


class Processes:
    """Processes that run job after job.

    Args:
        n: Number of processes.
        env: Further environment variables.
        hosts: Where they run; default: here.
        launcher: Words of the command that reaches hosts; default: ssh.

    Raises:
        BackendError: ``mpiexec`` is missing, or cannot be told hosts.
        ArgumentError: There is no such launcher.
    """

    def __init__(
        self,
        n: int,
        env: Mapping[str, str],
        hosts: Sequence[Host] = (),
        launcher: Sequence[str] = (),
    ) -> None:
        self.n = n
        self._planned = [host.name for host in hosts for _ in range(host.slots)]
        self._launcher = launcher
        self._ready: set[int] = set()
        self._pids: dict[int, int] = {}
        self._places: dict[int, str] = {}
        words, variables, self._under_way = command(n, hosts, launcher, env)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            words,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._watch = Watch(self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._streams = Streams(self._process.stdin.fileno(), self._process.stderr.fileno())
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
        packed = pickle.dumps((list(sys.path), source_of(program), terms, job))
        try:
            self._streams.send("job", SIZE.pack(settings.size) + packed)
            outcome = self._await(_Run(settings.size, settings.timeout))
        except BaseException:
            # Whatever is under way (Ctrl-C, say), the processes would not know of it.
            self.kill()
            raise
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome._replace(values=unpack_values(outcome.values))

    def _await(self, run: _Run) -> Outcome | BaseException:
        """Print and wait until the job is done, or has failed on all ranks or for good."""
        began = time.monotonic()
        while len(run.settled) < run.size:
            exited = self._process.poll() is not None
            messages = self._streams.pump(0.0 if exited else _TICK)
            self._note(messages or [], run)
            now = time.monotonic()
            if (exited and messages is None) or now > run.limit:
                break
            if CANNOT_START in self._streams.said:
                break
            if now - began > max(_START, run.timeout) and len(self._ready) < self.n:
                break
        self._streams.flush()
        if run.outcome is not None and len(run.settled) == run.size:
            outcome: Outcome = pickle.loads(run.outcome)
            return outcome
        if len(run.settled) < run.size:
            self._look_at(run)
            self.kill()
        return error_of(run.failures, run.size, self._places) or self._unexplained()

    def _note(self, messages: Iterable[Message], run: _Run | None) -> None:
        """Take note of what ranks and guards say."""
        for kind, rank, content in messages:
            if kind == "here":
                about = json.loads(content)
                self._pids[rank], self._places[rank] = about["pid"], about["host"]
                if rank == 0:
                    self._streams.allow(min(about["room"], self._under_way))
            elif kind == "ready":
                self._ready.add(rank)
            elif kind == "read":
                self._streams.allow(int(content))
            elif run is not None:
                run.note(kind, rank, content)

    def _look_at(self, run: _Run) -> None:
        """Ask ranks that do not answer at which line they are."""
        silent = set(range(run.size)) - run.settled - run.failures.keys()
        there = sorted(silent & self._ready)
        if not run.failures or any(failure.kind == "ended" for failure in run.failures.values()):
            return
        self._streams.stacks.clear()
        _signal(self._process.send_signal, signal.SIGUSR1)
        limit = time.monotonic() + (_ANSWER if there else 0.0)
        quiet = False
        while time.monotonic() < limit and not (quiet and silent <= self._streams.stacks.keys()):
            messages = self._streams.pump(_QUIET)
            quiet = messages is None
            self._note(messages or [], run)
        for rank in there:
            line = line_of_stack(self._streams.stacks.get(rank, b"").decode(errors="replace"))
            text = f"rank {rank} does not wait: it is at {line}"
            run.failures.setdefault(rank, Failure("busy", None, text))

    def _unexplained(self) -> BackendError:
        refusals = {line for line in self._said.splitlines() if CANNOT_START in line}
        if refusals:
            return BackendError(f"{'; '.join(sorted(refusals))}; install dectool there as here")
        missing = sorted(set(range(self.n)) - self._ready)
        what = f"; ranks {missing} of {self.n} did not start" if missing else ""
        silent = {self._planned[rank] for rank in missing if self._planned}
        found = check_hosts(sorted(silent), self._launcher)
        if found:
            return BackendError(
                f"the job did not start: {found}. The launcher must reach each host without "
                "asking anything, and find the same Python there, at the same place"
            )
        return BackendError(
            f"the job did not complete: mpiexec ended with status {self._process.poll()}{what}. "
            f"It said: {self._said.strip() or 'nothing'}"
        )

    def close(self) -> None:
        """Let the processes end, and wait for that."""
        if self.alive:
            self._streams.send("end")
            try:
                self._await_end(GRACE, show=True)
            finally:
                self._streams.flush()
                self.kill()

    def kill(self) -> None:
        """End the processes at once; nothing is left of them."""
        if not self.alive:
            return
        self.alive = False
        try:
            if self._process.poll() is None:
                # Guards get it, end their ranks and then themselves, which ends mpiexec.
                _signal(self._process.send_signal, signal.SIGTERM)
                self._await_end(GRACE, show=False)
        finally:
            _signal(lambda number: os.killpg(self._process.pid, number), signal.SIGKILL)
            self._process.wait()
            self._watch.release()
            if not self._planned:
                # mpiexec may be gone before the kernel has taken the last rank away.
                _await_end(self._pids.values())
            for pipe in (self._process.stdin, self._process.stderr):
                assert pipe is not None
                pipe.close()
            self._output.seek(0)
            self._said = self._streams.said + self._output.read().decode(errors="replace")
            self._output.close()

    def _await_end(self, seconds: float, *, show: bool) -> None:
        """Wait until mpiexec has ended; it does not before all is read that it has."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            exited = self._process.poll() is not None
            messages = self._streams.pump(0.0 if exited else 5e-3, show=show)
            self._note(messages or [], None)
            if exited and messages is None:
                return


class _Run:
    """What is known of one run.

    Attributes:
        settled: Ranks that have ended the run, whatever its end.
        failures: How ranks failed.
        outcome: What rank 0 has gathered.
        limit: When to give up.
    """

    def __init__(self, size: int, timeout: float) -> None:
        self.size = size
        self.timeout = timeout
        self.settled: set[int] = set()
        self.failures: dict[int, Failure] = {}
        self.outcome: bytes | None = None
        self.limit = float("inf")

    def note(self, kind: str, rank: int, content: bytes) -> None:
        """Take note of what a rank or its guard says."""
        if kind == "settled":
            self.settled.add(rank)
        elif kind == "done":
            self.outcome = content
        elif kind == "error":
            self.failures.setdefault(rank, Failure(*pickle.loads(content)))
            self.limit = min(self.limit, time.monotonic() + GRACE)
        elif kind == "ended":
            self.failures[rank] = Failure("ended", None, content.decode())
            # It may have ended because it lost another one, of which we hear in a moment.
            self.limit = min(self.limit, time.monotonic() + _MOMENT)


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


def _signal(send: Callable[[int], None], number: int) -> None:
    try:
        send(number)
    except ProcessLookupError:
        return
