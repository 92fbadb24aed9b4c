"""Solving a problem with an algorithm: the other way in, beside ``run``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._checkpoint import checked_checkpoint, checked_resume
from dectool._oracle import Oracle, check_oracle
from dectool._pace import by_steps, by_time, check_pace, checked_duration
from dectool._progress import progress_bar
from dectool._recorder import Recorder
from dectool._text import nearest
from dectool.cluster import TIMEOUT, Cluster
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, ArgumentTypeError, UnsupportedOperation
from dectool.history import History
from dectool.metrics import COLUMNS
from dectool.problems import DataProblem, Problem
from dectool.run import DETECTION, start as start_run
from dectool.topology import Schedule, Topology, as_schedule

if TYPE_CHECKING:
    from dectool.algorithms import Algorithm, State
    from dectool.sim import ComputeModel, Fault, NetworkModel

Stop = Mapping[str, float] | Callable[[dict[str, float]], bool]
"""When to stop early: limits by metric, all of which must be met, or a function of a record."""


def solve(
    algorithm: Algorithm,
    problem: Problem,
    *,
    topology: Topology | Schedule,
    steps: int | None = None,
    duration: float | None = None,
    backend: str | Cluster = "stacked",
    network: NetworkModel | None = None,
    compute: ComputeModel | None = None,
    faults: Sequence[Fault] = (),
    detection: float = DETECTION,
    missing: str = "error",
    seed: int = 0,
    x0: Any = None,
    batch_size: int | None = None,
    record_every: int | None = None,
    record_interval: float | None = None,
    stop: Stop | None = None,
    check: bool = True,
    progress: bool | None = None,
    resume: History | str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    ranks_per_node: int | None = None,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
    hosts: Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
) -> History:
    r"""Run an algorithm on a problem and record what it does.

    Args:
        algorithm: What to run, such as ``algorithms.EXTRA(lr=0.1)``.
        problem: Minimise :math:`f(x) = \frac1n \sum_i f_i(x)`, rank i knowing :math:`f_i`.
        topology: Who talks to whom: a topology, or a schedule that gives one for each step.
        steps: Steps from the start, of each rank.
        duration: Seconds to run for, in place of ``steps``, for algorithms whose ranks wait for
            nobody: each takes as many steps as it can. Virtual time in a simulation, real time on
            "mpi".
        backend: "stacked" (fast, synchronous), "sim" (discrete-event simulation), "mpi" (real
            processes), or an open :class:`dectool.Cluster`.
        network: When messages arrive; default: at once (not for "mpi", whose network is real).
        compute: How long a gradient takes, or a proximal point; default: no time.
        faults: What goes wrong ("sim" only); see :func:`dectool.run`. Metrics are those of the
            ranks that are left, against their own optimum. A rank that comes back starts from its
            first point, and takes part from the next step that nobody has begun.
        detection: Seconds after which a rank notices that what it waits for will never come.
        missing: What neighbour averages do then: "error", "renormalize" or "self".
        seed: Seed of everything random.
        x0: Starting points, shape ``(n, *shape)``, or ``shape`` for all ranks the same; default:
            those of the problem (zeros, mostly).
        batch_size: Samples of each stochastic gradient; default: the whole shard. A minibatch is
            drawn from (seed, rank, number of the gradient).
        record_every: Steps between records, default 1; the first and the last step are always
            recorded.
        record_interval: With ``duration``, the seconds between records; default: a hundredth of
            it. A record is of the states that the ranks have at its time, and the number of the
            record is its "step".
        stop: Stop at the first record that meets this: ``{"gap": 1e-6}`` (every named metric at
            most its limit), or a function of the record.
        check: Whether to refuse a topology, or local functions, that break what the algorithm's
            theory needs.
        progress: Whether to show a progress bar; default: on an interactive terminal.
        resume: What to go on from: a history of the same algorithm and problem, or the path of a
            saved one, of a checkpoint, say; ``steps`` still counts from the very start. Iterates
            go on bit for bit, on any backend; clocks go on together from the last record.
        checkpoint: A file to which state and records are written while the run goes on, so that
            one that was killed can be resumed; in a folder, ``checkpoint.npz``. The file is
            replaced as a whole, and read like any history; its status is "unfinished", until the
            last write, at the end. A run that diverges leaves its last finite checkpoint.
        checkpoint_every: Steps between checkpoints, a multiple of ``record_every``.
        ranks_per_node: Ranks on each node; see :func:`dectool.run`.
        timeout: Real seconds that a rank may wait before that is an error ("mpi").
        env: Further environment variables of the processes ("mpi" only).
        hosts: Machines on which the processes run ("mpi" only); see :func:`dectool.run`.
        launcher: The command that reaches hosts; see :func:`dectool.run`.

    Returns:
        Metrics of each recorded step, the final state, and what was run. If iterates stop being
        finite, the history ends there with status "diverged", and a warning says at which rank.

    Raises:
        ArgumentError: An argument breaks a rule, or does not fit another; or the algorithm asks
            more of the local functions than the problem can answer.
        TopologyError: The topology breaks what the algorithm needs.
        UnsupportedOperation: The algorithm is asynchronous, and cannot run on "stacked", or not
            be resumed.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0]], b=[[2.0], [2.0]])
        >>> h = dectool.solve(algorithms.ATCGradientTracking(lr=0.2), q,
        ...                   topology=topology.ring(2), steps=100, stop={"gap": 1e-12})
        >>> h.status, round(float(h.x[0, 0]), 5)
        ('stopped', 1.0)
    """
    from dectool.algorithms import State, check_needs

    counted = {"record_every": record_every, "resume": resume, "checkpoint": checkpoint}
    limit = checked_duration(algorithm, steps, duration, record_interval, counted)
    steps = steps if limit is None else limit.records
    record_every = 1 if record_every is None else record_every
    schedule = _checked(algorithm, problem, topology, steps, record_every, batch_size)
    assert steps is not None
    history = checked_resume(resume, algorithm, problem, steps, x0)
    target = checked_checkpoint(checkpoint, checkpoint_every, record_every)
    check_pace(algorithm, backend, resume, checkpoint)
    if check:
        check_needs(algorithm.name, algorithm.needs, schedule)
    check_oracle(algorithm, problem, batch_size, check)
    start = _starting_points(problem, x0) if history is None else history.x0
    flat = start.reshape(problem.size, problem.dim)
    about = {
        "algorithm": algorithm.name,
        "parameters": algorithm.parameters(),
        "problem": problem.name,
        "topology": schedule.name,
        "size": problem.size,
        "backend": backend.backend if isinstance(backend, Cluster) else backend,
        "network": repr(network),
        "compute": repr(compute),
        "seed": _plain(seed),
        "batch_size": _plain(batch_size),
    }
    if limit is not None:
        about |= {"duration": duration, "record_interval": limit.interval}
    if faults:
        _check_faulty(resume, checkpoint)
        about |= {"faults": repr(list(faults)), "detection": detection, "missing": missing}
    recorder = Recorder(
        problem,
        steps,
        flat,
        about,
        stop=stop_rule(stop),
        resume=history,
        checkpoint=target,
        interval=None if limit is None else limit.interval,
    )
    drawn = recorder.gradients

    def program(comm: Communicator) -> None:
        gradient = Oracle(comm, problem, batch_size, drawn)
        comm.topology = schedule.at(recorder.first)
        if history is None:
            state = algorithm.at(0).init(comm, flat[comm.rank], gradient)
        else:
            state = State(
                **{
                    name: value[comm.rank] if isinstance(value, np.ndarray) else value
                    for name, value in history.state.items()
                }
            )

        def step(k: int, state: State) -> State:
            comm.topology = schedule.at(k)
            return algorithm.at(k).step(comm, state, gradient)

        def observe(k: int, state: State) -> None:
            comm._observe(k, (state, gradient.number))

        if limit is None:
            by_steps(
                comm,
                step,
                observe,
                state,
                first=recorder.first,
                stop=steps,
                record_every=record_every,
                fresh=history is None,
            )
        else:
            by_time(comm, step, observe, state, limit)

    # Iterates that overflow are reported once, as a divergence.
    unit = "steps" if limit is None else "records"
    quiet = np.errstate(over="ignore", invalid="ignore")
    with progress_bar(progress, algorithm.name, steps, unit) as recorder.advance, quiet:
        outcome = start_run(
            program,
            problem.size,
            backend=backend,
            topology=schedule,
            network=network,
            compute=compute,
            faults=faults,
            detection=detection,
            missing=missing,
            seed=seed,
            ranks_per_node=ranks_per_node,
            timeout=timeout,
            env=env,
            hosts=hosts,
            launcher=launcher,
            observer=recorder,
        )
    # A real backend recorded in the process of rank 0 and hands back what it has there.
    assert isinstance(outcome.observer, Recorder)
    outcome.observer.faults = outcome.faults
    return outcome.observer.history()


def _check_faulty(resume: Any, checkpoint: Any) -> None:
    """Refuse to go on from where ranks are missing, or to write that down.

    Raises:
        UnsupportedOperation: ``resume`` or ``checkpoint`` is given.
    """
    for name, value in (("resume", resume), ("checkpoint", checkpoint)):
        if value is not None:
            raise UnsupportedOperation(
                f"{name}= with faults=: which ranks are left, and when the others fail, is not "
                f"written down; leave {name} out"
            )


def _plain(number: Any) -> Any:
    """Return a Python number for one of NumPy, so that it can be written as JSON."""
    return number.item() if isinstance(number, np.generic) else number


def stop_rule(stop: Any) -> Callable[[dict[str, float]], bool] | None:
    """Return what tells from a record whether to stop.

    Raises:
        ArgumentError: It names no metric.
        ArgumentTypeError: It is neither limits by metric nor a function.
    """
    if stop is None:
        return None
    if callable(stop):
        return lambda record: bool(stop(record))
    if not isinstance(stop, Mapping) or not stop:
        raise ArgumentTypeError(
            f"stop is {stop!r}; give limits by metric, such as {{'gap': 1e-6}}, or a function of "
            "a record"
        )
    limits = dict(stop)
    for name, limit in limits.items():
        if name not in COLUMNS:
            raise ArgumentError(
                f"stop names {name!r}, which is no metric; {nearest(str(name), COLUMNS)}"
            )
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or math.isnan(limit):
            raise ArgumentTypeError(f"stop[{name!r}] is {limit!r}; it must be a number")
    return lambda record: all(record[name] <= limit for name, limit in limits.items())


def _starting_points(problem: Problem, x0: Any) -> np.ndarray[Any, Any]:
    if x0 is None:
        return np.asarray(problem.initial(np.arange(problem.size)))
    points = np.array(x0, dtype=np.float64 if np.asarray(x0).dtype.kind in "iub" else None)
    shape = (problem.size, *problem.shape)
    if points.shape == problem.shape:
        points = np.broadcast_to(points, shape).copy()
    if points.shape != shape:
        raise ArgumentError(
            f"x0 has shape {points.shape}; give {shape} (one point for each rank), or "
            f"{problem.shape} (the same for all)"
        )
    if points.dtype.kind != "f" or not np.isfinite(points).all():
        raise ArgumentError(f"x0 (dtype {points.dtype}) must hold finite real numbers")
    return points


def _checked(
    algorithm: Any,
    problem: Any,
    topology: Any,
    steps: int | None,
    record_every: int,
    batch_size: int | None,
) -> Schedule:
    from dectool.algorithms import Algorithm

    if not isinstance(algorithm, Algorithm):
        hint = "make an instance, such as algorithms.EXTRA(lr=0.1)"
        raise ArgumentTypeError(f"algorithm is {algorithm!r}; {hint}")
    if not isinstance(problem, Problem):
        raise ArgumentTypeError(
            f"problem is a {type(problem).__name__}; give one of dectool.problems, or a subclass "
            "of problems.Problem"
        )
    schedule = as_schedule(topology)
    if schedule.size != problem.size:
        raise ArgumentError(
            f"topology is a {schedule.name} with {schedule.size} ranks, but the problem has "
            f"{problem.size}; build both for the same number"
        )
    check_numbers(problem, steps, record_every, batch_size)
    return schedule


def check_numbers(problem: Problem, steps: Any, record_every: Any, batch_size: Any) -> None:
    """Refuse what is no number of steps, of steps between records, or of samples.

    Raises:
        ArgumentError: Names the argument, its value and the rule.
    """
    whole = [("steps", steps, 0), ("record_every", record_every, 1)]
    if batch_size is not None:
        if not isinstance(problem.smooth, DataProblem):
            raise ArgumentError(
                f"batch_size={batch_size}, but {problem.name} has no samples to draw; leave it out"
            )
        whole.append(("batch_size", batch_size, 1))
    for name, value, least in whole:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ArgumentError(f"{name}={value!r} must be an integer, at least {least}")
