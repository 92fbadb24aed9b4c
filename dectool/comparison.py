"""The table that :func:`dectool.compare` makes: one row per run, means over seeds, a picture."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from dectool._files import written_whole
from dectool._optional import require
from dectool._text import listing, nearest
from dectool.errors import ArgumentError, DataError
from dectool.metrics import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

KEYS = ("algorithm", "topology", "network", "compute")
"""What a group of runs has in common; the seeds of a group differ."""

REACHED = {"steps_to": "step", "time_to": "time", "bytes_to": "bytes", "messages_to": "messages"}
"""Columns that say what it took to meet the tolerance, and where a record has them."""

_FORMAT = 1


@dataclass(frozen=True)
class Run:
    """One run of a comparison.

    Attributes:
        algorithm: Name of the algorithm in the comparison.
        topology: Name of the topology.
        network: Name of the network model.
        compute: Name of the compute-time model.
        seed: Seed of the run.
        status: "completed", "stopped" or "diverged", as of a history, or "refused".
        error: Why it was refused; else empty.
        rate: Measured contraction per step; see :meth:`dectool.History.rate`.
        reached: The first record that met the tolerance, if one did.
        records: One array per column of :data:`dectool.metrics.COLUMNS`; empty if refused.
    """

    algorithm: str
    topology: str
    network: str
    compute: str
    seed: int
    status: str
    error: str = ""
    rate: float = math.nan
    reached: Mapping[str, float] | None = None
    records: Mapping[str, Any] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Names of algorithm, topology, network and compute model."""
        return tuple(getattr(self, name) for name in KEYS)

    def row(self) -> dict[str, Any]:
        """Return the run as a row of the table."""
        first = self.reached or {}
        ends = self.records or {}
        return {
            **dict(zip(KEYS, self.key, strict=True)),
            "seed": self.seed,
            "status": self.status,
            **{name: first.get(column, math.nan) for name, column in REACHED.items()},
            **{name: ends[name][-1].item() if ends else math.nan for name in COLUMNS},
            "rate": self.rate,
            "error": self.error,
        }


@final
class Comparison:
    """What :func:`dectool.compare` returns: its runs, in the order of the arguments.

    Attributes:
        runs: Every run, those that were refused too.
        about: What was compared: problem, backend, steps, tolerance.
    """

    def __init__(self, runs: Sequence[Run], about: Mapping[str, Any]) -> None:
        self.runs = tuple(runs)
        self.about = dict(about)

    def __repr__(self) -> str:
        counts = Counter(run.status for run in self.runs)
        shown = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"<Comparison on {self.about['problem']}: {len(self.runs)} runs ({shown})>"

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def select(self, **names: Any) -> Comparison:
        """Return the runs of the given algorithm, topology, network, compute, seed or status.

        Raises:
            ArgumentError: No run has such a name; lists those there are.

        Example:
            >>> runs = [Run("DGD", "ring", "ideal", "none", seed, "refused") for seed in (0, 1)]
            >>> len(Comparison(runs, {}).select(algorithm="DGD", seed=1))
            1
        """
        runs = list(self.runs)
        for column, name in names.items():
            choices = (*KEYS, "seed", "status")
            if column not in choices:
                raise ArgumentError(
                    f"no column {column!r} to select by; {nearest(column, choices)}"
                )
            known = list(dict.fromkeys(getattr(run, column) for run in runs))
            if name not in known:
                raise ArgumentError(f"no run has {column}={name!r}; there are {listing(known)}")
            runs = [run for run in runs if getattr(run, column) == name]
        return Comparison(runs, self.about)

    def groups(self) -> dict[tuple[str, ...], list[Run]]:
        """Return the runs that differ in the seed only, by their names."""
        found: dict[tuple[str, ...], list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.key, []).append(run)
        return found

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per run: names, seed, status, what the tolerance took, last metrics.

        ``steps_to``, ``time_to``, ``bytes_to`` and ``messages_to`` are NaN where the tolerance
        was not met; ``error`` holds the reason of a refused run.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        pandas = require("pandas", extra="plot", purpose="Comparison.to_pandas")
        table: pd.DataFrame = pandas.DataFrame([run.row() for run in self.runs])
        return table

    def summary(self, *columns: str, level: float = 0.95) -> pd.DataFrame:
        r"""Return one row per combination: means over the seeds, with confidence intervals.

        For each column there is ``NAME`` (mean) and ``NAME_ci`` (half width of the interval by
        Student's t, :math:`t_{(1+p)/2,\,n-1}\, s / \sqrt n`; NaN for a single seed). What it
        took to meet the tolerance is NaN unless every run met it: a mean over those that did
        would flatter.

        Args:
            columns: Columns of the table; default: what the tolerance took, and the last gap and
                consensus error.
            level: Confidence level p, between 0 and 1.

        Raises:
            ArgumentError: There is no such column, or the level is out of range.
            MissingDependencyError: pandas is not installed.
        """
        pandas = require("pandas", extra="plot", purpose="Comparison.summary")
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level={level} must be between 0 and 1, such as 0.95")
        known = (*REACHED, *COLUMNS, "rate")
        for name in columns:
            if name not in known:
                raise ArgumentError(f"no column {name!r} to average; {nearest(name, known)}")
        shown = columns or (*REACHED, "gap", "consensus_error")
        table: pd.DataFrame = pandas.DataFrame(
            [_summary(key, runs, shown, level) for key, runs in self.groups().items()]
        )
        return table

    def plot(self, y: str = "gap", x: str = "step", ax: Axes | None = None, **line: Any) -> Axes:
        """Draw one line per combination, with a band over the seeds; return the axes.

        The line is the geometric mean over the seeds, record by record, as far as all of them
        go; the band reaches from the smallest to the largest. A color is an algorithm, a dash a
        topology, a marker a pair of network and compute model.

        Args:
            y: Column to draw; entries that are not above 0 are left out.
            x: "step", "time", "bytes" or "messages".
            ax: Axes to draw on; default: new ones.
            line: Passed to matplotlib's ``plot``.

        Raises:
            ArgumentError: There is no such column.
            MissingDependencyError: matplotlib is not installed.
        """
        from dectool.plotting import draw_comparison

        for name in (y, x):
            if name not in COLUMNS:
                raise ArgumentError(f"no column {name!r}; {nearest(name, COLUMNS)}")
        return draw_comparison(self, y, x, ax, line)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one JSON file, whole or not at all; return the path."""
        content = {
            "format": _FORMAT,
            "about": self.about,
            "runs": [_encoded(asdict(run)) for run in self.runs],
        }
        text = json.dumps(content, allow_nan=False)
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: The file is no comparison, or of a later format.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] > _FORMAT:
                raise DataError(
                    f"{os.fspath(path)} has format {content['format']}, and this version reads "
                    f"up to {_FORMAT}; update dectool"
                )
            names = {field.name for field in fields(Run)}
            runs = [Run(**{name: _decoded(run[name]) for name in names}) for run in content["runs"]]
            return cls(runs, content["about"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{os.fspath(path)} is no comparison that Comparison.save wrote; give the path "
                "of one"
            ) from error


def _summary(
    key: tuple[str, ...], runs: list[Run], columns: Sequence[str], level: float
) -> dict[str, Any]:
    rows = [run.row() for run in runs]
    summary: dict[str, Any] = {
        **dict(zip(KEYS, key, strict=True)),
        "runs": len(runs),
        "reached": sum(run.reached is not None for run in runs),
        "status": ", ".join(dict.fromkeys(run.status for run in runs)),
    }
    for name in columns:
        values = np.array([row[name] for row in rows], dtype=np.float64)
        summary[name], summary[f"{name}_ci"] = _interval(values, level)
    return summary


def _interval(values: np.ndarray[Any, np.dtype[np.float64]], level: float) -> tuple[float, float]:
    """Return the mean and the half width of its confidence interval."""
    from scipy import stats

    mean = float(values.mean())
    if values.size < 2 or not math.isfinite(mean):
        return mean, math.nan
    quantile = float(stats.t.ppf((1.0 + level) / 2.0, values.size - 1))
    return mean, quantile * float(values.std(ddof=1)) / math.sqrt(values.size)


def _encoded(value: Any) -> Any:
    """Return the value for JSON, which has no NaN and no infinity: they become words."""
    if isinstance(value, Mapping):
        return {name: _encoded(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return [_encoded(part) for part in value.tolist()]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return float(value["float"])
        return {name: _decoded(part) for name, part in value.items()}
    if isinstance(value, list):
        return np.array([_decoded(part) for part in value])
    return value
