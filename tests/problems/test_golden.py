"""Published and independently verified numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dectool import problems


@pytest.fixture(scope="module")
def golden() -> problems.LogisticRegression:
    """First 568 rows of breast_cancer, 8 contiguous shards of 71, bias last, l2 = 0.01."""
    data = problems.breast_cancer(rows=568)
    return problems.LogisticRegression.from_data(
        data, n=8, partition="contiguous", l2=0.01, bias=True
    )


def test_golden_logistic(golden):
    assert golden.samples.tolist() == [71] * 8
    assert golden.shape == (31,)
    assert golden.optimal_value == pytest.approx(0.100505901430, abs=6e-13)
    assert np.linalg.norm(golden.optimum) == pytest.approx(2.357382674508, abs=6e-13)
    assert golden.optimum[0] == pytest.approx(-0.4021414526, abs=6e-11)
    assert pytest.approx(3.327775612336, abs=6e-13) == golden.L
    assert golden.L_max == pytest.approx(4.416275116859, abs=6e-13)
    assert golden.heterogeneity == pytest.approx(0.004058056719, abs=6e-13)
    assert golden.mu == 0.01


def test_golden_logistic_written_out(golden):
    raw = problems.breast_cancer(rows=568, standardize=False)
    A = (raw.X - raw.X.mean(axis=0)) / raw.X.std(axis=0)
    A = np.c_[A, np.ones(568)]
    y = 2.0 * raw.y - 1
    w = np.linspace(-1, 1, 31)
    losses = np.log(1 + np.exp(-y * (A @ w)))
    assert golden.objective(w) == pytest.approx(losses.mean() + 0.005 * w @ w, rel=1e-14)
    local = losses[71 * 3 : 71 * 4].mean() + 0.005 * w @ w
    assert golden.value(w, 3) == pytest.approx(local, rel=1e-14)


def test_optimum_against_scikit_learn(golden):
    from sklearn.linear_model import LogisticRegression

    data = problems.breast_cancer(rows=568)
    A = np.c_[data.X, np.ones(568)]
    # scikit-learn minimises C * sum of losses + 1/2 ||w||^2.
    model = LogisticRegression(
        C=1 / (0.01 * 568), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    )
    model.fit(A, data.y)
    assert golden.optimum == pytest.approx(model.coef_[0], abs=1e-8)
    assert golden.accuracy(golden.optimum) == model.score(A, data.y)


def test_softmax_against_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    data = problems.digits(rows=300)
    p = problems.SoftmaxRegression.from_data(data, n=5, l2=0.1, objective="weighted")
    model = LogisticRegression(
        C=1 / (0.1 * 300), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    )
    model.fit(data.X, data.y)
    assert p.optimum == pytest.approx(model.coef_.T, abs=1e-7)
    assert p.accuracy(p.optimum) == model.score(data.X, data.y)
    assert np.linalg.norm(p.gradient(p.optimum)) <= 1e-12 * np.linalg.norm(
        p.gradient(np.zeros(p.shape))
    )


def test_q8():
    h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
    q = problems.Quadratic(h=h, b=np.arange(8.0)[:, None])
    assert q.optimum == pytest.approx([1.4], abs=1e-15)
    assert (q.L, q.mu, q.L_max, q.kappa) == (2.5, 2.5, 4.0, 1.0)
    expected = np.mean((h[:, 0] * 1.4 - np.arange(8)) ** 2)
    assert q.heterogeneity == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("alpha", "sizes"),
    [
        (100.0, [219, 231, 226, 223, 219, 234, 221, 224]),
        (1.0, [204, 319, 210, 272, 221, 150, 295, 126]),
        (0.1, [69, 20, 438, 360, 204, 139, 461, 106]),
    ],
)
def test_dirichlet_sizes(alpha, sizes):
    y = problems.digits().y
    parts = problems.partition.Dirichlet(alpha, seed=0)(y, 8)
    assert [part.size for part in parts] == sizes
    if alpha == 0.1:
        assert [np.unique(y[part]).size for part in parts] == [3, 3, 5, 7, 4, 5, 6, 10]
