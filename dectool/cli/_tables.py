"""Tables in files: CSV, JSON or Markdown, by the suffix of the name."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dectool._files import written_whole
from dectool.cli._output import check_target, number
from dectool.errors import ArgumentError

Row = Mapping[str, Any]


def check_table(option: str, path: Path | None) -> None:
    """Refuse a file that no table could be written to, before anything has run.

    Raises:
        FileNotFoundError: Its folder does not exist.
        ArgumentError: It is a folder, or its suffix names no format.
    """
    check_target(option, path)
    if path is not None and path.suffix.lower() not in _WRITERS:
        raise ArgumentError(
            f"{option} {path} has no suffix of a table; use one of {', '.join(_WRITERS)}"
        )


def save_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows with equal keys, whole or not at all.

    CSV leaves a quantity that there is none of empty and writes ``inf`` for never; JSON, which
    knows neither, has ``null`` for both. Numbers are as exact as they were measured, in Markdown
    as on the screen.

    Args:
        rows: At least one.
        path: As :func:`check_table` allows it.
    """
    with written_whole(path) as temporary:
        _WRITERS[path.suffix.lower()](rows, temporary)


def _csv(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(rows[0])
        for row in rows:
            table.writerow("" if _is_none(value) else value for value in row.values())


def _json(rows: Sequence[Row], path: Path) -> None:
    table = [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]
    path.write_text(json.dumps(table, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _markdown(rows: Sequence[Row], path: Path) -> None:
    texts = [[_text(value) for value in row.values()] for row in rows]
    align = ["---" if isinstance(value, str) else "---:" for value in rows[0].values()]
    lines = [[name.replace("_", " ") for name in rows[0]], align, *texts]
    path.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")


def _is_none(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _text(value: Any) -> str:
    return value.replace("|", "\\|") if isinstance(value, str) else number(value)


_WRITERS = {".csv": _csv, ".json": _json, ".md": _markdown}
