"""What each class declares, against exact identities.

Where something is drawn, the expectation is taken exactly: over a grid of uniform numbers that
divides the probabilities, or over all sets of places.
"""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from dectool import compression
from dectool.compression import _randomk

NUMBERS = st.floats(-1e6, 1e6, width=32).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
VECTORS = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda kind: arrays(kind, st.integers(1, 40), elements=NUMBERS)
)

DETERMINISTIC = [
    "identity",
    "cast:bfloat16",
    "cast:float8_e5m2",
    "minmax8",
    "minmax8:7",
    "sign",
    "topk:2",
    "topk:0.25",
    "topk:3|minmax8",
    "topk:3|sign",
    "pertensor:minmax8:7",
    "pertensor:topk:2",
]
RANDOM = [
    "qsgd:4",
    "qsgd:1,norm=max",
    "qsgd:3,block=5",
    "qsgd:2,elias=true",
    "natural",
    "randomk:2",
    "randomk:0.25,unbiased=true",
    "lowrank:1",
    "lowrank:3",
    "topk:3|qsgd:4",
    "topk:3|natural",
    "pertensor:qsgd:4",
    "pertensor:lowrank:1",
]


def get(text):
    return compression.get(text)


def error(c, x, rng=None):
    """Return C(x) - x in float64."""
    return c.decompress(c.compress(x, rng)).astype(np.float64) - x.astype(np.float64)


def square(x):
    return float(np.sum(np.square(x.astype(np.float64))))


def rounding(x):
    return 16 * np.finfo(x.dtype).eps * float(np.abs(x).max())


class Grid:
    """A generator for many rows, each of which draws the same number all the time."""

    def __init__(self, values):
        self.values = values

    def random(self, size, dtype):
        return np.repeat(self.values[:, None], size, axis=1).astype(dtype)


def outcomes(c, x, points=64):
    """Return C(x) for each of the equally likely uniform numbers (i + 1/2) / points."""
    rows = np.repeat(x[None], points, axis=0)
    grid = Grid((np.arange(points) + 0.5) / points)
    return c.decompress(c.compress(rows, grid)).astype(np.float64)


def draws(c, x, many, rng):
    """Return ``many`` draws of C(x)."""
    return c.decompress(c.compress(np.repeat(x[None], many, axis=0), rng)).astype(np.float64)


@pytest.mark.parametrize("text", [*DETERMINISTIC, *RANDOM, "threshold:1.5", "threshold:2|minmax8"])
@settings(max_examples=40)
@given(x=VECTORS, seed=st.integers(0, 2**32))
def test_no_error_is_above_the_bound(text, x, seed):
    c = get(text)
    if text == "cast:float8_e5m2":
        x = np.clip(x, -5e4, 5e4)
    bound = np.broadcast_to(c.bound(x), x.shape)
    assert (np.abs(error(c, x, np.random.default_rng(seed))) <= bound + rounding(x)).all()


@pytest.mark.parametrize("text", DETERMINISTIC)
@settings(max_examples=40)
@given(x=VECTORS)
def test_deterministic_contractions(text, x):
    c = get(text)
    if text == "cast:float8_e5m2":
        x = np.clip(x, -5e4, 5e4)
        assume((np.abs(x[x != 0]) > 2.0**-14).all())
    delta = c.contraction(len(x))
    slack = 4 * np.finfo(x.dtype).eps * square(x)
    assert square(error(c, x)) <= (1 - delta) * square(x) + slack


@given(x=VECTORS)
def test_scaled_sign_has_the_error_of_theory(x):
    x = x.astype(np.float64)
    want = square(x) - np.abs(x).sum() ** 2 / len(x)
    assert square(error(get("sign"), x)) == pytest.approx(want, rel=1e-9, abs=1e-9 * square(x))


@given(x=VECTORS, k=st.integers(1, 40))
def test_top_k_loses_the_least(x, k):
    k = min(k, len(x))
    lost = square(error(compression.TopK(k), x))
    assert lost == pytest.approx(square(np.sort(np.abs(x))[: len(x) - k]), rel=1e-12, abs=0)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_top_k_is_as_bad_as_its_bound_where_all_are_equal(k):
    x = np.array([2.0, -2, 2, 2, -2, -2, 2, 2])
    assert square(error(compression.TopK(k), x)) == (1 - k / 8) * square(x)
    assert compression.TopK(k).contraction(8) == k / 8


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_random_k_over_all_sets(monkeypatch, unbiased, k):
    x = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    c = compression.RandomK(k, unbiased=unbiased)
    results = []
    for places in itertools.combinations(range(5), k):
        monkeypatch.setattr(_randomk, "places_of", lambda *_, p=places: np.array(p))
        results.append(c.decompress(c.compress(x, np.random.default_rng(0))))
    squares = np.mean([square(r - x) for r in results])
    if unbiased:
        np.testing.assert_allclose(np.mean(results, axis=0), x, rtol=1e-14)
        assert squares == pytest.approx(c.variance(5) * square(x), rel=1e-14)
        assert c.variance(5) == 5 / k - 1
    else:
        assert squares == pytest.approx((1 - k / 5) * square(x), rel=1e-14)
        assert c.contraction(5) == k / 5


def test_every_set_of_places_is_as_likely():
    """20,000 seeds on the 10 sets of 2 of 5: chi-square with 9 degrees, below its 0.999 point."""
    sets = [tuple(_randomk.places_of(seed, 5, 2)) for seed in range(20_000)]
    counts = np.array([sets.count(s) for s in itertools.combinations(range(5), 2)])
    assert counts.sum() == 20_000
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9


@given(
    parts=arrays(np.int64, st.integers(1, 12), elements=st.integers(-256, 256)),
    levels=st.sampled_from([1, 2, 4]),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_qsgd_is_unbiased_and_has_its_variance(parts, levels, kind):
    """With the greatest number 1, every probability is a multiple of 1/256."""
    x = np.append(parts / 256, 1.0).astype(kind)
    c = compression.QSGD(levels, norm="max")
    each = outcomes(c, x, points=256)
    np.testing.assert_allclose(each.mean(axis=0), x, rtol=0, atol=2e-7)
    p = levels * np.abs(x.astype(np.float64)) % 1
    variance = np.sum(p * (1 - p)) / levels**2
    assert np.mean([square(r - x) for r in each]) == pytest.approx(variance, rel=1e-5, abs=1e-6)
    assert variance <= c.variance(len(x)) * square(x) * (1 + 1e-12)


@given(x=VECTORS, levels=st.sampled_from([1, 3, 8]))
def test_qsgd_with_the_euclidean_norm(x, levels):
    c = compression.QSGD(levels)
    norm = np.sqrt(square(x))
    assume(norm > 0)
    each = outcomes(c, x, points=512)
    step = norm / levels
    np.testing.assert_allclose(each.mean(axis=0), x, rtol=0, atol=step * (1 / 512 + 1e-5))
    p = np.abs(x.astype(np.float64)) / step % 1
    assert np.sum(p * (1 - p)) * step**2 <= c.variance(len(x)) * square(x) * (1 + 1e-9)
    assert c.variance(len(x)) <= min(len(x) / levels**2, np.sqrt(len(x)) / levels)


def test_qsgd_reaches_its_variance():
    """All numbers at half a level have d/(4s²); one level and equal numbers are near sqrt(d)/s."""
    x = np.append(np.full(99, 0.5), 1.0)
    each = outcomes(compression.QSGD(1, norm="max"), x)
    assert np.mean([square(r - x) for r in each]) == pytest.approx(99 / 4)
    x = np.full(10_000, 1.0)
    ratio = np.mean([square(r - x) for r in outcomes(compression.QSGD(1), x, 100)]) / square(x)
    assert ratio == pytest.approx(99.0)
    assert compression.QSGD(1).variance(10_000) == 100.0


@given(
    mantissa=arrays(np.int64, 6, elements=st.integers(0, 63)),
    exponent=arrays(np.int64, 6, elements=st.integers(-120, 120)),
    sign=arrays(np.int64, 6, elements=st.sampled_from([-1, 1])),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_natural_compression_is_exactly_unbiased(mantissa, exponent, sign, kind):
    x = (sign * np.ldexp(1 + mantissa / 64, exponent)).astype(kind)
    c = compression.Natural()
    each = outcomes(c, x)
    assert (each.mean(axis=0) == x).all()
    variance = ((each - x) ** 2).mean(axis=0)
    f = mantissa / 64
    np.testing.assert_allclose(variance, np.ldexp(1.0, 2 * exponent) * f * (1 - f), rtol=1e-12)
    assert (variance <= c.variance(6) * x.astype(np.float64) ** 2).all()


def test_natural_compression_reaches_an_eighth():
    x = np.array([4 / 3])
    c = compression.Natural()
    each = outcomes(c, x, points=3)
    assert ((each - x) ** 2).mean() == pytest.approx(c.variance(1) * x[0] ** 2)
    assert c.variance(1) == 1 / 8


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_low_rank_is_as_bad_as_its_contraction_where_all_directions_are_alike(rank):
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))[0]
    c = compression.LowRank(rank, shape=(8, 8))
    lost = square(error(c, rotation.ravel(), np.random.default_rng(0)))
    assert lost == pytest.approx((1 - rank / 8) * 8, rel=1e-12)
    assert c.contraction(64) == rank / 8


@pytest.mark.parametrize("seed", range(20))
def test_low_rank_contracts_on_average(seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(5, 7)) * rng.exponential(size=7)).ravel()
    c = compression.LowRank(2, shape=(5, 7))
    lost = np.mean([square(d - x) for d in draws(c, x, 100, rng)])
    assert lost <= (1 - c.contraction(35)) * square(x)


@pytest.mark.parametrize("text", [*RANDOM, *DETERMINISTIC])
def test_declarations_agree_with_each_other(text):
    c = get(text)
    for count in (1, 2, 10, 1000):
        omega, delta = c.variance(count), c.contraction(count)
        assert (omega is not None) == c.unbiased
        assert delta is None or 0 < delta <= 1
        if omega is not None and omega < 1:
            assert delta >= 1 - omega
    assert c.uses_rng == (text in RANDOM)


def test_composed_variance():
    c = compression.RandomK(5, unbiased=True) | compression.QSGD(2)
    assert c.unbiased
    assert c.variance(20) == (1 + 3) * (1 + compression.QSGD(2).variance(5)) - 1
    x = np.linspace(-1, 2, 20)
    each = draws(c, x, 4000, np.random.default_rng(1))
    spread = each.std(axis=0) / np.sqrt(4000)
    assert (np.abs(each.mean(axis=0) - x) < 5 * spread + 1e-12).all()
    assert np.mean([square(d - x) for d in each]) <= c.variance(20) * square(x)
    assert (compression.TopK(5) | compression.QSGD(2, norm="max")).contraction(20) == 0.25 * (
        1 - compression.QSGD(2, norm="max").variance(5)
    )
