"""Errors and warnings for people: one paragraph on standard error, a traceback only if asked."""

from __future__ import annotations

import functools
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import typer

from dectool.errors import DectoolError

FAILED = 1
"""Exit status where something ran and failed: a program, a diverged solve, a broken install."""

REFUSED = 2
"""Exit status of an error in what was asked: arguments, files, contracts, missing packages."""

_tracebacks = False


def show_tracebacks(wanted: bool) -> None:
    """Choose for the commands that follow whether errors come with a traceback."""
    global _tracebacks
    _tracebacks = wanted


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors and warnings told in one paragraph each.

    The command has an argument ``debug``, which asks for the traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        debug = _tracebacks or kwargs.get("debug", False)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("always", category=RuntimeWarning)
                warnings.showwarning = _show_warning
                command(*args, **kwargs)
        except typer.Exit:
            raise
        except Exception as error:
            if debug:
                traceback.print_exception(error, file=sys.stderr)
            else:
                say("Error", describe(error))
            expected = isinstance(error, DectoolError | OSError)
            raise typer.Exit(REFUSED if expected else FAILED) from None

    return wrapped


def describe(error: Exception) -> str:
    """Return an error in words, with the notes that were added to it.

    Example:
        >>> describe(FileNotFoundError(2, "No such file or directory", "data.csv"))
        'data.csv: No such file or directory'
    """
    if isinstance(error, DectoolError):
        text = str(error)
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    else:
        text = f"{type(error).__name__}: {error}"
    notes = getattr(error, "__notes__", [])
    return f"{text} ({'; '.join(notes)})" if notes else text


def say(kind: str, text: str, style: str = "bold red") -> None:
    """Write one paragraph to standard error, wrapped by the terminal alone."""
    from rich.console import Console
    from rich.text import Text

    paragraph = Text.assemble((f"{kind}: ", style), text)
    Console(stderr=True).print(paragraph, soft_wrap=True)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    say("Warning", str(message), "bold yellow")
