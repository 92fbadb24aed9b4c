"""Text files of numbers: opening them, and naming the line that is wrong."""

from __future__ import annotations

import bz2
import gzip
import math
import os
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dectool.errors import DataError

FilePath: TypeAlias = str | os.PathLike[str]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def open_text(path: FilePath) -> IO[str]:
    """Open a UTF-8 text file, compressed if its name ends in .gz or .bz2."""
    opener = _OPENERS.get(Path(path).suffix, open)
    stream: IO[str] = opener(path, "rt", encoding="utf-8-sig", newline="")
    return stream


def data_name(path: FilePath) -> str:
    """Return the name of the file without its endings.

    Example:
        >>> data_name("sets/heart.csv.gz")
        'heart'
    """
    name = Path(path).name
    return name.split(".")[0] or name


def at_line(path: FilePath, line: int, what: str, fix: str) -> DataError:
    """Return the error for one line: file, line number, what was found, what to do.

    Example:
        >>> print(at_line("a.csv", 3, "column 2 is empty", "fill it or remove the line"))
        a.csv, line 3: column 2 is empty; fill it or remove the line
    """
    return DataError(f"{os.fspath(path)}, line {line}: {what}; {fix}")


def number_fault(text: str) -> str | None:
    """Return what is wrong with a text that should be a finite number, or None.

    Example:
        >>> number_fault("1e3"), number_fault("NaN"), number_fault("x1")
        (None, "'NaN', which is not finite", "'x1', which is not a number")
    """
    try:
        value = float(text)
    except ValueError:
        return f"{text.strip()!r}, which is not a number"
    return None if math.isfinite(value) else f"{text.strip()!r}, which is not finite"


def tidy_labels(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Return the labels as integers if all are whole.

    Example:
        >>> tidy_labels(np.array([1.0, -1.0]))
        array([ 1, -1])
    """
    whole = (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0.0) < 2.0**53
    return labels.astype(np.int64) if whole else labels
