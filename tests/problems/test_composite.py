"""Common terms with corners: their proximal points, and the optimum of a problem with one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import problems
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems import L1, Box, Composite

TERMS = [L1(0.3), L1(0.0), Box(-0.5, 0.25), Box(low=0.0), Box()]
seeds = st.integers(0, 2**16)


@pytest.mark.parametrize("r", TERMS, ids=repr)
@settings(max_examples=20, deadline=None)
@given(seed=seeds, step=st.floats(1e-3, 1e2))
def test_proximal_points_are_best(r, seed, step):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((4, 3))
    x = r.prox(v, step)

    def cost(z):
        return r.value(z) + ((z - v) ** 2).sum(axis=-1) / (2 * step)

    for _ in range(10):
        assert (cost(x) <= cost(x + rng.standard_normal(v.shape) * 10 ** rng.uniform(-6, 0)) + 1e-12
                ).all()  # fmt: skip
    assert r.prox(v.astype(np.float32), 0.5).dtype == np.float32


def composite(make, kind, r, n=4, d=3, seed=1):
    return Composite(make(kind, n, d, seed), r)


@pytest.mark.parametrize("r", TERMS, ids=repr)
def test_the_optimum_is_where_subgradients_hold_zero(make, kind, r):
    p = composite(make, kind, r)
    x, g = p.optimum.ravel(), p.smooth.gradient(p.optimum).ravel()
    tight = 1e-10 * p.L * max(1.0, np.abs(x).max())
    if isinstance(r, L1):
        assert (np.abs(g[x == 0]) <= r.weight + tight).all()
        np.testing.assert_allclose(g[x != 0], -r.weight * np.sign(x[x != 0]), atol=tight)
    else:
        inside = (x > r.low) & (x < r.high)
        np.testing.assert_allclose(g[inside], 0.0, atol=tight)
        assert (g[x == r.low] >= -tight).all()
        assert (g[x == r.high] <= tight).all()
    assert np.linalg.norm(p.gradient(p.optimum)) <= tight


def test_without_a_term_it_is_the_smooth_problem(make, kind):
    p = composite(make, kind, L1(0.0))
    np.testing.assert_allclose(p.optimum, p.smooth.optimum, rtol=1e-9, atol=1e-10)
    x = np.random.default_rng(0).standard_normal(p.shape)
    np.testing.assert_allclose(p.gradient(x), p.smooth.gradient(x), rtol=1e-9, atol=1e-12)
    assert p.objective(x) == pytest.approx(p.smooth.objective(x), rel=1e-14)


def test_lasso_by_coordinates():
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    p = Composite(problems.LeastSquares(A, y, n=4), L1(0.2))
    x, H, b = np.zeros(6), A.T @ A / 40, A.T @ y / 40
    for _ in range(500):
        for j in range(6):
            rest = b[j] - H[j] @ x + H[j, j] * x[j]
            x[j] = np.sign(rest) * max(abs(rest) - 0.2, 0.0) / H[j, j]
    assert 0 < np.count_nonzero(x) < 6
    np.testing.assert_allclose(p.optimum, x, atol=1e-11)
    assert np.count_nonzero(p.optimum) == np.count_nonzero(x)
    assert p.optimal_value == pytest.approx(0.5 * x @ H @ x - b @ x + 0.5 * y @ y / 40
                                            + 0.2 * np.abs(x).sum(), rel=1e-12)  # fmt: skip


def test_what_is_of_the_smooth_part_and_what_of_the_sum(make, kind):
    p = composite(make, kind, L1(0.7))
    x = np.random.default_rng(0).standard_normal((4, *p.shape))
    term = 0.7 * np.abs(x).reshape(4, -1).sum(axis=1)
    np.testing.assert_allclose(p.value(x, p.ranks), p.smooth.value(x, p.ranks) + term, rtol=1e-13)
    np.testing.assert_array_equal(p.grad(x, p.ranks), p.smooth.grad(x, p.ranks))
    np.testing.assert_array_equal(p.hessian(x, p.ranks), p.smooth.hessian(x, p.ranks))
    assert (p.L, p.L_max, p.mu, p.mu_min) == (
        p.smooth.L, p.smooth.L_max, p.smooth.mu, p.smooth.mu_min,
    )  # fmt: skip
    assert p.objective(x[0]) == pytest.approx(np.mean([p.value(x[0], i) for i in range(4)]))
    assert p.gap(p.optimum) == 0.0
    assert p.gap(x[0]) > 0
    np.testing.assert_array_equal(p.initial(2), p.smooth.initial(2))
    assert p.name.endswith(" + L1")
    assert p.regularizer == L1(0.7)
    assert p.smooth.regularizer is None
    again = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(again.optimum, p.optimum)


class Odd(problems.Problem):
    """A smooth part whose optimum no number of steps finds: f(x) = -x."""

    def __init__(self):
        super().__init__(1, (1,), "odd")

    def _values(self, X, rows):
        return -X[..., 0]

    def _grads(self, X, rows):
        return 0.0 * X - 1.0

    def _hessians(self, X, rows):
        return 0.0 * X[..., None]

    def _curvature(self):
        return problems.Curvature(1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("call", "kind_", "message"),
    [
        (lambda: L1(-1.0), ArgumentError, "L1: weight=-1.0 must be"),
        (lambda: L1("a"), ArgumentTypeError, "L1: weight='a' must be a real number"),
        (lambda: Box(1.0, 0.0), ArgumentError, "Box: low=1.0 and high=0.0 leave nothing"),
        (lambda: Box(low=np.nan), ArgumentError, "Box: low=nan"),
        (lambda: Box(high="1"), ArgumentTypeError, "Box: high is '1'; give a number"),
        (lambda: problems.Among(Odd(), [0.5]), ArgumentTypeError, "Among: ranks holds 0.5; give"),
        (lambda: Composite(L1(1.0), L1(1.0)), ArgumentTypeError, "smooth is a L1"),
        (lambda: Composite(Odd(), 0.1), ArgumentTypeError, "regularizer is 0.1; give one of dect"),
        (
            lambda: Composite(Composite(Odd(), L1(1.0)), Box()), ArgumentError,
            r"has the common term L1\(weight=1.0\) already",
        ),
        (lambda: Composite(Odd(), L1(1.0)).prox([0.0], 0), ArgumentError, "no proximal points of"),
        (
            lambda: problems.Among(Composite(Odd(), L1(1.0)), [0]), ArgumentError,
            "Among: Composite.* has a common term; put it around what is chosen",
        ),
    ],
)  # fmt: skip
def test_bad_arguments(call, kind_, message):
    with pytest.raises(kind_, match=message):
        call()


def test_an_optimum_out_of_reach(monkeypatch):
    monkeypatch.setattr("dectool.problems._composite._STEPS", 50)
    with pytest.raises(ArgumentError, match=r"the optimum of Composite.* not found in 50 steps"):
        _ = Composite(Odd(), L1(0.5)).optimum
