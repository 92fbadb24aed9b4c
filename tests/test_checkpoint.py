"""Checkpoints: what is killed at any moment goes on from its file, bit for bit, anywhere."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import dectool
from dectool import algorithms, topology
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.sim import AlphaBeta, Constant, Exponential
from tests.solving import ALL, BACKENDS, logistic, same_bits, same_records, solve


def steps_of(path):
    return dectool.History.load(path).step


@pytest.fixture
def written(monkeypatch):
    """Return the list of (file name, step, status, records) of every history that is saved."""
    seen = []
    save = dectool.History.save

    def spy(history, path):
        seen.append((path.name, history.step, history.status, len(history)))
        return save(history, path)

    monkeypatch.setattr(dectool.History, "save", spy)
    return seen


@pytest.mark.parametrize("backend", BACKENDS)
def test_written_every_so_often_and_at_the_end(backend, tmp_path, written):
    whole = solve(
        steps=23, backend=backend, checkpoint=tmp_path / "run.npz", checkpoint_every=np.int64(10)
    )
    assert written == [
        ("run.npz", 10, "unfinished", 11),
        ("run.npz", 20, "unfinished", 21),
        ("run.npz", 23, "completed", 24),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    last = dectool.History.load(tmp_path / "run.npz")
    same_bits(last, whole)
    same_records(last, whole)
    assert last.about == whole.about
    assert last.x0.tobytes() == whole.x0.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_written_when_the_run_stops(backend, tmp_path, written):
    options = {"stop": {"gap": 1e-3}, "steps": 400, "backend": backend}
    h = solve(checkpoint=tmp_path / "run.npz", checkpoint_every=300, **options)
    assert h.status == "stopped"
    assert written == [("run.npz", h.step, "stopped", len(h))]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_that_diverges_keeps_its_last_finite_checkpoint(backend, tmp_path, written):
    path = tmp_path / "run.npz"
    with pytest.warns(RuntimeWarning, match="diverged"):
        h = solve(
            algorithms.DGD(lr=1e3), steps=1000, backend=backend, checkpoint=path, checkpoint_every=1
        )
    last = dectool.History.load(path)
    assert (h.status, last.status) == ("diverged", "unfinished")
    assert last.step == h.step - 1
    assert np.isfinite(last.x).all()
    assert written[-1][1] == last.step


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_checkpoint_changes_nothing(backend, tmp_path):
    options = {
        "network": AlphaBeta(1e-3, 1e6),
        "compute": Exponential(1e-3),
        "backend": backend,
        "record_every": 3,
    }
    plain = solve(**options)
    watched = solve(**options, checkpoint=tmp_path / "run.npz", checkpoint_every=6)
    same_bits(plain, watched)
    same_records(plain, watched)
    assert plain.about == watched.about


@pytest.mark.parametrize("second", BACKENDS)
@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("name", ALL)
def test_a_run_that_fails_goes_on_with_the_bits_of_a_whole_one(name, first, second, tmp_path):
    gossips = not ALL[name].uses_gradient
    problem = dectool.problems.Averaging(np.eye(8)) if gossips else logistic()
    options = {"problem": problem, "check": False, "seed": 1, "steps": 12}
    if not gossips and ALL[name].oracle == "gradient":
        options["batch_size"] = 3

    def failing(record):
        if record["step"] == 9:
            raise RuntimeError("out of power")
        return False

    with pytest.raises(RuntimeError, match="out of power"):
        solve(
            ALL[name],
            backend=first,
            stop=failing,
            checkpoint=tmp_path,
            checkpoint_every=4,
            **options,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]
    assert steps_of(tmp_path / "checkpoint.npz") == 8
    whole = solve(ALL[name], backend=second, **options)
    rest = solve(ALL[name], backend=second, resume=tmp_path, **options)
    same_bits(rest, whole)
    same_records(rest, whole)
    assert rest.about == whole.about


def test_checkpoints_go_on_in_the_file_that_was_resumed(tmp_path, written):
    options = {"checkpoint": tmp_path / "run.npz", "checkpoint_every": 4, "record_every": 2}
    models = {"network": AlphaBeta(1e-3, 1e6), "compute": Constant(2e-3)}
    solve(steps=9, **options, **models)
    again = solve(steps=13, resume=tmp_path / "run.npz", **options, **models)
    # Step 9 was the last of its run, and is recorded as such.
    steps = [0, 2, 4, 6, 8, 9, 10, 12, 13]
    assert again["step"].tolist() == steps
    assert [entry[1:] for entry in written] == [
        (4, "unfinished", 3),
        (8, "unfinished", 5),
        (9, "completed", 6),
        (12, "unfinished", 8),
        (13, "completed", 9),
    ]
    whole = solve(steps=13, record_every=1, **models)
    assert again["bytes"].tolist() == whole["bytes"][steps].tolist()
    np.testing.assert_allclose(again["time"], whole["time"][steps], rtol=1e-12)
    same_bits(again, whole)


def test_nothing_left_to_do_writes_nothing(tmp_path, written):
    options = {"checkpoint": tmp_path, "checkpoint_every": 4, "steps": 8}
    solve(**options)
    count = len(written)
    again = solve(resume=tmp_path, **options)
    assert (again.step, again.status, len(written)) == (8, "completed", count)


SCRIPT = """
    import sys, time
    import numpy as np
    import dectool
    from dectool import algorithms, problems, topology

    def lr(k):
        time.sleep(1e-3)
        return 0.1 / (1 + k)

    backend, path, resume = sys.argv[1:4]
    h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
    dectool.solve(
        algorithms.ATC(lr=lr), problems.Quadratic(h=h, b=np.arange(8.0)[:, None]),
        topology=topology.one_peer_exponential(8), steps=10**6, backend=backend,
        checkpoint=path, checkpoint_every=1, resume=resume or None,
    )
"""


def test_a_run_killed_again_and_again_ends_with_the_bits_of_a_whole_one(tmp_path):
    """Three lives on two backends, each killed at no chosen moment; the file is always whole."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    path = tmp_path / "checkpoints" / "run.npz"
    path.parent.mkdir()
    reached = 0
    for backend in ("stacked", "sim", "stacked"):
        command = [sys.executable, str(script), backend, str(path), str(path) if reached else ""]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            try:
                limit = time.monotonic() + 15.0
                while time.monotonic() < limit and process.poll() is None:
                    # Every look is at a whole file, or this raises.
                    if path.exists() and steps_of(path) >= reached + 20:
                        break
            finally:
                process.kill()
            _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors.decode()
        killed = dectool.History.load(path)
        assert killed.status == "unfinished"
        assert killed.step >= reached + 20
        reached = killed.step
    options = {
        "algorithm": algorithms.ATC(lr=lambda k: 0.1 / (1 + k)),
        "topology": topology.one_peer_exponential(8),
        "steps": reached + 7,
    }
    rest, whole = solve(resume=path, backend="sim", **options), solve(**options)
    same_bits(rest, whole)
    same_records(rest, whole)


HALF = """
    import os, signal, sys
    import numpy as np
    import dectool
    from dectool import algorithms, problems, topology

    whole, calls = np.savez, []

    def savez(stream, **arrays):
        calls.append(1)
        if len(calls) == 3:
            stream.write(b"half of it")
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        whole(stream, **arrays)

    np.savez = savez
    h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
    dectool.solve(
        algorithms.EXTRA(lr=0.1), problems.Quadratic(h=h, b=np.arange(8.0)[:, None]),
        topology=topology.ring(8), steps=20, checkpoint=sys.argv[1], checkpoint_every=4,
    )
"""


def test_a_half_written_file_never_replaces_a_good_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(HALF))
    path = tmp_path / "run.npz"
    process = subprocess.run([sys.executable, str(script), str(path)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert steps_of(path) == 8
    rest, whole = solve(resume=path), solve()
    same_bits(rest, whole)
    same_records(rest, whole)


def test_a_full_disk_keeps_the_last_checkpoint_and_is_an_error(tmp_path, monkeypatch):
    whole, calls = np.savez, []

    def savez(stream, **arrays):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        whole(stream, **arrays)

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(OSError, match="No space left"):
        solve(checkpoint=tmp_path, checkpoint_every=4)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]
    assert steps_of(tmp_path / "checkpoint.npz") == 8


@pytest.mark.parametrize(
    ("options", "kind", "parts"),
    [
        (
            {"checkpoint": "absent/run.npz"},
            ArgumentError,
            ["checkpoint='/", "there is no folder /", "/absent; make it"],
        ),
        ({"checkpoint": 5}, ArgumentTypeError, ["checkpoint is a int", "path of a file"]),
        ({"checkpoint": b"run.npz"}, ArgumentTypeError, ["checkpoint is a bytes"]),
        ({"checkpoint": None}, ArgumentError, ["checkpoint_every=5", "no checkpoint= says which"]),
        (
            {"checkpoint_every": None},
            ArgumentError,
            ["checkpoint='run.npz' needs checkpoint_every=", "checkpoint_every=100"],
        ),
        *(
            ({"checkpoint_every": wrong}, ArgumentError, [f"checkpoint_every={wrong!r} must be"])
            for wrong in (0, -3, 2.0, True, "5")
        ),
        (
            {"checkpoint_every": 25, "record_every": 10},
            ArgumentError,
            ["checkpoint_every=25 must be a multiple of record_every=10", "use 20"],
        ),
        (
            {"checkpoint_every": 5, "record_every": 10},
            ArgumentError,
            ["checkpoint_every=5 must be a multiple of record_every=10", "use 10"],
        ),
    ],
)
def test_bad_argument(options, kind, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        solve(**{"checkpoint": "run.npz", "checkpoint_every": 5, **options})
    for part in parts:
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []
