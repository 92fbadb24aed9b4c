"""The record of a solve: metrics by step, and the final states."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from dectool._files import written_whole
from dectool._optional import require
from dectool._text import nearest
from dectool.errors import ArgumentError, DataError
from dectool.fault_report import FaultReport
from dectool.metrics import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_Array = np.ndarray[Any, Any]
_FORMAT = 1
UNFINISHED = "unfinished"


@final
class History:
    """What :func:`dectool.solve` returns.

    Attributes:
        records: One array per column (see :data:`dectool.metrics.COLUMNS`), one entry per
            recorded step.
        state: The algorithm's state at the last recorded step: name to array of shape (n, ...),
            or to a number that all ranks share.
        x0: Starting points, shape ``(n, *shape)``.
        status: "completed", "stopped" (the ``stop`` criterion was met), "diverged", or
            "unfinished": a checkpoint of a run that was under way.
        about: What was run: algorithm, parameters, problem, topology, backend, seed, network.
        faults: The report of what went wrong, where faults were given. Rows of ``state`` that
            belong to ranks which are not there are NaN.
    """

    def __init__(
        self,
        records: Mapping[str, Any],
        state: Mapping[str, Any],
        x0: _Array,
        status: str,
        about: Mapping[str, Any],
        faults: FaultReport | None = None,
    ) -> None:
        self.records = {name: np.asarray(records[name]) for name in COLUMNS}
        self.faults = faults
        self.state = dict(state)
        self.x0 = x0
        self.status = status
        self.about = dict(about)

    def __repr__(self) -> str:
        last = self.last
        return (
            f"<History of {self.about['algorithm']} on {self.about['topology']}: "
            f"{int(last['step'])} steps, gap {last['gap']:.3g}, "
            f"time {last['time']:.4g} s, {self.status}>"
        )

    def __len__(self) -> int:
        return len(self.records["step"])

    def __getitem__(self, column: str) -> _Array:
        """Return one column.

        Raises:
            ArgumentError: There is no such column; names the nearest.
        """
        if column not in self.records:
            raise ArgumentError(f"no column {column!r}; {nearest(column, COLUMNS)}")
        return self.records[column]

    @property
    def x(self) -> _Array:
        """The final iterates, shape ``(n, *shape)``."""
        return np.asarray(self.state["x"]).reshape(self.x0.shape)

    @property
    def step(self) -> int:
        """The last recorded step."""
        return int(self.records["step"][-1])

    @property
    def last(self) -> dict[str, float]:
        """The metrics of the last recorded step."""
        return self._record(-1)

    def _record(self, index: int) -> dict[str, float]:
        return {name: column[index].item() for name, column in self.records.items()}

    def first(self, **criteria: float) -> dict[str, float] | None:
        """Return the first record in which every named metric is at most its limit, if any.

        Example:
            >>> import numpy as np, dectool
            >>> from dectool import algorithms, problems, topology
            >>> h = dectool.solve(algorithms.Gossip(), problems.Averaging(np.eye(4)),
            ...                   topology=topology.ring(4), steps=20)
            >>> int(h.first(consensus_error=1e-3)["step"])
            7
        """
        good = np.ones(len(self), bool)
        for column, limit in criteria.items():
            good &= self[column] <= limit
        hits = np.flatnonzero(good)
        return self._record(int(hits[0])) if len(hits) else None

    def rate(self, metric: str = "change", low: float = 1e-10) -> float:
        """Return the measured contraction per step: the slope of log(metric) near the end.

        The line is fitted to the last quarter of the records that are used.

        Args:
            metric: Column to fit; "change" also works where a bias keeps the distance up.
            low: Records below this, times the largest, are left out: rounding rules there.

        Returns:
            The factor per step, or NaN with fewer than three records to fit.
        """
        values = self[metric].astype(float)
        steps = self.records["step"]
        finite = np.isfinite(values)
        largest = values[finite].max(initial=0.0)
        use = np.flatnonzero(finite & (values > low * largest))
        use = use[3 * len(use) // 4 :]
        if len(use) < 3:
            return float("nan")
        return float(np.exp(np.polyfit(steps[use], np.log(values[use]), 1)[0]))

    def to_pandas(self) -> pd.DataFrame:
        """Return the records as a table with one row per recorded step.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        pandas = require("pandas", extra="plot", purpose="History.to_pandas")
        table: pd.DataFrame = pandas.DataFrame(self.records)
        return table

    def plot(self, y: str = "gap", x: str = "step", ax: Axes | None = None, **line: Any) -> Axes:
        """Draw one column over another with a logarithmic y axis; return the axes.

        Args:
            y: Column to draw; entries that are not above 0 are left out.
            x: "step", "time", "bytes" or "messages".
            ax: Axes to draw on; default: new ones.
            line: Passed to matplotlib's ``plot``.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from dectool.plotting import draw_history

        return draw_history(self, y, x, ax, line)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one ``.npz`` file (arrays, and JSON for the rest; no pickle).

        The file is written to a temporary name and renamed, so it is whole or not there.
        """
        target = Path(path)
        arrays = {f"records/{name}": column for name, column in self.records.items()}
        shared = {}
        for name, value in self.state.items():
            if isinstance(value, np.ndarray):
                arrays[f"state/{name}"] = value
            else:
                shared[name] = value
        head = {
            "format": _FORMAT,
            "status": self.status,
            "about": self.about,
            "shared_state": shared,
            "faults": None if self.faults is None else self.faults.to_dict(),
        }
        arrays["x0"] = self.x0
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
        with written_whole(target) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: The file is no history, or of a later format.
        """
        try:
            # Given the name alone, np.load leaves a broken file open.
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            head = json.loads(arrays.pop("head").tobytes())
            if head["format"] > _FORMAT:
                raise DataError(
                    f"{os.fspath(path)} has format {head['format']}, and this version reads up to "
                    f"{_FORMAT}; update dectool"
                )
            steps = arrays["records/step"]
            # Files of before there were faults do not say how many ranks were there: all.
            arrays.setdefault("records/alive", np.full(len(steps), len(arrays["x0"])))
            records = {name: arrays[f"records/{name}"] for name in COLUMNS}
            state = {
                name.removeprefix("state/"): value
                for name, value in arrays.items()
                if name.startswith("state/")
            }
            state.update(head["shared_state"])
            faults = head.get("faults")
            report = None if faults is None else FaultReport.from_dict(faults)
            return cls(records, state, arrays["x0"], head["status"], head["about"], report)
        except (FileNotFoundError, IsADirectoryError, PermissionError, DataError):
            raise
        # NumPy and zipfile raise many kinds for a file that is something else.
        except Exception as error:
            raise DataError(
                f"{os.fspath(path)} is no history that History.save wrote; give the path of one"
            ) from error
