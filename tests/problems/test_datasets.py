"""Bundled data sets and the Dataset class."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dectool import problems
from dectool.errors import ArgumentError, MissingDependencyError


def test_breast_cancer():
    raw = problems.breast_cancer(standardize=False)
    assert raw.X.shape == (569, 30)
    assert raw.classes == ("malignant", "benign")
    data = problems.breast_cancer(rows=568)
    assert (
        pytest.approx((raw.X[:568] - raw.X[:568].mean(axis=0)) / raw.X[:568].std(axis=0), rel=1e-12)
        == data.X
    )
    assert (data.y == raw.y[:568]).all()
    assert repr(data) == "Dataset(breast_cancer, 568 samples, 30 features, " + (
        "classes: malignant, benign)"
    )


def test_digits_constant_pixels_become_zero():
    data = problems.digits()
    assert data.X.shape == (1797, 64)
    assert (data.X[:, 0] == 0).all()
    moving = data.X.any(axis=0)
    assert data.X[:, moving].std(axis=0) == pytest.approx(1.0)
    assert data.classes == tuple("0123456789")


def test_take():
    data = problems.Dataset([[1.0], [2.0], [3.0]], ["a", "b", "a"], "abc")
    assert data.take(2).X.tolist() == [[1], [2]]
    assert data.take(slice(1, None)).y.tolist() == ["b", "a"]
    assert data.take([2, 0]).X.tolist() == [[3], [1]]
    assert data.take(data.y == "a").X.tolist() == [[1], [3]]
    assert data.take(np.array([0])).name == "abc"
    for rows, text in [
        (0, "rows=0 is out of range"),
        (4, "abc has 3"),
        ([5], "does not fit abc"),
        (slice(3, None), "selects no sample"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            data.take(rows)


def test_dataset_is_frozen_and_copies():
    X = np.ones((2, 1))
    data = problems.Dataset(X, [0, 1])
    X[0, 0] = 7
    assert data.X[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 3
    with pytest.raises(AttributeError):
        data.name = "other"


def test_held_out_accuracy():
    data = problems.digits()
    order = np.random.default_rng(0).permutation(len(data))
    train, test = data.take(order[:1000]), data.take(order[1000:1400])
    p = problems.SoftmaxRegression.from_data(train, n=8, l2=0.05, bias=True)
    assert p.accuracy(p.optimum, test) > 0.9
    both = np.stack([p.optimum, np.zeros(p.shape)])
    assert p.accuracy(both, test).shape == (2,)
    # All scores equal: the first class is chosen.
    assert p.accuracy(both, test)[1] == np.mean(test.y == 0)
    with pytest.raises(ArgumentError, match=r"data has 30 features.*64"):
        p.accuracy(p.optimum, problems.breast_cancer())
    with pytest.raises(ArgumentError, match="data holds the label 11"):
        p.accuracy(p.optimum, problems.Dataset(np.zeros((1, 64)), [11]))


@pytest.mark.parametrize("objective", ["mean_of_means", "weighted"])
def test_accuracy_counts_samples_not_padding(objective):
    A = [[-1.0], [1.0], [1.0], [2.0], [-1.0]]
    p = problems.LogisticRegression(
        A, [0, 1, 0, 1, 1], partition=[[0], [1, 2, 3, 4]], l2=0.1, objective=objective
    )
    assert p.accuracy([1.0]) == pytest.approx(3 / 5)
    # A score of zero counts as the second class.
    assert p.accuracy([0.0]) == pytest.approx(3 / 5)
    assert p.accuracy(np.float32([-1.0])) == pytest.approx(2 / 5)
    assert p.accuracy(np.float32([-1.0])).dtype == np.float64


def test_missing_scikit_learn_says_how_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    for call in (problems.breast_cancer, lambda: problems.load_libsvm(tmp_path / "a.svm")):
        with pytest.raises(MissingDependencyError, match=r"pip install 'dectool\[data\]'"):
            call()


def test_importing_problems_is_light():
    code = (
        "import sys, dectool.problems; "
        "print(sorted({'sklearn', 'pandas', 'torch', 'scipy.optimize', 'dectool.sim', "
        "'dectool.backends'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50
    )
    # What `import dectool` itself loads is not the business of this package.
    base = subprocess.run(
        [sys.executable, "-c", code.replace("dectool.problems", "dectool")],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    assert found.stdout == base.stdout
