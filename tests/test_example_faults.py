"""The example of faults runs, and says what was lost and where the survivors end."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn", reason="needs the extra data")


def test_it_prints_the_report_and_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples import faults as example

    monkeypatch.setattr(example, "STEPS", 700)
    example.main()
    printed = capsys.readouterr().out
    assert "3  crash  4 s" in printed
    assert "9  crash  6 s" in printed
    assert "receiver crashed" in printed
    assert "lost at random" in printed
    rows = [line for line in printed.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == list(example.ALGORITHMS)
    assert {row.split("│")[2].strip() for row in rows} == {"14"}
