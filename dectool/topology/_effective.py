"""How many neighbors a rank has in effect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._circulant import circulant_eigenvalues
from dectool.topology._edges import Floats, Matrix, real
from dectool.topology._guards import need_either
from dectool.topology._lanczos import cheap_to_factor
from dectool.topology._law import Law
from dectool.topology._schedule import Schedule
from dectool.topology._topology import Topology
from dectool.topology._validation import TOLERANCE

_TINY = 1e-8
"""Below this gamma, two terms of the series in gamma are exact to rounding."""
_STEP = 1e-30


def effective_number_of_neighbors(topology: Topology | Schedule, gamma: float) -> float:
    r"""Return how many ranks a rank averages with in effect, if it forgets with factor gamma.

    .. math:: n_W(\gamma) = \frac{1/(1 - \gamma)}
        {\frac1n \sum_i |\lambda_i|^2 / (1 - \gamma |\lambda_i|^2)},

    the ratio of the variances of the walks :math:`z^+ = \sqrt\gamma\, z + \xi` alone and
    :math:`z^+ = W (\sqrt\gamma\, z + \xi)` together: 1 without talking, n for full averaging,
    and n for γ → 1 on every connected graph with slem < 1. For schedules it is the ratio of the
    variances: the mean over a period, or, with a ``law``, over the steps to come.

    Args:
        topology: A topology with a normal W: up to 3000 ranks; more if W is circulant, as of rings
            and exponential graphs, or symmetric with sparse factors, as of grids. Or a schedule
            with a period or a law, of at most 500 ranks.
        gamma: At least 0, below 1.

    Raises:
        ArgumentError: gamma is out of range, or the graph too large.
        TopologyError: W is not normal, the law of a random schedule is not known, or the
            variances did not converge, or have no limit, as with weights that make some
            differences larger.

    Example:
        >>> from dectool import topology
        >>> t = topology.ring(16)
        >>> [round(topology.effective_number_of_neighbors(t, g), 2) for g in (0.0, 0.999)]
        [3.0, 15.63]

    References:
        T. Vogels, H. Hendrikx, M. Jaggi, Beyond spectral gap: the role of the topology in
        decentralized learning, NeurIPS 2022.
    """
    need_either("effective_number_of_neighbors", topology)
    gamma = real("gamma", gamma)
    if not 0 <= gamma < 1:
        raise ArgumentError(f"gamma must be at least 0 and below 1, got {gamma:g}")
    variance = _of_schedule if isinstance(topology, Schedule) else _of_topology
    return float(1.0 / (1.0 - gamma) / variance(topology, gamma))  # type: ignore[arg-type]


def _of_topology(topology: Topology, gamma: float) -> float:
    """Return the mean of |λ|² / (1 - γ |λ|²)."""
    if not topology.is_normal:
        raise TopologyError(
            f"effective_number_of_neighbors needs W Wᵀ = Wᵀ W, and {topology.name} "
            f"({topology.weights}) is not so; use symmetric weights"
        )
    if topology.size <= _spectrum.DENSE_RESCUE:
        return _of_eigenvalues(topology.eigenvalues, gamma, topology.name)
    values = circulant_eigenvalues(topology.W)
    if values is not None:
        return _of_eigenvalues(values, gamma, topology.name)
    if topology.is_symmetric and cheap_to_factor(topology.W):
        return _by_factors(topology.W, gamma, topology.name)
    raise ArgumentError(
        f"effective_number_of_neighbors of {topology.name}: all eigenvalues count, and they are "
        f"computed up to size {_spectrum.DENSE_RESCUE}; above, W must be circulant, or symmetric "
        "with sparse factors, as of a grid; study a smaller graph of the same family"
    )


def _of_eigenvalues(values: NDArray[Any], gamma: float, name: str) -> float:
    squares = np.square(np.abs(values))
    if _grows(float(squares.max()), gamma):
        raise _unbounded(name, gamma)
    return float(np.mean(squares / (1.0 - gamma * squares)))


def _grows(square: float, gamma: float) -> bool:
    """Say whether a variance that a step multiplies by gamma * ``square`` has no limit."""
    # Rounding puts the eigenvalue 1, which does no harm, on either side of it.
    return square > 1.0 + TOLERANCE and gamma * square >= 1.0


def _unbounded(name: str, gamma: float) -> TopologyError:
    return TopologyError(
        f"effective_number_of_neighbors of {name}: at gamma={gamma:g} the variance of the walks "
        "grows without bound, since W makes some differences larger; use a smaller gamma, or "
        "weights that are not negative"
    )


def _by_factors(W: Matrix, gamma: float, name: str) -> float:
    r"""Return the mean of λ² / (1 - γ λ²) over the eigenvalues of symmetric W, from determinants.

    With :math:`s^2 = \gamma`, it is :math:`-\frac{1}{2sn} \frac{d}{ds} \log\det(I - sW)(I + sW)`;
    the derivative is the imaginary part for s with a tiny one, exact to rounding.
    """
    from scipy.sparse.linalg import splu

    n = W.shape[0]
    if gamma < _TINY:
        square: Matrix = W @ W
        return float((W.multiply(W).sum() + gamma * square.multiply(square).sum()) / n)
    s, total = math.sqrt(gamma), 0.0
    identity = sparse.eye_array(n)
    for sign in (-1.0, 1.0):
        step: Any = sign * W
        shifted = identity + s * step + 1j * _STEP * step
        lu = splu(
            shifted.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        pivots = lu.U.diagonal()
        if not (pivots.real > 0).all():
            raise _unbounded(name, gamma)
        total += float((pivots.imag / pivots.real).sum()) / _STEP
    return -total / (2.0 * s * n)


def _of_schedule(schedule: Schedule, gamma: float) -> float:
    """Return the variance of a rank's walk, by the fixed point of their covariance."""
    n = schedule.size
    if n > _spectrum.DENSE:
        raise ArgumentError(
            f"effective_number_of_neighbors of {schedule.name}: schedules are computed up to size "
            f"{_spectrum.DENSE}; use a topology, or a smaller graph of the same family"
        )
    if schedule.period == 1:
        return _of_topology(schedule.at(0), gamma)
    if schedule.period is None:
        return float(_covariance(schedule.law, gamma, schedule.name).trace() / n)
    steps = [schedule.at(k).W for k in range(schedule.period)]
    A, B = np.eye(n), np.zeros((n, n))
    for W in steps:
        A = np.asarray(W @ A)
        B = _after(W, B, gamma)
    if _grows(float(np.abs(np.linalg.eigvals(A)).max()) ** 2, gamma ** len(steps)):
        raise _unbounded(schedule.name, gamma)
    A *= gamma ** (len(steps) / 2)
    # C = A C Aᵀ + B doubles the number of periods that it knows in each round.
    while np.abs(A).max() > 1e-18:
        B = B + A @ B @ A.T
        A = A @ A
    total = 0.0
    for W in steps:
        B = _after(W, B, gamma)
        total += float(B.trace()) / n
    return total / len(steps)


def _after(W: Matrix, C: Floats, gamma: float) -> Floats:
    """Return W (γ C + I) Wᵀ."""
    return np.asarray(W @ (W @ (gamma * C + np.eye(len(C)))).T)


def _covariance(law: Law, gamma: float, name: str) -> Floats:
    """Return C = E[W (γ C + I) Wᵀ]."""
    from scipy.sparse.linalg import LinearOperator, gmres

    n = law.size

    def apply(v: Floats) -> Floats:
        X = v.reshape(n, n)
        return np.asarray((X - gamma * law.forward(X)).ravel())

    operator = LinearOperator((n * n, n * n), matvec=apply, dtype=np.float64)
    right = law.forward(np.eye(n)).ravel()
    found, failed = gmres(operator, right, rtol=1e-13, atol=0.0, restart=60, maxiter=50)
    if failed:
        raise TopologyError(
            f"effective_number_of_neighbors of {name} did not converge at gamma={gamma:g}; use a "
            "smaller gamma"
        )
    C: Floats = np.asarray(found.reshape(n, n))
    # The equation has a solution beyond the border too, but no covariance.
    least, most = np.linalg.eigvalsh((C + C.T) / 2)[[0, -1]]
    if least < -TOLERANCE * abs(most):
        raise _unbounded(name, gamma)
    return C
