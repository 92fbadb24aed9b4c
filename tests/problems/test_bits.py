"""One rank at a time and all at once must give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import problems

sizes = st.one_of(st.integers(1, 17), st.sampled_from([31, 63, 100]))
dims = st.one_of(st.integers(1, 9), st.sampled_from([16, 17, 31]))
batches = st.lists(st.integers(1, 3), max_size=2).map(tuple)
dtypes = st.sampled_from(["f8", "f4", "f2", ">f8"])
seeds = st.integers(0, 2**16)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal dtype, shape and bytes: unlike ==, tells -0.0 from 0.0."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def points(p: problems.Problem, k: int, batch: tuple[int, ...], dtype: str, seed: int):
    """Random points with zeros, negative zeros and huge entries among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((k, *batch, *p.shape))
    # The square of 1e3 is beyond half precision.
    special = rng.choice([0.0, -0.0, 10.0 if dtype == "f2" else 1e3, 1.0], size=x.shape)
    return np.where(rng.random(x.shape) < 0.1, special, x).astype(dtype)


@settings(max_examples=80, deadline=None)
@given(n=sizes, d=dims, batch=batches, dtype=dtypes, seed=seeds)
def test_all_ranks_equal_one_rank(make, kind, n, d, batch, dtype, seed):
    p = make(kind, n, d, seed)
    x = points(p, n, batch, dtype, seed)
    for method in ("value", "grad", "hessian"):
        stacked = getattr(p, method)(x, np.arange(n))
        assert same_bits(stacked, getattr(p, method)(x, p.ranks))
        assert stacked.dtype == dtype
        for rank in range(0, n, max(1, n // 7)):
            assert same_bits(stacked[rank], getattr(p, method)(x[rank], rank)), (method, rank)


@settings(max_examples=40, deadline=None)
@given(n=sizes, d=dims, batch=batches, seed=seeds, data=st.data())
def test_any_ranks_in_any_order(make, kind, n, d, batch, seed, data):
    p = make(kind, n, d, seed)
    ranks = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6)))
    x = points(p, ranks.size, batch, "f8", seed)
    for method in ("value", "grad", "hessian"):
        some = getattr(p, method)(x, ranks)
        for j, rank in enumerate(ranks.tolist()):
            assert same_bits(some[j], getattr(p, method)(x[j], rank))


@settings(max_examples=40, deadline=None)
@given(n=sizes, d=dims, seed=seeds)
def test_strides_of_x_do_not_matter(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    x = points(p, n, (), "f8", seed)
    wide = np.zeros((*x.shape, 3))
    wide[..., 1] = x
    assert same_bits(p.grad(x, p.ranks), p.grad(wide[..., 1], p.ranks))
    assert same_bits(p.grad(x, p.ranks), p.grad(np.asfortranarray(x), p.ranks))
    assert same_bits(p.grad(x[0], 0), p.grad(wide[0, ..., 1], 0))


@settings(max_examples=40, deadline=None)
@given(n=sizes, d=dims, seed=seeds)
def test_a_batch_entry_has_the_bits_of_its_own(make, kind, n, d, seed):
    p = make(kind, n, d, seed)
    x = points(p, n, (3,), "f8", seed)
    for method in ("value", "grad", "hessian"):
        batch = getattr(p, method)(x, p.ranks)
        for j in range(3):
            assert same_bits(batch[:, j], getattr(p, method)(x[:, j], p.ranks))


@pytest.mark.parametrize(("m", "d"), [(50 * 100, 20), (71 * 8, 31), (2500, 65)])
def test_shards_of_realistic_size(make, data_kind, m, d):
    n = {5000: 100, 568: 8, 2500: 7}[m]
    p = make(data_kind, n, d, m=m)
    x = points(p, n, (), "f8", 1)
    value, grad = p.value(x, p.ranks), p.grad(x, p.ranks)
    for rank in range(n):
        assert same_bits(value[rank], p.value(x[rank], rank))
        assert same_bits(grad[rank], p.grad(x[rank], rank))


class Stacked:
    """The wrapper of a vectorised backend: one generator per rank."""

    def __init__(self, n: int) -> None:
        self.each = [np.random.default_rng([3, rank]) for rank in range(n)]

    def integers(self, low, high, *, size):
        return np.stack(
            [g.integers(low, h, size=size) for g, h in zip(self.each, high, strict=True)]
        )


@settings(max_examples=40, deadline=None)
@given(n=sizes, d=dims, batch=batches, b=st.integers(1, 9), seed=seeds)
def test_minibatches_equal_one_rank(make, data_kind, n, d, batch, b, seed):
    p = make(data_kind, n, d, seed)
    x = points(p, n, batch, "f8", seed)
    stacked, single = Stacked(n), Stacked(n)
    for _ in range(2):
        grads = p.sample_grad(x, p.ranks, stacked, b)
        for rank in range(n):
            assert same_bits(grads[rank], p.sample_grad(x[rank], rank, single.each[rank], b))
