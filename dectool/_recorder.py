"""What takes the records of a solve, ends it when it should end, and writes its checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from dectool._checkpoint import Checkpoint
from dectool.communicator import Observation
from dectool.history import UNFINISHED, History
from dectool.metrics import COLUMNS, measure
from dectool.problems import Problem

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
    ) -> None:
        self._problem = problem
        self._steps = steps
        self._start = start
        self._about = about
        self._stop = stop
        self._checkpoint = checkpoint
        self.live = stop is not None or checkpoint is not None
        self._new: list[dict[str, float]] = []
        self._columns: dict[str, _Array] = {}
        self._offset = dict.fromkeys(("time", "bytes", "messages"), 0.0)
        self._previous: _Array | None = None
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
        self._state, self.gradients = _gathered(observation)
        X = np.asarray(self._state["x"], np.float64)
        record: dict[str, float] = {
            "step": observation.step,
            "time": observation.time + self._offset["time"],
            "bytes": observation.bytes + int(self._offset["bytes"]),
            "messages": observation.messages + int(self._offset["messages"]),
        }
        finite = np.isfinite(X).all(axis=1)
        record.update(measure(self._problem, X, self._previous))
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
        return History(self._columns, self._state, x0, status, about)


def _unseen(step: int) -> None:
    del step


def _gathered(observation: Observation) -> tuple[dict[str, Any], int]:
    """Return the state with the rank axis in front, and how many gradients each rank took."""
    if observation.stacked:
        state, gradients = observation.values
        return dict(state), gradients
    states, counts = zip(*observation.values, strict=True)
    stacked = {
        name: np.stack([state[name] for state in states])
        if isinstance(value, np.ndarray)
        else value
        for name, value in states[0].items()
    }
    return stacked, counts[0]
