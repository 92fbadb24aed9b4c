"""Shapes, dtypes, ranks: what is accepted, and what refusals say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dectool import problems
from dectool.errors import ArgumentError, ArgumentTypeError, DataError


def test_shapes(make, kind):
    p = make(kind, 5, 3)
    x = np.zeros(p.shape)
    assert np.shape(p.value(x, 1)) == ()
    assert p.grad(x, np.int64(1)).shape == p.shape
    assert p.grad(x, np.array(1)).shape == p.shape
    assert p.value(np.zeros((2, 4, *p.shape)), 1).shape == (2, 4)
    many = np.zeros((3, 2, *p.shape))
    assert p.value(many, np.array([0, 4, 4])).shape == (3, 2)
    assert p.grad(many, [0, 4, 4]).shape == many.shape
    assert p.hessian(many, [0, 4, 4]).shape == (3, 2, p.dim, p.dim)
    assert p.value(np.zeros((0, *p.shape)), np.array([], int)).shape == (0,)
    assert p.grad(np.zeros((5, 0, *p.shape)), p.ranks).shape == (5, 0, *p.shape)
    assert p.initial(2).shape == p.shape
    assert p.initial(p.ranks).shape == (5, *p.shape)
    assert (p.size, p.dim) == (5, int(np.prod(p.shape)))
    assert not p.ranks.flags.writeable
    assert not p.optimum.flags.writeable


def test_initial_is_zero_but_for_averaging(make, kind):
    p = make(kind, 4, 3)
    starts = p.initial(p.ranks)
    if kind != "averaging":
        assert not starts.any()
    starts[:] = 7
    assert (p.initial(p.ranks) != 7).all()
    assert (p.initial(2) == p.initial(np.array([1, 2]))[1]).all()


def test_averaging_of_scalars_and_matrices():
    p = problems.Averaging([1.0, 2.0, 6.0])
    assert (p.shape, p.dim, p.optimum) == ((), 1, 3.0)
    assert p.grad(0.0, 2) == -6.0
    assert p.grad(np.zeros(3), p.ranks).tolist() == [-1, -2, -6]
    assert p.initial(1) == 2.0
    p = problems.Averaging(np.arange(12).reshape(3, 2, 2))
    assert p.optimum.tolist() == [[4, 5], [6, 7]]
    assert p.initial(p.ranks).shape == (3, 2, 2)
    assert p.heterogeneity == pytest.approx(4 * 32 / 3)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "g"])
def test_the_answer_has_the_dtype_of_x(make, kind, dtype):
    p = make(kind, 3, 4, 1)
    x = np.random.default_rng(0).standard_normal((3, *p.shape)).astype(dtype)
    for method in (p.value, p.grad, p.hessian):
        assert method(x, p.ranks).dtype == dtype
        assert method(x[0], 0).dtype == dtype
    for method in (p.objective, p.gradient, p.gap):
        assert method(x[0]).dtype == dtype
    tolerance = {"f8": 1e-12, "g": 1e-12, "f4": 2e-5, "f2": 2e-2}[dtype]
    exact = p.grad(x.astype("f8"), p.ranks)
    assert p.grad(x, p.ranks).astype("f8") == pytest.approx(exact, rel=tolerance, abs=tolerance)


def test_integers_are_computed_in_double(make, kind):
    p = make(kind, 3, 2)
    x = np.ones((3, *p.shape), int)
    assert (p.grad(x, p.ranks) == p.grad(x.astype(float), p.ranks)).all()


def test_inputs_are_never_modified_nor_returned(make, kind):
    p = make(kind, 3, 2)
    x = np.random.default_rng(0).standard_normal((3, *p.shape))
    before = x.copy()
    for method in (p.value, p.grad, p.hessian):
        assert not np.shares_memory(method(x, p.ranks), x)
        method(x[1], 1)
    g = p.grad(x, p.ranks)
    g[:] = np.nan
    assert (x == before).all()
    assert np.isfinite(p.grad(x, p.ranks)).all()


@pytest.mark.parametrize(
    ("x", "rank", "error", "parts"),
    [
        (np.zeros(3), 5, ArgumentError, ["rank=5", "0 to 4"]),
        (np.zeros(3), -1, ArgumentError, ["rank=-1", "0 to 4"]),
        (np.zeros((2, 3)), [0, 7], ArgumentError, ["rank=7", "0 to 4"]),
        (np.zeros((2, 3)), [-2, 0], ArgumentError, ["rank=-2", "0 to 4"]),
        (np.zeros(3), 1.0, ArgumentTypeError, ["rank=1.0", "integer"]),
        (np.zeros(3), True, ArgumentTypeError, ["rank=True", "integer"]),
        (np.zeros((1, 3)), [[0]], ArgumentTypeError, ["rank=[[0]]", "one-dimensional"]),
        (np.zeros(4), 0, ArgumentError, ["(4,)", "expected (3,)"]),
        (0.0, 0, ArgumentError, ["()", "expected (3,)"]),
        (np.zeros((4, 3)), np.arange(5), ArgumentError, ["(4, 3)", "(5, 3)", "5 ranks"]),
        (np.zeros(3), [0], ArgumentError, ["(3,)", "expected (1, 3)"]),
        (np.zeros(3, complex), 0, ArgumentTypeError, ["x has dtype complex128", "real"]),
        (np.zeros(3, bool), 0, ArgumentTypeError, ["x has dtype bool", "float64"]),
        (["a", "b", "c"], 0, ArgumentTypeError, ["x has dtype <U1"]),
    ],
)
def test_bad_calls(make, x, rank, error, parts):
    p = make("logistic", 5, 3)
    for method in (p.value, p.grad, p.hessian):
        with pytest.raises(error) as caught:
            method(x, rank)
        for part in parts:
            assert part in str(caught.value)
    if "rank=" in parts[0]:
        with pytest.raises(error):
            p.initial(rank)


def test_bad_common_point(make, kind):
    p = make(kind, 5, 3)
    for method in (p.objective, p.gradient, p.gap):
        with pytest.raises(ArgumentError, match=r"x has shape \(7,\); expected"):
            method(np.zeros(7))


def test_bad_minibatches(make, data_kind):
    p = make(data_kind, 5, 3)
    rng = np.random.default_rng(0)
    x = np.zeros(p.shape)
    with pytest.raises(ArgumentError, match=r"batch_size=0 .* at least 1"):
        p.sample_grad(x, 0, rng, 0)
    with pytest.raises(ArgumentTypeError, match=r"batch_size=1\.5"):
        p.sample_grad(x, 0, rng, 1.5)

    class Wrong:
        def integers(self, low, high, *, size):
            return np.zeros(size, int)

    with pytest.raises(ArgumentError, match=r"returned shape \(4,\).*must be \(5, 4\)"):
        p.sample_grad(np.zeros((5, *p.shape)), p.ranks, Wrong(), 4)


NAN = [[1.0, 2.0], [float("nan"), 4.0]]
eye = np.eye(2)


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (lambda: problems.Averaging(NAN), ArgumentError, ["values[1, 0] is nan", "1 of 4"]),
        (lambda: problems.Averaging([]), ArgumentError, ["values has shape (0,)"]),
        (lambda: problems.Averaging(3.0), ArgumentError, ["values has shape ()"]),
        (lambda: problems.Averaging([[1.0], [1.0, 2.0]]), ArgumentError, ["values", "rectangular"]),
        (lambda: problems.Averaging(["a"]), ArgumentTypeError, ["values has dtype <U1"]),
        (lambda: problems.Quadratic(h=NAN, b=eye), ArgumentError, ["h[1, 0] is nan"]),
        (lambda: problems.Quadratic(h=eye, b=[[np.inf, 0], [0, 0]]), ArgumentError, ["b[0, 0]"]),
        (lambda: problems.Quadratic(h=[1.0, 2.0], b=[1.0, 2.0]), ArgumentError, ["h[:, None]"]),
        (lambda: problems.Quadratic(h=eye, b=np.ones((2, 3))), ArgumentError, ["b has", "(2, 2)"]),
        (lambda: problems.Quadratic(h=np.ones((2, 3, 2)), b=eye), ArgumentError, ["(2, 3, 2)"]),
        (
            lambda: problems.Quadratic(h=[[[1.0, 2.0], [3.0, 9.0]]], b=[[0.0, 0.0]]),
            ArgumentError,
            ["h[0] is not symmetric", "h[0, 0, 1] is 2", "h[0, 1, 0] is 3", "/ 2"],
        ),
        (
            lambda: problems.Quadratic(h=[[1.0], [-3.0]], b=[[0.0], [0.0]]),
            ArgumentError,
            ["negative curvature -1", "unbounded below"],
        ),
        (lambda: problems.Quadratic.random(2, 2, kappa=0.5), ArgumentError, ["kappa=0.5"]),
        (lambda: problems.Quadratic.random(2, 1, kappa=5), ArgumentError, ["kappa=5", "d >= 2"]),
        (lambda: problems.Quadratic.random(1, 2), ArgumentError, ["heterogeneity=1", "n >= 2"]),
        (
            lambda: problems.Quadratic.random(2, 2, heterogeneity=-1),
            ArgumentError,
            ["heterogeneity=-1.0"],
        ),
        (lambda: problems.Quadratic.random(0, 2), ArgumentError, ["n=0"]),
        (lambda: problems.LeastSquares(NAN, [1, 2], n=1), ArgumentError, ["A[1, 0] is nan"]),
        (lambda: problems.LeastSquares([1.0], [1], n=1), ArgumentError, ["A has shape (1,)"]),
        (lambda: problems.LeastSquares(eye, [1], n=1), ArgumentError, ["y has shape (1,)", "(2,)"]),
        (lambda: problems.LeastSquares(eye, [1, np.nan], n=1), ArgumentError, ["y[1] is nan"]),
        (lambda: problems.LeastSquares(eye, ["a", "b"], n=1), ArgumentTypeError, ["y has dtype"]),
        (lambda: problems.LeastSquares(eye, [1, 2], n=3), ArgumentError, ["n=3", "only 2 samples"]),
        (lambda: problems.LeastSquares(eye, [1, 2], n=1, l2=-1), ArgumentError, ["l2=-1.0"]),
        (lambda: problems.LeastSquares(eye, [1, 2], n=1, l2="x"), ArgumentTypeError, ["l2='x'"]),
        (
            lambda: problems.LeastSquares(eye, [1, 2], n=1, objective="weigted"),
            ArgumentError,
            ["objective='weigted'", "did you mean 'weighted'"],
        ),
        (
            lambda: problems.LogisticRegression(eye, [1, 1], n=1),
            DataError,
            ["y holds 1 class (1)", "2 samples", "at least 2"],
        ),
        (
            lambda: problems.LogisticRegression(np.eye(3), [0, 1, 2], n=1),
            DataError,
            ["3 classes", "SoftmaxRegression"],
        ),
        (
            lambda: problems.LogisticRegression(eye, [0, np.nan], n=1),
            ArgumentError,
            ["y[1] is nan"],
        ),
        (lambda: problems.SoftmaxRegression(eye, [[0], [1]], n=1), ArgumentError, ["(2, 1)"]),
        (lambda: problems.SoftmaxRegression(eye, ["a", "a"], n=1), DataError, ["1 class (a)"]),
        (lambda: problems.Dataset(NAN, [0, 1]), ArgumentError, ["X[1, 0] is nan"]),
        (lambda: problems.Dataset(eye, [0]), ArgumentError, ["y has shape (1,); X has 2 rows"]),
        (lambda: problems.Dataset([1.0], [0]), ArgumentError, ["X has shape (1,)"]),
    ],
)
def test_bad_constructors(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (3, 7), ("no", "yes"), (False, True)])
def test_any_two_labels_become_minus_and_plus_one(labels):
    A = np.array([[1.0], [2.0], [-1.0]])
    p = problems.LogisticRegression(A, np.array(labels)[[1, 0, 1]], n=1)
    x = np.array([0.3])
    signs = np.array([1.0, -1.0, 1.0])
    assert p.value(x, 0) == pytest.approx(np.mean(np.log1p(np.exp(-signs * (A @ x)))), rel=1e-14)
    assert p.classes == labels


def test_repr_says_what_it_is(make):
    assert repr(make("averaging", 3, 2)) == "Averaging(n=3, shape=(2,))"
    assert repr(make("diagonal", 3, 2)) == "Quadratic(n=3, d=2, diagonal)"
    p = problems.LeastSquares(eye, [1, 2], n=2, partition=problems.partition.Shuffled(3))
    assert "partition=Shuffled(seed=3, allow_empty=False)" in repr(p)
    assert "partition='given'" in repr(make("softmax", 3, 2))
    assert (make("softmax", 3, 2).name, p.name) == ("data", "data")


def test_problems_can_be_pickled(make, kind):
    p = make(kind, 4, 3)
    x = np.random.default_rng(0).standard_normal((4, *p.shape)).astype("f4")
    g = p.grad(x, p.ranks)
    q = pickle.loads(pickle.dumps(p))
    assert (q.grad(x, q.ranks) == g).all()
