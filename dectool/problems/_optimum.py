"""Minimisers of smooth convex functions, to rounding: a SciPy solver, then Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dectool.errors import ArgumentError

Vector = NDArray[np.float64]

TOLERANCE = 1e-12
_DENSE = 1024
_STEPS = 100
_HALVINGS = 20


class Smooth(NamedTuple):
    """A convex function: value, gradient, Hessian times vector (or None), dense Hessian."""

    value: Callable[[Vector], float]
    grad: Callable[[Vector], NDArray[Any]]
    product: Callable[[Vector, Vector], NDArray[Any]] | None
    hessian: Callable[[Vector], NDArray[Any]]


def minimise(f: Smooth, dim: int, L: float, what: str) -> Vector:
    r"""Return the minimiser of a smooth convex function.

    SciPy's Newton-CG finds it roughly, Newton steps polish it until
    :math:`\|\nabla f(x)\|` stops falling; it must end below
    :math:`10^{-12} \max(\|\nabla f(0)\|, L\|x\|)`.

    Args:
        f: The function and its derivatives.
        dim: Number of variables.
        L: Smoothness of f.
        what: Name of the problem for the message.

    Raises:
        ArgumentError: The solver did not reach that accuracy.
    """
    from scipy.optimize import minimize

    start = np.zeros(dim)
    scale = float(np.linalg.norm(f.grad(start)))
    if scale == 0.0:
        return start
    second = {"hess": f.hessian} if f.product is None else {"hessp": f.product}
    rough = minimize(
        f.value, start, jac=f.grad, method="Newton-CG", options={"xtol": 1e-8}, **second
    )
    x = polish(f, np.asarray(rough.x, dtype=np.float64), enough=1e-3 * TOLERANCE * scale)
    reached = float(np.linalg.norm(f.grad(x)))
    allowed = TOLERANCE * max(scale, L * float(np.linalg.norm(x)))
    if not reached <= allowed:
        raise ArgumentError(
            f"the optimum of {what} was not found: the gradient norm is {reached:.3g}, above "
            f"{allowed:.3g}. f may have no minimiser, or be too badly conditioned: use l2 > 0, "
            "and standardised data"
        )
    return x


def polish(f: Smooth, x: Vector, enough: float) -> Vector:
    """Take Newton steps, halved where needed, until the gradient norm is ``enough`` or stalls."""
    g = f.grad(x)
    norm = float(np.linalg.norm(g))
    for _ in range(_STEPS):
        if norm <= enough:
            break
        step = _newton_step(f, x, g)
        for _ in range(_HALVINGS):
            moved = x - step
            g_moved = f.grad(moved)
            norm_moved = float(np.linalg.norm(g_moved))
            if norm_moved < norm:
                break
            step = 0.5 * step
        else:
            return x
        x, g, norm = moved, g_moved, norm_moved
    return x


def _newton_step(f: Smooth, x: Vector, g: NDArray[Any]) -> NDArray[Any]:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
    from scipy.sparse.linalg import LinearOperator, cg

    product = f.product
    if product is not None and x.size > _DENSE:
        H = LinearOperator((x.size, x.size), matvec=lambda v: product(x, v), dtype=np.float64)
        step: NDArray[Any] = cg(H, g, rtol=1e-6, maxiter=10 * x.size)[0]
        return step
    dense = f.hessian(x)
    try:
        return np.asarray(cho_solve(cho_factor(dense), g))
    except LinAlgError:
        return np.asarray(lstsq(dense, g)[0])
