"""Weighted sums and sparse products round and order alike, with SciPy and without."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

from dectool.kernels import _weighted_sum, combine, divide, scale, sparse_product, weighted_sum
from dectool.testing._kinds import SPECIAL

DTYPES = ["float64", "float32", "float16", "bfloat16", "complex128", "complex64", "longdouble"]


def buffers(dtype: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Return random rows, some entries special; bfloat16 as its bits."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        values = [
            np.where(
                rng.random((rows, columns)) < 0.3,
                rng.choice(SPECIAL, (rows, columns)),
                rng.normal(size=(rows, columns)),
            )
            for _ in range(2)
        ]
        if dtype == "bfloat16":
            return values[0].astype(ml_dtypes.bfloat16).view(np.uint16)
        if dtype.startswith("complex"):
            return (values[0] + 1j * values[1]).astype(dtype)
        return values[0].astype(dtype)


def matrix(rows: int, columns: int, seed: int) -> sp.csr_array:
    rng = np.random.default_rng([seed, 1])
    dense = np.where(rng.random((rows, columns)) < 0.6, rng.normal(size=(rows, columns)), 0.0)
    dense[0, :] = 1.0
    return sp.csr_array(dense)


def name_of(dtype: str) -> str:
    return "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name


def assert_same(got: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    """Compare bit for bit; any NaN equals any other."""
    assert got.dtype == expected.dtype
    if dtype == "bfloat16":
        got, expected = got.view(ml_dtypes.bfloat16), expected.view(ml_dtypes.bfloat16)
    elif dtype.startswith("complex"):
        got, expected = got.view(got.real.dtype), expected.view(got.dtype.type(0).real.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(got)
    np.testing.assert_array_equal(got[number], expected[number])
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.fixture(params=["C", "NumPy"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do weighted sums with the C kernel, and with its twin."""
    if request.param == "NumPy":
        monkeypatch.setattr(_weighted_sum, "_native", None)
    elif _weighted_sum._native is None:
        pytest.skip("the C extension was not built")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 2047, 2048, 2049, 5000])
def test_c_and_numpy_give_the_same_bits(dtype: str, size: int) -> None:
    """For special values too, and whatever the number of terms."""
    with np.errstate(all="ignore"):
        for count in (1, 2, 3, 4, 9):
            rows = list(buffers(dtype, count, size, count))
            weights = np.random.default_rng(count).normal(size=count).tolist()
            twin = _weighted_sum._by_numpy(weights, rows, name_of(dtype))
            assert_same(weighted_sum(weights, rows, name_of(dtype)), twin, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("weight", [1.0, 0.3, -1e-7, 3.7e4, 2.0**-24])
def test_every_half_is_widened_and_rounded_alike(dtype: str, weight: float) -> None:
    """All 65,536 of them, subnormals, infinities and NaNs among them."""
    every = np.arange(1 << 16, dtype=np.uint16)
    term = every if dtype == "bfloat16" else every.view(np.float16)
    with np.errstate(all="ignore"):
        twin = _weighted_sum._by_numpy([weight], [term], dtype)
        assert_same(weighted_sum([weight], [term], dtype), twin, dtype)


@pytest.mark.skipif(_weighted_sum._native is None, reason="the C extension was not built")
def test_the_c_kernel_refuses_what_does_not_fit() -> None:
    native = _weighted_sum._native
    a, b = np.zeros(4), np.zeros(5)
    for arguments in (
        (0, a, (1.0, 1.0), [a, b]),
        (0, a, (1.0,), [a, a]),
        (0, a, (), []),
        (9, a, (1.0,), [a]),
        (0, a, (1.0,) * 65, [a] * 65),
        (0, a, ("x",), [a]),
        (0, a, (1.0,), [None]),
    ):
        with pytest.raises((TypeError, ValueError)):
            native(*arguments)


@pytest.mark.parametrize("fused", [False, True], ids=["scipy", "by columns"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_products_have_the_bits_of_weighted_sums(
    dtype: str, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fused:
        monkeypatch.setattr(_weighted_sum, "_rounds_products", lambda: False)
    with np.errstate(all="ignore"):
        for seed, columns in enumerate((1, 2, 7, 8, 33)):
            W, X = matrix(6, 6, seed), buffers(dtype, 6, columns, seed)
            product = sparse_product(W, X, name_of(dtype))
            for row in range(6):
                part = slice(W.indptr[row], W.indptr[row + 1])
                if part.start == part.stop:
                    continue
                terms = [X[column].copy() for column in W.indices[part]]
                total = weighted_sum(W.data[part].tolist(), terms, name_of(dtype))
                assert_same(product[row], total, dtype)


def test_scipy_here_rounds_products() -> None:
    assert _weighted_sum._rounds_products() in (True, False)


def test_empty_rows_and_columns_give_zeros() -> None:
    W = sp.csr_array((3, 4))
    for by_columns in (sparse_product, lambda W, X, dtype: _weighted_sum._by_columns(W, X)):
        got = by_columns(W, np.ones((4, 2)), "float64")
        np.testing.assert_array_equal(got, np.zeros((3, 2)))
        assert not np.signbit(got).any()
        assert by_columns(W, np.ones((4, 0)), "float64").shape == (3, 0)


@pytest.mark.usefixtures("kernel")
def test_each_product_and_sum_is_rounded_once() -> None:
    """Against exact fractions, for weights and values that do not round away."""
    rng = np.random.default_rng(0)
    weights, rows = rng.normal(size=5).tolist(), rng.normal(size=(5, 40))
    got = weighted_sum(weights, list(rows), "float64")
    for column in range(40):
        total = 0.0
        for weight, row in zip(weights, rows, strict=True):
            product = float(Fraction(weight) * Fraction(float(row[column])))
            total = float(Fraction(total) + Fraction(product))
        assert got[column] == total


@pytest.mark.usefixtures("kernel")
def test_sums_start_from_positive_zero() -> None:
    zero = np.array([-0.0])
    assert not np.signbit(weighted_sum([1.0], [zero], "float64"))
    assert not np.signbit(weighted_sum([1.0, 2.0], [zero, zero], "float64"))
    assert not np.signbit(sparse_product(sp.csr_array([[1.0]]), zero[None], "float64"))


@pytest.mark.usefixtures("kernel")
def test_halves_are_summed_in_single_precision() -> None:
    """2048 + 1 + 1 is 2048 in float16, and 2050 in float32."""
    terms = [np.array([value], np.float16) for value in (2048.0, 1.0, 1.0)]
    assert weighted_sum([1.0] * 3, terms, "float16") == 2050.0
    assert combine("sum", terms[0], np.array([2.0], np.float16), "float16") == 2050.0


def test_inputs_are_left_alone() -> None:
    for dtype in DTYPES:
        X = buffers(dtype, 3, 4, 0)
        kept = X.copy()
        with np.errstate(all="ignore"):
            weighted_sum([0.5, 0.25, 0.25], list(X), name_of(dtype))
            sparse_product(matrix(3, 3, 0), X, name_of(dtype))
            scale(X, 0.5, name_of(dtype))
            divide(X, 3, name_of(dtype))
            combine("sum", X[0], X[1], name_of(dtype))
        assert X.tobytes() == kept.tobytes()


def test_complex_products_round_alike_in_any_order_and_place() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=37) + 1j * rng.normal(size=37) for _ in range(2))
    product = combine("prod", a, b, "complex128")
    np.testing.assert_array_equal(product, combine("prod", b, a, "complex128"))
    one_by_one = [combine("prod", a[k : k + 1], b[k : k + 1], "complex128")[0] for k in range(37)]
    np.testing.assert_array_equal(product, one_by_one)
    np.testing.assert_allclose(product, a * b, rtol=1e-12)


def test_factors_broadcast_from_the_front() -> None:
    X = np.ones((3, 2), np.float32)
    got = scale(X, np.array([[1.0], [2.0], [3.0]]), "float32")
    np.testing.assert_array_equal(got, [[1, 1], [2, 2], [3, 3]])
    assert got.dtype == np.float32
