"""Gradients and Hessians against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import approx_fprime

seeds = st.integers(0, 2**16)


def central(f, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Central differences of f at x, one row per entry of x."""
    steps = h * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + s) - f(x - s)) / (2 * h) for s in steps])


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 5), d=st.integers(1, 5), seed=seeds, weighted=st.booleans())
def test_local_gradient_and_hessian(make, kind, n, d, seed, weighted):
    options = {}
    if kind in ("least_squares", "logistic", "softmax") and weighted:
        options["objective"] = "weighted"
    p = make(kind, n, d, seed, **options)
    x = np.random.default_rng(seed).standard_normal(p.shape)
    for rank in {0, n - 1}:
        grad = p.grad(x, rank)
        assert grad.shape == p.shape
        assert grad.ravel() == pytest.approx(
            central(lambda z, rank=rank: p.value(z, rank), x), rel=1e-6, abs=1e-6
        )
        hessian = p.hessian(x, rank)
        assert hessian.shape == (p.dim, p.dim)
        numeric = central(lambda z, rank=rank: p.grad(z, rank).ravel(), x)
        assert hessian == pytest.approx(numeric, rel=1e-6, abs=1e-6)
        assert hessian == pytest.approx(hessian.T, rel=1e-12, abs=1e-14)


def test_gradient_against_scipy(make, kind):
    p = make(kind, 4, 3, 7)
    x = np.linspace(-1, 1, p.dim)
    numeric = approx_fprime(x, lambda z: p.value(z.reshape(p.shape), 2), 1e-7)
    assert p.grad(x.reshape(p.shape), 2).ravel() == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 6), d=st.integers(1, 5), seed=seeds, batch=st.sampled_from([(), (3,)]))
def test_the_mean_of_the_local_functions(make, kind, n, d, seed, batch):
    p = make(kind, n, d, seed)
    x = np.random.default_rng(seed).standard_normal((*batch, *p.shape))
    values = np.array([p.value(x, rank) for rank in range(n)])
    grads = np.array([p.grad(x, rank) for rank in range(n)])
    assert p.objective(x) == pytest.approx(values.mean(axis=0), rel=1e-12, abs=1e-12)
    assert p.gradient(x) == pytest.approx(grads.mean(axis=0), rel=1e-12, abs=1e-12)
    assert p.gradient(x).shape == x.shape
    assert np.shape(p.objective(x)) == batch


def test_hessian_times_vector_is_the_hessian(make, data_kind):
    p = make(data_kind, 3, 4, 5)
    rng = np.random.default_rng(0)
    X, V = rng.standard_normal((2, 1, 1, p.dim))
    pool = p._pool(np.float64)
    H = p._loss_hessian(X, pool)[0, 0]
    assert p._loss_product(X, V, pool)[0, 0] == pytest.approx(H @ V[0, 0], rel=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_large_scores_neither_overflow_nor_lose_the_loss(make, data_kind, size):
    p = make(data_kind, 2, 2, 1, l2=0.0)
    for sign in (1, -1):
        x = np.full(p.shape, sign * size)
        x.flat[0] = 0
        assert np.isfinite(p.value(x, 0))
        assert np.isfinite(p.grad(x, 0)).all()
        assert np.isfinite(p.hessian(x, 0)).all()
