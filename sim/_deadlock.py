"""The report of a deadlock: each blocked rank, what it waits for, and the line it waits on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dectool.communicator import describe_channel, source_line
from dectool.sim._mailbox import MISSING

_MOST = 32
_ROOM = Path(__file__).resolve().parent


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
        f"{operation} for rank {sources}, at {source_line(strand.greenlet.gr_frame, _ROOM)}"
    )
