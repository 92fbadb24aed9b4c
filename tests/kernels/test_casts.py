"""Conversions of bfloat16 have the bits of PyTorch's, for every pattern."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dectool.kernels import bfloat16_to_float32, float32_to_bfloat16

ALL = np.arange(65536, dtype=np.uint32).astype(np.uint16)


def by_torch(values: np.ndarray) -> np.ndarray:
    return torch.from_numpy(values).to(torch.bfloat16).view(torch.uint16).numpy()


def test_widening_is_exact_for_all_patterns() -> None:
    expected = torch.from_numpy(ALL.copy()).view(torch.bfloat16).to(torch.float32)
    got = bfloat16_to_float32(ALL)
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(torch.uint32).numpy())


def test_narrowing_gives_all_patterns_back() -> None:
    got = float32_to_bfloat16(bfloat16_to_float32(ALL))
    number = ~np.isnan(bfloat16_to_float32(ALL))
    np.testing.assert_array_equal(got[number], ALL[number])
    # A NaN stays one, quiet, with its sign.
    np.testing.assert_array_equal(got[~number], ALL[~number] | 0x40)


@pytest.mark.parametrize("seed", range(4))
def test_narrowing_rounds_like_torch(seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**32, 250_000, dtype=np.uint32)
    values = bits.view(np.float32)
    number = ~np.isnan(values)
    got = float32_to_bfloat16(values)
    np.testing.assert_array_equal(got[number], by_torch(values)[number])
    assert np.isnan(bfloat16_to_float32(got[~number])).all()
    np.testing.assert_array_equal(got[~number] >> 15, bits[~number] >> 31)


def test_ties_go_to_even_and_the_largest_overflow() -> None:
    """Every pattern with the half below it, and one unit to either side of that."""
    base = ALL.astype(np.uint32) << 16
    for low in (0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x0001):
        values = (base | np.uint32(low)).view(np.float32)
        number = ~np.isnan(values)
        got = float32_to_bfloat16(values)
        np.testing.assert_array_equal(got[number], by_torch(values)[number])
    largest = np.array([np.finfo(np.float32).max], np.float32)
    assert bfloat16_to_float32(float32_to_bfloat16(largest)) == np.inf


def test_subnormals_are_kept() -> None:
    tiny = np.array([1e-40, -1e-40, 2.0**-133, 0.0, -0.0], np.float32)
    np.testing.assert_array_equal(float32_to_bfloat16(tiny), by_torch(tiny))
