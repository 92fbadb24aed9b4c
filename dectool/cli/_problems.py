"""Text forms of problems: bundled data, synthetic ones, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dectool import problems
from dectool._text import nearest
from dectool.cli import _specs as specs
from dectool.errors import ArgumentError

_BUNDLED = {"breast_cancer": problems.breast_cancer, "digits": problems.digits}
_SYNTHETIC = ("averaging", "quadratic")
_LOSSES: dict[str, type[problems.DataProblem]] = {
    "logistic": problems.LogisticRegression,
    "softmax": problems.SoftmaxRegression,
    "least_squares": problems.LeastSquares,
}
_CSV = (".csv",)
_LIBSVM = (".libsvm", ".svm", ".svmlight")
_MOST_CLASSES = 20
_NAMED_PARTITIONS = ("contiguous", "shuffled", "by_class")


class Choices(NamedTuple):
    """What the options say about a problem made of data; their defaults."""

    loss: str = "auto"
    l2: float = 0.1
    partition: str = "contiguous"
    objective: str = "mean_of_means"
    bias: bool = True
    standardize: bool = True
    seed: int = 0


def build(text: str, n: int, choices: Choices) -> problems.Problem:
    """Return the problem of a text.

    Args:
        text: "breast_cancer", "digits", "quadratic:d=10,kappa=10", "averaging:d=10", or the path
            of a CSV or libsvm file.
        n: Number of ranks.
        choices: What to make of data.

    Raises:
        ArgumentError: There is no such problem, or an option is for others.
        DataError: The file is malformed.

    Example:
        >>> build("quadratic:3", 4, Choices(seed=1))
        Quadratic(n=4, d=3, diagonal)
    """
    name, _, rest = text.partition(":")
    if name in _SYNTHETIC:
        _refuse_options_of_data(name, choices)
        return _synthetic(name, rest, n, choices.seed)
    data = _data(text)
    if choices.standardize:
        data = data.standardized()
    cut: problems.partition.Partitioner | str = choices.partition
    if cut not in _NAMED_PARTITIONS:
        cut = specs.partition(choices.partition, choices.seed)
    return _kind(choices.loss, data).from_data(
        data,
        n=n,
        l2=choices.l2,
        bias=choices.bias,
        partition=cut,
        seed=choices.seed,
        objective=choices.objective,  # type: ignore[arg-type]
    )


def _refuse_options_of_data(name: str, choices: Choices) -> None:
    unsaid = Choices(seed=choices.seed)
    for field, given, default in zip(Choices._fields, choices, unsaid, strict=True):
        if given != default:
            option = f"--no-{field}" if given is False else f"--{field} {given}"
            raise ArgumentError(
                f"{option} is for data, of which --problem {name} has none; leave it out, or name "
                f"{', '.join(_BUNDLED)} or a file"
            )


def _synthetic(name: str, rest: str, n: int, seed: int) -> problems.Problem:
    items = [item if "=" in item else f"d={item}" for item in rest.split(",") if item]
    given = specs.assignments(f"--problem {name}", items, specs.value)
    known = ("d",) if name == "averaging" else ("d", "kappa", "heterogeneity")
    for key in given:
        if key not in known:
            raise ArgumentError(f"--problem {name}: there is no {key!r}; {nearest(key, known)}")
    given.setdefault("d", 10)
    if name == "quadratic":
        return problems.Quadratic.random(n, seed=seed, **given)
    d: Any = given["d"]
    if not isinstance(d, int) or d < 1:
        raise ArgumentError(f"--problem averaging: d={d} must be a whole number, at least 1")
    return problems.Averaging(np.random.default_rng(seed).standard_normal((n, d)))


def _data(text: str) -> problems.Dataset:
    if text in _BUNDLED:
        return _BUNDLED[text](standardize=False)
    path = Path(text)
    suffixes = [s for s in path.suffixes if s not in (".gz", ".bz2")]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in _CSV:
        return problems.load_csv(path)
    if suffix in _LIBSVM:
        return problems.load_libsvm(path)
    known = nearest(text, (*_BUNDLED, *_SYNTHETIC))
    raise ArgumentError(
        f"problem {text!r} is no file that ends in {', '.join((*_CSV, *_LIBSVM))} (or that and "
        f".gz), and no known name; {known}"
    )


def _kind(loss: str, data: problems.Dataset) -> type[problems.DataProblem]:
    if loss == "auto":
        classes = np.unique(data.y)
        labels = bool(data.classes) or bool((classes == np.round(classes)).all())
        if not labels or classes.size > _MOST_CLASSES:
            loss = "least_squares"
        else:
            loss = "logistic" if classes.size <= 2 else "softmax"
    if loss not in _LOSSES:
        raise ArgumentError(f"--loss {loss!r} is unknown; {nearest(loss, ('auto', *_LOSSES))}")
    return _LOSSES[loss]
