"""A progress bar that is there when somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    show: bool | None, label: str, total: int, unit: str = "steps"
) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the step reached; it draws if ``show`` (``None``: on a terminal).

    Example:
        >>> with progress_bar(False, "EXTRA", 10) as advance:
        ...     advance(5)
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda step: progress.update(task, completed=step)
