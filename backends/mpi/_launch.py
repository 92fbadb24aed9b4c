"""The way into the MPI backend: join the job we are in, or start one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dectool._hosts import Host
from dectool._optional import require
from dectool.backends.mpi._execute import check_outermost
from dectool.backends.mpi._join import join
from dectool.backends.mpi._processes import Processes
from dectool.backends.mpi._variables import inside_job
from dectool.communicator import Outcome, Settings
from dectool.errors import ArgumentError


def run_mpi(
    program: Callable[..., Any],
    args: Sequence[Any],
    settings: Settings,
    hosts: Sequence[Host] = (),
    launcher: Sequence[str] = (),
) -> Outcome:
    """Run a program on real processes: join the job we are in, or start one.

    Args:
        program: What to run.
        args: Its further arguments.
        settings: How to run it.
        hosts: Where processes start; default: here.
        launcher: Words of the command that reaches hosts; default: ssh.

    Raises:
        MissingDependencyError: mpi4py or cloudpickle is not installed.
        ArgumentError: There is no such launcher, or hosts are named inside a job.
        BackendError: A process died, or ``mpiexec`` could not start.
        Exception: What the program raised on the lowest rank that failed.
    """
    require("mpi4py", extra="mpi", purpose="backend 'mpi'")
    require("cloudpickle", extra="mpi", purpose="backend 'mpi'")
    check_outermost()
    if inside_job():
        if hosts:
            raise ArgumentError(
                f"hosts={[str(host) for host in hosts]} comes too late: mpiexec has already "
                "started this job; name the hosts to mpiexec, or run the script by itself"
            )
        return join(program, args, settings)
    processes = Processes(settings.size, settings.env, hosts, launcher)
    try:
        return processes.run(program, args, settings)
    finally:
        processes.close()
