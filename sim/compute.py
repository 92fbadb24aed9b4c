"""Compute-time models: how long one computation of a rank takes.

A model draws the times of all ranks for their k-th computation at once, from a generator of
(seed, k). So every backend draws the same times, whatever the order in which ranks run.
"""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.sim._numbers import check_number

Times = np.ndarray[Any, np.dtype[np.float64]]


class ComputeModel(abc.ABC):
    """Seconds that one ``with comm.computing():`` block takes."""

    def __repr__(self) -> str:
        values = [f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_")]
        return f"{type(self).__name__}({', '.join(values)})"

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return the seconds of one computation on each of ``size`` ranks."""

    def seconds(self, drawn: Any, flops: float | None) -> Any:
        """Return the time of a computation of ``flops``, given what was drawn for it."""
        del flops
        return drawn

    def distribution(self) -> Any:
        """Return the law that the times of every rank have, as a frozen one of ``scipy.stats``.

        Raises:
            ArgumentError: There is none: times are constant, or differ between ranks.

        Example:
            >>> float(Pareto(minimum=1.0, shape=3.0).distribution().mean())
            1.5
        """
        raise ArgumentError(
            f"{self!r} has no distribution that all ranks share; a model such as "
            "Exponential(mean=1.0) has one"
        )


@final
class Constant(ComputeModel):
    """Every computation takes the same time.

    Args:
        seconds: Time in seconds, at least 0.

    Example:
        >>> Constant(0.5).draw(np.random.default_rng(0), 2)
        array([0.5, 0.5])
    """

    def __init__(self, seconds: float) -> None:
        self.time = _at_least_zero("Constant", "seconds", seconds)

    def __repr__(self) -> str:
        return f"Constant(seconds={self.time})"

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return the constant for each rank."""
        return np.full(size, self.time)


@final
class PerRank(ComputeModel):
    """Permanently uneven ranks: each rank's own factor times the time that ``base`` draws.

    Args:
        factors: One factor per rank (a sequence), or ``{rank: factor}`` where the others have 1.
        base: Model of the common time; default one second, so that factors are seconds.

    Example:
        >>> PerRank({1: 4.0}, Constant(0.5)).draw(np.random.default_rng(0), 3)
        array([0.5, 2. , 0.5])
    """

    def __init__(
        self,
        factors: Sequence[float] | Mapping[int, float] | Times,
        base: ComputeModel | None = None,
    ) -> None:
        self.factors = {
            rank: _at_least_zero("PerRank", f"factors[{rank}]", factor)
            for rank, factor in _by_rank(factors)
        }
        self._length = None if isinstance(factors, Mapping) else len(self.factors)
        self.base = base if base is not None else Constant(1.0)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return the base model's times, each multiplied by its rank's factor."""
        if self._length not in (None, size) or any(not 0 <= r < size for r in self.factors):
            raise ArgumentError(
                f"PerRank: factors for ranks {sorted(self.factors)[:8]} do not fit {size} ranks; "
                "give one factor per rank, or a dict of rank: factor"
            )
        scale = np.ones(size)
        scale[list(self.factors)] = list(self.factors.values())
        return scale * self.base.draw(rng, size)

    def seconds(self, drawn: Any, flops: float | None) -> Any:
        """Return what the base model makes of the product."""
        return self.base.seconds(drawn, flops)


@final
class Exponential(ComputeModel):
    """Exponentially distributed times.

    Args:
        mean: Mean in seconds, at least 0.

    Example:
        >>> bool(abs(Exponential(2.0).draw(np.random.default_rng(0), 100_000).mean() - 2) < 0.02)
        True
    """

    def __init__(self, mean: float) -> None:
        self.mean = _at_least_zero("Exponential", "mean", mean)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return independent exponential times."""
        return rng.exponential(self.mean, size)

    def distribution(self) -> Any:
        """Return the law as a frozen distribution."""
        from scipy import stats

        return stats.expon(scale=self.mean)


@final
class ShiftedExponential(ComputeModel):
    """A fixed part plus an exponential one.

    Args:
        shift: Fixed part in seconds, at least 0.
        mean: Mean of the exponential part in seconds, at least 0.

    Example:
        >>> bool(ShiftedExponential(1.0, 0.5).draw(np.random.default_rng(0), 9).min() >= 1.0)
        True
    """

    def __init__(self, shift: float, mean: float) -> None:
        self.shift = _at_least_zero("ShiftedExponential", "shift", shift)
        self.mean = _at_least_zero("ShiftedExponential", "mean", mean)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return independent shifted exponential times."""
        return self.shift + rng.exponential(self.mean, size)

    def distribution(self) -> Any:
        """Return the law as a frozen distribution."""
        from scipy import stats

        return stats.expon(loc=self.shift, scale=self.mean)


@final
class LogNormal(ComputeModel):
    """Log-normal times: the logarithm of the time is normal.

    Args:
        median: Median in seconds, above 0.
        sigma: Standard deviation of the logarithm, at least 0.

    Example:
        >>> LogNormal(2.0, 0.0).draw(np.random.default_rng(0), 2)
        array([2., 2.])
    """

    def __init__(self, median: float, sigma: float) -> None:
        check_number("LogNormal", "median", median)
        if not 0.0 < median < math.inf:
            raise ArgumentError(f"LogNormal: median={median} must be finite and above 0 seconds")
        self.median = float(median)
        self.sigma = _at_least_zero("LogNormal", "sigma", sigma)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return independent log-normal times."""
        return self.median * np.exp(self.sigma * rng.standard_normal(size))

    def distribution(self) -> Any:
        """Return the law as a frozen distribution."""
        from scipy import stats

        return stats.lognorm(s=self.sigma, scale=self.median)


@final
class Pareto(ComputeModel):
    """Pareto times: heavy tails, never below a minimum.

    Args:
        minimum: Smallest time in seconds, above 0.
        shape: Tail exponent, above 1 (at most 1, the mean is infinite).

    Example:
        >>> bool(Pareto(1.0, 3.0).draw(np.random.default_rng(0), 100).min() >= 1.0)
        True
    """

    def __init__(self, minimum: float, shape: float) -> None:
        check_number("Pareto", "minimum", minimum)
        check_number("Pareto", "shape", shape)
        if not 0.0 < minimum < math.inf:
            raise ArgumentError(f"Pareto: minimum={minimum} must be finite and above 0 seconds")
        if not 1.0 < shape < math.inf:
            raise ArgumentError(f"Pareto: shape={shape} must be above 1, else the mean is infinite")
        self.minimum, self.shape = float(minimum), float(shape)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return independent Pareto times."""
        return self.minimum * (1.0 + rng.pareto(self.shape, size))

    def distribution(self) -> Any:
        """Return the law as a frozen distribution."""
        from scipy import stats

        return stats.pareto(b=self.shape, scale=self.minimum)


@final
class FlopRate(ComputeModel):
    """Time from work: floating-point operations over rate.

    Args:
        rate: Operations per second, above 0.

    Example:
        >>> model = FlopRate(1e9)
        >>> model.seconds(model.draw(np.random.default_rng(0), 1), flops=5e8)
        array([0.5])
    """

    def __init__(self, rate: float) -> None:
        check_number("FlopRate", "rate", rate)
        if not 0.0 < rate < math.inf:
            raise ArgumentError(f"FlopRate: rate={rate} must be finite and above 0 per second")
        self.rate = float(rate)

    def draw(self, rng: np.random.Generator, size: int) -> Times:
        """Return the seconds of one operation."""
        return np.full(size, 1.0 / self.rate)

    def seconds(self, drawn: Any, flops: float | None) -> Any:
        """Return the operations times the seconds of one."""
        if flops is None:
            raise ArgumentError("FlopRate needs the work: with comm.computing(flops=...)")
        if not np.all((np.asarray(flops) >= 0.0) & (np.asarray(flops) < math.inf)):
            raise ArgumentError(f"computing: flops={flops!r} must be finite and at least 0")
        return drawn * flops


def _by_rank(factors: Any) -> list[tuple[int, Any]]:
    """Return the rank and the factor of each pair, or of each place of a sequence."""
    try:
        if not isinstance(factors, Mapping):
            return list(enumerate(factors))
        return [(operator.index(rank), factor) for rank, factor in factors.items()]
    except TypeError:
        raise ArgumentTypeError(
            f"PerRank: factors is {factors!r}; give one factor per rank, or a dict of rank: factor"
        ) from None


def _at_least_zero(model: str, name: str, value: float) -> float:
    check_number(model, name, value)
    if not 0.0 <= value < math.inf:
        raise ArgumentError(f"{model}: {name}={value} must be finite and at least 0")
    return float(value)


class ComputeTimes:
    """The times of a run: the k-th computation of every rank, drawn together and kept till used.

    Args:
        model: What draws them; ``None`` for no time at all.
        size: Number of ranks.
        seed: Seed of the run.
    """

    def __init__(self, model: ComputeModel | None, size: int, seed: int) -> None:
        self.model = model
        self._size = size
        self._seed = seed
        self._drawn: dict[int, tuple[Times, list[int]]] = {}

    def all_ranks(self, k: int, flops: float | None) -> Any:
        """Return the k-th times of all ranks in seconds, as an array."""
        if self.model is None:
            return 0.0
        return self.model.seconds(self._draw(k), flops)

    def one_rank(self, rank: int, k: int, flops: float | None) -> float:
        """Return the k-th time of one rank in seconds; each may be asked for once."""
        if self.model is None:
            return 0.0
        if k not in self._drawn:
            self._drawn[k] = (self._draw(k), [self._size])
        times, left = self._drawn[k]
        left[0] -= 1
        if not left[0]:
            del self._drawn[k]
        return float(self.model.seconds(float(times[rank]), flops))

    def _draw(self, k: int) -> Times:
        assert self.model is not None
        stream = np.random.SeedSequence(self._seed, spawn_key=(_COMPUTE_STREAM, k))
        times = np.asarray(self.model.draw(np.random.default_rng(stream), self._size), np.float64)
        if np.shape(times) != (self._size,):
            raise ArgumentError(
                f"{self.model!r} drew times of shape {np.shape(times)}; draw must return one for "
                f"each of the {self._size} ranks"
            )
        if not (times.min() >= 0.0 and times.max() < math.inf):
            raise ArgumentError(
                f"{self.model!r} drew times from {times.min()} to {times.max()} s; each must be "
                "finite and at least 0"
            )
        return times


_COMPUTE_STREAM = 0x636F6D70
