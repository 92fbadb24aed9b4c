"""Checkpoints on real processes: a job that is killed goes on from its file, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.backends.mpi import _variables
from dectool.metrics import COLUMNS

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

PROBLEM = problems.Quadratic(h=np.arange(1.0, 5.0)[:, None], b=np.arange(4.0)[:, None])
ALGORITHM = algorithms.ATC(lr=lambda k: 0.1 / (1 + k))
SCHEDULE = topology.one_peer_exponential(4)

SCRIPT = """
    import sys, time
    import numpy as np
    import dectool
    from dectool import algorithms, problems, topology

    def lr(k):
        time.sleep(1e-3)
        return 0.1 / (1 + k)

    if __name__ == "__main__":
        path, resume = sys.argv[1:3]
        problem = problems.Quadratic(h=np.arange(1.0, 5.0)[:, None], b=np.arange(4.0)[:, None])
        dectool.solve(
            algorithms.ATC(lr=lr), problem, topology=topology.one_peer_exponential(4),
            steps=10**6, backend="mpi", checkpoint=path, checkpoint_every=2, resume=resume or None,
        )
"""


def solve(backend: Any, **options: Any) -> dectool.History:
    options = {"topology": SCHEDULE, "steps": 24, **options}
    return dectool.solve(ALGORITHM, PROBLEM, backend=backend, **options)


def assert_same(one: dectool.History, other: dectool.History) -> None:
    assert one.x.tobytes() == other.x.tobytes()
    for name in COLUMNS:
        if name != "time":
            np.testing.assert_array_equal(one[name], other[name], name)
    assert list(one.state) == list(other.state)


def test_a_checkpoint_changes_nothing(cluster: dectool.Cluster, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    history = solve(cluster, checkpoint=path, checkpoint_every=5)
    last = dectool.History.load(path)
    assert_same(solve("sim"), history)
    assert_same(last, history)
    assert last["time"].tolist() == history["time"].tolist()
    assert (last.status, last.about) == ("completed", history.about)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_writing_takes_none_of_the_recorded_time(cluster: dectool.Cluster, tmp_path: Path) -> None:
    def slow_down(comm: Any) -> None:
        from dectool.history import History

        save = History.save

        def slow(*args: Any) -> Any:
            time.sleep(0.1)
            return save(*args)

        History.quick = save  # type: ignore[attr-defined]
        History.save = slow  # type: ignore[assignment, method-assign]

    def speed_up(comm: Any) -> None:
        from dectool.history import History

        History.save = History.quick  # type: ignore[attr-defined, method-assign]

    cluster.run(slow_down, 4)
    began = time.perf_counter()
    try:
        history = solve(cluster, checkpoint=tmp_path, checkpoint_every=2)
    finally:
        cluster.run(speed_up, 4)
    assert time.perf_counter() - began > 12 * 0.1
    assert history["time"][-1] < 0.6
    assert_same(solve("sim"), history)


@pytest.mark.parametrize("backends", [("mpi", "stacked"), ("sim", "mpi"), ("mpi", "mpi")])
def test_a_run_that_fails_goes_on_elsewhere(
    backends: tuple[str, str], cluster: dectool.Cluster, tmp_path: Path
) -> None:
    first, second = (cluster if name == "mpi" else name for name in backends)

    def failing(record: dict[str, float]) -> bool:
        if record["step"] == 19:
            raise RuntimeError("out of power")
        return False

    with pytest.raises(RuntimeError, match="out of power"):
        solve(first, checkpoint=tmp_path, checkpoint_every=8, stop=failing)
    half = dectool.History.load(tmp_path / "checkpoint.npz")
    assert (half.step, half.status) == (16, "unfinished")
    assert_same(solve("sim"), solve(second, resume=tmp_path))


def test_a_killed_job_goes_on_with_the_bits_of_a_whole_one(
    cluster: dectool.Cluster, tmp_path: Path
) -> None:
    """First the starter is killed and its processes with it, then all of a job under mpiexec."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    path = tmp_path / "checkpoints" / "run.npz"
    path.parent.mkdir()
    reached = 0
    for launch in ([], [_variables.mpiexec(), "-n", "4"]):
        resume = str(path) if reached else ""
        with subprocess.Popen(
            [*launch, sys.executable, str(script), str(path), resume],
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=_variables.environment({}),
        ) as process:
            try:
                limit = time.monotonic() + 20.0
                while time.monotonic() < limit and process.poll() is None:
                    # Every look is at a whole file, or this raises.
                    if path.exists() and dectool.History.load(path).step >= reached + 20:
                        break
                    time.sleep(0.01)
            finally:
                kill_group(process.pid)
            _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors.decode()
        await_silence(path)
        killed = dectool.History.load(path)
        assert killed.status == "unfinished"
        assert killed.step >= reached + 20
        reached = killed.step
    steps = reached + 7
    whole = solve("stacked", steps=steps)
    assert_same(whole, solve("stacked", steps=steps, resume=path))
    assert_same(whole, solve(cluster, steps=steps, resume=path))


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def await_silence(path: Path) -> None:
    """Wait until nobody writes the file any more."""
    limit = time.monotonic() + 10.0
    while time.monotonic() < limit:
        before = path.stat().st_mtime_ns
        time.sleep(1.0)
        if path.stat().st_mtime_ns == before:
            return
    raise AssertionError(f"{path} is still written")
