"""What it costs to reach an accuracy on a network: steps, seconds, bytes and messages."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

import numpy as np

from dectool.algorithms import Algorithm
from dectool.communicator._rounds import choose_allreduce
from dectool.errors import ArgumentError, UnsupportedOperation
from dectool.history import History
from dectool.problems import Averaging, Problem, Quadratic
from dectool.solve import solve
from dectool.theory._arguments import need_algorithm, need_problem, real, whole
from dectool.theory._predict import Prediction, predict
from dectool.theory._round_time import ITEM, check_network, rounds_to_time
from dectool.topology import Schedule, Topology, as_schedule

_MARCH = 2**14
_LEAST = 64
_SHARE = 16
_Record = dict[str, float]
Source = Literal["predicted", "measured", "extrapolated"]


@final
@dataclass(frozen=True, eq=False)
class Cost:
    """What :func:`cost_to_accuracy` returns; of several, the least in seconds is the smallest.

    Attributes:
        algorithm: What runs.
        topology: Name of the topology.
        eps: The accuracy.
        steps: Steps of each rank until then; infinite where it is never reached.
        seconds: Virtual seconds until the last rank is there.
        bytes: Payload bytes that a rank sends until then, mean over ranks.
        messages: Messages that a rank sends until then, mean over ranks.
        source: Where the steps are from: "predicted" (every iterate is known), "measured" (a
            run), or "extrapolated" (a run, and from its end on the predicted rate).
        reason: Why the accuracy is never reached, else empty.
    """

    algorithm: Algorithm
    topology: str
    eps: float
    steps: float
    seconds: float
    bytes: float
    messages: float
    source: Source
    reason: str = ""

    @property
    def seconds_per_step(self) -> float:
        """Seconds of a step, on average over all steps; NaN where there are none, or no end."""
        return self.seconds / self.steps if 0 < self.steps < math.inf else math.nan

    def __lt__(self, other: Cost) -> bool:
        """Whether this one takes less time; at equal times, fewer bytes."""
        return (self.seconds, self.bytes) < (other.seconds, other.bytes)

    def __repr__(self) -> str:
        head = f"<Cost of {self.algorithm.name} on {self.topology} to {self.eps:g}"
        if self.reason:
            return f"{head}: never, {self.reason}>"
        return (
            f"{head}: {self.steps:.0f} steps ({self.source}), {self.seconds:.6g} s, "
            f"{self.bytes:.6g} bytes and {self.messages:.6g} messages per rank>"
        )


def cost_to_accuracy(
    algorithm: Algorithm,
    topology: Topology | Schedule,
    network: Any,
    problem: Problem | None = None,
    *,
    eps: float = 1e-6,
    compute: Any = None,
    nbytes: int | None = None,
    x0: Any = None,
    most: int = 20_000,
    seed: int = 0,
) -> Cost:
    r"""Return what it costs until the iterates are within eps of the optimum.

    .. math:: \|X^k - 1 x^{*\top}\|_F \le \varepsilon \|X^0 - 1 x^{*\top}\|_F

    Steps come from :func:`dectool.theory.predict` where it knows every iterate, and else from a
    run. Seconds, bytes and messages come from a run of the first steps on the network, in
    virtual time, with what overlaps overlapping: longer ones go on at the pace that ranks have by
    then.

    Args:
        algorithm: What to run.
        topology: A topology, or a schedule.
        network: A network model of :mod:`dectool.sim`.
        problem: n local functions; default, for algorithms that only average: every start at
            once, ``Averaging`` of the identity matrix.
        eps: Accuracy relative to the start, above 0, below 1.
        compute: How long a gradient takes, a model of :mod:`dectool.sim`; default: no time.
        nbytes: Bytes of x if it stands for a larger model than the problem has; then all messages
            grow in proportion, compressed ones too, if the problem has more variables than ranks.
        x0: Starting points, as for :func:`dectool.solve`.
        most: Steps of a run that is to reach the accuracy, where no prediction does without. Where
            it ends too early, a predicted rate says how long it would have taken.
        seed: Seed of everything random in a run.

    Raises:
        ArgumentError: ``problem`` is missing, a number is out of range, or as for
            :func:`dectool.solve`.
        ArgumentTypeError: The algorithm, the problem or the network is none.
        TopologyError: The topology breaks what the algorithm needs.

    Example:
        >>> from dectool import algorithms, sim, topology
        >>> net = sim.AlphaBeta(latency=1e-5, bandwidth=1.25e9)
        >>> graphs = topology.ring(8), topology.one_peer_exponential(8), topology.complete(8)
        >>> for cost in sorted(cost_to_accuracy(algorithms.Gossip(), graph, net, nbytes=10**8)
        ...                    for graph in graphs):
        ...     print(cost)
        <Cost of Gossip on one-peer exponential graph of 8 to 1e-06: 3 steps (predicted), ...
        <Cost of Gossip on complete graph of 8 to 1e-06: 1 steps (predicted), 0.56001 s, ...
        <Cost of Gossip on ring of 8 to 1e-06: 61 steps (predicted), 9.76061 s, ...
    """
    need_algorithm(algorithm)
    if problem is not None:
        need_problem(problem)
    check_network(network)
    eps = real("eps", eps)
    if not 0.0 < eps < 1.0:
        raise ArgumentError(f"eps={eps} must be above 0 and below 1")
    most = whole("most", most, 1)
    graph = as_schedule(topology)
    task = _problem(algorithm, problem, graph)
    if nbytes is not None:
        nbytes = whole("nbytes", nbytes, 1)
        algorithm = _as_if_large(algorithm, nbytes, graph.size)
    runs = _Runs(algorithm, graph, network, compute, seed, nbytes)
    try:
        prediction = predict(algorithm, task, graph, x0)
    except ArgumentError:
        # Randomness, clocks or compression: there is nothing but to run it.
        prediction = None
    never = partial(Cost, algorithm, graph.name, eps, *(math.inf,) * 4)
    rounds = rounds_to_time(graph, least=_LEAST, period=algorithm.period)
    if prediction is not None:
        if reason := _never(prediction, eps):
            return never("predicted", reason)
        if prediction.exact:
            steps = _march(prediction, eps)
            history = runs.alike(task, min(steps, 2 * rounds))
            return Cost(
                algorithm, graph.name, eps, steps, *runs.spent(steps, history, rounds), "predicted"
            )
    history = runs.made(task, most, x0, _within(eps))
    source: Source
    if history.status == "stopped":
        steps, source = history.step, "measured"
    elif history.status == "diverged" or prediction is None:
        what = "it diverges" if history.status == "diverged" else f"not within {most} steps"
        return never("measured", what)
    else:
        left = float(history.last["distance"]) / float(history["distance"][0])
        steps = most + math.ceil(math.log(eps / left) / math.log(prediction.rate))
        rounds, source = max(1, min(rounds, most // 2)), "extrapolated"
    return Cost(algorithm, graph.name, eps, steps, *runs.spent(steps, history, rounds), source)


@dataclass(frozen=True)
class _Runs:
    """Runs on the network, of which a part is timed."""

    algorithm: Algorithm
    graph: Schedule
    network: Any
    compute: Any
    seed: int
    nbytes: int | None

    def made(
        self, problem: Problem, steps: int, x0: Any, stop: Callable[[_Record], bool] | None = None
    ) -> History:
        """Return a run on the problem itself; on "sim" only where "stacked" cannot time it."""
        backends = ("sim",) if self.algorithm.asynchronous else ("stacked", "sim")
        factor = 1.0 if self.nbytes is None else self.nbytes / (ITEM * problem.dim)
        for backend in backends:
            try:
                return solve(
                    self.algorithm,
                    problem,
                    topology=self.graph,
                    steps=steps,
                    backend=backend,
                    network=self.network.scaled(factor),
                    compute=self.compute,
                    seed=self.seed,
                    x0=x0,
                    stop=stop,
                    progress=False,
                )
            except UnsupportedOperation:
                if backend == backends[-1]:
                    raise
        raise AssertionError("the last backend returns or raises")

    def alike(self, problem: Problem, steps: int) -> History:
        """Return a run that takes the same time, on other values.

        One that stands for a large model has variables enough for collectives, which give each
        rank a share of them.
        """
        n = self.graph.size
        width = problem.dim if self.nbytes is None else _SHARE * n
        flat = Quadratic(h=np.ones((n, width)), b=np.zeros((n, width)))
        return self.made(flat, steps, None)

    def spent(self, steps: int, history: History, rounds: int) -> tuple[float, float, float]:
        """Return seconds, and bytes and messages of a rank, until after so many steps.

        Those beyond the history repeat its last rounds.
        """
        end = len(history) - 1
        before = end if steps <= end else end - rounds
        again, rest = divmod(steps - before, rounds)
        found = []
        for name in ("time", "bytes", "messages"):
            column = history[name].astype(np.float64)
            found.append(float(column[before + rest] + again * (column[end] - column[before])))
        seconds, sent, messages = found
        size = self.graph.size
        dim = math.prod(history.x0.shape[1:])
        factor = 1.0 if self.nbytes is None else self.nbytes / (ITEM * dim)
        return seconds, sent * factor / size, messages / size


def _problem(algorithm: Algorithm, problem: Problem | None, graph: Schedule) -> Problem:
    if problem is not None:
        return problem
    if algorithm.uses_gradient:
        raise ArgumentError(
            f"problem is missing, and the rate of {algorithm.name} depends on it; give one, such "
            f"as problems.Quadratic.random(n={graph.size}, d=4)"
        )
    return Averaging(np.eye(graph.size))


def _as_if_large(algorithm: Algorithm, nbytes: int, size: int) -> Algorithm:
    """Return the algorithm with the all-reduce that it would choose for so many bytes."""
    if getattr(algorithm, "algorithm", None) != "auto":
        return algorithm
    changed: Any = dataclasses.replace
    found: Algorithm = changed(algorithm, algorithm=choose_allreduce(nbytes, size))
    return found


def _never(prediction: Prediction, eps: float) -> str:
    """Return why the accuracy is never reached, or nothing."""
    start = _distances(prediction, prediction.x0[None])[0]
    if start == 0.0:
        return ""
    if prediction.rate >= 1.0:
        return f"it does not converge: its rate is {prediction.rate:.6g}"
    if prediction.bias > eps * start:
        return f"it ends at {prediction.bias / start:.3g} of the start"
    return ""


def _distances(prediction: Prediction, X: Any) -> Any:
    away = X - prediction.problem.optimum.reshape(-1)
    return np.linalg.norm(away, axis=(1, 2))


def _march(prediction: Prediction, eps: float) -> int:
    """Return the first predicted step within eps; far out, by the rate."""
    target = eps * float(_distances(prediction, prediction.x0[None])[0])
    reached = 0
    for steps in _blocks():
        apart = _distances(prediction, prediction.iterates(steps))
        hits = np.flatnonzero(apart <= target)
        if len(hits):
            return steps[int(hits[0])]
        reached, left = steps[-1], float(apart[-1])
    return reached + math.ceil(math.log(target / left) / math.log(prediction.rate))


def _blocks() -> Iterator[list[int]]:
    """Yield the steps 0, 1, ... in blocks that double."""
    start, stop = 0, 64
    while start < _MARCH:
        yield list(range(start, stop))
        start, stop = stop, 2 * stop


def _within(eps: float) -> Callable[[_Record], bool]:
    """Return what stops a run that has come within eps of where it began."""
    first: list[float] = []

    def stop(record: _Record) -> bool:
        first.append(record["distance"])
        return record["distance"] <= eps * first[0]

    return stop
