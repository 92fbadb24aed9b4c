"""compare: every combination a row, whatever the number of processes; summaries; files."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dectool
from dectool import Comparison, algorithms, problems, topology
from dectool.comparison import KEYS, REACHED, Run
from dectool.errors import ArgumentError, ArgumentTypeError, BackendError, DataError
from dectool.metrics import COLUMNS
from dectool.sim import AlphaBeta, Constant, Exponential

ALGORITHMS = {"DGD": algorithms.DGD(lr=0.05), "EXTRA": algorithms.EXTRA(lr=0.05)}
RING = topology.ring(8)


def problem(seed=0):
    return problems.Quadratic.random(8, 2, seed=seed)


def logistic():
    data = problems.breast_cancer(rows=80)
    return problems.LogisticRegression.from_data(data, n=8, l2=0.1)


def compare(given=None, what=None, **options):
    options = {"topologies": [RING], "steps": 60, "processes": 1, **options}
    return dectool.compare(
        ALGORITHMS if given is None else given, problem() if what is None else what, **options
    )


@pytest.fixture(scope="module")
def sweep():
    return compare(
        {**ALGORITHMS, "D2": algorithms.D2(lr=0.05), "far": algorithms.DGD(lr=1e3)},
        logistic(),
        topologies={"ring": RING, "lazy": RING.lazy()},
        networks={"ideal": None, "slow": AlphaBeta(1e-3, 1e6)},
        computes={"random": Exponential(1e-3)},
        seeds=[3, 1],
        batch_size=4,
        tolerance={"consensus_error": 0.5, "gap": 0.5},
        steps=400,
    )


# -- rows ------------------------------------------------------------------------------------------


def test_every_combination_in_order(sweep):
    assert len(sweep) == 4 * 2 * 2 * 2
    expected = [
        (a, t, n, "random", seed)
        for a in ("DGD", "EXTRA", "D2", "far")
        for t in ("ring", "lazy")
        for n in ("ideal", "slow")
        for seed in (3, 1)
    ]
    assert [(*run.key, run.seed) for run in sweep] == expected


def test_a_row_is_what_solve_says(sweep):
    run = next(r for r in sweep.select(algorithm="EXTRA", network="slow", seed=1))
    h = dectool.solve(
        ALGORITHMS["EXTRA"],
        logistic(),
        topology=RING,
        network=AlphaBeta(1e-3, 1e6),
        compute=Exponential(1e-3),
        seed=1,
        batch_size=4,
        steps=400,
    )
    for name in COLUMNS:
        assert run.records[name].tobytes() == h[name].tobytes()
    row = run.row()
    assert {name: row[name] for name in COLUMNS} == h.last
    first = h.first(consensus_error=0.5, gap=0.5)
    assert {name: row[name] for name in REACHED} == {k: first[c] for k, c in REACHED.items()}
    assert row["rate"] == h.rate()
    assert (row["status"], row["error"]) == ("completed", "")


def test_refused_combinations_are_rows(sweep):
    refused = sweep.select(algorithm="D2", topology="ring")
    assert {run.status for run in refused} == {"refused"}
    for run in refused:
        assert "the smallest eigenvalue of W is -0.333333" in run.error
        assert run.reached is None
        assert all(math.isnan(run.row()[name]) for name in (*COLUMNS, *REACHED))
    assert {run.status for run in sweep.select(algorithm="D2", topology="lazy")} == {"completed"}
    unchecked = compare({"D2": algorithms.D2(lr=0.05)}, check=False)
    assert [run.status for run in unchecked] == ["completed"]


def test_a_topology_of_another_size_is_a_row():
    c = compare(topologies=[RING, topology.ring(6)])
    assert [run.status for run in c] == ["completed", "refused"] * 2
    assert "6 ranks, but the problem has 8" in c.runs[1].error


def test_diverged_runs_do_not_warn(sweep):
    assert {run.status for run in sweep.select(algorithm="far")} == {"diverged"}


def test_stop_and_tolerance():
    c = compare(stop={"gap": 1e-2}, tolerance={"gap": 1e-2}, steps=500)
    for run in c:
        assert run.status == "stopped"
        assert run.reached == {name: run.row()[name] for name in COLUMNS}
    assert c.about == {
        "problem": "Quadratic", "backend": "stacked", "steps": 500, "tolerance": {"gap": 1e-2},
    }  # fmt: skip


def test_default_tolerance_is_the_gap():
    run = compare({"EXTRA": algorithms.EXTRA(lr=0.05)}, steps=800).runs[0]
    assert run.reached["gap"] <= 1e-6
    assert run.records["gap"][int(run.reached["step"]) - 1] > 1e-6


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_backends_give_the_same_table(backend):
    c = compare(backend=backend, computes=[Constant(1e-3)], networks=[AlphaBeta(1e-4, 1e6)])
    pd.testing.assert_frame_equal(
        c.to_pandas(),
        compare(computes=[Constant(1e-3)], networks=[AlphaBeta(1e-4, 1e6)]).to_pandas(),
    )


def test_a_problem_for_each_seed():
    c = compare(what=problem, seeds=range(3))
    for seed in range(3):
        run = next(iter(c.select(algorithm="DGD", seed=seed)))
        h = dectool.solve(ALGORITHMS["DGD"], problem(seed), topology=RING, steps=60, seed=seed)
        assert run.records["gap"].tobytes() == h["gap"].tobytes()


def test_names_of_lists():
    c = compare(
        [algorithms.DGD(lr=0.1), algorithms.DGD(lr=0.05), algorithms.EXTRA(lr=0.05)],
        topologies=[RING, topology.torus(2, 4)],
        networks=[None, AlphaBeta(1e-3)],
        steps=1,
    )
    assert list(dict.fromkeys(run.algorithm for run in c)) == [
        "DGD(lr=0.1)",
        "DGD(lr=0.05)",
        "EXTRA",
    ]
    assert list(dict.fromkeys(run.topology for run in c)) == ["ring of 8", "2 x 4 torus"]
    networks = ["ideal", "AlphaBeta(latency=0.001, bandwidth=inf, port='serial')"]
    assert list(dict.fromkeys(run.network for run in c)) == networks
    assert {run.compute for run in c} == {"none"}


# -- processes -------------------------------------------------------------------------------------


def test_processes_change_nothing(sweep, tmp_path):
    options = {
        "topologies": {"ring": RING, "one peer": topology.one_peer_exponential(8)},
        "computes": [Exponential(1e-3)],
        "seeds": [0, 1],
        "batch_size": 4,
    }
    one = compare(what=logistic(), **options)
    two = compare(what=logistic(), processes=2, **options)
    paths = [c.save(tmp_path / f"{k}.json") for k, c in enumerate((one, two))]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [run.status for run in two][2:6:2] == ["completed", "completed"]


def test_an_error_in_a_run_says_which():
    class Broken(problems.Averaging.__mro__[1]):
        def __init__(self):
            super().__init__(8, (1,), "Broken")

        def _values(self, X, rows):
            return X.sum(axis=-1)

        def _grads(self, X, rows):
            raise ZeroDivisionError("no gradient today")

        def _hessians(self, X, rows):
            raise NotImplementedError

        def _curvature(self):
            return problems.Curvature(1.0, 1.0, 1.0)

        def _solve(self):
            return np.zeros(1)

    with pytest.raises(ZeroDivisionError) as caught:
        compare(what=Broken())
    assert "in the run of DGD on ring of 8, ideal, none, seed=0" in caught.value.__notes__


def test_what_cannot_be_sent_is_named():
    scheduled = {"DGD": algorithms.DGD(lr=lambda k: 0.1 / (k + 1))}
    assert len(compare(scheduled, seeds=[0, 1])) == 2
    with pytest.raises(ArgumentError) as caught:
        compare(scheduled, seeds=[0, 1], processes=2)
    assert "algorithms['DGD'] cannot be sent to another process" in str(caught.value)
    assert "processes=1" in str(caught.value)
    with pytest.raises(ArgumentError, match="stop cannot be sent"):
        compare(stop=lambda record: False, processes=2)


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import dectool\n"
        "from dectool import algorithms, problems, topology\n"
        "try:\n"
        "    dectool.compare([algorithms.DGD(lr=0.1), algorithms.EXTRA(lr=0.1)],\n"
        "        problems.Quadratic.random(4, 2), topologies=[topology.ring(4)], steps=2,\n"
        "        processes=2)\n"
        "except dectool.DectoolError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=50
    )
    assert "BackendError a process of compare died" in done.stdout
    assert 'if __name__ == "__main__":' in done.stdout
    assert issubclass(BackendError, RuntimeError)


def test_progress(capsys):
    compare(progress=False)
    assert capsys.readouterr().err == ""
    compare(progress=True)
    assert capsys.readouterr().out == ""


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "parts"),
    [
        ({"given": {}}, ArgumentError, ["algorithms is empty"]),
        ({"given": "EXTRA"}, ArgumentTypeError, ["algorithms is a str", "give a list"]),
        ({"given": ["EXTRA"]}, ArgumentTypeError, ["algorithms holds something else"]),
        ({"given": {"EXTRA": algorithms.EXTRA}}, ArgumentTypeError, ["make an instance"]),
        ({"given": [algorithms.DGD(lr=0.1)] * 2}, ArgumentError, ["algorithms holds one twice"]),
        ({"what": np.eye(8)}, ArgumentTypeError, ["problem is a ndarray", "for a seed"]),
        ({"what": lambda seed: seed}, ArgumentTypeError, ["problem is a int"]),
        ({"topologies": []}, ArgumentError, ["topologies is empty"]),
        ({"topologies": RING}, ArgumentTypeError, ["topologies is a Topology"]),
        ({"topologies": ["ring"]}, ArgumentTypeError, ["topologies holds something else"]),
        ({"networks": AlphaBeta()}, ArgumentTypeError, ["networks is a AlphaBeta"]),
        ({"seeds": 3}, ArgumentTypeError, ["seeds is 3", "range(5)"]),
        ({"seeds": []}, ArgumentTypeError, ["seeds is []"]),
        ({"seeds": [0, 0]}, ArgumentError, ["seeds=[0, 0] holds one twice"]),
        ({"seeds": [-1]}, ArgumentError, ["seeds holds -1"]),
        ({"seeds": [0.5]}, ArgumentError, ["seeds holds 0.5"]),
        ({"backend": "stcked"}, ArgumentError, ["did you mean 'stacked'"]),
        ({"tolerance": {"gpa": 1}}, ArgumentError, ["tolerance names 'gpa'", "'gap'"]),
        ({"tolerance": {}}, ArgumentError, ["tolerance is empty"]),
        ({"stop": {"gpa": 1}}, ArgumentError, ["stop names 'gpa'"]),
        ({"steps": -1}, ArgumentError, ["steps=-1"]),
        ({"record_every": 0}, ArgumentError, ["record_every=0"]),
        ({"batch_size": 2}, ArgumentError, ["Quadratic has no samples"]),
        ({"processes": 0}, ArgumentError, ["processes=0 must be an integer, at least 1"]),
        ({"processes": 1.5}, ArgumentError, ["processes=1.5"]),
    ],
)
def test_bad_argument(options, kind, parts):
    with pytest.raises(kind) as caught:
        compare(**options)
    for part in parts:
        assert part in str(caught.value)


# -- tables ----------------------------------------------------------------------------------------


def test_to_pandas(sweep):
    table = sweep.to_pandas()
    columns = [*KEYS, "seed", "status", *REACHED, *COLUMNS, "rate", "error"]
    assert list(table.columns) == columns
    assert len(table) == len(sweep)
    assert table.loc[table.status == "refused", "gap"].isna().all()


def test_summary_is_the_mean_and_students_interval():
    values = [1.0, 2.0, 4.0, 8.0]
    runs = [
        Run("A", "t", "n", "c", seed, "completed", records={c: np.array([v]) for c in COLUMNS})
        for seed, v in enumerate(values)
    ]
    row = Comparison(runs, {}).summary("gap").iloc[0]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert row["gap"] == 3.75
    assert row["gap"] - row["gap_ci"] == pytest.approx(low)
    assert row["gap"] + row["gap_ci"] == pytest.approx(high)
    wider = Comparison(runs, {}).summary("gap", level=0.99).iloc[0]
    assert wider["gap_ci"] > row["gap_ci"]


def test_summary_of_a_sweep(sweep):
    table = sweep.summary()
    assert len(table) == len(sweep.groups()) == 16
    assert set(table["runs"]) == {2}
    extra = table[(table.algorithm == "EXTRA") & (table.network == "slow")].iloc[0]
    runs = sweep.select(algorithm="EXTRA", network="slow", topology="ring")
    assert extra["reached"] == sum(run.reached is not None for run in runs) == 2
    assert extra["time_to"] == np.mean([run.reached["time"] for run in runs])
    refused = table[table.status == "refused"]
    assert len(refused) == 2
    assert refused["gap"].isna().all()


def test_summary_does_not_flatter():
    record = {c: np.array([0.0]) for c in COLUMNS}
    runs = [
        Run("A", "t", "n", "c", 0, "stopped", reached=dict.fromkeys(COLUMNS, 3.0), records=record),
        Run("A", "t", "n", "c", 1, "completed", records=record),
    ]
    row = Comparison(runs, {}).summary().iloc[0]
    assert row["reached"] == 1
    assert math.isnan(row["steps_to"])
    assert row["status"] == "stopped, completed"


def test_one_seed_has_no_interval():
    row = compare().summary().iloc[0]
    assert not math.isnan(row["gap"])
    assert math.isnan(row["gap_ci"])


def test_wrong_summary(sweep):
    with pytest.raises(ArgumentError, match="no column 'gpa' to average; did you mean 'gap'"):
        sweep.summary("gpa")
    for level in (0.0, 1.0, 95):
        with pytest.raises(ArgumentError, match=r"level=.* must be between 0 and 1"):
            sweep.summary(level=level)


def test_select(sweep):
    assert len(sweep.select(algorithm="DGD", seed=1)) == 4
    assert len(sweep.select()) == len(sweep)
    with pytest.raises(ArgumentError, match="no run has algorithm='EXTR'; there are DGD, EXTRA"):
        sweep.select(algorithm="EXTR")
    with pytest.raises(ArgumentError, match="no column 'algo' to select by"):
        sweep.select(algo="DGD")


def test_repr(sweep):
    text = repr(sweep)
    assert "breast_cancer: 32 runs" in text
    assert "4 refused" in text
    assert "8 diverged" in text


# -- files -----------------------------------------------------------------------------------------


def test_round_trip(sweep, tmp_path):
    path = sweep.save(tmp_path / "sweep.json")
    loaded = Comparison.load(path)
    assert loaded.about == sweep.about
    pd.testing.assert_frame_equal(loaded.to_pandas(), sweep.to_pandas())
    for a, b in zip(loaded, sweep, strict=True):
        assert (a.records is None) == (b.records is None)
        for name in COLUMNS if b.records else ():
            assert a.records[name].dtype == b.records[name].dtype
            np.testing.assert_array_equal(a.records[name], b.records[name])
    assert loaded.save(tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_file_is_strict_json(sweep, tmp_path):
    def refuse(word):
        raise AssertionError(word)

    path = sweep.save(tmp_path / "sweep.json")
    json.loads(path.read_text(), parse_constant=refuse)
    assert [p.name for p in tmp_path.iterdir()] == ["sweep.json"]


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", "{}", '{"format": 1}', '{"format": 1, "about": {}, "runs": [{}]}']
)
def test_foreign_file(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"other.json is no comparison that Comparison.save wrote"):
        Comparison.load(path)


def test_binary_file(tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is no comparison"):
        Comparison.load(path)


def test_later_format(tmp_path):
    path = tmp_path / "later.json"
    path.write_text('{"format": 2}')
    with pytest.raises(DataError, match="has format 2, and this version reads up to 1"):
        Comparison.load(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Comparison.load(tmp_path / "absent.json")
