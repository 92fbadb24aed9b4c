"""What went wrong in a job: the error to raise, from what the ranks handed over."""

from __future__ import annotations

import pickle
import re
import signal
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from dectool.backends.mpi._engine import Ended, StalledError
from dectool.backends.mpi._pack import dumps
from dectool.backends.mpi._report import deadlock
from dectool.errors import BackendError, DeadlockError

_ROOM = Path(__file__).resolve().parent
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)')


class Failure(NamedTuple):
    """How a rank ended, if not by returning.

    Attributes:
        kind: "failed" (by an error of its program), "stalled" (it waited too long), "stopped" (as
            others failed), "busy" (it did not stop), "ended" (the process is gone).
        error: The error, if it could be sent.
        text: A traceback, a line of a report, or the exit code of a process.
    """

    kind: str
    error: BaseException | None
    text: str


def failure_of(error: BaseException) -> Failure:
    """Return what a rank hands over of its error: itself, if it survives a pickle, and its words.

    The traceback goes as text.
    """
    if isinstance(error, (Ended, StalledError)):
        return Failure("stopped" if isinstance(error, Ended) else "stalled", None, str(error))
    text = "".join(traceback.format_exception(type(error), error, _of_program(error)))
    try:
        copy = pickle.loads(dumps(error))
    except Exception:
        return Failure("failed", None, text)
    return Failure("failed", copy if type(copy) is type(error) else None, text)


def _of_program(error: BaseException) -> TracebackType | None:
    """Return the traceback from where it enters the program; all of it if it does not."""
    place = error.__traceback__
    while place is not None and _ROOM in Path(place.tb_frame.f_code.co_filename).resolve().parents:
        place = place.tb_next
    return place or error.__traceback__


def error_of(
    failures: Mapping[int, Failure], size: int, places: Mapping[int, str]
) -> BaseException | None:
    """Return the error to raise: that of the lowest rank which failed by itself.

    Args:
        failures: How ranks failed.
        size: Number of ranks.
        places: On which host ranks are; it is named where there are several.
    """
    several = len(set(places.values())) > 1
    for kind in ("failed", "ended", "stalled"):
        for rank in sorted(failures, key=lambda rank: (_distance(failures[rank]), rank)):
            if failures[rank].kind == kind:
                if kind == "stalled":
                    lines = [failures[rank].text for rank in sorted(failures)]
                    return DeadlockError(deadlock([line for line in lines if line], size))
                where = f"rank {rank} of {size}"
                where += f" on host {places[rank]}" if several and rank in places else ""
                return (_died if kind == "ended" else _raised)(where, failures[rank])
    return None


def _distance(failure: Failure) -> int:
    """Return how far an end is from its cause: who was killed, who crashed, who left by itself.

    A process that has lost another one may abort or crash in MPI.
    """
    if failure.kind != "ended":
        return 0
    code = int(failure.text)
    return 2 if code >= 0 else 0 if -code in _FROM_OUTSIDE else 1


def _raised(where: str, failure: Failure) -> BaseException:
    error = failure.error
    if isinstance(error, SystemExit):
        error = BackendError(
            f"{where} called sys.exit({error.code!r}); return from the program instead"
        )
    if error is None:
        return BackendError(f"{where} failed:\n{failure.text}")
    error.add_note(f"raised by {where}:\n{failure.text}")
    return error


def _died(where: str, failure: Failure) -> BackendError:
    code = int(failure.text)
    if code >= 0:
        return BackendError(
            f"{where} ended with status {code} in the middle of the run; the other ranks were ended"
        )
    name = signal.Signals(-code).name
    hint = " (is there too little memory?)" if name == "SIGKILL" else ""
    return BackendError(
        f"{where} was killed by signal {-code} ({name}){hint}; the other ranks were ended"
    )


def line_of_stack(stack: str) -> str:
    r"""Return the innermost line of a stack, as faulthandler prints it, that is not dectool's.

    Example:
        >>> line_of_stack('Current thread (most recent call first):\n  File "a.py", line 3 in f')
        'a.py:3 in f'
    """
    frames = [found.groupdict() for found in _FRAME.finditer(stack)]
    own = [f for f in frames if _ROOM not in Path(f["file"]).resolve().parents] or frames
    return "{file}:{line} in {function}".format(**own[0]) if own else "an unknown line"
