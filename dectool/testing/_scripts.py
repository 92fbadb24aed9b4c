"""Random programs: drawn as plain data, run on any backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from dectool import topology
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import averageable, values
from dectool.testing._portable import random_topology
from dectool.testing._runner import Runner
from dectool.testing._steps import STEPS
from dectool.topology import Schedule, Topology


class Draw(Protocol):
    """Where choices come from: a generator of random numbers, or Hypothesis."""

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        ...


@final
class SeededDraw:
    """Draws from a generator of random numbers.

    Args:
        seed: Seed, as ``numpy.random.default_rng`` takes it.
    """

    def __init__(self, seed: Any) -> None:
        self._rng = np.random.default_rng(seed)

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        return options[self.integer(0, len(options) - 1)]

    def integer(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return int(self._rng.integers(low, high, endpoint=True))


class Script(NamedTuple):
    """A random program.

    Attributes:
        size: Number of ranks.
        ranks_per_node: Ranks on each node.
        graph: Default topology, or a schedule.
        xs: What each rank starts with.
        steps: Names of the steps (of :data:`dectool.testing._steps.STEPS`), each with a number
            from which everything else about it follows.
    """

    size: int
    ranks_per_node: int
    graph: Topology | Schedule
    xs: Sequence[Any]
    steps: Sequence[tuple[str, int]]


def random_script(draw: Draw) -> Script:
    """Return a program of up to eight steps on up to eight ranks."""
    n = draw.integer(1, 8)
    seed = draw.integer(0, 2**16)
    divisors = [g for g in range(1, n + 1) if n % g == 0]
    steps = [(draw.pick(sorted(STEPS)), draw.integer(0, 2**16)) for _ in range(draw.integer(1, 8))]
    return Script(n, draw.pick(divisors), _graph(draw, n, seed), _start(draw, n, seed), steps)


def _graph(draw: Draw, n: int, seed: int) -> Topology | Schedule:
    kinds: dict[str, Callable[[], Topology | Schedule]] = {
        "random": lambda: random_topology(n, seed),
        "without loops": lambda: random_topology(n, seed, loops=False),
        "ring": lambda: topology.ring(n),
        "star": lambda: topology.star(n),
        "complete": lambda: topology.complete(n),
        "doubly stochastic": lambda: _doubly_stochastic(n, seed),
        "one peer": lambda: topology.one_peer_exponential(n),
        "matching": lambda: topology.random_matching(topology.complete(n), seed=seed),
    }
    return kinds[draw.pick(sorted(kinds))]()


def _doubly_stochastic(n: int, seed: int) -> Topology:
    """Return a random mixture of permutations, one of them a ring so that all are connected."""
    rng = np.random.default_rng([seed, n])
    shares = rng.dirichlet(np.ones(3))
    ring = np.roll(np.eye(n), 1, axis=1)
    W = shares[0] * ring + sum(share * np.eye(n)[rng.permutation(n)] for share in shares[1:])
    return topology.from_matrix(W, name=f"mixture of {n}")


def _start(draw: Draw, n: int, seed: int) -> list[Any]:
    kind = draw.pick(averageable())
    shape = draw.pick([(), (1,), (3,), (2, 3), (0,), (17,)])
    xs = values(kind, n, shape, seed, special=draw.integer(0, 1) == 1)
    form = draw.pick(["array", "pair", "dict"])
    if form == "array":
        return xs
    ys = values(draw.pick(averageable()), n, draw.pick([(2,), (1, 2), ()]), seed + 1)
    pairs = zip(xs, ys, strict=True)
    return [(x, [y]) if form == "pair" else {"w": x, "b": (y, x)} for x, y in pairs]


def run_script(comm: Any, script: Script) -> Any:
    """Run a script; return what the rank holds in the end and what its steps returned."""
    x = comm.per_rank(script.xs.__getitem__)
    shown: list[Any] = []
    for number, (name, seed) in enumerate(script.steps):
        if isinstance(script.graph, Schedule):
            comm.topology = script.graph.at(number)
        x, extra = STEPS[name](comm, x, np.random.default_rng([seed, number]))
        shown.append({name: extra, "now": comm.now()})
    return {"x": x, "shown": tuple(shown)}


def check_random_programs(
    runner: Runner, reference: Runner, examples: int = 50, seed: int = 0
) -> None:
    """Require the same bits as another backend gives, for random programs.

    Args:
        runner: What to check.
        reference: What to compare it with, such as :data:`dectool.testing.SIM`.
        examples: Number of programs.
        seed: They follow from it.

    Raises:
        AssertionError: The backends disagree; the message holds the program.
    """
    for number in range(examples):
        script = random_script(SeededDraw([seed, number]))
        values = [_values(each, script, seed) for each in (runner, reference)]
        for rank in range(script.size):
            where = f"program {number} of {script.size} ranks, {script.steps}, rank {rank}"
            assert_same_bits(values[0][rank], values[1][rank], where)


def _values(runner: Runner, script: Script, seed: int) -> list[Any]:
    with np.errstate(all="ignore"):
        values = runner(
            lambda comm: run_script(comm, script),
            script.size,
            topology=script.graph,
            ranks_per_node=script.ranks_per_node,
            seed=seed,
        )
        found = list(values)
    for value in found:
        for step in value["shown"]:
            del step["now"]
    return found
