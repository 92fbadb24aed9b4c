"""CSV and libsvm files: round trips, and malformed lines by their number."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from dectool import problems
from dectool.errors import ArgumentError, DataError

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
tables = st.tuples(st.integers(1, 8), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=numbers)
)


@settings(max_examples=50, deadline=None)
@given(X=tables, header=st.booleans(), first=st.booleans())
def test_csv_round_trip(tmp_path_factory, X, header, first):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    y = np.arange(len(X)) % 2
    table = np.column_stack([y, X] if first else [X, y])
    names = ",".join(f"c{j}" for j in range(table.shape[1]))
    lines = [",".join(repr(float(v)) for v in row) for row in table]
    path.write_text("\n".join([names] * header + lines) + "\n")
    data = problems.load_csv(path, 0 if first else -1)
    assert (data.X == X).all()
    assert (data.y == y).all()
    assert data.y.dtype == np.int64
    assert data.name == "data"


def test_csv_forms(tmp_path):
    path = tmp_path / "forms.csv"
    path.write_text('a;kind;b\n1;"no";2\n\n3;yes;4\n5; no;6\n')
    data = problems.load_csv(path, "kind", delimiter=";")
    assert data.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.classes == ("no", "yes")
    same = problems.load_csv(path, 1, delimiter=";", header=True)
    assert (same.X == data.X).all()
    path.write_text("1,0.5\n2,1.5\n")
    assert problems.load_csv(path).y.tolist() == [0.5, 1.5]
    assert problems.load_csv(path, header=True).y.tolist() == [1.5]


def test_csv_compressed_and_windows(tmp_path):
    text = "\ufeffx,y\r\n1,0\r\n2,1\r\n".encode()
    for ending, opener in (("", open), (".gz", gzip.open), (".bz2", bz2.open)):
        path = tmp_path / f"win.csv{ending}"
        with opener(path, "wb") as stream:
            stream.write(text)
        data = problems.load_csv(path)
        assert (data.X.tolist(), data.y.tolist(), data.name) == ([[1], [2]], [0, 1], "win")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1,2,0\n3,,1\n", ["line 2", "column 2 is empty", "remove the line"]),
        ("a,b,y\n1,2,0\n3, ,1\n", ["line 3", "column 2 is empty"]),
        ("1,2,0\n\n3,1\n", ["line 3", "2 values", "first line has 3"]),
        ("1,2,0\n3,4,5,1\n", ["line 2", "4 values", "first line has 3"]),
        ("1,2,0\n3,x1,1\n", ["line 2", "column 2 holds 'x1'", "not a number"]),
        ("1,2,0\n3,4,1\n5,nan,0\n", ["line 3", "column 2 holds 'nan'", "not finite"]),
        ("1,2,0\n3,-inf,1\n", ["line 2", "column 2 holds '-inf'", "not finite"]),
        ("1,2,0\n3,4,\n", ["line 2", "column 3 is empty"]),
        ("1,2,0\n3,4,yes\n", ["line 2", "column 3 holds 'yes'", "not a number"]),
        ("1,2,no\n3,4,\n", ["line 2", "column 3 is empty"]),
        ("1,2,no\n3,oops,yes\n", ["line 2", "column 2 holds 'oops'"]),
        ("1,2,no\n3,4,5,yes\n", ["line 2", "4 values"]),
        ("nan,2,0\n3,4,1\n", ["line 1", "column 1 holds 'nan'"]),
        ("1,oops,0\n3,4,1\n", ["line 1", "column 2 holds 'oops'"]),
        ("1,2,0\n# note\n", ["line 2", "1 values"]),
        ("1\n2\n", ["line 1", "one value", "delimiter"]),
        ("", ["is empty", "one sample per line"]),
        ("\n\n", ["is empty"]),
        ("a,b\n", ["header only"]),
    ],
)
def test_malformed_csv(tmp_path, text, parts):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        problems.load_csv(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_csv_arguments(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("size,kind\n1,0\n2,1\n")
    with pytest.raises(ArgumentError, match=r"label_column='knd'.*did you mean 'kind'"):
        problems.load_csv(path, "knd")
    with pytest.raises(ArgumentError, match="label_column='kind' needs header=True"):
        problems.load_csv(path, "kind", header=False)
    with pytest.raises(ArgumentError, match=r"label_column=2 is out of range.*2 columns"):
        problems.load_csv(path, 2)
    with pytest.raises(DataError, match="line 1: column 1 holds 'size'"):
        problems.load_csv(path, header=False)
    with pytest.raises(FileNotFoundError):
        problems.load_csv(tmp_path / "none.csv")


@settings(max_examples=30, deadline=None)
@given(X=tables)
def test_libsvm_round_trip(tmp_path_factory, X):
    from sklearn.datasets import dump_svmlight_file

    path = tmp_path_factory.mktemp("svm") / "data.svm"
    y = 2 * (np.arange(len(X)) % 2) - 1
    dump_svmlight_file(X, y, str(path), zero_based=False)
    data = problems.load_libsvm(path, features=X.shape[1])
    assert pytest.approx(X, rel=1e-15) == data.X
    assert (data.y == y).all()
    assert data.y.dtype == np.int64


def test_libsvm_forms(tmp_path):
    path = tmp_path / "forms.svm"
    path.write_text("+1 1:0.5 3:2 # a comment\n\n-1 2:1e-1\n0.5\n")
    data = problems.load_libsvm(path)
    assert data.X.tolist() == [[0.5, 0, 2], [0, 0.1, 0], [0, 0, 0]]
    assert data.y.tolist() == [1, -1, 0.5]
    assert problems.load_libsvm(path, features=5).X.shape == (3, 5)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 1:2\n-1 2:1 1:3\n", ["line 2", "index 1 comes after index 2", "ascend"]),
        ("1 1:2\n-1 2:1 2:3\n", ["line 2", "index 2 comes after index 2"]),
        ("1 1:2\n\n-1 0:1\n", ["line 3", "'0:1' has index 0", "start at 1"]),
        ("1 1:2\n-1 -3:1\n", ["line 2", "'-3:1'", "not a whole number"]),
        ("1 1:2\n-1 7\n", ["line 2", "'7' has no colon", "index:value"]),
        ("1 1:2\n-1 1:x\n", ["line 2", "'1:x'", "'x', which is not a number"]),
        ("1 1:2\n-1 1:\n", ["line 2", "the value of '1:'", "not a number"]),
        ("1 1:2\n-1 1:nan\n", ["line 2", "'nan', which is not finite"]),
        ("1 1:2\ninf 1:1\n", ["line 2", "label is 'inf'", "finite"]),
        ("1 1:2\nyes 1:1\n", ["line 2", "label is 'yes'", "not a number"]),
        ("1 1:2\n1:1 2:2\n", ["line 2", "starts with '1:1'", "label"]),
        ("1 1:2\n1 9:2\n", ["line 2", "index 9 is above features=8"]),
        ("", ["is empty"]),
        ("1\n-1\n", ["labels only"]),
    ],
)
def test_malformed_libsvm(tmp_path, text, parts):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        problems.load_libsvm(path, features=8 if "features" in "".join(parts) else None)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_file_with_one_class_cannot_be_classified(tmp_path):
    path = tmp_path / "one.svm"
    path.write_text("1 1:2\n1 1:3\n")
    data = problems.load_libsvm(path)
    with pytest.raises(DataError, match=r"y holds 1 class \(1\) in 2 samples.*at least 2"):
        problems.LogisticRegression.from_data(data, n=1)
