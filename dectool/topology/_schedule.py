"""Schedule: a topology for every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._edges import Floats, count
from dectool.topology._law import Law
from dectool.topology._topology import Topology

_CACHED = 64


@final
class Schedule:
    """A time-varying topology: step k averages with ``at(k)``.

    Args:
        make: Function of the step k >= 0 that returns a Topology. It must depend on k alone, so
            that any step can be asked for, in any order, by every rank.
        size: Number of ranks, the same at every step.
        period: Steps after which it repeats, or None if it does not.
        name: Name for messages.
        law: For a random schedule whose steps are independent and alike: the law of a step, or a
            function without arguments that returns it.

    Raises:
        ArgumentError: The size or the period is below 1.
        ArgumentTypeError: ``make`` is no function, or the law is none.
        TopologyError: The law is of another number of ranks.

    Example:
        >>> from dectool import topology
        >>> halves = [topology.ring(4), topology.star(4)]
        >>> s = Schedule(lambda k: halves[k > 10], size=4, period=None, name="ring, then star")
        >>> s.at(3).name, s.at(12).name
        ('ring of 4', 'star of 4')
    """

    def __init__(
        self,
        make: Callable[[int], Topology],
        *,
        size: int,
        period: int | None,
        name: str,
        law: Law | Callable[[], Law] | None = None,
    ) -> None:
        if not callable(make):
            raise ArgumentTypeError(
                f"make must be a function of the step k, got {type(make).__name__}; for one "
                "Topology use topology.static(t), for several topology.periodic([t, u])"
            )
        self._make = make
        self._size = count("size", size, 1)
        self._period = None if period is None else count("period", period, 1)
        self._name = name
        self._law = law if law is None or callable(law) else self._fitting(law)
        self._cache: dict[int, Topology] = {}

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def period(self) -> int | None:
        """Steps after which the schedule repeats; None if it does not."""
        return self._period

    @property
    def name(self) -> str:
        """Name for messages."""
        return self._name

    @property
    def law(self) -> Law:
        """The law of every step, if steps are random, independent and alike; see ``Law``.

        Raises:
            TopologyError: It is not known, or the steps differ in other ways.

        Example:
            >>> from dectool import topology
            >>> topology.equidyn(8).law
            <Law of W, size 8>
        """
        if callable(self._law):
            self._law = self._fitting(self._law())
        if self._law is None and self.period == 1:
            self._law = Law.finite([self.at(0)])
        if self._law is not None:
            return self._law
        if self.period is not None:
            raise TopologyError(
                f"steps of {self.name} follow one another with period {self.period}, and are not "
                "drawn; use mean_square_rate(schedule) or schedule.contraction(), or draw them: "
                "topology.random_choice([schedule.at(k) for k in range(schedule.period)])"
            )
        raise TopologyError(
            f"the law of a step of {self.name} is not known; give one, as in Schedule(make, ..., "
            "law=topology.Law.finite(topologies, probabilities)) or law=topology.Law.moments(mean, "
            "forward), or build the schedule by topology.random_choice(topologies, probabilities)"
        )

    def __repr__(self) -> str:
        repeats = "no period" if self.period is None else f"period {self.period}"
        return f"<Schedule: {self.name}, {repeats}>"

    def at(self, k: int) -> Topology:
        """Return the topology of step k; recent ones are kept.

        Args:
            k: Step, at least 0.

        Raises:
            ArgumentError: k is negative.
            ArgumentTypeError: k is not an integer, or what was made is no Topology.
            TopologyError: The topology made for it has another size.

        Example:
            >>> from dectool import topology
            >>> topology.one_peer_exponential(8).at(1).out_neighbors(0)
            (2,)
        """
        step = count("step k", k, 0)
        step = step if self.period is None else step % self.period
        found = self._cache.get(step)
        if found is None:
            found = self._checked(step)
            if len(self._cache) >= _CACHED:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[step] = found
        return found

    def contraction(self, start: int = 0, length: int | None = None) -> float:
        r"""Return the worst-case factor of a stretch of steps, ‖W_{s+l-1} ... W_s - J‖₂.

        Args:
            start: First step s, at least 0.
            length: Number of steps l, at least 0; default one period.

        Raises:
            ArgumentError: No length given and the schedule has no period.

        Example:
            >>> from dectool import topology
            >>> topology.one_peer_exponential(8).contraction()
            0.0
        """
        if length is None and self.period is None:
            raise ArgumentError(f"length must be given: {self.name} has no period")
        start = count("start", start, 0)
        length = count("length", self.period if length is None else length, 0)
        matrices = [self.at(k).W for k in range(start, start + length)]
        n = self.size
        if n <= _spectrum.DENSE:
            product = np.eye(n)
            for W in matrices:
                product = np.asarray(W @ product)
            return float(np.linalg.norm(product - 1.0 / n, 2))
        transposed = [W.T.tocsr() for W in matrices]

        def forth(v: Floats) -> Floats:
            out = v
            for W in matrices:
                out = np.asarray(W @ out)
            return np.asarray(out - v.mean())

        def back(v: Floats) -> Floats:
            out = v
            for T in reversed(transposed):
                out = np.asarray(T @ out)
            return np.asarray(out - v.mean())

        return _spectrum.operator_norm(forth, back, n)

    def _fitting(self, law: object) -> Law:
        if not isinstance(law, Law):
            raise ArgumentTypeError(
                f"law of {self.name} must be a Law, or a function that returns one, got "
                f"{type(law).__name__}; make one with topology.Law.finite(topologies)"
            )
        if law.size != self.size:
            raise TopologyError(
                f"{self.name} has size {self.size}, but its law is of {law.size} ranks; give that "
                "of its own steps"
            )
        return law

    def _checked(self, step: int) -> Topology:
        made = self._make(step)
        if not isinstance(made, Topology):
            raise ArgumentTypeError(
                f"{self.name}: step {step} must be a Topology, got {type(made).__name__}"
            )
        if made.size != self.size:
            raise TopologyError(
                f"{self.name} has size {self.size}, but its topology at step {step} is "
                f"{made.name}, size {made.size}; every step needs the same ranks"
            )
        return made
