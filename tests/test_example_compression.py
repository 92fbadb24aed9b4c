"""The compression example runs, and its bytes and seconds are those of the payloads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dectool import compression, problems

pytest.importorskip("matplotlib", reason="needs the extra plot")
pytest.importorskip("sklearn", reason="needs the extra data")


def test_it_draws_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from examples import compression as example

    monkeypatch.setattr(sys, "argv", ["compression", "--steps", "10", "--output", str(tmp_path)])
    example.main()
    assert (tmp_path / "compression.png").stat().st_size > 10_000


def test_bytes_and_seconds_follow_from_the_payloads() -> None:
    """Each step a rank computes, then sends two payloads one after the other."""
    from examples import compression as example

    problem = problems.SoftmaxRegression.from_data(problems.digits(), n=example.RANKS, l2=1e-3)
    for name, by_rate in example.courses(problem, 5).items():
        size = compression.get(name).wire_bytes(640, "float32")
        for rate, course in by_rate.items():
            assert course.bytes == [0, 5 * 2 * example.RANKS * size]
            port = 2 * size / (rate * 1e9 / 8)
            least = 5 * (example.COMPUTE + example.LATENCY + port / 2)
            most = 5 * (example.COMPUTE + example.LATENCY + port)
            assert least <= course.seconds[-1] <= most * (1 + 1e-12)
            assert np.isfinite(course.accuracy).all()
