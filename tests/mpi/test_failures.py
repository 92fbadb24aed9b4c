"""What goes wrong on real processes is an error that says who and where, in time, and no hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.errors import (
    ArgumentTypeError,
    BackendError,
    ContractError,
    DeadlockError,
    UnsupportedOperation,
)

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

RING = topology.ring(4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[dectool.Cluster]:
    """Four processes of these tests, since some of them end the processes."""
    with dectool.Cluster(n=4) as cluster:
        yield cluster


def processes_of(mark: str) -> list[str]:
    """Return the command lines of processes that have this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def still_works(cluster: dectool.Cluster) -> bool:
    return list(cluster.run(lambda comm: comm.rank, 4).values) == [0, 1, 2, 3]


def test_an_exception_is_raised_with_its_rank_and_traceback(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 2:
            raise KeyError("no such thing")
        comm.barrier()

    with within(5.0), pytest.raises(KeyError, match="no such thing") as caught:
        cluster.run(program, 4)
    notes = "".join(caught.value.__notes__)
    assert "rank 2 of 4" in notes
    assert 'raise KeyError("no such thing")' in notes
    assert "processes of the cluster were ended" not in notes
    assert still_works(cluster)


def test_the_lowest_rank_that_failed_by_itself_is_named(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.recv(1)
        raise ValueError(f"I am rank {comm.rank}")

    with pytest.raises(ValueError, match="I am rank 1"):
        cluster.run(program, 4)
    assert still_works(cluster)


def test_an_error_that_is_no_plain_exception_comes_as_text(cluster: dectool.Cluster) -> None:
    class OddError(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__("odd")

    def program(comm: Any) -> None:
        raise OddError(1, 2)

    with pytest.raises(BackendError, match=r"rank 0 of 2 failed:[\s\S]*OddError: odd"):
        cluster.run(program, 2)


def test_ranks_that_do_not_stop_are_ended(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 1:
            raise ValueError("first")
        time.sleep(60)

    with within(6.0), pytest.raises(ValueError, match="first") as caught:
        cluster.run(program, 3)
    assert "the next run starts new ones" in "".join(caught.value.__notes__)
    assert still_works(cluster)


def test_a_killed_rank_is_named(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    with within(10.0), pytest.raises(BackendError, match=r"rank 1 of 4 .* signal 9 \(SIGKILL\)"):
        cluster.run(program, 4)
    assert still_works(cluster)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (lambda: sys.exit(3), r"rank 1 of 2 called sys.exit\(3\)"),
        (lambda: os._exit(5), "rank 1 of 2 ended with status 5"),
    ],
    ids=["sys.exit", "os._exit"],
)
def test_leaving_is_an_error(
    leave: Callable[[], None], words: str, cluster: dectool.Cluster
) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 1:
            leave()
        comm.barrier()

    with within(6.0), pytest.raises(BackendError, match=words):
        cluster.run(program, 2)
    assert still_works(cluster)


def test_ranks_that_wait_for_each_other_are_reported_and_then_an_error(
    cluster: dectool.Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    def program(comm: Any) -> None:
        if comm.rank != 3:
            comm.recv((comm.rank + 1) % 3, tag=7)
        time.sleep(60)

    with within(8.0), pytest.raises(DeadlockError) as caught:
        cluster.run(program, 4, stall_timeout=0.5, timeout=1.5)
    message = str(caught.value)
    assert "deadlock: 3 of 4 ranks wait" in message
    for rank in range(3):
        line = f"rank {rank} waits in recv(tag=7) for rank {(rank + 1) % 3}, at {__file__}:"
        assert line in message
    assert "in program: comm.recv((comm.rank + 1) % 3, tag=7)" in message
    assert "rank 3 does not wait: it is at" in message
    report = capfd.readouterr().err
    assert "[1] after 0.5 s rank 1 waits in recv(tag=7) for rank 2" in report
    assert still_works(cluster)


def test_a_message_that_a_returned_rank_never_sent_is_found_at_once(
    cluster: dectool.Cluster,
) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.recv(1)

    with (
        within(3.0),
        pytest.raises(DeadlockError, match=r"of these, 1 returned\), at .*in program"),
    ):
        cluster.run(program, 2)
    assert still_works(cluster)


def test_a_sender_that_sleeps_does_not_hide_the_deadlock(cluster: dectool.Cluster) -> None:
    """A large message is under way from a rank that does not go on."""

    def program(comm: Any) -> None:
        if comm.rank == 1:
            comm.isend(np.zeros(1 << 22), 0)
            time.sleep(60)
        comm.recv(1, tag=9)

    with within(8.0), pytest.raises(DeadlockError, match="rank 0 waits in"):
        cluster.run(program, 2, timeout=1.0)
    assert still_works(cluster)


def test_what_cannot_be_sent_is_named(cluster: dectool.Cluster) -> None:
    lock = threading.Lock()

    def program(comm: Any, *args: Any) -> Any:
        return args or lock

    with pytest.raises(ArgumentTypeError, match=r"program program cannot be sent .*lock"):
        cluster.run(program, 2)

    def innocent(comm: Any, *args: Any) -> Any:
        return threading.Lock() if comm.rank == 1 else None

    with pytest.raises(ArgumentTypeError, match=r"args\[1\] cannot be sent .*lock"):
        cluster.run(innocent, 2, args=(1, lock))
    with pytest.raises(ArgumentTypeError, match=r"value on rank 1, a lock, cannot be sent"):
        cluster.run(innocent, 2)
    assert still_works(cluster)


class Unreadable:
    """Can be sent, and fails where it is received."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_what_cannot_be_read_is_named(cluster: dectool.Cluster) -> None:
    with pytest.raises(ValueError, match="no number") as caught:
        cluster.run(lambda comm, x: comm.rank, 3, args=(Unreadable(),))
    assert "rank 0 of 3" in "".join(caught.value.__notes__)

    def program(comm: Any) -> Any:
        return Unreadable() if comm.rank == 2 else None

    with pytest.raises(BackendError, match="value of rank 2 cannot be read here: ValueError"):
        cluster.run(program, 3)
    assert still_works(cluster)


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (lambda rank: np.zeros(3 + (rank == 2)), ["float64[3]", "float64[4]"]),
        (lambda rank: np.zeros(3, "f4" if rank == 2 else "f8"), ["float32", "float64"]),
        (lambda rank: np.zeros(100_000 + (rank == 2)), ["float64[100000]", "float64[100001]"]),
    ],
    ids=["shape", "dtype", "large"],
)
def test_arrays_that_do_not_match_are_named(
    difference: Callable[[int], Any], words: list[str], cluster: dectool.Cluster
) -> None:
    with within(5.0), pytest.raises(ContractError) as caught:
        cluster.run(lambda comm: comm.neighbor_allreduce(difference(comm.rank)), topology=RING)
    for word in words:
        assert word in str(caught.value)
    assert still_works(cluster)


def test_messages_that_nobody_receives_are_named(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.send(np.zeros(200_000), 1, tag=4)

    with pytest.raises(
        ContractError, match=r"1 message sent .*from rank 0 to rank 1 in recv\(tag=4"
    ):
        cluster.run(program, 3)
    assert still_works(cluster)


def test_mpi_inside_of_mpi_is_refused(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> Any:
        return dectool.run(lambda inner: None, 2, backend="mpi")

    with pytest.raises(BackendError, match="runs on MPI already"):
        cluster.run(program, 2)
    assert still_works(cluster)


def test_what_a_real_network_has_not_is_refused() -> None:
    def program(comm: Any) -> None: ...

    network = dectool.sim.AlphaBeta(latency=1.0)
    with pytest.raises(UnsupportedOperation, match=r"network=AlphaBeta.* is real"):
        dectool.run(program, 2, backend="mpi", network=network)
    with pytest.raises(UnsupportedOperation, match=r"trace=True .* use backend='sim'"):
        dectool.run(program, 2, backend="mpi", trace=True)


def test_output_is_labelled_and_whole(
    cluster: dectool.Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(comm: Any) -> None:
        for number in range(3000):
            print(f"line {number} of rank {comm.rank} " + "x" * (number % 200))
        print("an error", file=sys.stderr)
        os.write(1, b"no end of line")

    with within(20.0):
        cluster.run(program, 4)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    for rank in range(4):
        mine = [line for line in lines if line.startswith(f"[{rank}] ")]
        expected = [f"[{rank}] line {k} of rank {rank} " + "x" * (k % 200) for k in range(3000)]
        assert mine == [*expected, f"[{rank}] no end of line"]
    assert len(lines) == 4 * 3001
    assert sorted(shown.err.splitlines()) == [f"[{rank}] an error" for rank in range(4)]


SCRIPT = """
    import time
    import dectool

    def program(comm):
        print("here", flush=True)
        while FLOODS:
            print("x" * 1000)
        time.sleep(60)

    if __name__ == "__main__":
        dectool.run(program, 3, backend="mpi")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
@pytest.mark.parametrize("floods", [False, True], ids=["sleeps", "prints"])
def test_no_process_is_left(number: signal.Signals, floods: bool, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("FLOODS", str(floods)))
    mark = f"DECTOOL_TEST={tmp_path}"
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "DECTOOL_TEST": str(tmp_path), "TMPDIR": str(tmp_path)},
        text=True,
        # A shell that starts tests in the background has them ignore Ctrl-C, and their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        shown: set[str] = set()
        while len(shown) < 3:
            line = process.stdout.readline()
            if line.endswith("here\n"):
                shown.add(line)
        assert shown == {f"[{rank}] here\n" for rank in range(3)}
        # The script, mpiexec and its helper, and three times a guard and a rank.
        assert len(processes_of(mark)) >= 9
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    if number == signal.SIGINT:
        assert process.returncode == -signal.SIGINT
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert processes_of(mark) == []
    assert not list(tmp_path.glob("dectool*"))
    deadline = time.monotonic() + 5.0
    while processes_of(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(mark) == []
