"""The report of a deadlock: each blocked rank, what it waits for, and the line it waits on."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import dectool.communicator
from dectool.sim._mailbox import MISSING

_MOST = 32
_INSIDE = (
    Path(__file__).resolve().parent,
    Path(str(dectool.communicator.__file__)).resolve().parent,
)


def describe(blocked: Sequence[Any], size: int) -> str:
    """Return the report for the strands that are blocked for ever.

    Args:
        blocked: Strands, each with ``state.rank``, ``name``, ``clock``, ``waits``, ``greenlet``.
        size: Number of ranks of the run.
    """
    ranks = len({strand.state.rank for strand in blocked})
    lines = [f"deadlock: {ranks} of {size} ranks wait for messages that can never come"]
    lines += [_line(strand) for strand in blocked[:_MOST]]
    if len(blocked) > _MOST:
        lines.append(f"  ... and {len(blocked) - _MOST} more")
    lines.append(
        "Every receive needs a matching send: the same operation, tag and order on both ranks"
    )
    return "\n".join(lines)


def _line(strand: Any) -> str:
    missing = [receipt.key for receipt in strand.waits or () if receipt.content is MISSING]
    operation = describe_channel(missing[0][2]) if missing else "an operation"
    sources = ", ".join(str(source) for source, *_ in missing[:8])
    if len(missing) > 8:
        sources += f", ... ({len(missing)} in all)"
    return (
        f"  rank {strand.state.rank}{strand.name} at t = {strand.clock:.9g} s waits in "
        f"{operation} for rank {sources}, at {_source_line(strand.greenlet.gr_frame)}"
    )


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
    names = [part for part in channel if isinstance(part, str) and part != "world"]
    return names[-1] if names else "a message"


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _source_line(frame: FrameType | None) -> str:
    """Return file, line, function and text of the first frame outside of the machinery."""
    last = None
    for last in _frames(frame):
        path = Path(last.f_code.co_filename)
        if not any(inside in path.resolve().parents for inside in _INSIDE):
            break
    if last is None:
        return "an unknown line"
    name, number = last.f_code.co_filename, last.f_lineno
    text = linecache.getline(name, number, last.f_globals).strip()
    shown = f": {text}" if text else ""
    return f"{name}:{number} in {last.f_code.co_name}{shown}"
