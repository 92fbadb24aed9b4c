"""Running a program on this process as one rank of an MPI job."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dectool.backends.mpi._boards import Boards
from dectool.backends.mpi._communicator import MPICommunicator
from dectool.backends.mpi._engine import FAILED, RETURNED, STOPPED, Ended, Engine
from dectool.backends.mpi._halls import Hall, open_hall
from dectool.backends.mpi._objects import post_object, receive_objects
from dectool.backends.mpi._pack import pack_value
from dectool.backends.mpi._records import Record, Records, observation
from dectool.backends.mpi._report import waiting
from dectool.backends.mpi._window_service import WindowService
from dectool.communicator import Outcome, Settings, StopRun
from dectool.errors import BackendError

if TYPE_CHECKING:
    from mpi4py import MPI

Job = Callable[[], tuple[Callable[..., Any], Sequence[Any], Settings]]
"""Returns the program, its arguments and the settings; may fail, on each rank by itself."""

_START = ("start",)
_running = False


def check_outermost() -> None:
    """Refuse a run inside of a program that this backend runs.

    Raises:
        BackendError: This is one.
    """
    if _running:
        raise BackendError(
            "run(backend='mpi') was called by a program that runs on MPI already; use comm.split "
            "for a part of the ranks, or backend='sim' inside"
        )


class Share(NamedTuple):
    """What one rank brings to the outcome of a run; the value is packed."""

    value: bytes
    seconds: float
    messages: int
    bytes: int
    unreceived: Sequence[tuple[int, int, Any]]
    records: Sequence[Record]


class Terms(NamedTuple):
    """What all ranks must know before a job; see :class:`dectool.communicator.Settings`."""

    stall_timeout: float
    timeout: float
    local_size: int | None


def execute(
    job: Job,
    terms: Terms,
    world: MPI.Intracomm,
    *,
    tell: Callable[[str], None],
    failed: Callable[[BaseException], None],
) -> Outcome | None:
    """Run a program as one of the ranks of ``world``, which all call this.

    Args:
        job: Gives what to run.
        terms: How long a rank waits, and how many are on a node.
        world: A communicator of the ranks, on which nobody else sends.
        tell: Prints a report of a stall.
        failed: Takes the error of this rank, or :class:`Ended`, before the others have ended.

    Returns:
        On rank 0 the outcome with packed values; ``None`` on the others, or if a rank failed.

    Raises:
        Unsettled: A rank failed, and others do not stop.
    """
    global _running
    _running = True
    node, found, hall = _ranks_on_node(world)
    engine = Engine(
        world,
        terms.stall_timeout,
        terms.timeout,
        lambda missing, ended: waiting(world.rank, missing, ended),
        tell,
        Boards({rank: number for number, rank in enumerate(node)}),
        hall,
    )
    windows = engine.windows = WindowService(engine, world.Dup())
    local_size = terms.local_size or found
    settings: Settings | None = None
    share: Share | None = None
    try:
        try:
            program, args, settings = job()
            share = _run(program, args, settings, engine, local_size)
            how = RETURNED
        except BaseException as error:
            how = STOPPED if isinstance(error, Ended) else FAILED
            failed(error)
        unreceived = [(source, world.rank, channel) for source, channel in engine.finish(how)]
    finally:
        _running = False
        windows.close(orderly=engine.all_returned)
        engine.boards.close()
        engine.hall = None
    if not engine.all_returned:
        return None
    assert share is not None
    assert settings is not None
    shares = world.gather(share._replace(unreceived=unreceived))
    return None if shares is None else _outcome(shares, settings)


def _run(
    program: Callable[..., Any],
    args: Sequence[Any],
    settings: Settings,
    engine: Engine,
    local_size: int,
) -> Share:
    rank = engine.comm.rank
    records = Records(engine, settings.observer)
    comm = MPICommunicator(
        engine,
        start=time.perf_counter(),
        local_size=local_size,
        seed=settings.seed,
        compute=_compute_times(settings, rank),
        records=records,
    )
    comm._topology, comm._schedule = settings.topology, settings.schedule
    comm._missing = settings.missing
    comm._start = _common_start(engine)
    try:
        value = program(comm, *args)
    except StopRun:
        value = None
    spent = comm.now()
    engine.complete_background()
    if engine.windows is not None:
        engine.windows.drain()
    packed = pack_value(value, rank)
    return Share(packed, spent, engine.messages, engine.bytes, (), records.kept)


def _common_start(engine: Engine) -> float:
    """Wait for all ranks; return a reading of the clock that those of a node share.

    Without a common zero, a message could arrive before it was sent.
    """
    from mpi4py import MPI

    rank, others = engine.comm.rank, range(1, engine.comm.size)
    node = MPI.Get_processor_name()
    mine = (node, time.perf_counter())
    if rank:
        post_object(engine, mine, 0, _START)
        readings = receive_objects(engine, [0], _START)[0]
    else:
        readings = [mine, *receive_objects(engine, others, _START)]
        for other in others:
            post_object(engine, readings, other, _START)
    return float(max(reading for name, reading in readings if name == node))


def _outcome(shares: Sequence[Share], settings: Settings) -> Outcome:
    observer = settings.observer
    if observer is not None and not observer.live:
        for records in zip(*(share.records for share in shares), strict=True):
            if observer.collect(observation(records)):
                break
    return Outcome(
        values=[share.value for share in shares],
        times=[share.seconds for share in shares],
        messages=sum(share.messages for share in shares),
        bytes=sum(share.bytes for share in shares),
        trace=None,
        unreceived=[lost for share in shares for lost in share.unreceived],
        observer=observer,
    )


def _compute_times(settings: Settings, rank: int) -> Callable[[float | None], float] | None:
    """Return what draws this rank's computing times, if the run has a model of them."""
    if settings.compute is None:
        return None
    from dectool.sim.compute import ComputeTimes

    times = ComputeTimes(settings.compute, settings.size, settings.seed)
    numbers = itertools.count()
    return lambda flops: times.one_rank(rank, next(numbers), flops)


def _ranks_on_node(world: MPI.Intracomm) -> tuple[list[int], int, Hall | None]:
    """Return the ranks on this node, how many each node has (1 if they differ), and their hall."""
    from mpi4py import MPI

    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    ranks = node.allgather(world.rank)
    hall = open_hall(node, ranks)
    node.Free()
    sizes = set(world.allgather(len(ranks)))
    return ranks, sizes.pop() if len(sizes) == 1 else 1, hall
