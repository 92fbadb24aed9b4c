"""Real processes from a script: started, or joined under ``mpiexec``; from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

import dectool
from dectool.backends.mpi import Processes, _variables
from dectool.communicator import Settings

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

SCRIPT = """
    import os, sys
    import numpy as np
    import dectool
    from dectool import topology

    assert "mpi4py.MPI" not in sys.modules

    def say(*words):
        os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

    def program(comm):
        return comm.neighbor_allreduce(np.array([1.0 * comm.rank])), os.environ.get("NAME")

    def broken(comm):
        if comm.rank == 1:
            raise KeyError("broken")
        comm.barrier()

    def stuck(comm):
        comm.recv((comm.rank + 1) % comm.size)

    if __name__ == "__main__":
        result = dectool.run(program, topology=topology.ring(3), backend="mpi", env={"NAME": "me"})
        values = [float(value[0]) for value, name in result.values if name == "me"]
        say(values, result.messages, result.bytes)
        for wrong in (broken, stuck):
            try:
                dectool.run(wrong, 3, backend="mpi", timeout=0.5)
            except Exception as error:
                text = " ".join([str(error), *getattr(error, "__notes__", [])])
                say(type(error).__name__, "rank 1" in text, "rank 2 waits" in text)
        try:
            dectool.run(broken, 5, backend="mpi")
        except Exception as error:
            say(str(error)[:29])
"""
SHOWN = "[1.0, 1.0, 1.0] 6 48\nKeyError True False\nDeadlockError True True\n"


def written(folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    return str(script)


def run(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**_variables.environment({}), **env},
    )


def test_a_script_starts_processes(tmp_path: Path) -> None:
    done = run(sys.executable, written(tmp_path))
    assert done.stdout == SHOWN + "'broken'\n", done.stdout + done.stderr
    assert done.returncode == 0


def test_the_same_script_joins(tmp_path: Path) -> None:
    done = run(_variables.mpiexec(), "-n", "3", sys.executable, written(tmp_path))
    expected = SHOWN + "n=5, but this job has 3 proce\n"
    lines = sorted(done.stdout.splitlines())
    assert lines == sorted(3 * expected.splitlines()), done.stdout + done.stderr
    assert done.returncode == 0


def test_ranks_that_never_stop_end_a_joined_job(tmp_path: Path) -> None:
    script = tmp_path / "sleeps.py"
    script.write_text(
        textwrap.dedent(
            """
            import time, dectool
            def program(comm):
                if comm.rank:
                    time.sleep(60)
                raise ValueError("first")
            dectool.run(program, 2, backend="mpi")
            """
        )
    )
    done = run(_variables.mpiexec(), "-n", "2", sys.executable, str(script))
    assert done.returncode != 0
    assert "ValueError: first" in done.stderr


def test_a_launcher_of_another_mpi_is_explained(tmp_path: Path) -> None:
    script = written(tmp_path)
    done = run(sys.executable, script, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="3")
    assert "started 3 processes, but MPI sees one" in done.stderr
    assert "bin/mpiexec" in done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("def program(comm):\n    return comm.allreduce([1.0], 'sum')\n")
    script.write_text(
        "import numpy as np\n"
        "def program(comm):\n"
        "    return comm.allreduce(np.array([1.0 * comm.rank]), 'sum')\n"
    )
    command = [sys.executable, "-m", "dectool", "run", str(script), "--backend", "mpi", "-n", "4"]
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("array([6.])") == 4
    assert "8 messages, 64 bytes" in done.stdout


def test_importing_dectool_does_not_start_mpi() -> None:
    code = (
        "import sys, dectool, dectool.backends.mpi, dectool.testing\n"
        "print('mpi4py' in sys.modules, 'mpi4py.MPI' in sys.modules)"
    )
    assert run(sys.executable, "-c", code).stdout == "False False\n"


def test_a_cluster_says_what_it_cannot_do(cluster: dectool.Cluster) -> None:
    with pytest.raises(dectool.errors.ArgumentError, match="n=9, but the cluster has 8"):
        cluster.run(lambda comm: None, 9)
    with pytest.raises(dectool.errors.ArgumentError, match="too late"):
        cluster.run(lambda comm: None, env={"A": "b"})
    with pytest.raises(dectool.errors.BackendError, match="closed; use it inside of: with"):
        dectool.Cluster(2).run(lambda comm: None)
    with pytest.raises(dectool.errors.UnsupportedOperation, match="no processes to keep"):
        dectool.Cluster(2, backend="sim")
    for wrong in (0, 2.5, True, "4"):
        with pytest.raises(dectool.errors.ArgumentError, match="n="):
            dectool.Cluster(wrong)  # type: ignore[arg-type]


def test_a_cluster_keeps_its_processes_and_then_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with dectool.Cluster(n=2) as cluster:
        first = cluster.run(lambda comm: os.getpid()).values
        second = dectool.run(lambda comm: os.getpid(), backend=cluster).values
        assert first == second
        assert len(set(first)) == 2
        assert list(cluster.run(lambda comm: os.getpid(), n=1).values) == first[:1]
        # Everything goes through pipes, which no other user could open.
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
    for pid in first:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_this_machine_can_be_named_as_a_host() -> None:
    result = dectool.run(
        lambda comm: (comm.rank, comm.local_size), backend="mpi", hosts=["localhost:3"]
    )
    assert list(result.values) == [(0, 3), (1, 3), (2, 3)]
    with dectool.Cluster(hosts=["localhost:2"]) as cluster:
        assert repr(cluster) == "<Cluster of 2 processes on localhost:2, mpi>"
        assert list(cluster.run(lambda comm: comm.size).values) == [2, 2]
        with pytest.raises(dectool.errors.ArgumentError, match="hosts= comes too late"):
            cluster.run(lambda comm: None, hosts=["localhost:2"])


def test_the_command_line_takes_hosts(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("def program(comm):\n    return comm.size\n")
    words = [sys.executable, "-m", "dectool", "run", str(script), "--backend", "mpi"]
    done = run(*words, "--hosts", "localhost:3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("│ 3 ") == 3
    done = run(*words, "--hosts", "localhost:none")
    assert done.returncode == 2
    assert "hosts[0]='localhost:none': what follows the colon must be a number" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"hosts": "first:2"}, r"hosts is 'first:2'; give a list of names"),
        ({"hosts": []}, "hosts is empty; name at least one"),
        ({"hosts": [3]}, r"hosts\[0\] is 3; give a name"),
        ({"hosts": [":2"]}, r"hosts\[0\]=':2' does not begin with the name of a host"),
        ({"hosts": ["-o"]}, r"hosts\[0\]='-o' does not begin with the name of a host"),
        ({"hosts": ["a,b"]}, r"hosts\[0\]='a,b' does not begin with the name of a host"),
        ({"hosts": ["a", "b:0"]}, r"hosts\[1\]='b:0': what follows the colon must be a number"),
        ({"hosts": ["a:1", "a:2"]}, r"hosts names 'a' 2 times; name it once.*'a:3'"),
        ({"hosts": ["a:2", "b"], "n": 4}, r"n=4, but hosts=.* take 3 ranks; .* such as 'b:2'"),
        ({"hosts": ["a"], "launcher": ""}, "launcher='' must be words"),
        ({"hosts": ["a"], "launcher": ["x y"]}, "must be words without spaces"),
        ({"hosts": ["a"], "launcher": 3}, "launcher is 3; give a command"),
        ({"hosts": ["a"], "launcher": "no-such-shell"}, "there is no command 'no-such-shell'"),
        ({"launcher": "ssh", "n": 2}, "launcher='ssh' reaches hosts, and none is named"),
        ({"hosts": ["a:2"], "backend": "sim"}, "hosts= is for processes, which backend 'sim'"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_hosts_are_checked(arguments: dict[str, Any], words: str) -> None:
    options = {"backend": "mpi", **arguments}
    with pytest.raises(dectool.errors.DectoolError, match=words):
        dectool.run(lambda comm: None, **options)


def test_a_job_that_is_joined_takes_no_hosts(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        "import dectool\ndectool.run(lambda comm: None, backend='mpi', hosts=['localhost:2'])\n"
    )
    done = run(_variables.mpiexec(), "-n", "2", sys.executable, str(script))
    assert done.returncode != 0
    assert "hosts=['localhost:2'] comes too late: mpiexec has already started" in done.stderr


def test_processes_end_by_themselves() -> None:
    """Whoever ends before the others must not look like a crash to mpiexec, which kills then."""
    for _ in range(3):
        processes = Processes(4, {})
        settings = Settings(size=4, timeout=30.0, stall_timeout=30.0)
        assert processes.run(lambda comm: comm.rank, (), settings).values == [0, 1, 2, 3]
        processes.close()
        assert processes._process.returncode == 0
