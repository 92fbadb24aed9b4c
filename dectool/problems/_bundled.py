"""Data sets that scikit-learn ships, so that nothing is downloaded."""

from __future__ import annotations

from dectool._optional import require
from dectool.problems._dataset import Dataset


def breast_cancer(*, rows: int | None = None, standardize: bool = True) -> Dataset:
    """Return the Wisconsin breast cancer data: 569 samples, 30 features, 2 classes.

    Args:
        rows: Use the first so many samples.
        standardize: Bring every feature to mean 0 and deviation 1 (ddof 0) over those rows.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        ArgumentError: There are fewer rows.

    Example:
        >>> breast_cancer()
        Dataset(breast_cancer, 569 samples, 30 features, classes: malignant, benign)

    References:
        W. Wolberg, O. Mangasarian, N. Street, W. Street, Breast Cancer Wisconsin (Diagnostic),
        UCI Machine Learning Repository, 1993.
    """
    return _load("load_breast_cancer", "breast_cancer", rows, standardize)


def digits(*, rows: int | None = None, standardize: bool = True) -> Dataset:
    """Return the handwritten digits: 1,797 images of 8 x 8 pixels, 10 classes.

    Args:
        rows: Use the first so many samples.
        standardize: Bring every pixel to mean 0 and deviation 1 (ddof 0) over those rows;
            pixels that never change become 0.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
        ArgumentError: There are fewer rows.

    Example:
        >>> digits(rows=100).X.shape
        (100, 64)

    References:
        E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
        Repository, 1998.
    """
    return _load("load_digits", "digits", rows, standardize)


def _load(function: str, name: str, rows: int | None, standardize: bool) -> Dataset:
    sets = require("sklearn.datasets", extra="data", purpose=f"problems.{name}()")
    raw = getattr(sets, function)()
    data = Dataset(raw.data, raw.target, name, tuple(str(c) for c in raw.target_names))
    if rows is not None:
        data = data.take(rows)
    return data.standardized() if standardize else data
