"""Partitioners: every sample once, and refusals that say what to do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import problems
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems.partition import ByClass, Contiguous, Dirichlet, Shuffled

labels = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)
partitioners = st.sampled_from(
    [
        Contiguous(allow_empty=True),
        Shuffled(3, allow_empty=True),
        ByClass(allow_empty=True),
        Dirichlet(0.3, seed=2, allow_empty=True),
        Dirichlet(10.0, seed=5, allow_empty=True),
    ]
)


@settings(max_examples=200, deadline=None)
@given(y=labels, n=st.integers(1, 70), how=partitioners)
def test_every_sample_exactly_once(y, n, how):
    parts = how(y, n)
    assert len(parts) == n
    assert sorted(np.concatenate(parts).tolist()) == list(range(y.size))
    again = how(y, n)
    assert all((a == b).all() for a, b in zip(parts, again, strict=True))


@given(m=st.integers(1, 50), n=st.integers(1, 50))
def test_contiguous_sizes_differ_by_one_at_most(m, n):
    sizes = [p.size for p in Contiguous(allow_empty=True)(np.zeros(m), n)]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_shuffled_depends_on_the_seed():
    y = np.zeros(100)
    a, b = Shuffled(0)(y, 4), Shuffled(1)(y, 4)
    assert (a[0] != b[0]).any()
    assert not (np.diff(a[0]) == 1).all()


@settings(max_examples=60, deadline=None)
@given(classes=st.integers(1, 6), n=st.integers(1, 12), c=st.integers(1, 6))
def test_by_class_gives_exactly_so_many_classes(classes, n, c):
    y = np.repeat(np.arange(classes), 40)
    least = -(-classes // n)
    if not least <= c <= classes:
        with pytest.raises(ArgumentError, match=f"classes_per_rank={c} "):
            ByClass(c)(y, n)
        return
    parts = ByClass(c)(y, n)
    assert all(np.unique(y[p]).size == c for p in parts)
    assert sorted(np.concatenate(parts).tolist()) == list(range(y.size))


def test_by_class_default_covers_all_classes():
    y = problems.digits().y
    assert [np.unique(y[p]).size for p in ByClass()(y, 8)] == [2] * 8
    assert [np.unique(y[p]).size for p in ByClass()(y, 16)] == [1] * 16


def test_names_are_the_default_partitioners():
    data = problems.digits(rows=200)
    for name, how in [
        ("contiguous", Contiguous()),
        ("shuffled", Shuffled(7)),
        ("by_class", ByClass()),
        ("dirichlet", Dirichlet(1.0, seed=7)),
    ]:
        a = problems.SoftmaxRegression.from_data(data, n=4, partition=name, seed=7)
        b = problems.SoftmaxRegression.from_data(data, n=4, partition=how)
        c = problems.SoftmaxRegression.from_data(data, partition=how(data.y, 4))
        x = np.random.default_rng(0).standard_normal(a.shape)
        assert (a.grad(x, 2) == b.grad(x, 2)).all()
        assert (a.grad(x, 2) == c.grad(x, 2)).all()


def test_empty_shards_are_refused_by_rank():
    y = np.repeat(np.arange(3), 10)
    with pytest.raises(ArgumentError) as caught:
        Dirichlet(0.01, seed=0)(y, 8)
    message = str(caught.value)
    empty = [i for i, p in enumerate(Dirichlet(0.01, seed=0, allow_empty=True)(y, 8)) if not p.size]
    assert f"ranks {', '.join(map(str, empty))} with fewer than 1 sample" in message
    assert "alpha" in message
    assert "allow_empty=True" in message


def test_min_samples_is_a_rule_not_a_wish():
    y = problems.digits().y
    Dirichlet(0.1, min_samples=20)(y, 8)
    with pytest.raises(ArgumentError, match="leaves rank 1 with fewer than 21 samples"):
        Dirichlet(0.1, min_samples=21)(y, 8)
    with pytest.raises(ArgumentError, match="leaves ranks 0, 1 with fewer than 70 samples"):
        Dirichlet(0.1, min_samples=70)(y, 8)


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (lambda: Contiguous()([0, 1], 3), ArgumentError, ["n=3", "only 2 samples", "fewer ranks"]),
        (lambda: Contiguous()([0, 1], 0), ArgumentError, ["n=0", "at least 1"]),
        (lambda: Contiguous()([0, 1], 1.5), ArgumentTypeError, ["n=1.5", "integer"]),
        (lambda: Contiguous()([0, 1], True), ArgumentTypeError, ["n=True", "integer"]),
        (lambda: Contiguous()([], 1), ArgumentError, ["labels", "(0,)"]),
        (lambda: Contiguous()([[0]], 1), ArgumentError, ["labels", "(1, 1)"]),
        (lambda: Dirichlet(0.0), ArgumentError, ["alpha=0.0", "above 0"]),
        (lambda: Dirichlet(float("nan")), ArgumentError, ["alpha=nan"]),
        (lambda: Dirichlet("big"), ArgumentTypeError, ["alpha='big'", "real number"]),
        (lambda: Dirichlet(min_samples=-1), ArgumentError, ["min_samples=-1"]),
        (lambda: ByClass(0), ArgumentError, ["classes_per_rank=0"]),
        (lambda: ByClass()([0.5, 1.0], 1), ArgumentError, ["ByClass", "0.5", "Contiguous"]),
        (lambda: Dirichlet()([0.5, 1.0], 1), ArgumentError, ["Dirichlet", "0.5", "Shuffled"]),
    ],
)
def test_bad_arguments(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("partition", "n", "error", "parts"),
    [
        ("contigous", 2, ArgumentError, ["partition='contigous'", "did you mean 'contiguous'"]),
        ("contiguous", None, ArgumentError, ["n=None", "n=16"]),
        (3, 2, ArgumentTypeError, ["partition=3", "list of index arrays"]),
        ([[0, 1], [2]], 3, ArgumentError, ["n=3", "2 index arrays"]),
        ([], None, ArgumentError, ["empty list"]),
        ([[0, 1], [2, 3], [3]], None, ArgumentError, ["sample 3 2 times", "exactly once"]),
        ([[0, 1], [3]], None, ArgumentError, ["sample 2 0 times", "Dataset.take"]),
        ([[0, 1], [2, 4]], None, ArgumentError, ["partition[1] holds 4", "0 to 3"]),
        ([[0, -1], [2, 3]], None, ArgumentError, ["partition[0] holds -1", "0 to 3"]),
        ([[0, 1, 2, 3], []], None, ArgumentError, ["partition[1] is empty", "allow_empty=True"]),
        ([[0.0, 1.0], [2, 3]], None, ArgumentTypeError, ["partition[0]", "float64"]),
        ([[[0, 1]], [2, 3]], None, ArgumentTypeError, ["partition[0]", "(1, 2)"]),
    ],
)
def test_bad_partition_of_a_problem(partition, n, error, parts):
    with pytest.raises(error) as caught:
        problems.LeastSquares(np.eye(4), np.ones(4), partition=partition, n=n)
    for part in parts:
        assert part in str(caught.value)
