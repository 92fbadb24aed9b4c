"""What takes the records of a solve, ends it when it should end, and writes its checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from dectool._checkpoint import Checkpoint
from dectool.communicator import Observation
from dectool.fault_report import FaultReport
from dectool.history import UNFINISHED, History
from dectool.metrics import COLUMNS, measure
from dectool.problems import Problem
from dectool.problems._among import among

_Array = np.ndarray[Any, Any]


@final
class Recorder:
    """Collects the metrics of recorded steps; one process owns it.

    Args:
        problem: What is solved.
        steps: The last step.
        start: The starting points, flat.
        about: What is run; see :class:`dectool.History`.
        stop: Tells from a record whether the run is to end.
        resume: What the run goes on from.
        checkpoint: Where and how often the state is written.
        interval: Seconds from each record to the next, where records are of times.
    """

    def __init__(
        self,
        problem: Problem,
        steps: int,
        start: _Array,
        about: Mapping[str, Any],
        *,
        stop: Callable[[dict[str, float]], bool] | None,
        resume: History | None,
        checkpoint: Checkpoint | None,
        interval: float | None = None,
    ) -> None:
        self._problem = problem
        self._steps = steps
        self._start = start
        self._about = about
        self._stop = stop
        self._checkpoint = checkpoint
        self._interval = interval
        self.live = stop is not None or checkpoint is not None
        self._new: list[dict[str, float]] = []
        self._columns: dict[str, _Array] = {}
        self._offset = dict.fromkeys(("time", "bytes", "messages"), 0.0)
        self._previous: _Array | None = None
        self._among: dict[tuple[int, ...], Problem] = {}
        self.faults: FaultReport | None = None
        self.first = 0
        self._state: dict[str, Any] = {}
        self.gradients = 0
        if resume is not None:
            self._columns = dict(resume.records)
            self._offset = {name: resume.last[name] for name in self._offset}
            self._previous = np.asarray(resume.state["x"], np.float64)
            self.first = resume.step
            self._state = dict(resume.state)
            self.gradients = int(resume.about["gradients"])
        self.advance: Callable[[int], None] = _unseen
        self._status = "completed"
        self._where = ""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the progress bar behind when a recorder goes to another process."""
        return {**self.__dict__, "advance": _unseen}

    def collect(self, observation: Observation) -> bool:
        """Measure one step; tell whether the run is to end."""
        self._state, self.gradients, alive = _gathered(observation)
        X = np.asarray(self._state["x"], np.float64)
        record: dict[str, float] = {
            "step": observation.step,
            "time": self._time_of(observation),
            "bytes": observation.bytes + int(self._offset["bytes"]),
            "messages": observation.messages + int(self._offset["messages"]),
        }
        finite = np.isfinite(X).all(axis=1)
        if alive is None:
            record.update(measure(self._problem, X, self._previous))
        else:
            finite |= ~alive
            record.update(self._measure_among(X, alive))
        self._previous = X
        self._new.append(record)
        self.advance(observation.step)
        if not finite.all():
            # The last checkpoint stays: there is nothing to go on from here.
            self._status = "diverged"
            self._where = f"x of rank {int(np.argmin(finite))} at step {observation.step}"
            return True
        if self._stop is not None and self._stop(record):
            self._status = "stopped"
        self._write_checkpoint(observation.step)
        return self._status == "stopped"

    def _time_of(self, observation: Observation) -> float:
        if self._interval is not None:
            return observation.step * self._interval
        return observation.time + self._offset["time"]

    def _measure_among(self, X: _Array, alive: _Array) -> dict[str, float]:
        """Measure the ranks that are left; the others' rows are NaN."""
        ranks = np.flatnonzero(alive)
        key = tuple(ranks.tolist())
        if key not in self._among:
            self._among[key] = among(self._problem, key)
        record = measure(self._among[key], X[ranks])
        record["worst_rank"] = int(ranks[int(record["worst_rank"])])
        if self._previous is not None:
            moved = (X - self._previous)[ranks]
            record["change"] = float(np.linalg.norm(moved[np.isfinite(moved).all(axis=1)]))
        return record

    def _write_checkpoint(self, step: int) -> None:
        if self._checkpoint is None:
            return
        ends = step == self._steps or self._status == "stopped"
        if ends or (step > 0 and step % self._checkpoint.every == 0):
            self._history(self._status if ends else UNFINISHED).save(self._checkpoint.path)

    def history(self) -> History:
        """Return what was recorded, after warning if iterates stopped being finite."""
        if self._status == "diverged":
            warnings.warn(
                f"{self._about['algorithm']} diverged: {self._where} is not finite; use a "
                "smaller lr",
                RuntimeWarning,
                stacklevel=3,
            )
        return self._history(self._status)

    def _history(self, status: str) -> History:
        if self._new:
            new = {name: np.array([record[name] for record in self._new]) for name in COLUMNS}
            old = self._columns
            self._columns = (
                {name: np.concatenate([old[name], new[name]]) for name in COLUMNS} if old else new
            )
            self._new = []
        x0 = self._start.reshape(self._problem.size, *self._problem.shape)
        about = {**self._about, "gradients": self.gradients}
        return History(self._columns, self._state, x0, status, about, self.faults)


def _unseen(step: int) -> None:
    del step


def _gathered(observation: Observation) -> tuple[dict[str, Any], int, _Array | None]:
    """Return the state with the rank axis in front, how many gradients each took, and who is left.

    The last is ``None`` where all are; the rows of ranks that are not are NaN.
    """
    if observation.stacked:
        state, gradients = observation.values
        return dict(state), gradients, None
    alive = np.array([value is not None for value in observation.values])
    states, counts = zip(*(v for v in observation.values if v is not None), strict=True)
    if alive.all():
        return _stacked(states), counts[0], None
    rows = _stacked(states)
    for name, value in rows.items():
        if isinstance(value, np.ndarray):
            whole = np.full((len(alive), *value.shape[1:]), _nothing(value.dtype), value.dtype)
            whole[alive] = value
            rows[name] = whole
    return rows, max(counts), alive


def _stacked(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: _together([state[name] for state in states]) for name in states[0]}


def _together(values: Sequence[Any]) -> Any:
    """Return arrays as rows of one; of what else there is, one value where all are equal."""
    first = values[0]
    if isinstance(first, np.ndarray):
        return np.stack(values)
    return first if all(value == first for value in values) else np.array(values)


def _nothing(dtype: np.dtype[Any]) -> Any:
    return np.nan if dtype.kind in "fc" else 0
