"""A solve that goes on from a history has the bits of one that was never interrupted."""

from pathlib import Path

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, DataError
from dectool.sim import AlphaBeta, Constant
from tests.solving import ALL, BACKENDS, TRACKING, logistic, same_bits, same_records, solve


@pytest.mark.parametrize("second", BACKENDS)
@pytest.mark.parametrize("first", BACKENDS)
@pytest.mark.parametrize("name", ALL)
def test_resume_gives_the_bits_of_an_uninterrupted_run(name, first, second):
    gossips = not ALL[name].uses_gradient
    problem = problems.Averaging(np.eye(8)) if gossips else logistic()
    options = {"problem": problem, "check": False, "seed": 1}
    if not gossips and ALL[name].oracle == "gradient":
        options["batch_size"] = 3
    whole = solve(ALL[name], steps=12, backend=second, **options)
    half = solve(ALL[name], steps=5, backend=first, **options)
    rest = solve(ALL[name], steps=12, backend=second, resume=half, **options)
    same_bits(rest, whole)
    same_records(rest, whole)
    assert rest.about["gradients"] == whole.about["gradients"]


def test_resume_after_a_round_trip(tmp_path):
    half = solve(TRACKING, logistic(), steps=5, batch_size=3)
    loaded = dectool.History.load(half.save(tmp_path / "half.npz"))
    whole = solve(TRACKING, logistic(), steps=9, batch_size=3)
    same_bits(solve(TRACKING, logistic(), steps=9, batch_size=3, resume=loaded), whole)


@pytest.mark.parametrize("backend", BACKENDS)
def test_resume_with_a_schedule_of_both_kinds(backend):
    algorithm = algorithms.ATC(lr=lambda k: 0.3 / (1 + k))
    options = {"topology": topology.one_peer_exponential(8), "backend": backend}
    whole = solve(algorithm, steps=11, **options)
    half = solve(algorithm, steps=4, **options)
    same_bits(solve(algorithm, steps=11, resume=half, **options), whole)


@pytest.mark.parametrize("backend", BACKENDS)
def test_resumed_clocks_go_on(backend):
    models = {"network": AlphaBeta(1e-3, 1e6), "compute": Constant(2e-3), "backend": backend}
    half = solve(steps=5, **models)
    rest = solve(steps=9, resume=half, **models)
    whole = solve(steps=9, **models)
    np.testing.assert_allclose(rest["time"], whole["time"], rtol=1e-12)
    assert rest["bytes"].tolist() == whole["bytes"].tolist()
    assert rest["step"].tolist() == list(range(10))


@pytest.mark.parametrize("backend", BACKENDS)
def test_resume_without_a_step_left(backend):
    half = solve(steps=5, backend=backend)
    again = solve(steps=5, backend=backend, resume=half)
    same_records(half, again)
    same_bits(half, again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 3}, "steps=3, but resume is at step 5 already; steps counts from the very"),
        ({"algorithm": algorithms.NIDS(lr=0.1)}, "resume is a history of EXTRA, not of NIDS"),
        ({"x0": [1.0]}, "x0 and resume are both given"),
        (
            {"problem": problems.Averaging(np.eye(8)), "check": False},
            "resume is a history of Quadratic, not of Averaging; go on with the same problem",
        ),
        (
            {"problem": problems.Quadratic.random(8, 3)},
            r"resume has iterates of shape \(8, 1\), but the problem's are \(8, 3\)",
        ),
    ],
)
def test_resume_of_something_else(options, message):
    half = solve(steps=5)
    with pytest.raises(ArgumentError, match=message):
        solve(resume=half, **options)


@pytest.mark.parametrize("kind", [str, Path])
def test_resume_by_the_name_of_a_file(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solve(steps=5).save("half.npz")
    whole = solve()
    same_bits(solve(resume=kind("half.npz")), whole)
    same_records(solve(resume=kind(tmp_path / "half.npz")), whole)


@pytest.mark.parametrize(
    ("resume", "kind", "parts"),
    [
        ("out.npz", ArgumentError, ["resume='out.npz'", "there is no file /", "leave resume out"]),
        (".", ArgumentError, ["resume='.'", "there is no file /", "checkpoint.npz"]),
        ("note.txt", DataError, ["note.txt is no history that History.save wrote"]),
        (5, ArgumentTypeError, ["resume is a int", "'run.npz'"]),
        (b"half.npz", ArgumentTypeError, ["resume is a bytes", "'run.npz'"]),
        ("half.npz", ArgumentError, ["resume='half.npz' is a history of DGD, not of EXTRA"]),
    ],
)
def test_resume_from_what_is_no_history(resume, kind, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("nothing to go on from")
    solve(algorithms.DGD(lr=0.1), steps=5).save("half.npz")
    with pytest.raises(kind) as caught:
        solve(resume=resume)
    for part in parts:
        assert part in str(caught.value)
