"""Proximal points and gradients of conjugates: what defines them, on every kind of problem."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError
from dectool.problems import _inverse

sizes, dims = st.integers(1, 4), st.integers(1, 4)
seeds = st.integers(0, 2**16)
weights = st.floats(1e-2, 1e2)
several = settings(max_examples=12, deadline=None)


def normal(p, *lead, seed=0):
    return np.random.default_rng(seed).standard_normal((*lead, *p.shape))


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@several
@given(n=sizes, d=dims, seed=seeds, c=weights)
def test_the_gradient_at_the_proximal_point_is_what_moved_it(make, kind, n, d, seed, c):
    p = make(kind, n, d, seed)
    v = 3.0 * normal(p, n, seed=seed)
    x = p.prox(v, p.ranks, weight=c)
    scale = (p.L_max + c) * (1.0 + np.abs(v).max())
    np.testing.assert_allclose(p.grad(x, p.ranks), c * (v - x), rtol=0, atol=1e-12 * scale)


@several
@given(n=sizes, d=dims, seed=seeds)
def test_the_conjugate_inverts_the_gradient(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    x = normal(p, n, seed=seed)
    y = p.grad(x, p.ranks)
    tolerance = 1e-12 * p.L_max / p.mu_min * (1.0 + np.abs(x).max())
    np.testing.assert_allclose(p.grad_conjugate(y, p.ranks), x, rtol=0, atol=tolerance)
    again = p.grad(p.grad_conjugate(x, p.ranks), p.ranks)
    np.testing.assert_allclose(again, x, rtol=0, atol=tolerance * p.L_max)


@several
@given(n=sizes, d=dims, seed=seeds, c=weights)
def test_moreau_decomposition(make, kind, n, d, seed, c):
    """v = prox_{f/c}(v) + u / c, where u is the proximal point of c f* at c v: grad f* (u) = p."""
    p = make(kind, n, d, seed)
    v = normal(p, n, seed=seed)
    x = p.prox(v, p.ranks, weight=c)
    u = c * (v - x)
    tolerance = 1e-11 * (p.L_max + c) / p.mu_min * (1.0 + np.abs(v).max())
    np.testing.assert_allclose(p.grad_conjugate(u, p.ranks), x, rtol=0, atol=tolerance)


@several
@given(n=sizes, d=dims, seed=seeds, c=weights)
def test_proximal_points_are_firmly_nonexpansive_and_best(make, kind, n, d, seed, c):
    p = make(kind, n, d, seed)
    a, b = normal(p, n, seed=seed), normal(p, n, seed=seed + 1)
    pa, pb = p.prox(a, p.ranks, c), p.prox(b, p.ranks, c)
    assert np.sum((pa - pb) ** 2) <= np.sum((pa - pb) * (a - b)) + 1e-12

    def cost(x):
        far = ((x - a) ** 2).reshape(n, -1).sum(axis=1)
        return p.value(x, p.ranks) + 0.5 * c * far

    assert (cost(pa) <= cost(pa + 0.1 * b) + 1e-12).all()
    assert (cost(pa) <= cost(pa - 0.01 * b) + 1e-12).all()


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 9), d=st.integers(1, 7), seed=seeds, batch=st.sampled_from([(), (3,)]))
def test_all_ranks_equal_one_rank(make, kind, n, d, seed, batch):
    p = make(kind, n, d, seed)
    v = normal(p, n, *batch, seed=seed)
    c = np.random.default_rng(seed).uniform(0.1, 3.0, n)
    near = normal(p, n, *batch, seed=seed + 1)
    found = p.prox(v, p.ranks, c), p.grad_conjugate(v, p.ranks, near)
    for rank in range(n):
        assert same_bits(found[0][rank], p.prox(v[rank], rank, c[rank]))
        assert same_bits(found[1][rank], p.grad_conjugate(v[rank], rank, near[rank]))
    some = np.array([n - 1, 0])
    assert same_bits(p.prox(v[some], some, c[some]), found[0][some])
    for j in range(*batch or (0,)):
        assert same_bits(found[0][:, j], p.prox(v[:, j], p.ranks, c))


def test_few_at_once_are_as_many(make, kind, monkeypatch):
    p = make(kind, 5, 3, 0)
    v = normal(p, 5, 2)
    whole = p.prox(v, p.ranks)
    monkeypatch.setattr(_inverse, "_NUMBERS_AT_ONCE", 1)
    assert same_bits(p.prox(v, p.ranks), whole)


@pytest.mark.parametrize("kind_", ["diagonal", "full", "least_squares"])
def test_quadratics_are_linear_systems(make, kind_):
    p = make(kind_, 3, 4, 1)
    v = normal(p, 3)
    for rank in range(3):
        H, b = p.hessian(v[rank], rank), -p.grad(np.zeros(4), rank)
        expected = np.linalg.solve(H + 0.7 * np.eye(4), 0.7 * v[rank] + b)
        np.testing.assert_allclose(p.prox(v[rank], rank, 0.7), expected, rtol=1e-12)
        np.testing.assert_allclose(
            p.grad_conjugate(v[rank], rank), np.linalg.solve(H, v[rank] + b), rtol=1e-11
        )


def test_the_proximal_point_of_a_distance():
    p = problems.Averaging([[1.0], [3.0]])
    np.testing.assert_allclose(p.prox([[5.0], [5.0]], p.ranks, [3.0, 1.0]), [[4.0], [4.0]])


def test_logistic_loss_of_one_sample_by_bisection():
    """prox of log(1 + e^{-x}) solves x = v + s(-x)/c, s the logistic function."""
    from scipy.optimize import brentq

    p = problems.LogisticRegression([[1.0], [-1.0]], [1, 0], partition=[[0], [1]])
    for v in (-30.0, -1.0, 0.0, 2.0, 50.0):
        for c in (0.01, 1.0, 20.0):
            slope = lambda x, v=v, c=c: c * (x - v) - 1 / (1 + np.exp(x))  # noqa: E731
            root = brentq(slope, v, v + 1 / c, xtol=1e-13)
            assert p.prox([v], 0, c)[0] == pytest.approx(root, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind_", ["logistic", "softmax"])
def test_newton_comes_from_far_away(make, kind_):
    p = make(kind_, 3, 3, 2, l2=1e-4)
    y = 0.01 * normal(p, 3)
    here = p.grad_conjugate(y, p.ranks)
    there = p.grad_conjugate(y, p.ranks, start=1e3 * normal(p, 3, seed=5))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-8 * np.abs(here).max())
    np.testing.assert_allclose(p.grad(here, p.ranks), y, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind_", ["logistic", "softmax"])
def test_a_start_close_by_saves_work(make, kind_, monkeypatch):
    p = make(kind_, 3, 3, 2)
    x = normal(p, 3)
    y = p.grad(x, p.ranks)
    asked = []
    hessians = type(p)._hessians
    monkeypatch.setattr(
        type(p), "_hessians", lambda self, *args: asked.append(1) or hessians(self, *args)
    )
    far = p.grad_conjugate(y, p.ranks)
    assert len(asked) >= 4
    del asked[:]
    assert same_bits(p.grad_conjugate(y, p.ranks, start=x), x)
    assert not asked
    p.grad_conjugate(y, p.ranks, start=far + 1e-4)
    assert len(asked) <= 3
    # A proximal point is looked for from v on, where it is for the minimiser.
    lowest = p.grad_conjugate(0.0 * x, p.ranks)
    del asked[:]
    assert same_bits(p.prox(lowest, p.ranks), lowest)
    assert not asked


@pytest.mark.parametrize("dtype", ["f4", "f2", ">f8"])
def test_the_answer_has_the_dtype_of_the_point(make, kind, dtype):
    p = make(kind, 2, 3, 0)
    v = normal(p, 2).astype(dtype)
    for found in (p.prox(v, p.ranks), p.grad_conjugate(v, p.ranks)):
        assert found.dtype == dtype
        assert found.shape == v.shape
    exact = p.prox(v.astype(np.float64), p.ranks).astype(dtype)
    assert same_bits(p.prox(v, p.ranks), exact)


@several
@given(n=sizes, d=dims, seed=seeds)
def test_the_smallest_strong_convexity(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    x = normal(p, n, seed=seed)
    lowest = np.linalg.eigvalsh(p.hessian(x, p.ranks))[:, 0]
    assert p.mu_min <= lowest.min() + 1e-10 * p.L_max
    if kind in ("averaging", "diagonal", "full", "least_squares"):
        assert p.mu_min == pytest.approx(lowest.min(), rel=1e-9, abs=1e-12 * p.L_max)


def test_few_samples_leave_directions_flat():
    A = np.random.default_rng(0).standard_normal((6, 4))
    assert problems.LeastSquares(A, A[:, 0], n=2).mu_min == 0.0
    assert problems.LeastSquares(np.ones((8, 2)), np.ones(8), n=2).mu_min == 0.0
    assert problems.Quadratic(h=[[-1.0], [3.0]], b=[[0.0], [0.0]]).mu_min == -1.0
    assert problems.Curvature(1.0, 1.0, 1.0).mu_min == 0.0


def test_rounding_is_no_curvature():
    """Functions of rank one are convex, and so ADMM may have their proximal points."""
    v = np.random.default_rng(3).standard_normal((40, 3))
    p = problems.Quadratic(h=v[:, :, None] * v[:, None], b=v)
    assert np.linalg.eigvalsh(v[:, :, None] * v[:, None]).min() < 0.0
    assert p.mu_min == 0.0
    admm, graph = algorithms.DecentralizedADMM(), topology.ring(40)
    assert np.isfinite(dectool.solve(admm, p, topology=graph, steps=2).x).all()


def test_a_bound_among_some_ranks_is_that_of_all():
    some = problems.Among(problems.Averaging(np.eye(3)), [0, 2])
    assert (some.mu, some.mu_min, some.L) == (1.0, 1.0, 1.0)


def test_among_some_ranks(make, kind):
    p = make(kind, 5, 2, 0)
    some = problems.Among(p, [1, 4])
    v = normal(p, 2)
    assert same_bits(some.prox(v, some.ranks, [0.5, 2.0]), p.prox(v, np.array([1, 4]), [0.5, 2.0]))
    assert same_bits(some.grad_conjugate(v[1], 1), p.grad_conjugate(v[1], 4))
    assert some.mu_min == p.mu_min


@pytest.mark.parametrize("kind_", ["full", "least_squares"])
def test_spectra_are_not_sent_along(make, kind_):
    p = make(kind_, 4, 12, 0)
    fresh, v = len(pickle.dumps(p)), normal(p, 4)
    expected = p.prox(v, p.ranks)
    sent = pickle.dumps(p)
    assert len(sent) < fresh + 300
    assert same_bits(pickle.loads(sent).prox(v, p.ranks), expected)


class Cosh(problems.Problem):
    """f_i(x) = cosh(x) - x: what a user adds, without a closed form."""

    def __init__(self):
        super().__init__(2, (1,), "cosh")

    def _values(self, X, rows):
        return (np.cosh(X) - X)[..., 0]

    def _grads(self, X, rows):
        return np.sinh(X) - 1.0

    def _hessians(self, X, rows):
        return np.cosh(X)[..., None]

    def _curvature(self):
        return problems.Curvature(np.cosh(9.0), np.cosh(9.0), 1.0, 1.0)


def test_a_problem_of_ones_own():
    found = Cosh().grad_conjugate([[3.0], [-40.0]], [0, 1])
    np.testing.assert_allclose(found, np.arcsinh([[4.0], [-39.0]]), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: q.prox([0.0], 0, weight=-1.0), r"weight=-1\.0 must be a finite number of at"),
        (lambda q: q.prox([0.0], 0, weight=np.inf), "weight=inf must be a finite number"),
        (lambda q: q.prox([0.0], 0, weight=[1.0, 2.0]), r"weight has shape \(2,\); give a number"),
        (lambda q: q.prox(np.zeros((3, 1)), q.ranks, [1.0, 2.0]), "one for each of the 3 ranks"),
        (lambda q: q.prox([0.0, 1.0], 0), r"x has shape \(2,\); expected \(1,\)"),
        (lambda q: q.prox([0.0], 5), "rank=5 is out of range"),
        (lambda q: q.grad_conjugate([0.0], 0, start=[0.0, 0.0]), r"expected \(1,\)"),
        (
            lambda q: q.prox([0.0], 2, weight=0.5),
            r"f_2 of Quadratic\(.*\) has the curvature -1, so with weight=0.5 it has no single "
            "proximal point; the weight must be above 1",
        ),
        (
            lambda q: q.grad_conjugate(np.zeros((3, 1)), q.ranks),
            r"f_1 of Quadratic\(.*\) has the curvature 0, so its conjugate has no gradient; every "
            "local function must be strongly convex",
        ),
    ],
)
def test_what_has_no_answer(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(problems.Quadratic(h=[[2.0], [0.0], [-1.0]], b=[[0.0], [1.0], [2.0]]))


def test_flat_full_matrices_have_no_answer():
    q = problems.Quadratic(h=[np.eye(2), np.ones((2, 2))], b=np.ones((2, 2)))
    np.testing.assert_allclose(q.grad_conjugate([1.0, 1.0], 0), [2.0, 2.0])
    with pytest.raises(ArgumentError, match=r"f_1 of .* has the curvature 0"):
        q.grad_conjugate([1.0, 1.0], 1)


def test_a_gradient_that_is_never_reached():
    p = problems.LogisticRegression([[1.0], [2.0], [3.0], [-1.0]], [0, 1, 1, 0], n=2)
    with pytest.raises(ArgumentError, match=r"Newton's method for f_1 of Logistic.* left a grad"):
        p.grad_conjugate([[0.1], [1e3]], p.ranks)


def test_too_many_variables_for_a_dense_hessian(monkeypatch, make):
    monkeypatch.setattr(_inverse, "_LARGEST", 4)
    with pytest.raises(ArgumentError, match=r"has 5 variables, .* of up to 4; use an algorithm of"):
        make("logistic", 2, 5).prox(np.zeros(5), 0)
    with pytest.raises(ArgumentError, match=r"LeastSquares.* has 5 variables"):
        make("least_squares", 2, 5).prox(np.zeros(5), 0)
    assert make("diagonal", 2, 5).prox(np.zeros(5), 0).shape == (5,)
