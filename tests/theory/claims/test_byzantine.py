"""Claims on Byzantine ranks: they hold, and would be seen to fail."""

import pytest

from dectool.algorithms import byzantine
from dectool.errors import ArgumentError
from dectool.theory import claims


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"honest": 20, "byzantine": [1, 3, 9], "lr": 0.8},
        {"honest": 4, "byzantine": [1], "heterogeneity": 30.0},
    ],
    ids=str,
)
def test_clipping_bounds_byzantine_ranks(options):
    found = claims.clipping_bounds_byzantine_ranks(**options)
    assert found.verdict, found.verdict


def test_clipping_at_twice_the_radius_is_found(monkeypatch):
    right = byzantine.norm
    monkeypatch.setattr(byzantine, "norm", lambda rows: right(rows) / 2)
    found = claims.clipping_bounds_byzantine_ranks()
    assert "FAIL 1 of 13 Byzantine: gradient at the end" in found.verdict.text


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="honest=5 must be even"):
        claims.clipping_bounds_byzantine_ranks(honest=5)
    with pytest.raises(ArgumentError, match=r"byzantine=\(6,\) must be one or more numbers below"):
        claims.clipping_bounds_byzantine_ranks(byzantine=[6])
