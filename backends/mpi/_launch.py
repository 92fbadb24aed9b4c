"""The way into the MPI backend: join the job we are in, or start one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dectool._optional import require
from dectool.backends.mpi._execute import check_outermost
from dectool.backends.mpi._join import join
from dectool.backends.mpi._processes import Processes
from dectool.backends.mpi._variables import inside_job
from dectool.communicator import Outcome, Settings


def run_mpi(program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> Outcome:
    """Run a program on real processes: join the job we are in, or start one.

    Raises:
        MissingDependencyError: mpi4py or cloudpickle is not installed.
        BackendError: A process died, or ``mpiexec`` could not start.
        Exception: What the program raised on the lowest rank that failed.
    """
    require("mpi4py", extra="mpi", purpose="backend 'mpi'")
    require("cloudpickle", extra="mpi", purpose="backend 'mpi'")
    check_outermost()
    if inside_job():
        return join(program, args, settings)
    processes = Processes(settings.size, settings.env)
    try:
        return processes.run(program, args, settings)
    finally:
        processes.close()
