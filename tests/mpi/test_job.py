"""Real processes from a script: started, or joined under ``mpiexec``; from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

import dectool

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
        env={**os.environ, **env},
    )


def mpiexec() -> str:
    from dectool.backends.mpi import _variables

    return _variables.mpiexec()


def test_a_script_starts_processes(tmp_path: Path) -> None:
    done = run(sys.executable, written(tmp_path))
    assert done.stdout == SHOWN + "'broken'\n", done.stdout + done.stderr
    assert done.returncode == 0


def test_the_same_script_joins(tmp_path: Path) -> None:
    done = run(mpiexec(), "-n", "3", sys.executable, written(tmp_path))
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
    done = run(mpiexec(), "-n", "2", sys.executable, str(script))
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
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
    for pid in first:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
