"""Time to import dectool, against the libraries that it cannot do without.

All of them compiled, as after an installation, whatever the environment says about that.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable

from benchmarks._table import Row, compare, interleaved, main

OURS = "import dectool"
RIVAL = "import numpy, scipy.sparse, networkx"


def children_seconds() -> float:
    """Return the processor time of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_fresh_process(statement: str, compiled: str) -> Callable[[], object]:
    """Return what runs a statement; compiled modules are kept in a folder."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True, env=env)


def measure(tell: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure the start of the interpreter, and both imports."""
    tell(OURS)
    with tempfile.TemporaryDirectory() as folder:
        cases = {name: in_fresh_process(name, folder) for name in ("pass", OURS, RIVAL)}
        seconds = interleaved(cases, repetitions=15, timer=children_seconds)
    start = seconds["pass"]
    ours, rival = seconds[OURS] - start, seconds[RIVAL] - start
    row = compare(f"{OURS}; {RIVAL}", 1e3 * ours, 1e3 * rival, ratio_at_most=1.3)
    return [row], [f"The interpreter's own start, {1e3 * start:.0f} ms, is taken off both."]


if __name__ == "__main__":
    main("Import", measure, unit="CPU-ms")
