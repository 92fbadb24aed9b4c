"""Reading CSV files; the fast path is NumPy's, a slow one finds the line that is wrong."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dectool._text import nearest
from dectool.errors import ArgumentError, DataError
from dectool.problems._dataset import Dataset
from dectool.problems._text_file import (
    FilePath,
    at_line,
    data_name,
    number_fault,
    open_text,
    tidy_labels,
)

_FILL = "write a finite number there, or remove the line"


class _Layout(NamedTuple):
    path: FilePath
    delimiter: str
    skip: int
    width: int
    label: int
    named: bool


def load_csv(
    path: FilePath,
    label_column: int | str = -1,
    *,
    header: bool | None = None,
    delimiter: str = ",",
) -> Dataset:
    r"""Return the data set in a CSV file: numbers, and one column of labels.

    Labels are numbers, or names of classes; names become 0, 1, ... in sorted order. Blank lines
    are skipped. Files whose name ends in .gz or .bz2 are decompressed.

    Args:
        path: The file, UTF-8.
        label_column: Index of the label column, negative from the end, or its name in the header.
        header: Whether the first line holds names; None: it does if no feature in it is a number.
        delimiter: The character between values.

    Returns:
        The data set, with names of classes if the labels are names.

    Raises:
        DataError: A malformed line (missing, extra or non-numeric value, NaN or infinity): the
            message holds the file, the line number, what was found and what to do. Or an empty
            file.
        ArgumentError: There is no such label column.
        FileNotFoundError: There is no such file.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.csv"
        >>> _ = path.write_text("size,kind\n1.5,cat\n2.5,dog\n")
        >>> load_csv(path)
        Dataset(tiny, 2 samples, 1 features, classes: cat, dog)
    """
    layout = _layout(path, label_column, header, delimiter)
    names: dict[str, int] = {}
    # comments=None: a '#' is a fault to report, not a comment.
    converters: Any = None
    if layout.named:
        converters = {layout.label: lambda text: _code(text, names)}
    try:
        table: NDArray[np.float64] = np.loadtxt(
            os.fspath(path),
            delimiter=delimiter,
            skiprows=layout.skip,
            ndmin=2,
            comments=None,
            quotechar='"',
            encoding="utf-8-sig",
            converters=converters,
        )
    except ValueError as error:
        raise (_fault(layout) or _unknown(path, error)) from None
    if not np.isfinite(table).all():
        raise _fault(layout) or _unknown(path, "a value is not finite")
    X, y = np.delete(table, layout.label, axis=1), table[:, layout.label]
    if not layout.named:
        return Dataset(X, tidy_labels(y), data_name(path))
    classes = sorted(names)
    order = np.array([classes.index(name) for name in names])
    return Dataset(X, order[y.astype(np.intp)], data_name(path), tuple(classes))


def _layout(
    path: FilePath, label_column: int | str, header: bool | None, delimiter: str
) -> _Layout:
    records = _records(path, delimiter)
    line, first = next(records, (0, []))
    if not first:
        raise DataError(f"{os.fspath(path)} is empty; it must hold one sample per line")
    width = len(first)
    if width < 2:
        raise at_line(
            path,
            line,
            f"one value, where features and a label are expected (delimiter {delimiter!r})",
            "give the delimiter of the file, or add the missing columns",
        )
    if isinstance(label_column, str):
        if header is False:
            raise ArgumentError(f"label_column={label_column!r} needs header=True, to be found")
        header = True
        label = _named_column(first, label_column)
    else:
        if not -width <= label_column < width:
            raise ArgumentError(
                f"label_column={label_column} is out of range: "
                f"{os.fspath(path)} has {width} columns"
            )
        label = label_column % width
    if header is None:
        cells = [cell for j, cell in enumerate(first) if j != label]
        header = all(cell.strip() and not _is_number(cell) for cell in cells)
    data = next(records, (0, []))[1] if header else first
    if not data:
        raise DataError(f"{os.fspath(path)} holds a header only; it must hold one sample per line")
    named = len(data) > label and bool(data[label].strip()) and not _is_number(data[label])
    return _Layout(path, delimiter, line if header else 0, width, label, named)


def _records(path: FilePath, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    with open_text(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        for record in reader:
            if record:
                yield reader.line_num, record


def _fault(layout: _Layout) -> DataError | None:
    for line, record in _records(layout.path, layout.delimiter):
        if line <= layout.skip:
            continue
        if len(record) != layout.width:
            return at_line(
                layout.path,
                line,
                f"{len(record)} values, where the first line has {layout.width}",
                "every line must have as many values as the first",
            )
        for j, cell in enumerate(record):
            if not cell.strip():
                return at_line(layout.path, line, f"column {j + 1} is empty", _FILL)
            fault = None if layout.named and j == layout.label else number_fault(cell)
            if fault:
                return at_line(layout.path, line, f"column {j + 1} holds {fault}", _FILL)
    return None


def _unknown(path: FilePath, error: object) -> DataError:
    return DataError(f"{os.fspath(path)} cannot be read as CSV: {error}")


def _named_column(names: list[str], wanted: str) -> int:
    stripped = [name.strip() for name in names]
    if wanted not in stripped:
        raise ArgumentError(
            f"label_column={wanted!r} is not in the header; {nearest(wanted, stripped)}"
        )
    return stripped.index(wanted)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _code(text: str, names: dict[str, int]) -> float:
    name = text.strip()
    if not name:
        raise ValueError("a label is empty")
    return float(names.setdefault(name, len(names)))
