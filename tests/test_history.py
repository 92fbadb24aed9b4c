"""History: columns, first, rate, tables, and files that are whole or not there."""

import io
import json
import os
import stat

import numpy as np
import pytest

import dectool
from dectool import History, algorithms, problems, topology
from dectool.errors import ArgumentError, DataError, MissingDependencyError
from dectool.metrics import COLUMNS, measure


def quadratic(n=8):
    h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:n, None]
    return problems.Quadratic(h=h, b=np.arange(float(n))[:, None])


def solved(algorithm=None, steps=30, **options):
    algorithm = algorithms.EXTRA(lr=0.1) if algorithm is None else algorithm
    return dectool.solve(algorithm, quadratic(), topology=topology.ring(8), steps=steps, **options)


@pytest.fixture(scope="module")
def history():
    return solved(
        network=dectool.sim.AlphaBeta(latency=1e-3, bandwidth=1e6),
        compute=dectool.sim.Constant(1e-3),
    )


def made(**columns):
    """Return a history with the given columns, zeros elsewhere."""
    length = len(next(iter(columns.values())))
    records = {name: np.asarray(columns.get(name, np.zeros(length))) for name in COLUMNS}
    return History(records, {"x": np.zeros((2, 1))}, np.zeros((2, 1)), "completed", {})


def test_what_it_holds(history):
    assert len(history) == 31
    assert history.step == 30
    assert history.x.shape == (8, 1)
    assert history.x0.tolist() == [[0.0]] * 8
    assert history.status == "completed"
    assert history.about["parameters"] == {"lr": 0.1}
    assert history.about["compute"] == "Constant(seconds=0.001)"
    assert set(history.state) == {"x", "x_prev", "Wx_prev", "g_prev"} or "x" in history.state
    assert "EXTRA on ring of 8: 30 steps, gap" in repr(history)


def test_columns_measure_the_iterates(history):
    again = measure(quadratic(), history.x.reshape(8, 1), solved(steps=29).x)
    assert {name: history.last[name] for name in again} == again
    assert history["step"].tolist() == list(range(31))
    assert history["messages"].tolist() == [16 * k for k in range(31)]
    assert history["bytes"].tolist() == [128 * k for k in range(31)]
    assert np.isnan(history["change"][0])
    assert (np.diff(history["time"]) > 0).all()


def test_unknown_column(history):
    with pytest.raises(ArgumentError, match="no column 'gpa'; did you mean 'gap'"):
        history["gpa"]


def test_first(history):
    limit = history["gap"][12]
    found = history.first(gap=limit)
    assert found["gap"] <= limit
    before = int(found["step"])
    assert (history["gap"][:before] > limit).all()
    both = history.first(gap=limit, consensus_error=1e-1)
    assert both["gap"] <= limit
    assert both["consensus_error"] <= 1e-1
    assert history.first(gap=-1.0) is None
    with pytest.raises(ArgumentError, match="no column 'gaps'"):
        history.first(gaps=1.0)


def test_first_skips_what_is_no_number():
    h = made(step=[0, 1, 2], change=[np.nan, 0.5, 0.1])
    assert h.first(change=1.0)["step"] == 1


def test_rate():
    steps = np.arange(0, 200, 2)
    assert made(step=steps, change=3.0 * 0.9**steps).rate() == pytest.approx(0.9)
    assert made(step=steps, gap=1.1**steps).rate("gap") == pytest.approx(1.1)
    assert np.isnan(made(step=[0, 1], change=[np.nan, 1.0]).rate())
    assert np.isnan(made(step=[0, 1], change=[np.nan, np.nan]).rate())
    assert np.isnan(made(step=steps, change=0.0 * steps).rate())


def test_rate_leaves_rounding_and_infinity_out():
    steps = np.arange(100)
    values = np.maximum(0.5**steps, 1e-16)
    assert made(step=steps, change=values).rate() == pytest.approx(0.5)
    grows = 2.0**steps
    grows[-1] = np.inf
    assert made(step=steps, change=grows).rate() == pytest.approx(2.0)


def test_rate_of_gossip_is_the_second_eigenvalue():
    values = np.random.default_rng(0).standard_normal((8, 3))
    ring = topology.ring(8)
    h = dectool.solve(algorithms.Gossip(), problems.Averaging(values), topology=ring, steps=100)
    assert h.rate("consensus_error") == pytest.approx(ring.slem, rel=1e-6)


def test_to_pandas(history):
    table = history.to_pandas()
    assert tuple(table.columns) == COLUMNS
    assert len(table) == 31
    assert table["gap"].to_numpy().tobytes() == history["gap"].tobytes()
    kinds = table.dtypes.astype(str)
    assert set(kinds[["step", "bytes", "messages", "worst_rank", "alive"]]) == {"int64"}
    assert set(kinds.drop(["step", "bytes", "messages", "worst_rank", "alive"])) == {"float64"}


@pytest.mark.parametrize("package", ["pandas", "matplotlib"])
def test_without_the_package(history, monkeypatch, package):
    import importlib

    def without(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", without)
    use = history.to_pandas if package == "pandas" else history.plot
    with pytest.raises(MissingDependencyError, match=r"pip install 'dectool\[plot\]'"):
        use()


def same(a, b):
    assert (a.status, a.about) == (b.status, b.about)
    assert a.x0.tobytes() == b.x0.tobytes()
    assert a.state.keys() == b.state.keys()
    for name, value in a.state.items():
        assert type(value) is type(b.state[name])
        assert np.asarray(value).tobytes() == np.asarray(b.state[name]).tobytes()
    for name in COLUMNS:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes()


@pytest.mark.parametrize(
    "algorithm",
    [algorithms.EXTRA(lr=0.1), algorithms.NIDS(lr=0.1), algorithms.DGD(lr=lambda k: 0.1)],
)
def test_round_trip(tmp_path, algorithm):
    h = solved(algorithm, steps=5, seed=np.int64(3))
    path = h.save(tmp_path / "out.npz")
    same(History.load(path), h)
    assert [p.name for p in tmp_path.iterdir()] == ["out.npz"]


def test_round_trip_of_a_shared_number(tmp_path):
    h = dectool.solve(
        algorithms.ChebyshevGossip(),
        problems.Averaging(np.eye(8)),
        topology=topology.ring(8),
        steps=5,
    )
    assert isinstance(h.state["omega"], float)
    same(History.load(h.save(tmp_path / "out.npz")), h)


def test_saved_without_pickle(history, tmp_path):
    with np.load(history.save(tmp_path / "out.npz"), allow_pickle=False) as archive:
        assert json.loads(archive["head"].tobytes())["status"] == "completed"


def test_a_saved_file_can_be_read_by_others(history, tmp_path):
    before = os.umask(0o022)
    try:
        path = history.save(tmp_path / "out.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failing_write_leaves_the_old_file(history, tmp_path, monkeypatch):
    path = history.save(tmp_path / "out.npz")
    old = path.read_bytes()

    def full(stream, **arrays):
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        history.save(path)
    assert path.read_bytes() == old
    with pytest.raises(OSError, match="No space left"):
        history.save(tmp_path / "other.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["out.npz"]


def test_interrupted_write_leaves_nothing(history, tmp_path, monkeypatch):
    def interrupted(stream, **arrays):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        history.save(tmp_path / "out.npz")
    assert list(tmp_path.iterdir()) == []


def test_no_such_folder(history, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder") as caught:
        history.save(tmp_path / "absent" / "out.npz")
    assert caught.value.filename == str(tmp_path / "absent")


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        History.load(tmp_path / "absent.npz")


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, **arrays)
    return stream.getvalue()


def npy():
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


FOREIGN = {
    "text": b"gap,step\n1,2\n",
    "empty": b"",
    "truncated zip": b"PK\x03\x04 and no more",
    "npy": npy(),
    "other npz": npz(a=np.zeros(3)),
    "pickle": npz(head=np.array([{}], object)),
    "head of other things": npz(head=np.frombuffer(b'{"a": 1}', np.uint8)),
    "head only": npz(head=np.frombuffer(b'{"format": 1}', np.uint8)),
    "no JSON": npz(head=np.frombuffer(b"{{", np.uint8)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_file(tmp_path, kind):
    path = tmp_path / "foreign.npz"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(DataError, match=r"foreign.npz is no history that History.save wrote"):
        History.load(path)


def test_cut_file(history, tmp_path):
    path = history.save(tmp_path / "out.npz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="is no history"):
        History.load(path)


def test_later_format(history, tmp_path):
    path = history.save(tmp_path / "out.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    head = json.loads(arrays["head"].tobytes()) | {"format": 2}
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(DataError, match="has format 2, and this version reads up to 1; update"):
        History.load(path)
