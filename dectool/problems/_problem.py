"""The abstract problem: n local functions and everything known about their mean."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dectool.problems._arrays import FloatArray, IndexArray, Rows, positive_int
from dectool.problems._calling import Rank, enter, enter_point, select
from dectool.problems._inverse import newton_inverse, weights_of
from dectool.problems._optimum import Smooth, minimise
from dectool.problems._regularizers import Regularizer


class Curvature(NamedTuple):
    """Smoothness and strong convexity of f, and the extremes of the local functions.

    Attributes:
        L: Smoothness of f.
        L_max: The largest smoothness of a local function.
        mu: Strong convexity of f.
        mu_min: The smallest strong convexity of a local function; negative where one bends
            down, and 0 where nothing is known but that all are convex.
    """

    L: float
    L_max: float
    mu: float
    mu_min: float = 0.0


class Problem(ABC):
    r"""Minimise the mean of n local functions, one per rank.

    .. math:: \min_x f(x) = \frac1n \sum_{i=0}^{n-1} f_i(x)

    where :math:`f_i` is known to rank i only, and x has the shape `shape`.

    Every method that takes ``(x, rank)`` has two forms: ``rank`` an integer and x of shape
    (\*batch, \*shape), or ``rank`` an integer array of shape (k,) and x of shape
    (k, \*batch, \*shape). Both run the same code, so row j of the second form has the same bits
    as the first form for ``rank[j]``; a row's bits do not depend on the other rows. The answer
    has the dtype of x (float64 for integers).

    To add a problem, derive from this class, call ``super().__init__`` and implement
    `_values`, `_grads`, `_hessians` and `_curvature` on arrays of shape (k, batch, dim). From
    these come proximal points and gradients of conjugates, by Newton's method; a closed form
    goes into `_inverses`.

    Args:
        size: Number of ranks n.
        shape: Shape of one rank's variable.
        name: Name for tables and messages.
    """

    def __init__(self, size: int, shape: tuple[int, ...], name: str) -> None:
        self._ranks = np.arange(positive_int(size, "n"))
        self._ranks.flags.writeable = False
        self._shape = tuple(shape)
        self._name = name

    @property
    def size(self) -> int:
        """Number of ranks n."""
        return self._ranks.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one rank's variable: (d,), or (d, classes)."""
        return self._shape

    @property
    def dim(self) -> int:
        """Number of entries of one rank's variable."""
        return math.prod(self._shape)

    @property
    def name(self) -> str:
        """Name for tables and messages."""
        return self._name

    @property
    def smooth(self) -> Problem:
        """The problem without the common term: itself, but for `Composite`."""
        return self

    @property
    def regularizer(self) -> Regularizer | None:
        """The term that all ranks know and that need not be smooth; see `Composite`."""
        return None

    @property
    def ranks(self) -> IndexArray:
        """All ranks in order, (n,), read-only: the cheapest `rank` argument for all at once."""
        return self._ranks

    def value(self, x: ArrayLike, rank: Rank) -> Any:
        r"""Return the local value f_i(x).

        Args:
            x: Point, in one of the two forms of the class description.
            rank: Rank i, or an array of ranks.

        Returns:
            Array of shape (\*batch) or (k, \*batch); a scalar if that is empty.

        Raises:
            ArgumentError: A rank is out of range or x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).value([0.0], 1)
            np.float64(4.5)
        """
        call = enter(x, rank, self._ranks, self._shape)
        return call.answer(self._values(call.X, call.rows), ())

    def grad(self, x: ArrayLike, rank: Rank) -> Any:
        """Return the local gradient of f_i at x, in the shape of x.

        Args:
            x: Point, in one of the two forms of the class description.
            rank: Rank i, or an array of ranks.

        Returns:
            A new array with the shape and dtype of x.

        Raises:
            ArgumentError: A rank is out of range or x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).grad([[0.0], [0.0]], [0, 1])
            array([[-1.],
                   [-3.]])
        """
        call = enter(x, rank, self._ranks, self._shape)
        return call.answer(self._grads(call.X, call.rows), self._shape)

    def hessian(self, x: ArrayLike, rank: Rank) -> Any:
        r"""Return the local Hessian of f_i at x, dense.

        Args:
            x: Point, in one of the two forms of the class description.
            rank: Rank i, or an array of ranks.

        Returns:
            Array of shape (\*batch, dim, dim) or (k, \*batch, dim, dim).

        Raises:
            ArgumentError: A rank is out of range or x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).hessian([0.0], 0)
            array([[1.]])
        """
        call = enter(x, rank, self._ranks, self._shape)
        return call.answer(self._hessians(call.X, call.rows), (self.dim, self.dim))

    def prox(self, v: ArrayLike, rank: Rank, weight: ArrayLike = 1.0) -> Any:
        r"""Return the proximal point of f_i at v.

        .. math:: \mathrm{prox}_{f_i / c}(v) = \arg\min_x f_i(x) + \frac c2 \|x - v\|^2

        where c is ``weight``: the x with :math:`\nabla f_i(x) = c\,(v - x)`. Quadratic local
        functions have it in closed form; others by Newton's method, computed in float64 until
        the gradient is zero to rounding.

        Args:
            v: Point, in one of the two forms of the class description.
            rank: Rank i, or an array of ranks.
            weight: c, at least 0; a number, or one for each of the ranks. With it, f_i must be
                strongly convex.

        Returns:
            A new array with the shape and dtype of v.

        Raises:
            ArgumentError: A rank is out of range, v has another shape, ``weight`` is negative or
                not finite, or there is no single minimiser.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).prox([0.0], 1, weight=2.0)
            array([1.])

        References:
            N. Parikh & S. Boyd, Proximal algorithms, Foundations and Trends in Optimization 1(3),
            2014.
        """
        call = enter(v, rank, self._ranks, self._shape)
        c = weights_of(weight, call)
        V = np.asarray(call.X, dtype=np.float64)
        return call.answer(self._inverses(c[:, None, None] * V, c, V, call.rows), self._shape)

    def grad_conjugate(self, y: ArrayLike, rank: Rank, start: ArrayLike | None = None) -> Any:
        r"""Return the gradient of the convex conjugate of f_i at y.

        .. math:: \nabla f_i^*(y) = \arg\max_x \langle y, x \rangle - f_i(x)

        It inverts the gradient: the x with :math:`\nabla f_i(x) = y`. There is one where f_i is
        strongly convex (`mu_min` > 0).

        Args:
            y: Dual point, in one of the two forms of the class description.
            rank: Rank i, or an array of ranks.
            start: Where Newton's method begins, like y; default: zeros. A start close by saves
                work, and changes no more than rounding.

        Returns:
            A new array with the shape and dtype of y.

        Raises:
            ArgumentError: A rank is out of range, y has another shape, or there is no single
                maximiser.

        Example:
            >>> from dectool import problems
            >>> q = problems.Quadratic(h=[[2.0], [4.0]], b=[[0.0], [1.0]])
            >>> q.grad_conjugate([7.0], 1), q.grad([2.0], 1)
            (array([2.]), array([7.]))
        """
        call = enter(y, rank, self._ranks, self._shape)
        Y = np.asarray(call.X, dtype=np.float64)
        near = np.zeros_like(Y)
        if start is not None:
            near = np.asarray(enter(start, rank, self._ranks, self._shape).X, dtype=np.float64)
        return call.answer(self._inverses(Y, np.zeros(len(Y)), near, call.rows), self._shape)

    def initial(self, rank: Rank) -> NDArray[np.float64]:
        r"""Return the point where rank i starts: zeros, unless the problem says otherwise.

        Args:
            rank: Rank i, or an array of k ranks.

        Returns:
            A new float64 array of shape `shape`, or (k, \*shape).

        Raises:
            ArgumentError: A rank is out of range.

        Example:
            >>> from dectool import problems
            >>> problems.Quadratic(h=[[1.0], [2.0]], b=[[0.0], [1.0]]).initial(0)
            array([0.])
        """
        rows, k = select(rank, self._ranks)
        starts = self._starts(rows)
        return starts.reshape(self._shape if k is None else (k, *self._shape))

    def objective(self, x: ArrayLike) -> Any:
        r"""Return f(x), the mean of the local values at one common x.

        Args:
            x: Point of shape (\*batch, \*shape).

        Returns:
            Array of shape (\*batch); a scalar if that is empty.

        Raises:
            ArgumentError: x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).objective([2.0])
            np.float64(0.5)
        """
        call = enter_point(x, self._shape)
        return call.answer(self._objective(call.X), ())

    def gradient(self, x: ArrayLike) -> Any:
        r"""Return the gradient of f at one common x, in the shape of x.

        Args:
            x: Point of shape (\*batch, \*shape).

        Returns:
            A new array with the shape and dtype of x.

        Raises:
            ArgumentError: x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).gradient([0.0])
            array([-2.])
        """
        call = enter_point(x, self._shape)
        return call.answer(self._gradient(call.X), self._shape)

    def gap(self, x: ArrayLike) -> Any:
        r"""Return f(x) - f(x*); quadratics compute it without cancellation.

        Args:
            x: Point of shape (\*batch, \*shape).

        Returns:
            Array of shape (\*batch); a scalar if that is empty.

        Raises:
            ArgumentError: x has another shape.

        Example:
            >>> from dectool import problems
            >>> problems.Averaging([[1.0], [3.0]]).gap([2.0 + 1e-12]) > 0
            np.True_
        """
        call = enter_point(x, self._shape)
        return call.answer(self._gap(call.X), ())

    @cached_property
    def optimum(self) -> NDArray[np.float64]:
        """Minimiser x* of f, read-only, to a gradient norm of 1e-12 relative to its terms.

        Raises:
            ArgumentError: f has no minimiser; the message says which argument gives it one.
        """
        found = self._solve().reshape(self._shape)
        found.flags.writeable = False
        return found

    @cached_property
    def optimal_value(self) -> float:
        """The smallest value f(x*)."""
        return float(self.objective(self.optimum))

    @cached_property
    def _curvature_once(self) -> Curvature:
        return self._curvature()

    @property
    def L(self) -> float:
        """Smoothness of f: its gradient is L-Lipschitz."""
        return self._curvature_once.L

    @property
    def L_max(self) -> float:
        """The largest smoothness constant of the local functions."""
        return self._curvature_once.L_max

    @property
    def mu(self) -> float:
        """Strong convexity of f; 0 where f is convex only."""
        return self._curvature_once.mu

    @property
    def mu_min(self) -> float:
        """The smallest strong convexity of a local function; negative where one bends down."""
        return self._curvature_once.mu_min

    @property
    def kappa(self) -> float:
        """Condition number L / mu; infinite for mu = 0."""
        return self.L / self.mu if self.mu > 0 else math.inf

    @cached_property
    def heterogeneity(self) -> float:
        r"""How far the local functions disagree: :math:`\frac1n\sum_i\|\nabla f_i(x^*)\|^2`."""
        x = np.broadcast_to(self.optimum, (self.size, *self._shape))
        g = self.grad(x, self._ranks)
        return float(np.sum(g * g) / self.size)

    @abstractmethod
    def _values(self, X: FloatArray, rows: Rows) -> FloatArray:
        """Return the values (k, batch) of the ranks in ``rows`` at X (k, batch, dim)."""

    @abstractmethod
    def _grads(self, X: FloatArray, rows: Rows) -> FloatArray:
        """Return the gradients (k, batch, dim), a new array."""

    @abstractmethod
    def _hessians(self, X: FloatArray, rows: Rows) -> FloatArray:
        """Return the Hessians (k, batch, dim, dim)."""

    @abstractmethod
    def _curvature(self) -> Curvature:
        """Return L, L_max, mu and, where it is known, mu_min."""

    def _inverses(
        self,
        Y: NDArray[np.float64],
        weight: NDArray[np.float64],
        near: NDArray[np.float64],
        rows: Rows,
    ) -> NDArray[np.float64]:
        """Return the X with grad f_i(X) + weight X = Y, a new array (k, batch, dim).

        Args:
            Y: Right-hand sides (k, batch, dim).
            weight: One for each row, (k,), at least 0.
            near: Where to begin looking, like Y.
            rows: The ranks.
        """
        return newton_inverse(self, Y, weight, near, rows)

    def _starts(self, rows: Rows) -> NDArray[np.float64]:
        """Return the initial points, a new array of k * dim entries with k the length of rows."""
        return np.zeros((self._ranks[rows].size, self.dim))

    def _objective(self, X: FloatArray) -> FloatArray:
        """Return f at X (1, batch, dim), of shape (1, batch)."""
        everywhere = np.repeat(X, self.size, axis=0)
        mean: FloatArray = self._values(everywhere, slice(None)).mean(axis=0, keepdims=True)
        return mean

    def _gradient(self, X: FloatArray) -> FloatArray:
        """Return the gradient of f at X (1, batch, dim), of the same shape."""
        everywhere = np.repeat(X, self.size, axis=0)
        mean: FloatArray = self._grads(everywhere, slice(None)).mean(axis=0, keepdims=True)
        return mean

    def _hessian_of_mean(self, X: FloatArray) -> FloatArray:
        """Return the Hessian of f at X (1, 1, dim), of shape (dim, dim)."""
        everywhere = np.repeat(X, self.size, axis=0)
        mean: FloatArray = self._hessians(everywhere, slice(None)).mean(axis=0)[0]
        return mean

    def _gap(self, X: FloatArray) -> FloatArray:
        """Return f - f* at X (1, batch, dim), of shape (1, batch)."""
        return self._objective(X) - self.optimal_value

    def _solve(self) -> NDArray[np.float64]:
        """Return the minimiser of f, dim entries, writeable."""
        smooth = Smooth(
            value=lambda x: float(self._objective(x.reshape(1, 1, -1))[0, 0]),
            grad=lambda x: self._gradient(x.reshape(1, 1, -1)).reshape(-1),
            product=None,
            hessian=lambda x: self._hessian_of_mean(x.reshape(1, 1, -1)),
        )
        return minimise(smooth, self.dim, self.L, repr(self))
