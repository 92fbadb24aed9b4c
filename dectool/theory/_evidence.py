"""What was measured next to what was predicted, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from dectool.errors import ArgumentError
from dectool.theory._arguments import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True)
class Check:
    """One quantity, measured and predicted.

    Attributes:
        quantity: What.
        measured: Its value in the history.
        predicted: Its value in the prediction.
        error: How far apart they are, relative to the scale that ``quantity`` names; of a bound,
            by how much it is broken.
        tolerance: The largest ``error`` that agrees.
        relation: "=" for a value, "<=" or ">=" for a bound that the measured one keeps.
    """

    quantity: str
    measured: float
    predicted: float
    error: float
    tolerance: float
    relation: Literal["=", "<=", ">="] = "="

    @classmethod
    def equal(
        cls,
        quantity: str,
        measured: float,
        predicted: float,
        tolerance: float,
        scale: float | None = None,
    ) -> Check:
        """Return the check that a value is as predicted, relative to a scale.

        Args:
            quantity: What.
            measured: Its value.
            predicted: What it should be.
            tolerance: The largest error that agrees.
            scale: What the error is relative to; default: the predicted value. In place of 0 it is
                1; relative to what is not finite, nothing agrees.

        Raises:
            ArgumentError: The scale is negative.

        Example:
            >>> print(Check.equal("rate", 0.8, 0.81, tolerance=0.02))
            rate: measured 0.8, predicted 0.81, error 0.012 (tolerance 0.02)
        """
        unit = abs(predicted) if scale is None else scale
        if unit < 0.0:
            raise ArgumentError(f"scale={unit} of {quantity!r} is negative; give a size, as abs")
        error = abs(measured - predicted) / (unit or 1.0) if unit < math.inf else math.nan
        return cls(quantity, measured, predicted, error, tolerance)

    @classmethod
    def at_most(
        cls, quantity: str, measured: float, bound: float, tolerance: float = 1e-9
    ) -> Check:
        """Return the check that a value keeps an upper bound, but for rounding.

        Args:
            quantity: What.
            measured: Its value.
            bound: What it must not exceed.
            tolerance: By how much, relative to the bound (or 1 where that is 0), rounding may break
                it.

        Example:
            >>> bool(Check.at_most("error", 0.8, 0.81)), bool(Check.at_most("error", 0.9, 0.81))
            (True, False)
        """
        return cls(quantity, measured, bound, _broken(measured - bound, bound), tolerance, "<=")

    @classmethod
    def at_least(
        cls, quantity: str, measured: float, bound: float, tolerance: float = 1e-9
    ) -> Check:
        """Return the check that a value keeps a lower bound, but for rounding.

        Args:
            quantity: What.
            measured: Its value.
            bound: What it must not fall below.
            tolerance: By how much, relative to the bound (or 1 where that is 0), rounding may break
                it.

        Example:
            >>> bool(Check.at_least("speed-up", 1.4, 1.3))
            True
        """
        return cls(quantity, measured, bound, _broken(bound - measured, bound), tolerance, ">=")

    def __bool__(self) -> bool:
        """Whether the two agree; what is not a number agrees with nothing."""
        return bool(self.error <= self.tolerance)

    def __str__(self) -> str:
        """Return one line."""
        if self.relation == "=":
            return (
                f"{self.quantity}: measured {self.measured:.9g}, predicted {self.predicted:.9g}, "
                f"error {self.error:.2g} (tolerance {self.tolerance:.2g})"
            )
        word = {"<=": "at most", ">=": "at least"}[self.relation]
        broken = f", broken by {self.error:.2g} (tolerance {self.tolerance:.2g})"
        return (
            f"{self.quantity}: measured {self.measured:.9g}, {word} {self.predicted:.9g}"
            f"{broken if self.error > 0.0 else ''}"
        )


@final
@dataclass(frozen=True)
class Verdict:
    """Whether measurements agree with predictions: true or false, and a text that says why."""

    agrees: bool
    text: str

    @classmethod
    def of(cls, checks: Iterable[Check], head: str) -> Verdict:
        """Return the verdict of some checks, one line for each below a first one."""
        found = list(checks)
        lines = [f"{'ok  ' if check else 'FAIL'} {check}" for check in found]
        return cls(all(found), "\n".join([head, *lines]))

    def __bool__(self) -> bool:
        """Whether all checks agree."""
        return self.agrees

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    __repr__ = __str__


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a picture: what was measured, what was predicted, or both.

    Attributes:
        label: Name for the legend.
        x: Shape (K,).
        measured: Shape (K,), or None.
        predicted: Shape (K,), or None.

    Raises:
        ArgumentError: Both are None, or their shapes are others.
    """

    label: str
    x: Floats
    measured: Floats | None = None
    predicted: Floats | None = None

    def __post_init__(self) -> None:
        """Check that there is something to draw, and the shapes."""
        if self.measured is None and self.predicted is None:
            raise ArgumentError(
                f"{self.label!r} has nothing to draw; give measured, predicted, or both"
            )
        for name in ("measured", "predicted"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != np.shape(self.x):
                raise ArgumentError(
                    f"{name} has shape {np.shape(values)}, and x {np.shape(self.x)}; give as many "
                    "values as places"
                )


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """What a check of a published statement found.

    Attributes:
        claim: The statement, and whose it is.
        checks: One for each quantity.
        curves: What :meth:`plot` draws.
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
        scale: "linear", "log" or "loglog": which axes are logarithmic ("log": the vertical one).

    Raises:
        ArgumentError: There are no checks.

    Example:
        >>> found = Evidence("ring of 8: rho = (1 + 2 cos(pi/4)) / 3",
        ...                  (Check.equal("rho", 0.804737854, 0.804737854124, 1e-8),))
        >>> bool(found.verdict)
        True
        >>> print(found)
        agrees: ring of 8: rho = (1 + 2 cos(pi/4)) / 3
        ok   rho: measured 0.804737854, predicted 0.804737854, error 1.5e-10 (tolerance 1e-08)
    """

    claim: str
    checks: tuple[Check, ...]
    curves: tuple[Curve, ...] = ()
    x: str = "step"
    y: str = "error"
    scale: Literal["linear", "log", "loglog"] = "log"

    def __post_init__(self) -> None:
        """Refuse evidence of nothing, with which everything would agree."""
        if not self.checks:
            raise ArgumentError(f"{self.claim!r} has no checks; give one or more")

    @property
    def verdict(self) -> Verdict:
        """Whether all checks agree, and a text: one line for each."""
        agrees = all(self.checks)
        return Verdict.of(self.checks, f"{'agrees' if agrees else 'DISAGREES'}: {self.claim}")

    def __repr__(self) -> str:
        return self.verdict.text

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what was measured (points) and predicted (dashed); return the axes.

        Args:
            ax: Axes to draw on; default: new ones.

        Raises:
            ArgumentError: There is nothing to draw.
            MissingDependencyError: matplotlib is not installed.
        """
        if not self.curves:
            raise ArgumentError(f"there is nothing to draw of {self.claim!r}; see its verdict")
        from dectool.plotting import draw_evidence

        return draw_evidence(self, ax)


def _broken(excess: float, bound: float) -> float:
    """Return by how much a bound is broken, relative to it; what is not a number keeps none."""
    return 0.0 if excess <= 0.0 else excess / (abs(bound) or 1.0)
