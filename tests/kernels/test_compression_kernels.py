"""Compression in C gives the bytes of its NumPy twin, for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dectool import kernels
from dectool.kernels import _extension

needs_c = pytest.mark.skipif(_extension.native is None, reason="the C extension was not built")

KINDS = [np.float32, np.float64]
SIZES = [1, 7, 8, 63, 64, 65, 2047, 4096 + 5, 65536, 65537, 3 * 65536 + 77]


@pytest.fixture(params=["C", "NumPy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute with C, and with NumPy."""
    if request.param == "NumPy":
        monkeypatch.setattr(_extension, "native", None)
    elif _extension.native is None:
        pytest.skip("the C extension was not built")


def by_numpy(monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any], *args: Any) -> Any:
    """Return what the twin gives."""
    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(_extension, "native", None)
        return call(*args)


def rows_of(kind: type, n: int, count: int, case: str) -> np.ndarray:
    """Return rows of one of the kinds of numbers that could go wrong."""
    rng = np.random.default_rng([n, count])
    x = rng.normal(size=(n, count)).astype(kind)
    limits = np.finfo(kind)
    with np.errstate(all="ignore"):
        if case == "huge":
            x *= limits.max
            x = np.nan_to_num(x)
        elif case == "tiny":
            x *= limits.smallest_subnormal * 1000
        elif case == "constant":
            x[...] = kind(0.1)
        elif case == "zeros":
            x = np.where(rng.random((n, count)) < 0.5, kind(-0.0), kind(0.0))
        elif case == "ties":
            x = rng.integers(-2, 3, (n, count)).astype(kind)
        elif case == "outlier":
            x[:, count // 2] = kind(-1e30)
        elif case == "narrow":
            x = 1 + x * limits.eps
        elif case == "symmetric":
            x[:, : count // 2] = -x[:, count - count // 2 :][:, ::-1]
        elif case == "special":
            special = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0], kind)
            x = np.where(rng.random((n, count)) < 0.01, rng.choice(special, (n, count)), x)
    return x


CASES = [
    "normal",
    "huge",
    "tiny",
    "constant",
    "zeros",
    "ties",
    "outlier",
    "narrow",
    "symmetric",
    "special",
]


def assert_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """Compare bit for bit; any NaN equals any other."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        got, expected = (np.where(np.isnan(a), 0, a) for a in (got, expected))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    np.testing.assert_array_equal(got, expected)


@needs_c
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_minmax_has_the_bytes_of_the_twin(
    kind: type, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in SIZES:
        x = rows_of(kind, 3, count, case)
        for block in {count, 1, 32, 100, 65537}:
            if block == 1 and count > 5000:
                continue
            dtype = np.dtype(kind).name
            data = kernels.minmax8_encode(x, block, dtype)
            np.testing.assert_array_equal(
                data, by_numpy(monkeypatch, kernels.minmax8_encode, x, block, dtype)
            )
            assert_bits(
                kernels.minmax8_decode(data, count, block, dtype),
                by_numpy(monkeypatch, kernels.minmax8_decode, data, count, block, dtype),
            )
            total, twin = (rows_of(kind, 3, count, "normal") for _ in range(2))
            kernels.minmax8_add(data, total, block, dtype, -0.3)
            by_numpy(monkeypatch, kernels.minmax8_add, data, twin, block, dtype, -0.3)
            assert_bits(total, twin)


@needs_c
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_headers_hold_halves(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in ("normal", "special", "constant"):
        x = rows_of(np.float32, 2, 1000, case)
        narrow, widen = (
            (kernels.float32_to_float16, kernels.float16_to_float32)
            if dtype == "float16"
            else (kernels.float32_to_bfloat16, kernels.bfloat16_to_float32)
        )
        x = widen(narrow(x))
        data = kernels.minmax8_encode(x, 64, dtype)
        assert (data == by_numpy(monkeypatch, kernels.minmax8_encode, x, 64, dtype)).all()
        assert_bits(
            kernels.minmax8_decode(data, 1000, 64, dtype),
            by_numpy(monkeypatch, kernels.minmax8_decode, data, 1000, 64, dtype),
        )


@pytest.mark.usefixtures("path")
def test_adding_is_decoding_and_then_adding() -> None:
    x = rows_of(np.float32, 2, 70_000, "normal")
    for block in (70_000, 1000):
        data = kernels.minmax8_encode(x, block, "float32")
        total = rows_of(np.float32, 2, 70_000, "outlier")
        expected = total + np.float32(0.3) * kernels.minmax8_decode(data, 70_000, block, "float32")
        kernels.minmax8_add(data, total, block, "float32", 0.3)
        assert_bits(total, expected)


@pytest.mark.usefixtures("path")
def test_a_total_of_another_type_is_refused() -> None:
    x = rows_of(np.float32, 2, 100, "normal")
    data = kernels.minmax8_encode(x, 100, "float32")
    for total in (np.zeros((2, 100)), np.zeros((100, 2), np.float32).T):
        with pytest.raises(TypeError, match="contiguous"):
            kernels.minmax8_add(data, total, 100, "float32", 1.0)


@needs_c
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_signs_have_the_bits_of_the_twin(
    kind: type, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in SIZES:
        x = rows_of(kind, 3, count, case)
        units = np.array([[1.0], [2.0**-40], [2.0**30]])
        head = np.dtype(kind).itemsize
        with np.errstate(all="ignore"):
            data, sums = kernels.pack_signs(x, units, head)
            squares = np.hstack([kernels.row_sums(x, units, square=square) for square in (0, 1)])
        twin, twin_sums = by_numpy(monkeypatch, kernels.pack_signs, x, units, head)
        np.testing.assert_array_equal(data[:, head:], twin[:, head:])
        assert_bits(sums, twin_sums)
        assert_bits(squares[:, :1], sums)
        twin_squares = by_numpy(
            monkeypatch, lambda x=x, u=units: kernels.row_sums(x, u, square=True)
        )
        assert_bits(squares[:, 1:], twin_squares)
        data[:, :head] = np.array([[0.5], [1e30], [np.nan]], kind).view(np.uint8)
        dtype = np.dtype(kind).name
        values = kernels.unpack_signs(data, count, dtype)
        assert_bits(values, by_numpy(monkeypatch, kernels.unpack_signs, data, count, dtype))
        np.testing.assert_array_equal(values[0], np.where(x[0] < 0, -0.5, 0.5))


@pytest.mark.usefixtures("path")
def test_sums_have_the_stated_order() -> None:
    """Lane by lane, tile by tile, in Python's own floats."""
    x = rows_of(np.float32, 1, 2 * 65536 + 64 * 3 + 5, "outlier")[0]
    lanes = np.zeros(64)
    for start in range(0, len(x), 65536):
        tile = np.zeros(64)
        part = np.abs(x[start : start + 65536].astype(np.float64))
        for block in range(0, len(part) - 63, 64):
            tile += part[block : block + 64]
        lanes += tile
    lanes[:5] += np.abs(x[-5:].astype(np.float64))
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert kernels.row_sums(x[None], np.ones((1, 1)), square=False)[0, 0] == lanes[0]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("case", ["normal", "ties", "special", "zeros", "outlier", "tiny"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_are_found_and_ties_go_to_the_first(kind: type, case: str) -> None:
    for n, count in ((1, 1), (3, 7), (2, 1025), (2, 65536), (1, 65537), (2, 3 * 65536 + 77)):
        x = rows_of(kind, n, count, case)
        order = np.argsort(
            kernels.magnitudes(x).max() - kernels.magnitudes(x), axis=1, kind="stable"
        )
        for k in {1, min(2, count), max(1, count // 100), max(1, count // 2), count}:
            got = kernels.largest_places(x, k)
            np.testing.assert_array_equal(got, np.sort(order[:, :k], axis=1))


@pytest.mark.usefixtures("path")
def test_a_sample_that_misleads_costs_no_exactness() -> None:
    """All that the sample sees is large, all else is small; and the other way round."""
    count = 4 * 1024 * 16 * 8
    seen = np.zeros(count, bool)
    for run in range(1024):
        start = count // 16 * run // 1024 * 16
        seen[start : start + 16] = True
    seen[:: count // (1 << 14)] = True
    x = np.random.default_rng(0).random(count, np.float32)
    for large in (seen, ~seen):
        values = x + 10 * large.astype(np.float32)
        order = np.argsort(-values, kind="stable")
        for k in (50, 20_000, 200_000):
            got = kernels.largest_places(values[None], k)[0]
            np.testing.assert_array_equal(got, np.sort(order[:k]))


@needs_c
@pytest.mark.parametrize("levels", [1, 4, 127, 128, 32767])
@pytest.mark.parametrize("kind", KINDS)
def test_levels_have_the_bytes_of_the_twin(
    kind: type, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(levels)
    for case in CASES:
        x = rows_of(kind, 3, 1000, case)
        uniform = rng.random(x.shape, kind)
        uniform[:, ::3] = 0
        largest = np.abs(x).max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            each = largest * (1 + rng.random(x.shape, kind))
        missing, none, less = np.full_like(largest, np.nan), np.zeros_like(largest), largest / 2
        for norm in (largest, each, missing, none, less):
            usable = np.where(np.isfinite(norm), norm, kind(np.nan))
            codes = kernels.quantise_levels(x, usable, levels, uniform)
            twin = by_numpy(monkeypatch, kernels.quantise_levels, x, usable, levels, uniform)
            assert codes.dtype == twin.dtype
            np.testing.assert_array_equal(codes, twin)
            out, expected = np.empty_like(x), np.empty_like(x)
            kernels.dequantise_levels(codes, usable, levels, out)
            by_numpy(monkeypatch, kernels.dequantise_levels, codes, usable, levels, expected)
            assert_bits(out, expected)


@needs_c
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_casts_have_the_bits_of_the_twin(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = getattr(kernels, f"float32_to_{half}")
    widen = getattr(kernels, f"{half}_to_float32")
    stored = np.uint16 if half == "bfloat16" else np.float16
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(stored)
    assert_bits(widen(every), by_numpy(monkeypatch, widen, every))
    exact = widen(every).view(np.uint32)
    # Halves, their neighbours, the middle between two, and its neighbours.
    step = 1 << (16 if half == "bfloat16" else 13)
    offsets = np.array([0, 1, step // 2 - 1, step // 2, step // 2 + 1, step - 1], np.uint32)
    patterns = [exact + offset for offset in offsets]
    patterns.append(np.random.default_rng(0).integers(0, 2**32, 300_000, dtype=np.uint32))
    for bits in patterns:
        values = bits.view(np.float32)
        got, twin = narrow(values), by_numpy(monkeypatch, narrow, values)
        np.testing.assert_array_equal(got.view(np.uint16), twin.view(np.uint16))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_casts_write_where_they_are_told(half: str) -> None:
    narrow = getattr(kernels, f"float32_to_{half}")
    x = rows_of(np.float32, 5, 8, "normal")
    whole = narrow(x)
    room = np.empty_like(whole)
    assert narrow(x, room) is room
    np.testing.assert_array_equal(room, whole)
    np.testing.assert_array_equal(narrow(x[::2, 1::3]), whole[::2, 1::3])
    assert narrow(x[0, 0]).shape == ()
    assert narrow(x[:0]).shape == (0, 8)
    for wrong in (x.astype(np.float64), x.view(np.int32)):
        with pytest.raises(TypeError, match="takes"):
            narrow(wrong)
    with pytest.raises(TypeError, match="out must be"):
        narrow(x, np.empty((5, 16), whole.dtype)[:, ::2])


SCRIPT = """
import hashlib, numpy as np
from dectool import kernels
x = np.random.default_rng(0).normal(size=(2, 700_001)).astype(np.float32)
digest = hashlib.sha256()
for block in (700_001, 1000):
    data = kernels.minmax8_encode(x, block, "float32")
    digest.update(data)
    digest.update(kernels.minmax8_decode(data, 700_001, block, "float32"))
    kernels.minmax8_add(data, total := x.copy(), block, "float32", 0.3)
    digest.update(total)
data, sums = kernels.pack_signs(x, np.ones((2, 1)), 4)
data[:, :4] = 0
digest.update(data)
digest.update(sums)
digest.update(kernels.row_sums(x, np.ones((2, 1)), square=True))
digest.update(kernels.unpack_signs(data, 700_001, "float32"))
digest.update(kernels.largest_places(x, 7000))
digest.update(kernels.largest_places(np.rint(x), 7000))
digest.update(kernels.float32_to_float16(x))
digest.update(kernels.float32_to_bfloat16(x))
print(digest.hexdigest())
"""


@needs_c
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    digests = set()
    for threads in ("1", "2", "7"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1


@needs_c
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_needs_none_of_the_threads_of_its_parent() -> None:
    """With the threads of the parent's pool it would wait for ever."""
    code = f"""
import os
{SCRIPT}
child = os.fork()
if not child:
    same = hashlib.sha256(kernels.minmax8_encode(x, 700_001, "float32")).digest()
    os._exit(same != hashlib.sha256(kernels.minmax8_encode(x, 700_001, "float32")).digest())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=30)


@needs_c
def test_the_c_functions_refuse_what_does_not_fit() -> None:
    native = _extension.native
    x, out, totals = np.zeros(8, np.float32), np.zeros(64, np.uint8), np.zeros(1)
    places = np.zeros(2, np.int64)
    calls = {
        "minmax_encode": [
            (1, x, out, 1, 9, 8),
            (1, x, out, 1, 8, 0),
            (1, x, out[:63], 1, 8, 8),
            (4, x, out, 1, 8, 8),
            (-1, x, out, 1, 8, 8),
            (0, x, out, 1, 8, 8),
            (1, x, out, -1, -8, 8),
            (1, x, bytes(64), 1, 8, 8),
        ],
        "minmax_decode": [
            (1, out, x, 1, 9, 8, None),
            (1, out, x, 1, 8, 0, None),
            (1, out[:63], x, 1, 8, 8, None),
            (1, out, x, 1, 8, 8, "x"),
        ],
        "sums": [
            (2, x, 1, 8, False, totals, totals, None, 0),
            (1, x, 1, 9, False, totals, totals, None, 0),
            (1, x, 2, 4, False, totals, totals, None, 0),
            (1, x, 1, 8, False, totals, totals, out, 4),
            (1, x, 1, 8, False, totals, totals, 5, 0),
        ],
        "spread_signs": [(1, out, x, 1, 8), (1, out[:5], x, 1, 9), (2, out[:5], x, 1, 8)],
        "largest": [
            (1, x, places, 1, 8, 3),
            (1, x, places, 1, 7, 2),
            (1, x, np.zeros(9, np.int64), 1, 8, 9),
            (2, x, places, 1, 8, 2),
        ],
        "levels": [
            (1, x, x, 1, 8, 4, x, out[:9]),
            (1, x, x, 1, 9, 4, x, out[:8]),
            (1, x, x[:3], 1, 8, 4, x, out[:8]),
            (1, x, x, 1, 8, 4, x[:7], out[:8]),
            (2, x, x, 1, 8, 4, x, out[:8]),
            (1, x, x, 1, 8, 4, x, bytes(8)),
            (1, bytes(32), x, 1, 8, 4, None, out[:8]),
        ],
        "cast": [(1, x, out[:16]), (2, x, out[:15]), (2, x, out[:17])],
    }
    for name, wrong in calls.items():
        for arguments in wrong:
            with pytest.raises((TypeError, ValueError, BufferError)):
                getattr(native, name)(*arguments)
