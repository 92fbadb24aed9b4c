"""How a solver's ranks go on: so many steps each, or until a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dectool.communicator import Communicator
from dectool.errors import ArgumentError, ArgumentTypeError, LivelockError, UnsupportedOperation

if TYPE_CHECKING:
    from dectool.algorithms import Algorithm, State

Step = Callable[[int, "State"], "State"]
Observe = Callable[[int, "State"], None]

_MOST_AT_ONE_TIME = 10_000
_RECORDS = 100


@dataclass(frozen=True)
class Duration:
    """Run until a time, and record at equal intervals.

    Args:
        interval: Seconds between records.
        records: How many intervals.
    """

    interval: float
    records: int


def by_steps(
    comm: Communicator,
    step: Step,
    observe: Observe,
    state: State,
    *,
    first: int,
    stop: int,
    record_every: int,
    fresh: bool,
) -> None:
    """Do steps ``first`` to ``stop``; show the state after every so many, and a fresh one first."""
    begun = comm._enter(first)
    if fresh and begun == 0:
        observe(0, state)
    for k in range(begun, stop):
        if k > begun:
            comm._enter(k)
        state = step(k, state)
        if (k + 1) % record_every == 0 or k + 1 == stop:
            observe(k + 1, state)


def by_time(
    comm: Communicator, step: Step, observe: Observe, state: State, duration: Duration
) -> None:
    """Do steps until the time is over; show, at each interval, the state after the last step.

    Raises:
        LivelockError: Steps take no time, so that it is never over.
    """
    observe(0, state)
    due, k, still = 1, 0, 0
    time = comm.now()
    while due <= duration.records:
        later = step(k, state)
        k, before, time = k + 1, time, comm.now()
        while due <= duration.records and due * duration.interval < time:
            observe(due, state)
            due += 1
        state = later
        still = still + 1 if time == before else 0
        if still > _MOST_AT_ONE_TIME:
            raise LivelockError(
                f"rank {comm.rank} took {still} steps at t = {time:.9g} s: without compute= or "
                "network= steps take no time, and duration= is never over"
            )


def checked_duration(
    algorithm: Any, steps: Any, duration: Any, interval: Any, others: Mapping[str, Any]
) -> Duration | None:
    """Return until when to run, or ``None`` where steps are counted.

    Args:
        algorithm: What is run; checked later, whether it is one.
        steps: As given to ``solve``, and so is what follows.
        duration: In seconds.
        interval: In seconds.
        others: What counts steps, by name; must have been left out with a duration.

    Raises:
        ArgumentError: Not one of steps and duration, or what does not go with it.
    """
    from dectool.algorithms import Algorithm

    if (steps is None) == (duration is None):
        raise ArgumentError(
            f"steps={steps} and duration={duration}: give one, steps=500 or (where ranks "
            "wait for nobody) duration=10.0 seconds"
        )
    if duration is None:
        if interval is not None:
            raise ArgumentError(
                f"record_interval={interval} goes with duration=; with steps= give record_every="
            )
        return None
    if not isinstance(algorithm, Algorithm):
        return None
    if algorithm.waits:
        raise ArgumentError(
            f"duration={duration}: the ranks of {algorithm.name} wait for each other's steps, so "
            "all must take equally many; give steps="
        )
    for name, value in others.items():
        if value is not None:
            raise ArgumentError(f"{name}={value!r} counts steps, and does not go with duration=")
    seconds = _seconds("duration", duration)
    each = seconds / _RECORDS if interval is None else _seconds("record_interval", interval)
    if each > seconds:
        raise ArgumentError(f"record_interval={interval} is longer than duration={duration}")
    return Duration(each, math.floor(seconds / each + 1e-9))


def check_pace(algorithm: Algorithm, backend: Any, resume: Any, checkpoint: Any) -> None:
    """Refuse what an asynchronous algorithm cannot do.

    Raises:
        UnsupportedOperation: The backend moves all ranks in step, or the state is to be written
            down, or gone on from, of which a part is in windows.
    """
    name = algorithm.name
    if algorithm.asynchronous and backend == "stacked":
        raise UnsupportedOperation(
            f"{name} is asynchronous, and backend='stacked' moves all ranks in step; use "
            "backend='sim' or 'mpi'"
        )
    for argument, value in (("resume", resume), ("checkpoint", checkpoint)):
        if value is not None and not algorithm.resumable:
            raise UnsupportedOperation(
                f"{argument}= with {name}: what is in its windows and on its way is not written "
                f"down; leave {argument} out"
            )


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise ArgumentTypeError(f"{name} is {value!r}; give a number of seconds")
    if not 0.0 < float(value) < math.inf:
        raise ArgumentError(f"{name}={value} must be finite and above 0 seconds")
    return float(value)
