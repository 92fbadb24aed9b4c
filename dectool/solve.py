"""Solving a problem with an algorithm: the other way in, beside ``run``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._progress import progress_bar
from dectool._text import nearest
from dectool.algorithms import Algorithm, State, check_needs
from dectool.cluster import TIMEOUT, Cluster
from dectool.communicator import Communicator, Observation
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.history import History
from dectool.metrics import COLUMNS, measure
from dectool.problems import DataProblem, Problem
from dectool.run import start as start_run
from dectool.topology import Schedule, Topology, as_schedule

if TYPE_CHECKING:
    from dectool.sim import ComputeModel, NetworkModel

Stop = Mapping[str, float] | Callable[[dict[str, float]], bool]
"""When to stop early: limits by metric, all of which must be met, or a function of a record."""


def solve(
    algorithm: Algorithm,
    problem: Problem,
    *,
    topology: Topology | Schedule,
    steps: int,
    backend: str | Cluster = "stacked",
    network: NetworkModel | None = None,
    compute: ComputeModel | None = None,
    seed: int = 0,
    x0: Any = None,
    batch_size: int | None = None,
    record_every: int = 1,
    stop: Stop | None = None,
    check: bool = True,
    progress: bool | None = None,
    resume: History | None = None,
    ranks_per_node: int | None = None,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
) -> History:
    r"""Run an algorithm on a problem and record what it does.

    Args:
        algorithm: What to run, such as ``algorithms.EXTRA(lr=0.1)``.
        problem: Minimise :math:`f(x) = \frac1n \sum_i f_i(x)`, rank i knowing :math:`f_i`.
        topology: Who talks to whom: a topology, or a schedule that gives one for each step.
        steps: Steps from the start.
        backend: "stacked" (fast, synchronous), "sim" (discrete-event simulation), "mpi" (real
            processes), or an open :class:`dectool.Cluster`.
        network: When messages arrive; default: at once (not for "mpi", whose network is real).
        compute: How long a gradient takes; default: no time.
        seed: Seed of everything random.
        x0: Starting points, shape ``(n, *shape)``, or ``shape`` for all ranks the same; default:
            those of the problem (zeros, mostly).
        batch_size: Samples of each stochastic gradient; default: the whole shard. A minibatch is
            drawn from (seed, rank, number of the gradient).
        record_every: Steps between records; the first and the last step are always recorded.
        stop: Stop at the first record that meets this: ``{"gap": 1e-6}`` (every named metric at
            most its limit), or a function of the record.
        check: Whether to refuse a topology that breaks what the algorithm's theory needs.
        progress: Whether to show a progress bar; default: on an interactive terminal.
        resume: A history of the same algorithm to go on from; ``steps`` still counts from the
            very start. Iterates go on bit for bit; clocks go on together from the last record.
        ranks_per_node: Ranks on each node; see :func:`dectool.run`.
        timeout: Real seconds that a rank may wait before that is an error ("mpi").
        env: Further environment variables of the processes ("mpi" only).

    Returns:
        Metrics of each recorded step, the final state, and what was run. If iterates stop being
        finite, the history ends there with status "diverged", and a warning says at which rank.

    Raises:
        ArgumentError: An argument breaks a rule, or does not fit another.
        TopologyError: The topology breaks what the algorithm needs.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0]], b=[[2.0], [2.0]])
        >>> h = dectool.solve(algorithms.ATCGradientTracking(lr=0.2), q,
        ...                   topology=topology.ring(2), steps=100, stop={"gap": 1e-12})
        >>> h.status, round(float(h.x[0, 0]), 5)
        ('stopped', 1.0)
    """
    schedule = _checked(algorithm, problem, topology, steps, record_every, batch_size)
    if resume is not None:
        _check_resumable(algorithm, problem, steps, x0, resume)
    if check:
        check_needs(algorithm.name, algorithm.needs, schedule)
    start = _starting_points(problem, x0) if resume is None else resume.x0
    drawn = 0 if resume is None else resume.about["gradients"]
    recorder = _Recorder(problem, steps, record_every, stop_rule(stop), resume)
    flat = start.reshape(problem.size, problem.dim)

    def program(comm: Communicator) -> None:
        gradient = _Gradient(comm, problem, batch_size, drawn)
        comm.topology = schedule.at(recorder.first)
        if resume is None:
            state = algorithm.at(0).init(comm, flat[comm.rank], gradient)
            comm._observe(0, (state, gradient.number))
        else:
            state = State(
                **{
                    name: value[comm.rank] if isinstance(value, np.ndarray) else value
                    for name, value in resume.state.items()
                }
            )
        for k in range(recorder.first, steps):
            comm.topology = schedule.at(k)
            state = algorithm.at(k).step(comm, state, gradient)
            if (k + 1) % record_every == 0 or k + 1 == steps:
                comm._observe(k + 1, (state, gradient.number))

    # Iterates that overflow are reported once, as a divergence.
    quiet = np.errstate(over="ignore", invalid="ignore")
    with progress_bar(progress, algorithm.name, steps) as recorder.advance, quiet:
        outcome = start_run(
            program,
            problem.size,
            backend=backend,
            topology=schedule,
            network=network,
            compute=compute,
            seed=seed,
            ranks_per_node=ranks_per_node,
            timeout=timeout,
            env=env,
            observer=recorder,
        )
    # A real backend recorded in the process of rank 0 and hands back what it has there.
    assert isinstance(outcome.observer, _Recorder)
    recorder = outcome.observer
    recorder.warn(algorithm.name)
    about = {
        "algorithm": algorithm.name,
        "parameters": algorithm.parameters(),
        "problem": problem.name,
        "topology": schedule.name,
        "size": problem.size,
        "backend": backend.backend if isinstance(backend, Cluster) else backend,
        "network": repr(network),
        "compute": repr(compute),
        "seed": int(seed),
        "batch_size": None if batch_size is None else int(batch_size),
        "gradients": recorder.gradients,
    }
    return History(recorder.columns(), recorder.state, start, recorder.status, about)


class _Gradient:
    """The local gradient as an algorithm calls it, with its modelled time."""

    def __init__(
        self, comm: Communicator, problem: Problem, batch_size: int | None, first: int
    ) -> None:
        self._comm = comm
        self._problem = problem
        self._batch_size = batch_size
        self._flat = len(problem.shape) == 1
        self.number = first

    def __call__(self, x: Any) -> Any:
        with self._comm.computing():
            point = x if self._flat else x.reshape((*x.shape[:-1], *self._problem.shape))
            if self._batch_size is None:
                g = self._problem.grad(point, self._comm.rank)
            else:
                rng = self._comm.rng("minibatch", self.number)
                assert isinstance(self._problem, DataProblem)
                g = self._problem.sample_grad(point, self._comm.rank, rng, self._batch_size)
        self.number += 1
        return g if self._flat else g.reshape(x.shape)


class _Recorder:
    """Collects the metrics of recorded steps, and ends the run when it should end."""

    def __init__(
        self,
        problem: Problem,
        steps: int,
        record_every: int,
        stop: Callable[[dict[str, float]], bool] | None,
        resume: History | None,
    ) -> None:
        self._problem = problem
        self._stop = stop
        self.live = stop is not None
        self._records: list[dict[str, float]] = []
        self._before = resume
        self._offset = dict.fromkeys(("time", "bytes", "messages"), 0.0)
        if resume is not None:
            self._offset = {name: resume.last[name] for name in self._offset}
        self._previous = None if resume is None else _flat_iterates(resume)
        self.first = 0 if resume is None else resume.step
        self.advance: Callable[[int], None] = _unseen
        self.state: dict[str, Any] = {} if resume is None else dict(resume.state)
        self.gradients: int = 0 if resume is None else resume.about["gradients"]
        self.status = "completed"
        self._where = ""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the progress bar behind when a recorder goes to another process."""
        return {**self.__dict__, "advance": _unseen}

    def collect(self, observation: Observation) -> bool:
        """Measure one step; tell whether the run is to end."""
        self.state, self.gradients = _gathered(observation)
        X = np.asarray(self.state["x"], np.float64)
        record: dict[str, float] = {
            "step": observation.step,
            "time": observation.time + self._offset["time"],
            "bytes": observation.bytes + int(self._offset["bytes"]),
            "messages": observation.messages + int(self._offset["messages"]),
        }
        finite = np.isfinite(X).all(axis=1)
        record.update(measure(self._problem, X, self._previous))
        self._previous = X
        self._records.append(record)
        self.advance(observation.step)
        if not finite.all():
            self.status = "diverged"
            self._where = f"x of rank {int(np.argmin(finite))} at step {observation.step}"
            return True
        if self._stop is not None and self._stop(record):
            self.status = "stopped"
            return True
        return False

    def columns(self) -> dict[str, Any]:
        """Return the records by column, those of a resumed history first."""
        columns = {name: np.array([r[name] for r in self._records]) for name in COLUMNS}
        if self._before is None:
            return columns
        before = self._before.records
        if not self._records:
            return dict(before)
        return {name: np.concatenate([before[name], columns[name]]) for name in COLUMNS}

    def warn(self, name: str) -> None:
        """Say where iterates stopped being finite, if they did."""
        if self.status == "diverged":
            warnings.warn(
                f"{name} diverged: {self._where} is not finite; use a smaller lr",
                RuntimeWarning,
                stacklevel=3,
            )


def _unseen(step: int) -> None:
    del step


def _flat_iterates(history: History) -> np.ndarray[Any, Any]:
    return np.asarray(history.state["x"], np.float64)


def _gathered(observation: Observation) -> tuple[dict[str, Any], int]:
    """Return the state with the rank axis in front, and how many gradients each rank took."""
    if observation.stacked:
        state, gradients = observation.values
        return dict(state), gradients
    states, counts = zip(*observation.values, strict=True)
    stacked = {
        name: np.stack([state[name] for state in states])
        if isinstance(value, np.ndarray)
        else value
        for name, value in states[0].items()
    }
    return stacked, counts[0]


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
    steps: int,
    record_every: int,
    batch_size: int | None,
) -> Schedule:
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
        if not isinstance(problem, DataProblem):
            raise ArgumentError(
                f"batch_size={batch_size}, but {problem.name} has no samples to draw; leave it out"
            )
        whole.append(("batch_size", batch_size, 1))
    for name, value, least in whole:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ArgumentError(f"{name}={value!r} must be an integer, at least {least}")


def _check_resumable(
    algorithm: Algorithm, problem: Problem, steps: int, x0: Any, resume: Any
) -> None:
    if not isinstance(resume, History):
        raise ArgumentTypeError(
            f"resume is a {type(resume).__name__}; give a History, such as History.load('out.npz')"
        )
    if x0 is not None:
        raise ArgumentError("x0 and resume are both given; a history has its own start: omit x0")
    if resume.about["algorithm"] != algorithm.name:
        raise ArgumentError(
            f"resume is a history of {resume.about['algorithm']}, not of {algorithm.name}; "
            "go on with the same algorithm"
        )
    if resume.x0.shape != (problem.size, *problem.shape):
        raise ArgumentError(
            f"resume has iterates of shape {resume.x0.shape}, but the problem's are "
            f"{(problem.size, *problem.shape)}; go on with the same problem"
        )
    if steps < resume.step:
        raise ArgumentError(
            f"steps={steps}, but resume is at step {resume.step} already; steps counts from the "
            "very start"
        )
