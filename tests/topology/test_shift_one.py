"""The pairs of BAGUA's peer selection "shift_one"; tests/compression has its table."""

from __future__ import annotations

import numpy as np
import pytest

from dectool import topology
from dectool.errors import ArgumentError


@pytest.mark.parametrize("n", [2, 4, 10])
def test_each_rank_of_one_half_meets_each_of_the_other(n: int) -> None:
    schedule = topology.shift_one(n)
    met = sum(schedule.at(step).to_dense() for step in range(schedule.period))
    half = np.full((n // 2, n // 2), 0.5)
    own = np.eye(n // 2) * n / 4
    np.testing.assert_array_equal(met, np.block([[own, half], [half, own]]))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_odd_numbers_are_refused(n: int) -> None:
    with pytest.raises(ArgumentError, match=f"got {n}"):
        topology.shift_one(n)
