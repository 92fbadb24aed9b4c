"""Empty, single, constant, tiny, huge and outlying numbers; infinity and NaN."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from dectool import compression
from dectool.errors import ArgumentError

ALL = [
    "identity", "cast:bfloat16", "minmax8", "minmax8:3", "qsgd:4", "qsgd:4,norm=max,block=3",
    "qsgd:2,elias=true", "natural", "sign", "topk:2", "randomk:2", "randomk:2,unbiased=true",
    "threshold:0.5", "lowrank:1", "topk:2|minmax8", "topk:2|qsgd:4",
]  # fmt: skip
KINDS = [np.float32, np.float64, np.float16]


def there_and_back(text, x):
    c = compression.get(text)
    return c.decompress(c.compress(x, np.random.default_rng(0)))


def ulps(x, many):
    return many * np.finfo(x.dtype).eps * np.abs(x.astype(np.float64)).max()


def close(got, x, text):
    """Tell whether each error is within the declared bound, rounding aside."""
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    bound = np.broadcast_to(compression.get(text).bound(wide), x.shape)
    error = np.abs(got.astype(np.float64) - x.astype(np.float64))
    tiny = np.finfo(x.dtype).smallest_subnormal
    with np.errstate(over="ignore"):
        return (error <= bound * (1 + 1e-6) + ulps(x, 16) + 2 * tiny).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*ALL, "moniqua:1"])
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_takes_no_bytes(text, kind, shape):
    c = compression.get(text)
    x = np.zeros(shape, kind)
    payload = c.compress(x, np.random.default_rng(0))
    assert payload.nbytes == 0
    back = c.decompress(payload, x) if c.needs_reference else c.decompress(payload)
    assert (back.shape, back.dtype) == (shape, x.dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["identity", "minmax8", "sign", "qsgd:4", "topk:1", "topk:0.01",
                                  "randomk:0.3", "lowrank:3"])  # fmt: skip
@pytest.mark.parametrize("value", [0.0, -1.5, 0.75, 6e4, 6e-8])
def test_a_single_number_comes_back(text, kind, value):
    x = np.array([value], kind)
    np.testing.assert_allclose(there_and_back(text, x), x, rtol=4 * np.finfo(kind).eps)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.3, -2.0, 6e4, 6e-8, -1e-30, 1e38])
def test_equal_numbers_come_back_exactly_from_min_max(kind, value):
    with np.errstate(over="ignore"):
        x = np.full(5, value).astype(kind)
    if np.isfinite(x).all():
        assert (there_and_back("minmax8", x) == x).all()
        assert (there_and_back("minmax8:2", x) == x).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize("value", [0.0, -0.25, 1.0])
def test_equal_numbers_are_within_the_bound(text, kind, value):
    x = np.full(9, value, kind)
    got = there_and_back(text, x)
    assert np.isfinite(got).all()
    assert close(got, x, text)


SIZES = {
    "smallest": lambda k: float(np.finfo(k).smallest_subnormal),
    "subnormal": lambda k: float(np.finfo(k).smallest_normal) / 8,
    "small": lambda k: float(np.finfo(k).smallest_normal) * 3,
    "huge": lambda k: float(np.finfo(k).max) / 4,
    "largest": lambda k: float(np.finfo(k).max),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", ALL)
def test_tiny_and_huge_numbers(text, size, kind):
    with np.errstate(under="ignore"):
        x = (SIZES[size](kind) * np.array([1, -0.5, 0.25, 0, -1, 0.75, 0.5])).astype(kind)
    got = there_and_back(text, x)
    if size == "largest" and text == "cast:bfloat16" and kind is np.float32:
        # Rounded to nearest they exceed the largest number of the format.
        assert (np.isinf(got) == (np.abs(x) == np.abs(x).max())).all()
        return
    if kind is np.float64 and text == "cast:bfloat16":
        assert (np.isinf(got) == (np.abs(x) > 3.4e38)).all()  # beyond the range of the format
        return
    if size in ("huge", "largest") and text in ("randomk:2,unbiased=true", "natural", "lowrank:1"):
        assert not np.isnan(got).any()  # may exceed the dtype, or be cut at the greatest power
        return
    assert np.isfinite(got).all()
    assert close(got, x, text)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_min_max_uses_its_levels_at_any_scale(kind):
    """At least 128 levels, however small the range; BAGUA's has one below 4e-10."""
    x = np.linspace(-0.3, 1, 301)
    low, high = (-30, 30) if kind is np.float32 else (-290, 290)
    for exponent in range(low, high, 7):
        scaled = (x * 10.0**exponent).astype(kind)
        error = np.abs(there_and_back("minmax8", scaled) / scaled.max() - scaled / scaled.max())
        assert error.max() <= 1.3 / 127 / 2 * 1.01


@given(
    arrays(np.float32, st.integers(1, 30), elements=st.floats(-(2.0**127), 2.0**127, width=32)),
    st.sampled_from([None, 4]),
)
def test_min_max_is_right_for_all_finite_numbers(x, block):
    """Half a step, and the rounding of numbers that lie close together far from zero."""
    c = compression.MinMax8(block)
    got = c.decompress(c.compress(x))
    assert np.isfinite(got).all()
    assert (
        np.abs(got.astype(np.float64) - x) <= c.bound(x) * (1 + 1e-5) + ulps(x, 2) + 3e-45
    ).all()


@pytest.mark.parametrize("offset", [1e3, -1e3, 1e6, 3e7])
def test_min_max_of_a_small_range_far_from_zero(offset):
    """Where 255 is lost in the rounding of the greatest code, BAGUA wraps it to 0."""
    x = np.float32(offset) + np.linspace(0, abs(offset) * 1e-6, 20, dtype=np.float32)
    got = there_and_back("minmax8", x)
    assert np.abs(got - x).max() <= np.ptp(x) / 255 + ulps(x, 2)


def test_an_outlier_flattens_min_max_and_blocks_help():
    x = np.append(np.linspace(-1, 1, 63), 1e4).astype(np.float32)
    whole = np.abs(there_and_back("minmax8", x) - x)[:32].max()
    assert whole > 0.9
    assert np.abs(there_and_back("minmax8:32", x) - x)[:32].max() < 0.01


WHOLE = ["minmax8", "qsgd:4", "qsgd:4,norm=max", "qsgd:2,elias=true", "sign", "lowrank:1"]
SINGLY = ["identity", "cast:bfloat16", "cast:float16", "cast:float8_e5m2", "natural"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("text", WHOLE)
def test_one_number_that_is_none_makes_all_nan(text, wrong, kind):
    x = np.ones((3, 9), kind)
    x[1, 4] = wrong
    got = there_and_back(text, x)
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[[0, 2]]).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("text", ["minmax8:3", "qsgd:4,block=3"])
def test_only_its_block_becomes_nan(text, wrong):
    x = np.ones(8, np.float32)
    x[4] = wrong
    assert np.isnan(there_and_back(text, x)).tolist() == [False] * 3 + [True] * 3 + [False] * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SINGLY)
def test_numbers_that_are_none_pass_one_by_one(text, kind):
    x = np.array([1, np.nan, np.inf, -np.inf, -2, 0, -0.0], kind)
    np.testing.assert_array_equal(there_and_back(text, x), x)


def test_float8_without_infinity_gives_nan():
    x = np.array([448.0, 500.0, np.inf, -np.inf, np.nan], np.float32)
    got = there_and_back("cast:float8_e4m3fn", x)
    assert got[0] == 448.0
    assert np.isnan(got[1:]).all()


def test_top_k_takes_what_is_no_number_first():
    x = np.array([1.0, np.nan, 5.0, -np.inf, 1e300])
    np.testing.assert_array_equal(there_and_back("topk:2", x), [0, np.nan, 0, -np.inf, 0])
    np.testing.assert_array_equal(there_and_back("topk:1", x), [0, np.nan, 0, 0, 0])


def test_threshold_keeps_what_is_no_number():
    x = np.array([1.0, np.nan, 5.0, -np.inf])
    np.testing.assert_array_equal(there_and_back("threshold:2", x), [0, np.nan, 5, -np.inf])


def test_random_k_sends_what_it_chooses():
    x = np.full(6, np.nan)
    assert np.isnan(there_and_back("randomk:2", x)).sum() == 2


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e30])
def test_moniqua_refuses_what_has_no_remainder(wrong):
    x = np.ones((2, 5))
    x[1, 3] = wrong
    with pytest.raises(ArgumentError, match=r"position 3 of row 1"):
        compression.Moniqua(1.0).compress(x)


def test_norms_that_overflow_are_cut():
    x = np.full(4, 3e38, np.float32)
    c = compression.QSGD(1)
    rows = np.repeat(x[None], 2000, axis=0)
    draws = c.decompress(c.compress(rows, np.random.default_rng(0))).astype(np.float64)
    assert np.isfinite(draws).all()
    assert draws.mean() == pytest.approx(3e38, rel=0.02)


def test_natural_compression_of_subnormal_numbers_is_unbiased():
    x = np.full(4000, 2.0**-130, np.float32)
    c = compression.Natural()
    draws = c.decompress(c.compress(x, np.random.default_rng(0))).astype(np.float64)
    assert set(draws) == {0.0, 2.0**-126}
    assert draws.mean() == pytest.approx(2.0**-130, rel=0.2)


@pytest.mark.parametrize("x", [[0.0, -0.0], [-0.0, 0.0], [-0.0], [1.0, -0.0], [-0.0, -1.0]])
def test_the_header_of_min_max_has_no_negative_zero(x):
    payload = compression.MinMax8().compress(np.array(x, np.float32))
    assert 0x80000000 not in np.frombuffer(payload.to_bytes()[:8], "<u4")


@pytest.mark.parametrize(
    ("kind", "greatest"), [(np.float16, 2.0**15), (np.float32, 2.0**127), (np.float64, 2.0**1023)]
)
def test_natural_compression_stops_at_the_greatest_power_of_two(kind, greatest):
    x = np.array([1, -1], kind) * np.finfo(kind).max
    assert there_and_back("natural", x).tolist() == [greatest, -greatest]


def test_random_k_may_exceed_its_dtype():
    x = np.full(4, 3e38, np.float32)
    got = there_and_back("randomk:1,unbiased=true", x)
    assert sorted(got) == [0, 0, 0, np.inf]
    got = there_and_back("randomk:1,unbiased=true", np.full(4, 6e4, np.float16))
    assert sorted(got) == [0, 0, 0, 65504]
