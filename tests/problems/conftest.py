"""Problems of every class, small and random, with shards of unequal size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dectool import problems

KINDS = ("averaging", "diagonal", "full", "least_squares", "logistic", "softmax")
DATA_KINDS = ("least_squares", "logistic", "softmax")

Maker = Callable[..., problems.Problem]


def _random_parts(m: int, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return shards of random sizes, at least one sample each."""
    cuts = np.sort(rng.choice(np.arange(1, m), n - 1, replace=False))
    return np.split(rng.permutation(m), cuts)


def _make(kind: str, n: int, d: int, seed: int = 0, **options: object) -> problems.Problem:
    rng = np.random.default_rng(seed)
    if kind == "averaging":
        return problems.Averaging(rng.standard_normal((n, d)))
    if kind == "diagonal":
        return problems.Quadratic(rng.uniform(0.5, 3, (n, d)), rng.standard_normal((n, d)))
    if kind == "full":
        root = rng.standard_normal((n, d, d))
        H = root @ root.transpose(0, 2, 1) + 0.5 * np.eye(d)
        return problems.Quadratic(H, rng.standard_normal((n, d)))
    m = options.pop("m", 3 * n + 2)
    A = rng.standard_normal((m, d))
    target = rng.standard_normal(m)
    y = rng.permutation(np.arange(m) % (2 if kind == "logistic" else 3))
    options.setdefault("partition", _random_parts(m, n, rng))
    options.setdefault("l2", 0.1)
    if kind == "least_squares":
        return problems.LeastSquares(A, target, **options)
    cls = problems.LogisticRegression if kind == "logistic" else problems.SoftmaxRegression
    return cls(A, y, **options)


@pytest.fixture(scope="session")
def make() -> Maker:
    """A function (kind, n, d, seed, **options) -> problem."""
    return _make


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session", params=DATA_KINDS)
def data_kind(request: pytest.FixtureRequest) -> str:
    return request.param
