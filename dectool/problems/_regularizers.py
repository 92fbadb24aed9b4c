"""Terms that all ranks have in common, and that need not be smooth: known by proximal points."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems._arrays import real_number


class Regularizer(ABC):
    r"""A convex function r of one rank's variable, for :class:`dectool.problems.Composite`.

    To add one, derive from this class and implement both methods on arrays whose last axis has
    the entries of the variable (all of them: a variable that is a matrix comes as a vector).
    """

    @abstractmethod
    def value(self, X: Any) -> Any:
        """Return r, with the last axis summed up; infinity where it is not allowed."""

    @abstractmethod
    def prox(self, V: Any, step: float) -> Any:
        r"""Return :math:`\arg\min_x r(x) + \frac{1}{2 s} \|x - v\|^2` for the step s, like V."""


@final
@dataclass(frozen=True)
class L1(Regularizer):
    r"""The norm that makes entries zero (lasso).

    .. math:: r(x) = w \|x\|_1, \qquad
       \mathrm{prox}_{s r}(v) = \mathrm{sign}(v) \max(|v| - s w, 0)

    Args:
        weight: w, at least 0.

    Raises:
        ArgumentError: The weight is negative or not finite.
        ArgumentTypeError: The weight is no number.

    Example:
        >>> import numpy as np
        >>> from dectool import problems
        >>> problems.L1(weight=0.5).prox(np.array([-2.0, 0.3, 1.0]), step=1.0)
        array([-1.5,  0. ,  0.5])
    """

    weight: float

    def __post_init__(self) -> None:
        """Check the weight."""
        real_number(self.weight, "L1: weight")

    def value(self, X: Any) -> Any:
        """Return w times the sum of absolute values over the last axis."""
        return self.weight * np.abs(X).sum(axis=-1)

    def prox(self, V: Any, step: float) -> Any:
        """Return V with every entry moved towards 0 by step times w, and not beyond."""
        return np.sign(V) * np.maximum(np.abs(V) - step * self.weight, 0.0)


@final
@dataclass(frozen=True)
class Box(Regularizer):
    r"""The constraint that every entry lies in an interval.

    .. math:: r(x) = 0 \text{ if } l \le x_j \le u \text{ for all } j, \text{ else } \infty, \qquad
       \mathrm{prox}_{s r}(v) = \min(\max(v, l), u)

    Args:
        low: l; minus infinity for none.
        high: u, at least l; infinity for none.

    Raises:
        ArgumentError: ``low`` is above ``high``, or one is NaN.
        ArgumentTypeError: One is no number.

    Example:
        >>> import numpy as np
        >>> from dectool import problems
        >>> problems.Box(low=0.0).prox(np.array([-2.0, 0.3]), step=1.0)
        array([0. , 0.3])
    """

    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        """Check the interval."""
        ends: tuple[tuple[str, Any], ...] = (("low", self.low), ("high", self.high))
        for name, end in ends:
            if isinstance(end, bool) or not isinstance(end, numbers.Real):
                raise ArgumentTypeError(f"Box: {name} is {end!r}; give a number, infinity for none")
        if not self.low <= self.high or self.low == np.inf or self.high == -np.inf:
            raise ArgumentError(
                f"Box: low={self.low} and high={self.high} leave nothing between them; give "
                "numbers, low first"
            )

    def value(self, X: Any) -> Any:
        """Return 0 where all entries of the last axis lie in the interval, else infinity."""
        inside = ((self.low <= X) & (self.high >= X)).all(axis=-1)
        return np.where(inside, 0.0, np.inf)

    def prox(self, V: Any, step: float) -> Any:
        """Return the closest point of the box."""
        return np.clip(V, self.low, self.high)
