"""Comparing algorithms: many solves over processes, one table."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool._progress import progress_bar
from dectool._text import nearest
from dectool.comparison import Comparison as Comparison, Run
from dectool.errors import ArgumentError, ArgumentTypeError, BackendError, DectoolError
from dectool.metrics import COLUMNS
from dectool.problems import Problem
from dectool.run import BACKENDS, DETECTION, checked_faults
from dectool.solve import Stop, check_numbers, solve, stop_rule
from dectool.topology import Schedule, Topology

if TYPE_CHECKING:
    from dectool.algorithms import Algorithm
    from dectool.sim import ComputeModel, Fault, NetworkModel

Graph = Topology | Schedule


def compare(
    algorithms: Mapping[str, Algorithm] | Sequence[Algorithm],
    problem: Problem | Callable[[int], Problem],
    *,
    topologies: Mapping[str, Graph] | Sequence[Graph],
    steps: int,
    networks: Mapping[str, NetworkModel | None] | Sequence[NetworkModel | None] = (None,),
    computes: Mapping[str, ComputeModel | None] | Sequence[ComputeModel | None] = (None,),
    seeds: Sequence[int] = (0,),
    faults: Sequence[Fault] = (),
    detection: float = DETECTION,
    missing: str = "error",
    backend: str = "stacked",
    tolerance: Mapping[str, float] | None = None,
    stop: Stop | None = None,
    batch_size: int | None = None,
    record_every: int = 1,
    check: bool = True,
    ranks_per_node: int = 1,
    processes: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Solve with every combination of algorithm, topology, network, compute model and seed.

    A combination that is refused, since the topology breaks what the algorithm needs, say, is a
    row with the reason. The table does not depend on the number of processes.

    Args:
        algorithms: By name, or a list.
        problem: What to minimise, or a function that makes it for a seed.
        topologies: By name, or a list.
        steps: Steps of each run.
        networks: By name, or a list; default: messages arrive at once.
        computes: By name, or a list; default: gradients take no time.
        seeds: One run for each.
        faults: What goes wrong in every run ("sim" only); see :func:`dectool.solve`.
        detection: Seconds after which a rank notices that what it waits for will never come.
        missing: What neighbour averages do then.
        backend: "stacked" or "sim".
        tolerance: What counts as arrived, every named metric at most its limit; default:
            ``{"gap": 1e-6}``.
        stop: When a run may stop early; default: never.
        batch_size: Samples of each stochastic gradient; default: the whole shard.
        record_every: Steps between records. The tolerance is looked at in records only.
        check: Whether to refuse a topology that breaks what an algorithm's theory needs.
        ranks_per_node: Ranks on each node.
        processes: How many processes to use; 1: this one; default: one per core. With more than
            one, a script must call ``compare`` under ``if __name__ == "__main__":``.
        progress: Whether to show a progress bar; default: on an interactive terminal.

    Returns:
        One row per run; see :class:`dectool.Comparison`.

    Raises:
        ArgumentError: An argument breaks a rule, or cannot be sent to another process.
        BackendError: A process died.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic.random(4, 2, seed=1)
        >>> c = dectool.compare([algorithms.DGD(lr=0.05), algorithms.EXTRA(lr=0.05)], q,
        ...                     topologies={"ring": topology.ring(4)}, steps=500, processes=1)
        >>> [(run.algorithm, run.reached is not None) for run in c]
        [('DGD', False), ('EXTRA', True)]
    """
    limits = {"gap": 1e-6} if tolerance is None else dict(tolerance)
    _check_common(backend, limits, seeds)
    made = _problems(problem, seeds)
    # What is wrong in every combination is an error, not a table of refusals.
    check_numbers(next(iter(made.values())), steps, record_every, batch_size)
    stop_rule(stop)
    sweep = _Sweep(
        algorithms=_named("algorithms", algorithms, lambda a: a.name),
        topologies=_named("topologies", topologies, lambda t: t.name),
        networks=_named("networks", networks, lambda m: "ideal" if m is None else repr(m)),
        computes=_named("computes", computes, lambda m: "none" if m is None else repr(m)),
        problems=made,
        seeds=tuple(int(seed) for seed in seeds),
        tolerance=limits,
        options={
            "steps": steps,
            "faults": checked_faults(faults, backend),
            "detection": detection,
            "missing": missing,
            "backend": backend,
            "stop": stop,
            "batch_size": batch_size,
            "record_every": record_every,
            "check": check,
            "ranks_per_node": ranks_per_node,
        },
    )
    workers = min(_checked_processes(processes), len(sweep))
    runs: dict[int, Run] = {}
    with progress_bar(progress, "compare", len(sweep), unit="runs") as advance:
        for number, run in _in_this_process(sweep) if workers == 1 else _in_pool(sweep, workers):
            runs[number] = run
            advance(len(runs))
    about = {
        "problem": sweep.problems[sweep.seeds[0]].name,
        "backend": backend,
        "steps": int(steps),
        "tolerance": limits,
    }
    return Comparison([runs[number] for number in range(len(sweep))], about)


@dataclass(frozen=True)
class _Sweep:
    """Everything a process needs to run any of the combinations."""

    algorithms: Mapping[str, Algorithm]
    topologies: Mapping[str, Graph]
    networks: Mapping[str, Any]
    computes: Mapping[str, Any]
    problems: Mapping[int, Problem]
    seeds: tuple[int, ...]
    tolerance: Mapping[str, float]
    options: Mapping[str, Any]
    jobs: tuple[tuple[str, str, str, str, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        names = (self.algorithms, self.topologies, self.networks, self.computes, self.seeds)
        object.__setattr__(self, "jobs", tuple(itertools.product(*names)))

    def __len__(self) -> int:
        return len(self.jobs)

    def run(self, number: int) -> Run:
        """Run one combination."""
        algorithm, graph, network, compute, seed = self.jobs[number]
        try:
            with warnings.catch_warnings():
                # The status says that a run diverged.
                warnings.filterwarnings("ignore", ".* diverged", RuntimeWarning)
                history = solve(
                    self.algorithms[algorithm],
                    self.problems[seed],
                    topology=self.topologies[graph],
                    network=self.networks[network],
                    compute=self.computes[compute],
                    seed=seed,
                    progress=False,
                    **self.options,
                )
        except DectoolError as error:
            return Run(*self.jobs[number], status="refused", error=str(error))
        except Exception as error:
            error.add_note(f"in the run of {algorithm} on {graph}, {network}, {compute}, {seed=}")
            raise
        return Run(
            *self.jobs[number],
            status=history.status,
            rate=history.rate(),
            reached=history.first(**self.tolerance),
            records=history.records,
        )


def _in_this_process(sweep: _Sweep) -> Iterator[tuple[int, Run]]:
    return ((number, sweep.run(number)) for number in range(len(sweep)))


def _in_pool(sweep: _Sweep, workers: int) -> Iterator[tuple[int, Run]]:
    """Yield the runs as they finish; a failed one cancels those that wait."""
    from concurrent import futures
    from concurrent.futures.process import BrokenProcessPool

    pool = futures.ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare,
        initargs=(_pickled(sweep),),
    )
    try:
        numbers = {pool.submit(_run, number): number for number in range(len(sweep))}
        for future in futures.as_completed(numbers):
            yield numbers[future], future.result()
    except BrokenProcessPool as error:
        raise BackendError(
            "a process of compare died before it could answer; call compare under "
            'if __name__ == "__main__":, define algorithms and problems in a module that can be '
            "imported, or use processes=1"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_SWEEP: _Sweep | None = None


def _prepare(pickled: bytes) -> None:
    global _SWEEP
    _SWEEP = pickle.loads(pickled)


def _run(number: int) -> Run:
    assert _SWEEP is not None
    return _SWEEP.run(number)


def _pickled(sweep: _Sweep) -> bytes:
    try:
        return pickle.dumps(sweep)
    except Exception as error:
        raise ArgumentError(
            f"{_culprit(sweep)} cannot be sent to another process ({error}); define it at the "
            "top level of a module (no lambda, no local function), or use processes=1"
        ) from error


def _culprit(sweep: _Sweep) -> str:
    kinds = ("algorithms", "topologies", "networks", "computes", "problems")
    parts = [(f"{kind}[{n!r}]", v) for kind in kinds for n, v in getattr(sweep, kind).items()]
    for name, value in [*parts, *sweep.options.items()]:
        try:
            pickle.dumps(value)
        except Exception:
            return name
    return "an argument"


def _named(what: str, given: Any, name: Callable[[Any], str]) -> dict[str, Any]:
    """Return the members by name; members of a list get theirs, or their ``repr`` if it repeats."""
    if isinstance(given, Mapping):
        members = {str(key): value for key, value in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, str):
        members = _by_own_name(what, given, name)
    else:
        raise ArgumentTypeError(
            f"{what} is a {type(given).__name__}; give a list, or a dict of names"
        )
    if not members:
        raise ArgumentError(f"{what} is empty; there is nothing to compare")
    if what == "algorithms":
        from dectool.algorithms import Algorithm

        for key, value in members.items():
            if not isinstance(value, Algorithm):
                raise ArgumentTypeError(
                    f"algorithms[{key!r}] is {value!r}; make an instance, such as "
                    "algorithms.EXTRA(lr=0.1)"
                )
    return members


def _by_own_name(what: str, given: Sequence[Any], name: Callable[[Any], str]) -> dict[str, Any]:
    try:
        short = [name(value) for value in given]
    except AttributeError as error:
        raise ArgumentTypeError(f"{what} holds something else: {error}") from error
    names = [repr(v) if short.count(s) > 1 else s for s, v in zip(short, given, strict=True)]
    if len(set(names)) < len(names):
        raise ArgumentError(f"{what} holds one twice; give a dict of names to tell them apart")
    return dict(zip(names, given, strict=True))


def _problems(problem: Any, seeds: Sequence[int]) -> dict[int, Problem]:
    """Return the problem of each seed, with its optimum computed once for all processes."""
    made = {}
    for seed in seeds:
        one = problem if isinstance(problem, Problem) or not callable(problem) else problem(seed)
        if not isinstance(one, Problem):
            raise ArgumentTypeError(
                f"problem is a {type(one).__name__}; give one of dectool.problems, or a function "
                "that makes one for a seed"
            )
        _ = one.optimum, one.optimal_value
        made[seed] = one
    return made


def _check_common(backend: str, tolerance: Mapping[str, float], seeds: Any) -> None:
    if backend not in BACKENDS:
        raise ArgumentError(f"backend={backend!r} is unknown; {nearest(str(backend), BACKENDS)}")
    for metric in tolerance:
        if metric not in COLUMNS:
            raise ArgumentError(
                f"tolerance names {metric!r}, which is no metric; {nearest(metric, COLUMNS)}"
            )
    if not tolerance:
        raise ArgumentError("tolerance is empty; name a metric, such as {'gap': 1e-6}")
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not seeds:
        raise ArgumentTypeError(f"seeds is {seeds!r}; give a list of seeds, such as range(5)")
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ArgumentError(f"seeds holds {seed!r}; a seed is an integer, at least 0")
    if len(set(seeds)) < len(seeds):
        raise ArgumentError(f"seeds={list(seeds)} holds one twice; give different ones")


def _checked_processes(processes: Any) -> int:
    if processes is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ArgumentError(f"processes={processes!r} must be an integer, at least 1")
    return processes


def _cores() -> int:
    return os.cpu_count() or 1
