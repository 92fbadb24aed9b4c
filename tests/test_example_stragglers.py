"""The example of stragglers runs, and its measurements are those that theory predicts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dectool import theory

pytest.importorskip("matplotlib", reason="needs the extra plot")


def test_it_draws_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples import stragglers as example

    given = ["stragglers", "--steps", "40", "--ranks", "4", "8", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    example.main()
    assert (tmp_path / "stragglers.png").stat().st_size > 10_000
    assert "asynchronous" in capsys.readouterr().out


def test_measured_and_predicted() -> None:
    from examples import stragglers as example

    for column in example.paces("exponential", (4, 8), 1000).values():
        for pace in column:
            assert pace.predicted is not None
            assert abs(pace.measured - pace.predicted) < 5 * pace.error
    slow = example.paces("one slow rank", (8,), 200)
    for column in slow.values():
        assert column[0].measured == pytest.approx(column[0].predicted, rel=1e-12)
    ratio = slow["one-peer exponential"][0].measured / slow["asynchronous"][0].measured
    assert ratio == pytest.approx(theory.asynchronous_speedup(8, example.SLOWDOWN), rel=1e-12)
