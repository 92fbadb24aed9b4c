"""The published tables, Q8 and G8, on eight processes."""

from __future__ import annotations

from typing import Any

import pytest

import dectool
from tests.golden import test_g8 as g8, test_q8 as q8


@pytest.mark.parametrize("name", q8.TABLE)
def test_q8(name: str, cluster: dectool.Cluster) -> None:
    q8.test_iterate_after_50_steps(name, cluster)


@pytest.mark.parametrize(("algorithm", "steps", "error", "corner"), g8.TABLE)
def test_g8(
    algorithm: Any, steps: int, error: float, corner: float, cluster: dectool.Cluster
) -> None:
    g8.test_averaging(algorithm, steps, error, corner, cluster)


def test_g8_push_sum(cluster: dectool.Cluster) -> None:
    g8.test_push_sum_on_the_digraph(cluster)
