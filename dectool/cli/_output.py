"""Tables on standard output, and files that are written whole."""

from __future__ import annotations

import errno
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dectool._files import written_whole
from dectool._optional import require
from dectool.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

_PIPED_WIDTH = 160
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def console() -> Console:
    """Return the console of standard output; wide where no terminal says how wide it is."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(width=width, highlight=False)


def number(value: float) -> str:
    """Return a number of up to six digits; whole ones with separators.

    Example:
        >>> number(1234567), number(0.25), number(float("nan"))
        ('1,234,567', '0.25', '-')
    """
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if math.isnan(value) else f"{value:.6g}"


def size(nbytes: float) -> str:
    """Return a number of bytes with a unit, in powers of 1000 as bandwidths are.

    Example:
        >>> size(16000), size(1.92e9), size(12.5), size(0)
        ('16 kB', '1.92 GB', '12.5 B', '0 B')
    """
    power = 0
    while nbytes >= 999.9995 and power < len(_UNITS) - 1:
        nbytes, power = nbytes / 1000.0, power + 1
    return f"{nbytes:.6g} {_UNITS[power]}"


def check_target(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before anything has run.

    Raises:
        FileNotFoundError: Its folder does not exist.
        ArgumentError: It is a folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise ArgumentError(f"{option} {path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"there is no such folder, which {option} needs", str(path.parent)
        )


def check_apart(*files: tuple[str, Path | None]) -> None:
    """Refuse one file for two purposes, of which the later would destroy the earlier.

    Args:
        files: What names a file, such as "--save", and the file, if one is named.

    Raises:
        ArgumentError: Two name the same.

    Example:
        >>> check_apart(("--save", Path("run.npz")), ("--plot", Path("run.png")))
    """
    purposes: dict[Path, str] = {}
    for purpose, path in files:
        if path is not None:
            other = purposes.setdefault(path.resolve(), purpose)
            if other != purpose:
                raise ArgumentError(
                    f"{purpose} {path} is the file of {other} too, and would destroy it; give "
                    "another name"
                )


def new_figure(path: Path, width: float, height: float) -> Figure:
    """Return a figure for a file, without a window.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        ArgumentError: It writes no such format.
    """
    require("matplotlib", extra="plot", purpose="--plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in formats:
        raise ArgumentError(
            f"--plot {path} has no suffix of a picture; use one of {', '.join(sorted(formats))}"
        )
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write the picture, whole or not at all."""
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=140)
