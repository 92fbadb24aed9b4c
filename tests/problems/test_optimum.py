"""Optima, curvature constants, and the two objectives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import problems
from dectool.errors import ArgumentError

seeds = st.integers(0, 2**16)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), d=st.integers(1, 6), seed=seeds)
def test_optimum_has_no_gradient(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    scale = max(np.linalg.norm(p.gradient(np.zeros(p.shape))), p.L * np.linalg.norm(p.optimum))
    assert np.linalg.norm(p.gradient(p.optimum)) <= 1e-12 * scale
    rng = np.random.default_rng(seed)
    nearby = p.optimum + 0.1 * rng.standard_normal((20, *p.shape))
    assert (p.objective(nearby) >= p.optimal_value).all()
    assert (p.gap(nearby) >= 0).all()
    assert p.gap(nearby) == pytest.approx(p.objective(nearby) - p.optimal_value, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 5), d=st.integers(1, 5), seed=seeds)
def test_curvature_bounds_the_hessians(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    x = np.random.default_rng(seed).standard_normal(p.shape)
    local = np.linalg.eigvalsh(p.hessian(np.broadcast_to(x, (n, *p.shape)), p.ranks))
    mean = np.linalg.eigvalsh(np.mean([p.hessian(x, i) for i in range(n)], axis=0))
    slack = 1e-10 * p.L_max
    assert local.max() <= p.L_max + slack
    assert mean.max() <= p.L + slack
    assert mean.min() >= p.mu - slack
    assert p.kappa == p.L / p.mu


@pytest.mark.parametrize("kind", ["averaging", "diagonal", "full", "least_squares"])
def test_curvature_of_quadratics_is_exact(make, kind):
    p = make(kind, 6, 4, 3)
    x = np.zeros(p.shape)
    local = np.linalg.eigvalsh(np.array([p.hessian(x, i) for i in range(6)]))
    mean = np.linalg.eigvalsh(np.mean([p.hessian(x, i) for i in range(6)], axis=0))
    assert p.L_max == pytest.approx(np.abs(local).max(), rel=1e-12)
    assert (p.mu, p.L) == pytest.approx((mean.min(), mean.max()), rel=1e-12)


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_curvature_of_classifiers_at_equal_shares(make, kind):
    p = make(kind, 4, 3, 3)
    whole = p._pool(np.float64)
    top = np.linalg.eigvalsh((whole.A[0] * whole.w[0][:, None]).T @ whole.A[0]).max()
    factor = {"logistic": 0.25, "softmax": 0.5}[kind]
    assert pytest.approx(factor * top + p.l2, rel=1e-12) == p.L


def test_least_squares_optimum_is_the_ridge_solution():
    rng = np.random.default_rng(2)
    A, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    p = problems.LeastSquares(A, y, n=4, l2=0.3)
    expected = np.linalg.solve(A.T @ A / 40 + 0.3 * np.eye(5), A.T @ y / 40)
    assert p.optimum == pytest.approx(expected, rel=1e-12)
    assert p.mu == pytest.approx(0.3 + np.linalg.eigvalsh(A.T @ A / 40)[0], rel=1e-12)


def test_underdetermined_least_squares_takes_the_smallest_solution():
    A = np.array([[1.0, 1.0, 0.0]])
    p = problems.LeastSquares(A, [2.0], n=1)
    assert p.optimum == pytest.approx([1, 1, 0])
    assert p.mu == 0.0
    assert math.isinf(p.kappa)


def test_raw_features_are_solved_too():
    data = problems.breast_cancer(standardize=False)
    p = problems.LogisticRegression.from_data(data, n=16, l2=0.01, bias=True)
    assert p.kappa > 1e7
    g = np.linalg.norm(p.gradient(p.optimum))
    assert g <= 1e-12 * max(
        np.linalg.norm(p.gradient(np.zeros(31))), p.L * np.linalg.norm(p.optimum)
    )


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_separable_classes_without_l2_have_no_optimum(make, kind):
    cls = {"logistic": problems.LogisticRegression, "softmax": problems.SoftmaxRegression}[kind]
    p = cls([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1], n=2)
    with pytest.raises(ArgumentError, match=r"l2=0 .* separated.*l2 > 0"):
        _ = p.optimum


def test_logistic_without_l2_where_classes_overlap():
    p = problems.LogisticRegression([[-1.0], [-2.0], [1.0], [1.0]], [0, 0, 0, 1], n=2)
    # At the optimum the sum of y a sigma(-y a x) vanishes.
    assert abs(p.gradient(p.optimum)[0]) < 1e-13
    assert p.mu == 0.0


def test_large_problems_are_polished_by_conjugate_gradients():
    rng = np.random.default_rng(0)
    p = problems.LogisticRegression(rng.standard_normal((200, 1100)), np.arange(200) % 2, n=4, l2=1)
    zero = np.linalg.norm(p.gradient(np.zeros(1100)))
    assert np.linalg.norm(p.gradient(p.optimum)) <= 1e-12 * zero


def test_weighted_is_the_mean_over_all_samples(make, data_kind):
    p = make(data_kind, 5, 3, 4, objective="weighted")
    x = np.random.default_rng(0).standard_normal(p.shape)
    single = make(data_kind, 1, 3, 4, m=17, partition=[np.arange(17)])
    assert p.samples.min() < p.samples.max()
    A = make(data_kind, 5, 3, 4)
    m, n = p.samples.sum(), p.size
    penalty = 0.5 * p.l2 * np.sum(x * x)
    for rank in range(n):
        expected = n * p.samples[rank] / m * (A.value(x, rank) - penalty) + penalty
        assert p.value(x, rank) == pytest.approx(expected, rel=1e-12)
    assert p.objective(x) == pytest.approx(single.objective(x), rel=1e-12)
    assert A.objective(x) != pytest.approx(single.objective(x), rel=1e-6)


def test_equal_shards_make_both_objectives_equal(make, data_kind):
    parts = np.split(np.arange(20), 4)
    a = make(data_kind, 4, 3, 1, m=20, partition=parts)
    b = make(data_kind, 4, 3, 1, m=20, partition=parts, objective="weighted")
    x = np.random.default_rng(0).standard_normal((4, *a.shape))
    assert a.grad(x, a.ranks).tobytes() == b.grad(x, b.ranks).tobytes()


def test_an_empty_shard_has_the_regulariser_only(make, data_kind):
    parts = [np.arange(5), np.array([], int), np.arange(5, 11)]
    for objective in ("mean_of_means", "weighted"):
        p = make(data_kind, 3, 2, 1, m=11, partition=parts, allow_empty=True, objective=objective)
        x = np.random.default_rng(0).standard_normal(p.shape)
        assert p.value(x, 1) == pytest.approx(0.05 * np.sum(x * x), rel=1e-14)
        assert p.grad(x, 1) == pytest.approx(0.1 * x, rel=1e-14)
        assert p.hessian(x, 1) == pytest.approx(0.1 * np.eye(p.dim))
        assert p.sample_grad(x, 1, np.random.default_rng(0), 3) == pytest.approx(0.1 * x)
        assert np.linalg.norm(p.gradient(p.optimum)) < 1e-12


def test_minibatch_gradient_is_unbiased(make, data_kind):
    p = make(data_kind, 4, 3, 2, objective="weighted")
    x = np.random.default_rng(1).standard_normal(p.shape)

    class Every:
        """Draws every sample once instead of at random."""

        def integers(self, low, high, *, size):
            assert (low, size) == (0, high)
            return np.arange(high)

    for rank in range(4):
        m = int(p.samples[rank])
        assert p.sample_grad(x, rank, Every(), m) == pytest.approx(p.grad(x, rank), rel=1e-12)


def test_minibatch_draws_from_the_ranks_own_shard(make, data_kind):
    p = make(data_kind, 6, 3, 2)
    x = np.zeros(p.shape)
    rng = np.random.default_rng(0)
    mean = np.mean([p.sample_grad(x, 3, rng, 8) for _ in range(4000)], axis=0)
    assert mean == pytest.approx(p.grad(x, 3), abs=0.05)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 12),
    d=st.integers(2, 6),
    kappa=st.floats(1, 1e4),
    zeta=st.floats(0, 100),
    seed=seeds,
)
def test_random_quadratic_is_as_asked(n, d, kappa, zeta, seed):
    q = problems.Quadratic.random(n, d, kappa=kappa, heterogeneity=zeta, seed=seed)
    assert (q.size, q.shape) == (n, (d,))
    assert q.kappa == pytest.approx(kappa, rel=1e-9)
    assert q.mu == pytest.approx(1.0, rel=1e-12)
    assert q.heterogeneity == pytest.approx(zeta, rel=1e-6, abs=1e-15 * kappa**2)
    again = problems.Quadratic.random(n, d, kappa=kappa, heterogeneity=zeta, seed=seed)
    assert (q.optimum == again.optimum).all()


def test_singular_quadratic():
    q = problems.Quadratic(h=[[1.0, 0.0], [1.0, 0.0]], b=[[2.0, 1.0], [0.0, -1.0]])
    assert q.optimum.tolist() == [1.0, 0.0]
    assert (q.mu, q.kappa) == (0.0, math.inf)
    q = problems.Quadratic(h=[[1.0, 0.0]], b=[[2.0, 1.0]])
    with pytest.raises(ArgumentError, match=r"mean of h is singular.*no minimiser"):
        _ = q.optimum


def test_a_user_problem_needs_four_methods_only():
    class Cosh(problems.Problem):
        """f_i(x) = sum of cosh(x - i)."""

        def __init__(self, n):
            super().__init__(n, (2,), "cosh")

        def __repr__(self):
            return "Cosh()"

        def _away(self, X, rows):
            return X - self.ranks[rows].astype(X.dtype)[:, None, None]

        def _values(self, X, rows):
            return np.cosh(self._away(X, rows)).sum(axis=-1)

        def _grads(self, X, rows):
            return np.sinh(self._away(X, rows))

        def _hessians(self, X, rows):
            return np.cosh(self._away(X, rows))[..., None] * np.eye(2)

        def _curvature(self):
            return problems.Curvature(L=math.cosh(2), L_max=math.cosh(2), mu=1.0)

    p = Cosh(3)
    assert p.optimum == pytest.approx([1, 1], abs=1e-13)
    assert p.grad(np.zeros((3, 2)), p.ranks)[2] == pytest.approx(p.grad(np.zeros(2), 2))
    assert p.heterogeneity == pytest.approx(4 / 3 * math.sinh(1) ** 2)
