"""Words for reports: what a rank waits for, and at which line of the program."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_ROOM = Path(__file__).resolve().parent
_MANAGERS = contextlib.__file__
"""Stands between a program and the operations that are context managers."""


def describe_channel(channel: Sequence[Any]) -> str:
    """Return the words for a channel: the operation, and the tag of a message.

    Example:
        >>> describe_channel(("world", "message", 7))
        'recv(tag=7)'
    """
    for position, part in enumerate(channel):
        if part == "message":
            return f"recv(tag={channel[position + 1]})"
        if part == "exchange":
            return f"exchange(tag={channel[position + 1]})"
        if part == "window":
            name, *what = channel[position + 1 :]
            return f"{what[0] if what else 'an operation'} of window {name!r}"
    names = [part for part in channel if isinstance(part, str) and part != "world"]
    return names[-1] if names else "a message"


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def source_line(frame: FrameType | None, backend: Path) -> str:
    """Return file, line, function and text of the first frame outside of the machinery.

    Args:
        frame: Innermost frame of the rank.
        backend: Folder of the backend, whose frames are passed over like the communicator's.
    """
    last = None
    for last in _frames(frame):
        name = last.f_code.co_filename
        within = Path(name).resolve().parents
        if name != _MANAGERS and not any(inside in within for inside in (_ROOM, backend)):
            break
    if last is None:
        return "an unknown line"
    name, number = last.f_code.co_filename, last.f_lineno
    text = linecache.getline(name, number, last.f_globals).strip()
    shown = f": {text}" if text else ""
    return f"{name}:{number} in {last.f_code.co_name}{shown}"
