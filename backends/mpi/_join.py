"""Taking part in a job that ``mpiexec``, ``mpirun`` or ``srun`` has started."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dectool.backends.mpi._engine import StalledError, Unsettled
from dectool.backends.mpi._execute import Terms, execute
from dectool.backends.mpi._failure import Failure, error_of, failure_of
from dectool.backends.mpi._pack import dumps, unpack_values
from dectool.backends.mpi._variables import mpiexec, told_size
from dectool.communicator import Outcome, Settings
from dectool.errors import ArgumentError, BackendError

if TYPE_CHECKING:
    from mpi4py import MPI


_READING = 1.0
"""Seconds that the launcher gets to read the last words of a job."""


def join(program: Callable[..., Any], args: Sequence[Any], settings: Settings) -> Outcome:
    """Run a program on this process as one rank; every rank gets the outcome, or the error.

    Raises:
        BackendError: ``mpiexec`` belongs to another MPI than mpi4py.
        ArgumentError: The job has another number of processes.
        Exception: What the program raised on the lowest rank that failed.
    """
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if told_size() > 1 and world.size == 1:
        raise BackendError(
            f"the launcher started {told_size()} processes, but MPI sees one: it belongs to "
            f"another MPI than mpi4py. Use {mpiexec()}"
        )
    if settings.size != world.size:
        raise ArgumentError(
            f"n={settings.size}, but this job has {world.size} "
            f"process{'es' if world.size > 1 else ''}; start it with mpiexec -n {settings.size}, "
            f"or ask for n={world.size}"
        )
    os.environ.update(settings.env)
    own = world.Dup()
    mine: list[Failure] = []
    try:
        outcome = execute(
            lambda: (program, args, settings),
            Terms(settings.stall_timeout, settings.timeout, settings.local_size),
            own,
            tell=lambda text: print(f"[{world.rank}] {text}", file=sys.stderr, flush=True),
            failed=lambda error: mine.append(failure_of(error)),
        )
    except (Unsettled, StalledError) as error:
        _abort(world, mine, error)
        raise
    own.Free()
    packed = world.allgather((MPI.Get_processor_name(), dumps(mine[0] if mine else None)))
    places = {rank: host for rank, (host, _) in enumerate(packed)}
    found = {rank: pickle.loads(failure) for rank, (_, failure) in enumerate(packed)}
    failure = error_of({rank: each for rank, each in found.items() if each}, world.size, places)
    if failure is not None:
        raise failure
    # Its observer may hold functions of a script, which plain pickle does not take.
    shared: Outcome = pickle.loads(world.bcast(None if outcome is None else dumps(outcome)))
    return shared._replace(values=unpack_values(shared.values))


def _abort(world: MPI.Intracomm, mine: Sequence[Failure], error: BaseException) -> None:
    """Say what is known on this rank, and end the job: other ranks do not stop by themselves."""
    text = mine[0].text if mine else str(error)
    print(f"[{world.rank}] {text}", file=sys.stderr, flush=True)
    # The launcher passes on what was printed, but drops what it has not read when the job ends.
    time.sleep(_READING)
    world.Abort(1)
