"""What goes wrong on another host is an error that names it, in time, and leaves no process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dectool
from dectool.errors import ArgumentError, BackendError, DeadlockError
from dectool.testing._lab import Lab


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.fixture(scope="module")
def quiet(rights: None) -> Iterator[Lab]:
    """Hosts on which nothing runs."""
    with Lab(2) as lab:
        yield lab


def nothing_left(lab: Lab, seconds: float = 5.0) -> bool:
    """Tell whether the processes on the hosts end by themselves."""
    deadline = time.monotonic() + seconds
    while lab.processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    return lab.processes() == []


def start(lab: Lab, program: Any, **options: Any) -> dectool.Result:
    """Run a program on two processes of each host."""
    given = {
        "hosts": [f"{address}:2" for address in lab.addresses],
        "launcher": lab.launcher,
        "env": lab.variables,
    }
    return dectool.run(program, backend="mpi", **{**given, **options})


def test_an_exception_is_raised_with_rank_and_host(cluster: dectool.Cluster, lab: Lab) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 3:
            raise KeyError("no such thing")
        comm.barrier()

    with within(10.0), pytest.raises(KeyError, match="no such thing") as caught:
        cluster.run(program)
    assert f"raised by rank 3 of 4 on host {lab.names[1]}" in "".join(caught.value.__notes__)
    assert list(cluster.run(lambda comm: comm.rank).values) == [0, 1, 2, 3]


def test_a_killed_rank_is_named_with_its_host(quiet: Lab) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    words = rf"rank 2 of 4 on host {quiet.names[1]} was killed by signal 9 \(SIGKILL\)"
    with within(20.0), pytest.raises(BackendError, match=words):
        start(quiet, program)
    assert nothing_left(quiet)


def test_a_rank_that_does_not_wait_is_asked_where_it_is(quiet: Lab) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 3:
            time.sleep(60)
        comm.recv((comm.rank + 1) % 3)

    with within(25.0), pytest.raises(DeadlockError) as caught:
        start(quiet, program, timeout=1.0)
    line = program.__code__.co_firstlineno + 2
    assert f"rank 3 does not wait: it is at {__file__}:{line} in program" in str(caught.value)
    assert nothing_left(quiet)


SCRIPT = """
    import sys, time
    import dectool

    def program(comm):
        print("here", flush=True)
        time.sleep(60)

    if __name__ == "__main__":
        env = dict(word.split("=", 1) for word in sys.argv[3:])
        dectool.run(program, backend="mpi", hosts=sys.argv[1].split(","), launcher=sys.argv[2],
                    env=env)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_no_process_is_left(number: signal.Signals, tmp_path: Path, rights: None) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with Lab(2) as lab:
        variables = [f"{name}={value}" for name, value in lab.variables.items()]
        with subprocess.Popen(
            [sys.executable, str(script), ",".join(lab.addresses), lab.launcher, *variables],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that starts tests in the background has them ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:
            assert process.stdout is not None
            shown = sorted(process.stdout.readline() for _ in range(2))
            assert shown == ["[0] here\n", "[1] here\n"]
            # On each host a guard, a rank, and what mpiexec has there.
            assert len(lab.processes()) >= 6
            process.send_signal(number)
            _, errors = process.communicate(timeout=15)
        assert nothing_left(lab)
    if number == signal.SIGINT:
        assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_host_that_does_not_exist_is_named(quiet: Lab) -> None:
    words = "nothing starts on host nowhere: cannot resolve hostname nowhere"
    with within(20.0), pytest.raises(BackendError, match=words):
        start(quiet, lambda comm: comm.rank, hosts=[quiet.addresses[0], "nowhere"])
    assert nothing_left(quiet)


def test_a_host_without_mpi_is_named(quiet: Lab) -> None:
    launcher = quiet.launcher_hiding(Path(sys.executable).parent, host=1)
    words = rf"nothing starts on host {quiet.addresses[1]}: .*mpiexec: not found"
    with within(20.0), pytest.raises(BackendError, match=words):
        start(quiet, lambda comm: comm.rank, launcher=launcher)
    assert nothing_left(quiet)


def test_a_host_without_this_python_is_named(
    quiet: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(python))
    words = rf"cannot start on host {quiet.names[1]}: there is no {python}"
    with within(20.0), pytest.raises(BackendError, match=words):
        start(quiet, lambda comm: comm.rank, launcher=quiet.launcher_hiding(tmp_path, host=1))
    assert nothing_left(quiet)
    assert list(start(quiet, lambda comm: comm.rank).values) == [0, 1, 2, 3]


def test_a_host_without_dectool_is_named(quiet: Lab) -> None:
    assert dectool.__file__ is not None
    launcher = quiet.launcher_hiding(Path(dectool.__file__).resolve().parent, host=1)
    words = rf"cannot start on host {quiet.names[1]}: .* No module named 'dectool"
    with within(20.0), pytest.raises(BackendError, match=words):
        start(quiet, lambda comm: comm.rank, launcher=launcher)
    assert nothing_left(quiet)


def test_a_launcher_that_does_not_exist_is_named(quiet: Lab) -> None:
    with pytest.raises(ArgumentError, match="launcher='no-such-shell': there is no command"):
        start(quiet, lambda comm: socket.gethostname(), launcher="no-such-shell")
