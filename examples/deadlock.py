"""A deadlock, and what the simulator says of it.

Ranks on a ring each wait for their left neighbour before they send to the right: nobody starts.

    python -m examples.deadlock
"""

from __future__ import annotations

import sys

import numpy as np

import dectool


def program(comm: dectool.Communicator) -> None:
    """Receive from the left, then send to the right; rank 0 should have done it the other way."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    comm.elapse(0.5 * comm.rank)
    received = comm.recv(source=left, tag=1)
    comm.send(received + np.ones(2), dest=right, tag=1)


def main() -> int:
    """Run the program; print the report."""
    try:
        dectool.run(program, n=4, backend="sim")
    except dectool.DeadlockError as error:
        print(error)
        return 0
    print("no deadlock: this must never happen", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
