"""Reading libsvm (svmlight) files; scikit-learn parses, a slow path finds the wrong line."""

from __future__ import annotations

import os

import numpy as np

from dectool._optional import require
from dectool.errors import DataError
from dectool.problems._arrays import positive_int
from dectool.problems._dataset import Dataset
from dectool.problems._text_file import (
    FilePath,
    at_line,
    data_name,
    number_fault,
    open_text,
    tidy_labels,
)


def load_libsvm(path: FilePath, *, features: int | None = None) -> Dataset:
    r"""Return the data set in a libsvm file, as a dense array.

    Each line is ``label index:value index:value ...`` with ascending indices from 1; features
    that are not listed are 0, and what follows a ``#`` is ignored. Files whose name ends in .gz
    or .bz2 are decompressed.

    Args:
        path: The file.
        features: Number of features; None for the largest index in the file.

    Raises:
        DataError: A malformed line: the message holds the file, the line number, what was found
            and what to do. Or an empty file.
        MissingDependencyError: scikit-learn is not installed.
        FileNotFoundError: There is no such file.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.svm"
        >>> _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
        >>> load_libsvm(path).X.tolist()
        [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    """
    if features is not None:
        features = positive_int(features, "features")
    sets = require("sklearn.datasets", extra="data", purpose="problems.load_libsvm()")
    try:
        sparse, y = sets.load_svmlight_file(os.fspath(path), n_features=features, zero_based=False)
    except ValueError as error:
        raise (_fault(path, features) or _unknown(path, error)) from None
    if sparse.shape[0] == 0:
        raise DataError(f"{os.fspath(path)} is empty; it must hold one sample per line")
    if features is None and sparse.nnz == 0:
        raise DataError(f"{os.fspath(path)} holds labels only; it must list index:value pairs")
    if not (np.isfinite(sparse.data).all() and np.isfinite(y).all()):
        raise _fault(path, features) or _unknown(path, "a value is not finite")
    return Dataset(sparse.toarray(), tidy_labels(y), data_name(path))


def _fault(path: FilePath, features: int | None) -> DataError | None:
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            words = line.split("#", 1)[0].split()
            if words:
                fault = _label_fault(words[0]) or _pairs_fault(words[1:], features)
                if fault:
                    return at_line(path, number, *fault)
    return None


def _label_fault(word: str) -> tuple[str, str] | None:
    if ":" in word:
        return f"it starts with {word!r}", "a line must start with its label"
    fault = number_fault(word)
    return (f"the label is {fault}", "labels must be finite numbers") if fault else None


def _pairs_fault(words: list[str], features: int | None) -> tuple[str, str] | None:
    before = 0
    for word in words:
        index, colon, value = word.partition(":")
        if not colon:
            return f"{word!r} has no colon", "write index:value"
        if index == "qid":
            continue
        if not index.isdecimal():
            return f"the index of {word!r} is not a whole number", "indices are 1, 2, ..."
        if int(index) < 1:
            return f"{word!r} has index {int(index)}", "indices start at 1: add 1 to all of them"
        if int(index) <= before:
            return (
                f"index {int(index)} comes after index {before}",
                "indices must ascend: sort the pairs and drop duplicates",
            )
        if features is not None and int(index) > features:
            return (
                f"index {int(index)} is above features={features}",
                "raise features, or leave it out",
            )
        fault = number_fault(value)
        if fault:
            return f"the value of {word!r} is {fault}", "values must be finite numbers"
        before = int(index)
    return None


def _unknown(path: FilePath, error: object) -> DataError:
    return DataError(f"{os.fspath(path)} cannot be read as libsvm data: {error}")
