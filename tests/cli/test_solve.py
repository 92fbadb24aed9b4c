"""``dectool solve``: results as of the library, files, and everything that can be wrong."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology

QUICK = "solve EXTRA --problem quadratic:3 -n 8 --steps 30"


def test_the_same_as_the_library(cli, tmp_path):
    target = tmp_path / "out.npz"
    words = "--topology torus --l2 0.3 --steps 20 --lr 0.2 --seed 3 --record-every 4"
    result = cli(f"solve EXTRA {words} --save", target)
    assert result.exit_code == 0, result.output
    saved = dectool.History.load(target)
    data = problems.breast_cancer()
    problem = problems.LogisticRegression.from_data(data, n=16, l2=0.3, bias=True)
    expected = dectool.solve(
        algorithms.EXTRA(lr=0.2),
        problem,
        topology=topology.torus(4, 4),
        steps=20,
        seed=3,
        record_every=4,
    )
    assert saved.x.tobytes() == expected.x.tobytes()
    assert saved["step"].tolist() == [0, 4, 8, 12, 16, 20]
    assert "EXTRA(lr=0.2) on 4 x 4 torus, stacked" in result.stdout
    assert f"history: {target}" in result.stdout


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_models_are_passed_on(cli, tmp_path, backend):
    target = tmp_path / "out.npz"
    words = "--network alphabeta:latency=0.5 --compute constant:2 --backend"
    result = cli(f"{QUICK} {words} {backend} --save", target)
    assert result.exit_code == 0, result.output
    # EXTRA averages what it has while it computes the gradient, which takes longer.
    assert dectool.History.load(target).last["time"] == pytest.approx(30 * 2.5, rel=0.25)


def test_final_table(cli):
    out = cli(QUICK).stdout
    for name in ("status", "completed", "gap", "consensus error", "worst rank", "rate per step"):
        assert name in out


def test_step_size_that_nobody_gave(cli):
    out = cli("solve DGD --problem quadratic:d=3,kappa=4 -n 8 --steps 3").stdout
    problem = problems.Quadratic.random(8, 3, kappa=4)
    assert f"DGD(lr={0.5 / problem.L_max:.6g})" in out


def test_parameters_that_nobody_gave(cli):
    problem, ring = problems.Quadratic.random(8, 3, kappa=4), topology.ring(8)
    quick = "--problem quadratic:d=3,kappa=4 -n 8 --steps 3"
    chosen = algorithms.SSDA.for_problem(problem, ring)
    out = cli(f"solve SSDA {quick}").stdout
    assert f"SSDA(lr={chosen.lr:.6g}, momentum={chosen.momentum:.6g})" in out
    out = cli(f"solve MSDA {quick} --lr 0.1 --set momentum=0.5").stdout
    assert "MSDA(lr=0.1, momentum=0.5, rounds=2)" in out
    chosen = algorithms.DecentralizedADMM.for_problem(problem, ring)
    out = cli(f"solve DecentralizedADMM {quick}").stdout
    assert f"DecentralizedADMM(penalty={chosen.penalty:.6g})" in out


def test_an_l1_term(cli, tmp_path):
    target = tmp_path / "out.npz"
    result = cli("solve PGEXTRA --l1 0.05 -n 4 --topology complete --steps 400 --save", target)
    assert result.exit_code == 0, result.output
    assert "Composite(LogisticRegression" in result.stdout
    h = dectool.History.load(target)
    assert h.last["gap"] < 1e-6
    assert 0 < np.count_nonzero(h.x[0]) < 31
    result = cli("solve EXTRA --l1 0.05 -n 4 --steps 4")
    assert "EXTRA knows nothing of the common term" in " ".join(result.output.split())
    result = cli("solve PGEXTRA --l1 -1 -n 4 --steps 4")
    assert "L1: weight=-1.0 must be" in result.output


def test_stop(cli):
    result = cli("solve EXTRA --problem quadratic:3 -n 8 --stop gap=1e-3 --stop distance=1")
    assert result.exit_code == 0, result.output
    assert "stopped" in result.stdout


def test_set(cli):
    result = cli("solve ChebyshevGossip --set interval=tight -n 8 --steps 5")
    assert "ChebyshevGossip(interval='tight')" in result.stdout, result.output
    result = cli("solve AllReduceGD --set algorithm=ring --problem quadratic:2 -n 4 --steps 5")
    assert "algorithm='ring'" in result.stdout, result.output


def test_gossip_averages(cli):
    result = cli("solve Gossip --problem averaging:4 -n 8 --steps 5 --seed 2")
    assert "Averaging(n=8, shape=(4,))" in result.stdout, result.output


def test_resume(cli, tmp_path):
    half, whole, rest = (tmp_path / f"{name}.npz" for name in ("half", "whole", "rest"))
    line = "solve EXTRA --problem quadratic:3 -n 8 --save"
    assert cli(line, half, "--steps", 20).exit_code == 0
    assert cli(line, whole, "--steps", 50).exit_code == 0
    result = cli(line, rest, "--steps", 50, "--resume", half)
    assert result.exit_code == 0, result.output
    assert dectool.History.load(rest).x.tobytes() == dectool.History.load(whole).x.tobytes()


def test_checkpoint(cli, refused, tmp_path):
    whole, rest = tmp_path / "whole.npz", tmp_path / "rest.npz"
    line = "solve EXTRA --problem quadratic:3 -n 8 --record-every 5"
    words = f"--checkpoint {tmp_path / 'run.npz'} --checkpoint-every"
    assert cli(f"{line} --steps 20 {words} 10").exit_code == 0
    assert dectool.History.load(tmp_path / "run.npz").step == 20
    assert cli(f"{line} --steps 50 --save", whole).exit_code == 0
    result = cli(f"{line} --steps 50 --resume {tmp_path / 'run.npz'} --save", rest)
    assert result.exit_code == 0, result.output
    assert dectool.History.load(rest).x.tobytes() == dectool.History.load(whole).x.tobytes()
    assert "must be a multiple of record_every=5" in refused(f"{line} {words} 7")
    assert "there is no folder" in refused(f"{line} --checkpoint-every 5 --checkpoint no/run.npz")


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_picture(cli, tmp_path, suffix):
    target = tmp_path / f"out.{suffix}"
    result = cli(f"{QUICK} --plot", target)
    assert result.exit_code == 0, result.output
    assert target.stat().st_size > 1000
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_progress_goes_to_standard_error(cli):
    result = cli(f"{QUICK} --progress")
    assert "EXTRA" not in cli(f"{QUICK} --no-progress").stderr
    assert result.exit_code == 0
    assert result.stdout == cli(QUICK).stdout


@pytest.mark.parametrize("name", ["data.csv", "data.libsvm", "data.svm"])
def test_files(cli, tmp_path, name):
    rng = np.random.default_rng(0)
    path = tmp_path / name
    rows = []
    for x in rng.standard_normal((24, 2)):
        label = int(x.sum() > 0)
        csv = path.suffix == ".csv"
        rows.append(f"{x[0]},{x[1]},{label}" if csv else f"{label} 1:{x[0]} 2:{x[1]}")
    path.write_text("\n".join(rows) + "\n")
    result = cli("solve DGD -n 4 --steps 5 --problem", path)
    assert "LogisticRegression(data, n=4, shape=(3,)" in result.stdout, result.output


@pytest.mark.parametrize(
    ("labels", "loss", "kind"),
    [
        ([0, 1], "auto", "LogisticRegression"),
        ([0, 1, 2], "auto", "SoftmaxRegression"),
        ([0.5, 1.5, 2.25], "auto", "LeastSquares"),
        (list(range(30)), "auto", "LeastSquares"),
        ([0, 1, 2], "least_squares", "LeastSquares"),
        ([0, 1], "softmax", "SoftmaxRegression"),
    ],
)
def test_loss(cli, tmp_path, labels, loss, kind):
    path = tmp_path / "data.csv"
    rows = [f"{0.1 * i * i},{(i * 7) % 5},{labels[i % len(labels)]}" for i in range(60)]
    path.write_text("\n".join(rows))
    result = cli(f"solve DGD -n 2 --steps 2 --no-bias --loss {loss} --problem", path)
    assert f"{kind}(data, n=2" in result.stdout, result.output


@pytest.mark.parametrize("name", ["contiguous", "shuffled", "by_class", "dirichlet:5"])
def test_partition(cli, name):
    result = cli(f"solve CTA --problem digits -n 4 --steps 2 --partition {name}")
    assert result.exit_code == 0, result.output
    assert "SoftmaxRegression(digits, n=4" in result.stdout


def test_divergence_is_a_warning_and_a_status(cli):
    result = cli("solve DGD --problem quadratic:3 --lr 1e3 -n 4")
    assert result.exit_code == 1
    assert "Warning: DGD diverged: x of rank" in result.stderr
    assert "diverged" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("solve extr", ["algorithm 'extr' is unknown", "did you mean 'EXTRA'"]),
        ("solve D2 --problem quadratic:3", ["D2 on ring of 16", "-0.333333", "topology.lazy()"]),
        (
            "solve EXTRA --problem quadratic:3 --topology one_peer_exponential",
            ["EXTRA needs a fixed topology"],
        ),
        (f"{QUICK} --lr -1", ["EXTRA: lr=-1.0 must be finite and above 0"]),
        (f"{QUICK} --set foo=3", ["EXTRA has no parameter 'foo'", "known: lr"]),
        (f"{QUICK} --set lr=fast", ["lr is 'fast'"]),
        (f"{QUICK} --set lr", ["--set 'lr' must be NAME=VALUE"]),
        (f"{QUICK} --lr 0.1 --set lr=0.2", ["--lr 0.1 and --set lr=0.2 are both given"]),
        (f"{QUICK} --detection 0.5", ["--detection 0.5 would change nothing", "--fault"]),
        (f"{QUICK} --l2 0.5", ["--l2 0.5 is for data, of which --problem quadratic has none"]),
        (f"{QUICK} --no-bias", ["--no-bias is for data", "breast_cancer, digits or a file"]),
        ("solve Gossip --loss hinge", ["--loss hinge is for data", "averaging has none"]),
        (f"{QUICK} --save a.png --plot a.png", ["--plot a.png is the file of --save too"]),
        (
            "solve Gossip --topology one_peer_exponential --weights lazy",
            ["'one_peer_exponential' has weights of its own"],
        ),
        (f"{QUICK} --steps -1", ["steps=-1 must be an integer, at least 0"]),
        (f"{QUICK} --record-every 0", ["record_every=0"]),
        (f"{QUICK} --batch-size 4", ["Quadratic has no samples to draw"]),
        ("solve EXTRA --batch-size 0", ["batch_size=0 must be"]),
        (f"{QUICK} --stop gop=1", ["stop names 'gop'", "did you mean 'gap'"]),
        (f"{QUICK} --stop gap=low", ["--stop 'gap=low'", "'low' is not a number"]),
        (f"{QUICK} --topology torus:3x3", ["has 9 ranks, but n=8"]),
        (f"{QUICK} --backend nccl", ["'nccl'", "not part of this version"]),
        ("solve Gossip --problem digits", ["Gossip uses no gradient", "--problem averaging"]),
        ("solve EXTRA --problem brest", ["problem 'brest'", "did you mean 'breast_cancer'"]),
        ("solve EXTRA --problem nofile.csv", ["nofile.csv: No such file"]),
        ("solve EXTRA --problem nofile.libsvm", ["nofile.libsvm: No such file"]),
        ("solve EXTRA --problem quadratic:q=3", ["there is no 'q'"]),
        ("solve EXTRA --problem quadratic:kappa=0.5", ["kappa=0.5"]),
        ("solve Gossip --problem averaging:0", ["d=0 must be a whole number"]),
        ("solve EXTRA --l2 -1", ["l2"]),
        ("solve EXTRA --loss hinge", ["--loss 'hinge' is unknown", "logistic"]),
        ("solve EXTRA --problem digits --loss logistic", ["10 classes", "SoftmaxRegression"]),
        ("solve EXTRA --objective weightd", ["objective='weightd'", "did you mean 'weighted'"]),
        ("solve EXTRA --partition dirichle:1", ["did you mean 'dirichlet'"]),
        ("solve EXTRA --partition dirichlet:0.01", ["leaves rank", "larger alpha"]),
        (f"{QUICK} --resume nofile.npz", ["resume='nofile.npz': there is no file", "leave resume"]),
        (f"{QUICK} --save no/such/folder/x.npz", ["no/such/folder: there is no such folder"]),
        (f"{QUICK} --plot no/such/folder/x.png", ["no/such/folder", "--plot"]),
        (f"{QUICK} --plot out.xyz", ["--plot out.xyz", "png"]),
    ],
)
def test_refused(refused, line, parts):
    text = refused(line)
    for part in parts:
        assert part in text


@pytest.mark.parametrize("option", ["--save", "--checkpoint"])
def test_data_are_not_written_over(refused, tmp_path, option):
    path = tmp_path / "data.csv"
    path.write_text("1,2,0\n3,4,1\n")
    line = f"solve EXTRA -n 2 --checkpoint-every 5 --problem {path} {option}"
    assert f"{option} {path} is the file of --problem too" in refused(line, path)
    assert path.read_text() == "1,2,0\n3,4,1\n"


def test_no_check_insists(cli):
    assert cli("solve D2 --problem quadratic:3 --steps 5 --no-check").exit_code == 0


def test_malformed_line_is_named(refused, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2,0\n3,four,1\n")
    text = refused("solve EXTRA --problem", path)
    assert "data.csv" in text
    assert "line 2" in text
    assert "four" in text


def test_save_to_a_folder(refused, tmp_path):
    assert "is a folder" in refused(f"{QUICK} --save", tmp_path)


def test_resume_from_something_else(refused, tmp_path):
    path = tmp_path / "note.npz"
    path.write_text("this is no history")
    assert "is no history that History.save wrote" in refused(f"{QUICK} --resume", path)


def test_resume_of_another_algorithm(cli, refused, tmp_path):
    path = tmp_path / "out.npz"
    cli(f"{QUICK} --save", path)
    line = "solve DGD --problem quadratic:3 -n 8 --resume"
    assert "is a history of EXTRA, not of DGD" in refused(line, path)


def test_a_failing_run_leaves_no_file(refused, tmp_path):
    target = tmp_path / "out.npz"
    refused("solve D2 --problem quadratic:3 --save", target)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib"])
def test_missing_package_is_one_line_to_install(refused, monkeypatch, missing):
    import importlib

    real = importlib.import_module

    def without(name, *rest):
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    extra = {"sklearn": "data", "matplotlib": "plot"}[missing]
    line = "solve EXTRA --steps 2" if missing == "sklearn" else f"{QUICK} --plot out.png"
    assert f"pip install 'dectool[{extra}]'" in refused(line)
