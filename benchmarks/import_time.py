"""Time to import dectool, against the libraries that it cannot do without."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

from benchmarks._table import Row, compare, interleaved, main

OURS = "import dectool"
RIVAL = "import numpy, scipy.sparse, networkx"


def children_seconds() -> float:
    """Return the processor time of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_fresh_process(statement: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    tell(OURS)
    seconds = interleaved(
        {
            "start": in_fresh_process("pass"),
            OURS: in_fresh_process(OURS),
            RIVAL: in_fresh_process(RIVAL),
        },
        repetitions=15,
        timer=children_seconds,
    )
    start = seconds["start"]
    ours, rival = seconds[OURS] - start, seconds[RIVAL] - start
    row = compare(f"{OURS}; {RIVAL}", 1e3 * ours, 1e3 * rival, ratio_at_most=1.3)
    return [row], [f"The interpreter's own start, {1e3 * start:.0f} ms, is taken off both."]


if __name__ == "__main__":
    main("Import", measure, unit="CPU-ms")
