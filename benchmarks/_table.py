"""Timing, one table on the terminal, and the same rows as JSON."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

Timer = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """One line of a benchmark.

    ``ours`` and ``rival`` are in the unit that the table names; ``rival`` and ``ratio`` (ours over
    rival) are None where there is nothing to compare with, and ``ok`` where there is no budget.
    """

    case: str
    ours: float
    rival: float | None = None
    ratio: float | None = None
    budget: str | None = None
    ok: bool | None = None


def compare(
    case: str,
    ours: float,
    rival: float | None = None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    ratio_at_most: float | None = None,
    ratio_at_least: float | None = None,
    unit: str = "",
) -> Row:
    """Return the row of a case, judged by the bounds that are given."""
    ratio = None if rival is None else ours / rival
    bounds: list[tuple[str, bool]] = []
    if at_least is not None:
        bounds.append((f">= {at_least:,g} {unit}".strip(), ours >= at_least))
    if at_most is not None:
        bounds.append((f"<= {at_most:,g} {unit}".strip(), ours <= at_most))
    if ratio_at_most is not None and ratio is not None:
        bounds.append((f"ratio <= {ratio_at_most:g}", ratio <= ratio_at_most))
    if ratio_at_least is not None and ratio is not None:
        bounds.append((f"ratio >= {ratio_at_least:g}", ratio >= ratio_at_least))
    budget = " and ".join(text for text, _ in bounds) or None
    return Row(case, ours, rival, ratio, budget, all(met for _, met in bounds) if bounds else None)


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    *,
    repetitions: int,
    calls: int = 1,
    timer: Timer = time.perf_counter,
) -> dict[str, float]:
    """Time candidates in turn, so that whatever else the machine does meets all of them alike.

    Args:
        candidates: What to call, by name; each is called once before to warm up.
        repetitions: How often each is timed.
        calls: Calls in one timing.
        timer: ``time.perf_counter``, or ``time.process_time`` for what runs long enough.

    Returns:
        For each the median of its repetitions, in seconds for one call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()
    for _ in range(repetitions):
        for name, call in candidates.items():
            gc.collect()
            start = timer()
            for _ in range(calls):
                call()
            seconds[name].append((timer() - start) / calls)
    return {name: median(times) for name, times in seconds.items()}


def installed(module: str) -> bool:
    """Tell whether a rival can be imported, without importing it."""
    return find_spec(module) is not None


def show(title: str, rows: Sequence[Row], *, notes: Sequence[str] = ()) -> None:
    """Print rows as a table."""
    table = Table(title=title, title_justify="left", caption="\n".join(notes) or None)
    table.caption_justify = "left"
    table.add_column("case; rival", ratio=1)
    for header in ("ours", "rival", "ratio"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("budget")
    table.add_column("ok")
    for row in rows:
        table.add_row(
            row.case,
            _number(row.ours),
            _number(row.rival),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.budget or "",
            {None: "", True: "[green]yes[/]", False: "[red]no[/]"}[row.ok],
        )
    Console().print(table)


def main(
    title: str,
    measure: Callable[[Callable[[str], None]], tuple[list[Row], list[str]]],
    *,
    unit: str,
) -> None:
    """Run a benchmark from the command line: a table, and with ``--json FILE`` its rows.

    Args:
        title: Above the table.
        measure: Returns rows and notes; it is given a function that tells what runs now.
        unit: Unit of ``ours`` and ``rival``.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows to FILE")
    file: Path | None = parser.parse_args().json
    with Progress(transient=True, disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task(title, total=None)
        rows, notes = measure(lambda what: progress.update(task, description=what))
    show(f"{title}, in {unit}", rows, notes=notes)
    if file is not None:
        temporary = file.with_name(f".{file.name}.part")
        temporary.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
        temporary.replace(file)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
