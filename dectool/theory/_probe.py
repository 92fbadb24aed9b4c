"""Reading the affine map of an algorithm off its own code, by running it on unit states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

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
        first: The iterates of steps 0 to these periods, each of shape (n, d).
    """

    matrix: Floats
    constant: Floats
    fields: Mapping[str, tuple[int, ...]]
    warm: Floats
    first: list[Floats]
    noise: list[Floats]


def read(
    algorithm: Algorithm,
    quadratic: Quadratic,
    schedule: Schedule,
    x0: Any,
    noise: bool = False,
) -> Probe:
    """Run the algorithm on unit states and return its map, with that of the noise if asked.

    Raises:
        ArgumentError: The algorithm is not affine, is random, or changes from step to step.
    """
    if algorithm.asynchronous:
        raise ArgumentError(
            f"{algorithm.name} lets ranks go on at their own pace, so its steps depend on clocks "
            "and no one matrix describes them; measure it with dectool.solve(backend='sim')"
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
        reader = _Reader(comm, algorithm, quadratic, schedule)
        try:
            found.append(reader.read(start, noise))
        except _NotAffineError:
            # Counts that settle, as of relayed sums, are factors of the map and not states of it.
            reader = _Reader(comm, algorithm, quadratic, schedule, max(WARM, quadratic.size), True)
            found.append(reader.read(start, noise))

    try:
        run(program, quadratic.size, backend="stacked", topology=schedule)
    except _NotAffineError as error:
        raise ArgumentError(str(error)) from None
    return found[0]


class _NotAffineError(ArgumentError):
    """A step is not affine in all arrays of the state."""


@dataclass
class _Reader:
    comm: Communicator
    algorithm: Algorithm
    quadratic: Quadratic
    schedule: Schedule
    warm: int = WARM
    settle: bool = False
    fields: dict[str, tuple[int, ...]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    calls: int = 0
    disturb: Callable[[int, Any], Any] | None = None

    def read(self, x0: Floats, noise: bool) -> Probe:
        first = self._run(x0)
        state = first[-1]
        self.calls = 0
        after = self._period(state)
        calls = self.calls
        settled = self._settled(x0, state, after) if self.settle else set()
        self.fields = {
            name: value.shape
            for name, value in state.items()
            if isinstance(value, np.ndarray) and name not in settled
        }
        self.shared = {name: value for name, value in state.items() if name not in self.fields}
        if any(np.any(after[name] != value) for name, value in self.shared.items()):
            raise ArgumentError(
                f"{self.algorithm.name} changes from step to step ({', '.join(self.shared)}), so "
                "no one matrix describes it"
            )
        warm = np.concatenate([np.ravel(state[name]) for name in self.fields])
        total = len(warm)
        with np.errstate(all="ignore"):
            constant = self._apply(np.zeros((total, 1)))
            matrix = self._columns(np.eye(total)) - constant
            self._check(matrix, constant)
            asked = range(calls if noise else 0)
            inputs = [self._noise(call, total) - constant for call in asked]
        iterates = [np.array(s["x"]) for s in first]
        return Probe(matrix, constant[:, 0], self.fields, warm, iterates, inputs)

    def _run(self, x0: Floats) -> list[State]:
        """Return the states from a start on, until no step is a first one any more."""
        self.comm.topology = self.schedule.at(0)
        states = [self.algorithm.at(0).init(self.comm, x0, self._grad)]
        for k in range(self.warm * (self.schedule.period or 1)):
            states.append(self._step(states[-1], k))
        return states

    def _settled(self, x0: Floats, state: State, after: State) -> set[str]:
        """Return the arrays that no longer change, and are the same whatever the start."""
        elsewhere = x0 + np.random.default_rng(0).normal(size=x0.shape)
        other = self._run(elsewhere)[-1]
        return {
            name
            for name, value in state.items()
            if np.array_equal(value, after[name]) and np.array_equal(value, other[name])
        }

    def _grad(self, x: Any) -> Any:
        g = self.quadratic.grad(x, self.comm.rank)
        if self.disturb is not None:
            g = g + self.disturb(self.calls, g)
        self.calls += 1
        return g

    def _step(self, state: State, k: int) -> State:
        self.comm.topology = self.schedule.at(k)
        return self.algorithm.at(k).step(self.comm, state, self._grad)

    def _period(self, state: State) -> State:
        period = self.schedule.period or 1
        for k in range(self.warm * period, (self.warm + 1) * period):
            state = self._step(state, k)
        return state

    def _noise(self, call: int, total: int) -> Floats:
        """Return states after a period from zero, a unit added to one gradient."""
        size, dim = self.quadratic.size, self.quadratic.dim
        parts = []
        for unit in np.eye(size * dim).reshape(size * dim, size, 1, dim):
            self.calls = 0
            self.disturb = lambda now, g, unit=unit: (now == call) * unit.reshape(g.shape)
            parts.append(self._single(np.zeros((total, 1))))
        self.disturb = None
        return np.concatenate(parts, axis=1)

    def _columns(self, columns: Floats) -> Floats:
        count = columns.shape[1]
        blocks = [columns[:, k : k + _COLUMNS] for k in range(0, count, _COLUMNS)]
        return np.concatenate([self._apply(block) for block in blocks], axis=1)

    def _apply(self, columns: Floats) -> Floats:
        """Apply a period to states given as columns of shape (N, B)."""
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
        result = self._period(State(**arrays, **self.shared))
        parts = []
        for name, block in arrays.items():
            if result[name].shape != block.shape:
                raise ValueError(f"{name} does not keep its shape")
            parts.append(np.moveaxis(result[name], 1, -1))
        return np.concatenate([part.reshape(-1, columns.shape[1]) for part in parts])

    def _single(self, column: Floats) -> Floats:
        arrays, start = {}, 0
        for name, shape in self.fields.items():
            stop = start + math.prod(shape)
            arrays[name] = column[start:stop, 0].reshape(shape).copy()
            start = stop
        result = self._period(State(**arrays, **self.shared))
        return np.concatenate([np.ravel(result[name]) for name in self.fields])[:, None]

    def _check(self, matrix: Floats, constant: Floats) -> None:
        s = np.random.default_rng(0).normal(size=(len(matrix), 1))
        expected = matrix @ s + constant
        scale = float(np.abs(expected).max(initial=0.0))
        if not np.allclose(self._apply(s), expected, rtol=1e-6, atol=1e-6 * scale):
            raise _NotAffineError(
                f"{self.algorithm.name} is not affine in its state, so no matrix describes a step "
                "of it"
            )
