"""A process that ends a job when whoever started it is gone, however that came."""

from __future__ import annotations

import subprocess

_SCRIPT = """
read -r released && exit 0
kill -TERM "$0"
for tick in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 "$0" || exit 0
    sleep 0.1
done
kill -KILL -"$0"
"""


class Watch:
    """Waits at a pipe that this process alone holds open: when it closes, ``mpiexec`` is ended.

    That ``mpiexec`` sees its own standard input end is not enough: that of Open MPI goes on.

    Args:
        pid: The process of ``mpiexec``, which leads a group of its own.
    """

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Watch no more: the process has ended."""
        self._process.communicate(b"released\n")
