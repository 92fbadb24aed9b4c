"""Where a solve writes its state while it runs, and what a later one goes on from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.history import History
from dectool.problems import Problem

if TYPE_CHECKING:
    from dectool.algorithms import Algorithm

NAME = "checkpoint.npz"
"""The file in a folder that is given as a checkpoint."""


class Checkpoint(NamedTuple):
    """Where the state is written, and how many steps lie between."""

    path: Path
    every: int


def checked_checkpoint(path: Any, every: Any, record_every: int) -> Checkpoint | None:
    """Return where and how often to write, or ``None`` if nobody asked for it.

    Raises:
        ArgumentError: One of the two is missing, breaks a rule, or the folder is not there.
        ArgumentTypeError: ``path`` is no path.
    """
    if path is None and every is None:
        return None
    if path is None:
        raise ArgumentError(
            f"checkpoint_every={every!r}, but no checkpoint= says which file to write; give one, "
            "such as checkpoint='run.npz'"
        )
    if every is None:
        raise ArgumentError(
            f"checkpoint={path!r} needs checkpoint_every=, the steps between checkpoints, such as "
            "checkpoint_every=100"
        )
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise ArgumentError(f"checkpoint_every={every!r} must be an integer, at least 1")
    if every % record_every:
        below = max(every // record_every, 1) * record_every
        raise ArgumentError(
            f"checkpoint_every={every} must be a multiple of record_every={record_every}, since "
            f"what is written is a recorded step; use {below}, or record more often"
        )
    return Checkpoint(_checked_target(_checked_path("checkpoint", path)), int(every))


def _checked_path(name: str, path: Any) -> Path:
    """Return the file, which in a folder is :data:`NAME`."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"{name} is a {type(path).__name__}; give the path of a file, such as 'run.npz'"
        )
    # Processes of other backends may work in another folder.
    file = Path(path).absolute()
    return file / NAME if file.is_dir() else file


def _checked_target(file: Path) -> Path:
    folder = file.parent
    if not folder.is_dir():
        raise ArgumentError(f"checkpoint={str(file)!r}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentError(
            f"checkpoint={str(file)!r}: nothing can be written to the folder {folder}; choose "
            "another, or change its permissions"
        )
    return file


def checked_resume(
    resume: Any, algorithm: Algorithm, problem: Problem, steps: int, x0: Any
) -> History | None:
    """Return the history to go on from, read if it is given as a file.

    Raises:
        ArgumentError: It is missing, of another run, or ends later.
        ArgumentTypeError: It is neither a history nor a path.
        DataError: The file holds something else.
    """
    if resume is None:
        return None
    if isinstance(resume, History):
        history, what = resume, "resume"
    elif isinstance(resume, (str, os.PathLike)):
        file = _checked_path("resume", resume)
        what = f"resume={str(resume)!r}"
        if not file.is_file():
            raise ArgumentError(f"{what}: there is no file {file}; to start anew, leave resume out")
        history = History.load(file)
    else:
        raise ArgumentTypeError(
            f"resume is a {type(resume).__name__}; give a History, or the path of a saved one, "
            "such as 'run.npz'"
        )
    if x0 is not None:
        raise ArgumentError("x0 and resume are both given; a history has its own start: omit x0")
    for name, value in (("algorithm", algorithm.name), ("problem", problem.name)):
        if history.about[name] != value:
            raise ArgumentError(
                f"{what} is a history of {history.about[name]}, not of {value}; go on with the "
                f"same {name}"
            )
    if history.x0.shape != (problem.size, *problem.shape):
        raise ArgumentError(
            f"{what} has iterates of shape {history.x0.shape}, but the problem's are "
            f"{(problem.size, *problem.shape)}; go on with the same problem"
        )
    if steps < history.step:
        raise ArgumentError(
            f"steps={steps}, but {what} is at step {history.step} already; steps counts from the "
            "very start"
        )
    return history
