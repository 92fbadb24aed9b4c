"""Reading the affine map of an algorithm off its own code, by running it on unit states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, final

import numpy as np

from dectool._oracle import Oracle
from dectool.algorithms import Algorithm, State
from dectool.communicator import Communicator
from dectool.errors import ArgumentError
from dectool.problems import Quadratic
from dectool.run import run
from dectool.theory._arguments import Floats
from dectool.topology import Schedule

# After this many periods no algorithm is in its first step any more, but for those that count.
WARM = 2
_COLUMNS = 1024
# By how much of itself rounding may move an array that stands still.
_STILL = 1e-13


@final
@dataclass
class Probe:
    r"""What was read: :math:`s^+ = M s + c + \sum_j G_j \xi_j` over a period.

    Attributes:
        matrix: M, shape (N, N).
        constant: c, shape (N,).
        fields: The arrays that s is made of, with their shapes.
        noise: One G of shape (N, n d) for each gradient that a rank takes in a period, where
            :math:`\xi_j` is what is added to that gradient.
        warm: s after some periods from x0, shape (N,).
        early: s after the first few of these periods, before weights have settled; shape (N,).
        first: The iterates of steps 0 to these periods, each of shape (n, d).
        within: If asked for, for each step of a period but the last the map from s at its
            beginning to the iterates after that step: a matrix of shape (n d, N) and a constant of
            shape (n d,).
    """

    matrix: Floats
    constant: Floats
    fields: Mapping[str, tuple[int, ...]]
    warm: Floats
    early: Floats
    first: list[Floats]
    noise: list[Floats]
    within: list[tuple[Floats, Floats]]


def read(
    algorithm: Algorithm,
    quadratic: Quadratic,
    schedule: Schedule,
    period: int,
    x0: Any,
    noise: bool = False,
    within: bool = False,
) -> Probe:
    """Run the algorithm on unit states and return its map, with that of the noise if asked.

    Args:
        algorithm: What is read.
        quadratic: On which functions.
        schedule: On which topologies.
        period: Steps that the map stands for: a multiple of the periods of algorithm and schedule.
        x0: Starting points.
        noise: Whether to read the map of the noise.
        within: Whether to read the maps to the steps within a period.

    Raises:
        ArgumentError: The algorithm is not affine, is random, or changes from step to step.
    """
    if algorithm.asynchronous:
        raise ArgumentError(
            f"{algorithm.name} lets ranks go on at their own pace, so its steps depend on clocks "
            "and no one matrix describes them; measure it with dectool.solve(backend='sim')"
        )
    changing = [one.name for one in fields(algorithm) if callable(getattr(algorithm, one.name))]
    if changing:
        raise ArgumentError(
            f"{algorithm.name} changes from step to step ({', '.join(changing)}), so no one matrix "
            "describes it; give a constant, or algorithm.at(k)"
        )
    if noise and algorithm.oracle != "gradient":
        raise ArgumentError(
            f"{algorithm.name} inverts local gradients (its oracle is {algorithm.oracle!r}), which "
            "noisy gradients cannot; use an algorithm of gradients, such as EXTRA"
        )
    shape = (quadratic.size, quadratic.dim)
    start = np.asarray(x0, np.float64)
    if start.size not in (quadratic.dim, math.prod(shape)) or not np.isfinite(start).all():
        raise ArgumentError(
            f"x0 has shape {start.shape}; give {quadratic.size} points of {quadratic.dim} finite "
            "numbers, or one for all"
        )
    start = np.broadcast_to(start.reshape(-1, quadratic.dim), shape).copy()
    found: list[Probe] = []

    def program(comm: Communicator) -> None:
        reader = _Reader(comm, algorithm, quadratic, schedule, period, within)
        try:
            found.append(reader.read(start, noise))
        except _NotAffineError:
            # Counts that settle, as of relayed sums, are factors of the map and not states of it.
            warm = max(WARM, quadratic.size)
            reader = _Reader(comm, algorithm, quadratic, schedule, period, within, warm, True)
            found.append(reader.read(start, noise))

    try:
        run(program, quadratic.size, backend="stacked", topology=schedule)
    except _NotAffineError as error:
        raise ArgumentError(str(error)) from None
    return found[0]


class _NotAffineError(ArgumentError):
    """A step is not affine in all arrays of the state."""


class _Disturbed(Oracle):
    """The oracle of all ranks, its gradients counted by a reader and disturbed by it."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__(reader.comm, reader.quadratic)
        self._reader = reader

    def __call__(self, x: Any) -> Any:
        g, reader = super().__call__(x), self._reader
        if reader.disturb is not None:
            g = g + reader.disturb(reader.calls, g)
        reader.calls += 1
        return g


@dataclass
class _Reader:
    comm: Communicator
    algorithm: Algorithm
    quadratic: Quadratic
    schedule: Schedule
    period: int
    within: bool
    warm: int = WARM
    settle: bool = False
    fields: dict[str, tuple[int, ...]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    calls: int = 0
    disturb: Callable[[int, Any], Any] | None = None

    def __post_init__(self) -> None:
        self._grad = _Disturbed(self)

    def read(self, x0: Floats, noise: bool) -> Probe:
        # With a step size that is too large iterates may overflow while weights settle.
        with np.errstate(all="ignore"):
            first = self._run(x0)
            if self.settle:
                self.settled = self._settle(x0, first)
            state = first[-1]
            self.calls = 0
            after = self._period(state)[-1]
        calls = self.calls
        self.fields = {
            name: value.shape
            for name, value in state.items()
            if isinstance(value, np.ndarray) and name not in self.settled
        }
        self.shared = {name: value for name, value in state.items() if name not in self.fields}
        counted = {name: value for name, value in self.shared.items() if name not in self.settled}
        if any(np.any(after[name] != value) for name, value in counted.items()):
            raise ArgumentError(
                f"{self.algorithm.name} changes from step to step ({', '.join(counted)}), so "
                "no one matrix describes it"
            )
        warm, early = (
            np.concatenate([np.ravel(one[name]) for name in self.fields])
            for one in (state, first[WARM * self.period])
        )
        total = len(warm)
        with np.errstate(all="ignore"):
            constant = self._apply(np.zeros((total, 1)))
            matrix = self._columns(np.eye(total)) - constant
            self._check(matrix, constant)
            asked = range(calls if noise else 0)
            inputs = [self._noise(call, total) - constant[:total] for call in asked]
        iterates = [np.array(s["x"]) for s in first]
        # Below the state after the period are the iterates after each step before.
        places = range(total, len(matrix), x0.size)
        within = [(matrix[p : p + x0.size], constant[p : p + x0.size, 0]) for p in places]
        M, c = matrix[:total], constant[:total, 0]
        return Probe(M, c, self.fields, warm, early, iterates, inputs, within)

    def _run(self, x0: Floats) -> list[State]:
        """Return the states from a start on, until no step is a first one any more."""
        self.comm.topology = self.schedule.at(0)
        states = [self.algorithm.at(0).init(self.comm, x0, self._grad)]
        for k in range(self.warm * self.period):
            states.append(self._step(states[-1], k))
        return states

    def _settle(self, x0: Floats, states: list[State]) -> set[str]:
        """Return the arrays that are the same whatever the start, and in the end stand still.

        Some do after finitely many steps; weights of push-sum only tend to their limit, so the
        states go on until nothing but rounding moves these arrays.
        """
        elsewhere = x0 + np.random.default_rng(0).normal(size=x0.shape)
        other = self._run(elsewhere)[-1]
        scales = {
            name: float(np.abs(value).max(initial=0.0)) or 1.0
            for name, value in states[-1].items()
            if isinstance(value, np.ndarray) and np.array_equal(value, other[name])
        }
        before = math.inf
        while scales:
            state, after = states[-1], self._period(states[-1])[-1]
            moved = {
                name: float(np.abs(after[name] - state[name]).max(initial=0.0)) / scale
                for name, scale in scales.items()
            }
            worst = max(moved.values())
            if worst == 0.0 or not worst < before:
                return {name for name, value in moved.items() if value <= _STILL}
            before = worst
            for k in range(self.quadratic.size * self.period):
                states.append(self._step(states[-1], k))
            self.warm += self.quadratic.size
        return set()

    def _step(self, state: State, k: int) -> State:
        self.comm.topology = self.schedule.at(k)
        return self.algorithm.at(k).step(self.comm, state, self._grad)

    def _period(self, state: State) -> list[State]:
        """Return the state after a period, and before it those within if they are asked for."""
        states: list[State] = []
        for k in range(self.warm * self.period, (self.warm + 1) * self.period):
            state = self._step(state, k)
            if not self.within:
                states.clear()
            states.append(state)
        return states

    def _noise(self, call: int, total: int) -> Floats:
        """Return states after a period from zero, a unit added to one gradient."""
        size, dim = self.quadratic.size, self.quadratic.dim
        parts = []
        for unit in np.eye(size * dim).reshape(size * dim, size, 1, dim):
            self.calls = 0
            self.disturb = lambda now, g, unit=unit: (now == call) * unit.reshape(g.shape)
            parts.append(self._single(np.zeros((total, 1)))[:total])
        self.disturb = None
        return np.concatenate(parts, axis=1)

    def _columns(self, columns: Floats) -> Floats:
        count = columns.shape[1]
        blocks = [columns[:, k : k + _COLUMNS] for k in range(0, count, _COLUMNS)]
        return np.concatenate([self._apply(block) for block in blocks], axis=1)

    def _apply(self, columns: Floats) -> Floats:
        """Apply a period to states given as columns of shape (N, B).

        Below the states after it, the result has the iterates within, if they are asked for.
        """
        try:
            return self._batch(columns)
        except ValueError:
            # Where a state is kept by edges, rows are not ranks and states are taken singly.
            parts = [self._single(columns[:, [k]]) for k in range(columns.shape[1])]
            return np.concatenate(parts, axis=1)

    def _batch(self, columns: Floats) -> Floats:
        arrays, start = {}, 0
        for name, shape in self.fields.items():
            stop = start + math.prod(shape)
            block = columns[start:stop].reshape(*shape, -1)
            arrays[name] = np.ascontiguousarray(np.moveaxis(block, -1, 1))
            start = stop
        still = {
            name: np.repeat(self.shared[name][:, None], columns.shape[1], axis=1)
            for name in self.settled
        }
        *before, result = self._period(State(**{**self.shared, **still, **arrays}))
        for name, block in arrays.items():
            if result[name].shape != block.shape:
                raise ValueError(f"{name} does not keep its shape")
        blocks = [*(result[name] for name in self.fields), *(s["x"] for s in before)]
        parts = [np.moveaxis(block, 1, -1).reshape(-1, columns.shape[1]) for block in blocks]
        return np.concatenate(parts)

    def _single(self, column: Floats) -> Floats:
        arrays, start = {}, 0
        for name, shape in self.fields.items():
            stop = start + math.prod(shape)
            arrays[name] = column[start:stop, 0].reshape(shape).copy()
            start = stop
        *before, result = self._period(State(**arrays, **self.shared))
        blocks = [*(result[name] for name in self.fields), *(s["x"] for s in before)]
        return np.concatenate([np.ravel(block) for block in blocks])[:, None]

    def _check(self, matrix: Floats, constant: Floats) -> None:
        s = np.random.default_rng(0).normal(size=(matrix.shape[1], 1))
        expected = matrix @ s + constant
        scale = float(np.abs(expected).max(initial=0.0))
        if not np.allclose(self._apply(s), expected, rtol=1e-6, atol=1e-6 * scale):
            raise _NotAffineError(
                f"{self.algorithm.name} is not affine in its state, so no matrix describes a step "
                "of it"
            )
