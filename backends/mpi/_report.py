"""Words for what a rank of an MPI job waits for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dectool._text import listing
from dectool.communicator import describe_channel, source_line

if TYPE_CHECKING:
    from dectool.backends.mpi._engine import Receipt

_ROOM = Path(__file__).resolve().parent
_MOST = 16


def waiting(rank: int, missing: Sequence[Receipt], ended: Sequence[int]) -> str:
    """Return whom a rank waits for, in which operation, and at which line of its program.

    Args:
        rank: The rank.
        missing: What has not come; nothing if the rank has returned.
        ended: Those of the sources that have returned.
    """
    if not missing:
        return f"rank {rank} has returned, and waits for the others to return"
    sources = listing([str(source) for source in sorted({r.source for r in missing})], most=8)
    gone = f" (of these, {listing(list(map(str, ended)), most=8)} returned)" if ended else ""
    return (
        f"rank {rank} waits in {describe_channel(missing[0].channel)} for rank {sources}{gone}, "
        f"at {source_line(sys._getframe(1), _ROOM)}"
    )


def deadlock(lines: Sequence[str], size: int) -> str:
    """Return the message of a deadlock from a line for each rank.

    Args:
        lines: What each rank does.
        size: Number of ranks.
    """
    shown = [f"  {line}" for line in lines[:_MOST]]
    if len(lines) > _MOST:
        shown.append(f"  ... and {len(lines) - _MOST} more")
    waits = sum(" waits in " in line for line in lines)
    return "\n".join(
        [
            f"deadlock: {waits} of {size} ranks wait for messages that do not come",
            *shown,
            "Every receive needs a matching send: the same operation, tag and order on both "
            "ranks. A rank that only computes for long needs a larger timeout= of run",
        ]
    )
