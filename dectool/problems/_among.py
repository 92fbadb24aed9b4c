"""A problem among some of the ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import NDArray

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.problems._arrays import FloatArray, Rows
from dectool.problems._composite import Composite
from dectool.problems._problem import Curvature, Problem


def among(problem: Problem, ranks: Iterable[int]) -> Problem:
    """Return a problem among some ranks, a common term of it put around their functions."""
    if isinstance(problem, Composite):
        return Composite(Among(problem.smooth, ranks), problem.regularizer)
    return Among(problem, ranks)


@final
class Among(Problem):
    r"""Minimise the mean of the local functions of some ranks, those that are left, say.

    .. math:: \min_x \frac{1}{|A|} \sum_{i \in A} f_i(x)

    Rank j of it is the j-th of the ranks chosen, in ascending order.

    Args:
        problem: Whose local functions.
        ranks: Which of its ranks, each once; their order is no matter.

    Raises:
        ArgumentError: ``ranks`` is empty, names one twice, or one that there is not.
        ArgumentTypeError: It holds what is no whole number.

    Example:
        >>> from dectool import problems
        >>> problems.Among(problems.Averaging([[1.0], [3.0], [8.0]]), [0, 1]).optimum
        array([2.])
    """

    def __init__(self, problem: Problem, ranks: Iterable[int]) -> None:
        named = list(ranks)
        for rank in named:
            if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)):
                raise ArgumentTypeError(f"Among: ranks holds {rank!r}; give numbers of ranks")
        chosen = np.array(sorted(named), dtype=np.intp)
        broken = chosen.size == 0 or len(set(chosen.tolist())) < chosen.size
        if broken or chosen[0] < 0 or chosen[-1] >= problem.size:
            raise ArgumentError(
                f"Among: ranks={chosen.tolist()} must name some of the ranks 0 to "
                f"{problem.size - 1}, each once"
            )
        if problem.regularizer is not None:
            raise ArgumentError(
                f"Among: {problem!r} has a common term; put it around what is chosen, as in "
                "Composite(Among(p.smooth, ranks), p.regularizer)"
            )
        super().__init__(chosen.size, problem.shape, f"{problem.name} among {chosen.size} ranks")
        self._whole = problem
        self._chosen = chosen

    def __repr__(self) -> str:
        return f"Among({self._whole!r}, {self._chosen.tolist()})"

    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._whole._values(X, self._chosen[rows])

    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._whole._grads(X, self._chosen[rows])

    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        return self._whole._hessians(X, self._chosen[rows])

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        return self._whole._inverses(Y, weight, near, self._chosen[rows])

    def _starts(self, rows: Rows) -> NDArray[np.float64]:
        return self._whole._starts(self._chosen[rows])

    def _curvature(self) -> Curvature:
        # Bounds that hold for any choice.
        L, mu_min = self._whole.L_max, self._whole.mu_min
        return Curvature(L=L, L_max=L, mu=max(0.0, mu_min), mu_min=mu_min)
