"""How fast random steps average in mean square: the bound of a step, and the exact rate."""

from __future__ import annotations

import math
import warnings

import numpy as np

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import _spectrum
from dectool.topology._edges import Floats
from dectool.topology._lanczos import Operator, arnoldi, generic, lanczos
from dectool.topology._law import Law
from dectool.topology._schedule import Schedule
from dectool.topology._schedules import as_schedule
from dectool.topology._topology import Topology
from dectool.topology._validation import TOLERANCE, row_sums

_SMALL = 500
"""Second moments with so many entries or fewer are solved densely."""
_RESIDUAL = 1e-11
"""Of an eigenvector of norm 1; the error of the eigenvalue is about its square over the gap."""
_SIGN = 1e-3
_ALIKE = 1e-14


def expected_contraction(schedule: Topology | Schedule) -> float:
    r"""Return the mean-square factor of a random step, at worst.

    The largest eigenvalue c of :math:`Q\, \mathbb E[W^T Q W]\, Q` with :math:`Q = I - J`:
    :math:`\mathbb E \lVert Q W x \rVert^2 \le c\, \lVert Q x \rVert^2`, with equality for some x.
    Where pairs average, this is :math:`\lambda_2(\mathbb E[W])`; for one W it is ``rho`` squared.
    Over many steps ``mean_square_rate`` is exact, and smaller or the same.

    Args:
        schedule: With a ``law``, of W whose rows sum to 1; or one Topology.

    Raises:
        ArgumentError: Above 3000 ranks, unless pairs average.
        TopologyError: The law is not known, or rows of W do not sum to 1.

    Example:
        >>> from dectool import topology
        >>> s = topology.random_pair(topology.ring(16))
        >>> round(topology.expected_contraction(s), 12)
        0.995242470782

    References:
        S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, Randomized gossip algorithms, IEEE Trans. Inf.
        Theory 52(6), 2006. T. C. Aysal, M. E. Yildiz, A. D. Sarwate, A. Scaglione, Broadcast
        gossip algorithms for consensus, IEEE Trans. Signal Processing 57(7), 2009.
    """
    given = as_schedule(schedule)
    if given.period == 1:
        only = given.at(0)
        _need_rows("expected_contraction", given, row_sums(only.W))
        return only.rho**2
    law = _law("expected_contraction", given)
    if law.has_projections:
        return max(0.0, _spectrum.second_largest(law.mean))
    if law.size > _spectrum.DENSE_RESCUE:
        raise ArgumentError(
            f"expected_contraction of {given.name}: it is computed up to size "
            f"{_spectrum.DENSE_RESCUE}; study a smaller graph of the same family"
        )
    return _largest(_away(law.disagreement()))


def mean_square_rate(schedule: Topology | Schedule) -> float:
    r"""Return the exact factor per step of the mean squared distance to the mean, in the long run.

    The spectral radius of :math:`X \mapsto Q\, \mathbb E[W X W^T]\, Q` with :math:`Q = I - J`,
    that is, of :math:`\mathbb E[(Q W) \otimes (Q W)]`. Found without that matrix of n⁴ entries.
    Where each step contracts alike from everywhere, it is ``expected_contraction``. For one W it
    is ``slem`` squared, and for a periodic schedule that of a period to the power 1/period.

    Args:
        schedule: With a ``law``, of W whose rows sum to 1, and at most 500 ranks, or 3000 (in a
            minute) if every W is symmetric; or a periodic schedule, or one Topology.

    Raises:
        ArgumentError: There are more ranks, unless each step contracts alike from everywhere.
        TopologyError: The law is not known, or rows of W do not sum to 1.

    Example:
        >>> from dectool import topology
        >>> round(topology.mean_square_rate(topology.random_pair(topology.ring(16))), 12)
        0.990581112908
        >>> round(topology.mean_square_rate(topology.equidyn(16, directed=True)), 12)
        0.46875

    References:
        O. L. V. Costa, M. D. Fragoso, R. P. Marques, Discrete-time Markov jump linear systems,
        Springer 2005, chapter 3.
    """
    given = as_schedule(schedule)
    if given.period is not None:
        return _of_period(given)
    law = _law("mean_square_rate", given)
    n = law.size
    if n == 1:
        return 0.0
    if n <= _spectrum.DENSE_RESCUE:
        step = _away(law.disagreement())
        factor = float(step.trace()) / (n - 1)
        if np.abs(step - factor * _away(np.eye(n))).max() <= _ALIKE:
            return max(0.0, factor)
    most = _spectrum.DENSE_RESCUE if law.is_symmetric else _spectrum.DENSE
    if n > most:
        raise ArgumentError(
            f"mean_square_rate of {given.name}: it is computed up to size {most}; use "
            "expected_contraction, which bounds it, or a smaller graph of the same family"
        )
    turned = law.has_rotations and n <= _spectrum.DENSE
    return _radius_over_rotations(law) if turned else _radius(law)


def _of_period(schedule: Schedule) -> float:
    period = schedule.period or 1
    for k in range(period):
        _need_rows("mean_square_rate", schedule, row_sums(schedule.at(k).W))
    if period == 1:
        return schedule.at(0).slem ** 2
    steps = [schedule.at(k).W for k in range(period)]

    def product(v: Floats) -> Floats:
        v = v - v.mean()
        for W in steps:
            v = np.asarray(W @ v)
        return np.asarray(v - v.mean())

    found = _spectrum.radius(product, schedule.size)
    return float(found ** (2.0 / period))


def _radius(law: Law) -> float:
    """Return the spectral radius on symmetric X, as vectors of their upper triangles."""
    n = law.size
    rows, columns = np.triu_indices(n)
    scale = np.where(rows == columns, 1.0, math.sqrt(0.5))

    def on_vectors(map_: Operator) -> Operator:
        def apply(v: Floats) -> Floats:
            X = np.zeros((n, n))
            X[rows, columns] = X[columns, rows] = scale * v
            return np.asarray(map_(X)[rows, columns] / scale)

        return apply

    apply = on_vectors(lambda X: _away(law.forward(_away(X))))
    if law.is_symmetric and len(rows) > _SMALL:
        v = _by_preconditioning(apply, on_vectors(_lyapunov(law)), len(rows))
        if v is not None:
            X = np.zeros((n, n))
            X[rows, columns] = X[columns, rows] = scale * v
            if _keeps_sign(X):
                return max(0.0, float(v @ apply(v)))
    return _positive_radius(apply, len(rows), law.is_symmetric)


def _lyapunov(law: Law) -> Operator:
    """Return the inverse of X -> L X + X L with L = I - E[W], for X of zero row sums.

    I less the map of second moments is that less a smaller part, so this goes far to invert it.
    """
    values, vectors = np.linalg.eigh(_away(np.eye(law.size) - law.mean.toarray()))
    sums = values[:, None] + values
    small = sums <= 1e-14 * values[-1]
    weights = np.where(small, 0.0, 1.0 / np.where(small, 1.0, sums))

    def solve(X: Floats) -> Floats:
        inside = vectors.T @ _away(X) @ vectors
        return _away(vectors @ (weights * inside) @ vectors.T)

    return solve


def _keeps_sign(X: Floats) -> bool:
    """Say whether X or -X is positive semidefinite, but for the errors of an eigenvector.

    That of the spectral radius is, and others are not: they are orthogonal to it.
    """
    values = np.linalg.eigvalsh(X)
    low, high = float(values[0]), float(values[-1])
    return min(abs(low), abs(high)) <= _SIGN * max(abs(low), abs(high))


def _by_preconditioning(apply: Operator, inverse: Operator, size: int) -> Floats | None:
    """Return the unit eigenvector of a symmetric map's largest eigenvalue, which is close to 1.

    None without convergence.
    """
    from scipy.sparse.linalg import LinearOperator, lobpcg

    def column(map_: Operator) -> LinearOperator:
        return LinearOperator((size, size), matvec=lambda v: map_(np.ravel(v)), dtype=np.float64)

    start = inverse(generic(size))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it did not converge: seen below
        _, found = lobpcg(
            column(lambda v: v - apply(v)), start, M=column(inverse), tol=_RESIDUAL,
            maxiter=100, largest=False,
        )  # fmt: skip
    v: Floats = np.asarray(found, np.float64)[:, 0] / np.linalg.norm(found)
    image = apply(v)
    return v if np.linalg.norm(image - (v @ image) * v) <= 10.0 * _RESIDUAL else None


def _radius_over_rotations(law: Law) -> float:
    """Return the spectral radius on circulant X, where it is reached.

    The map keeps positive semidefinite X, so it is reached on one of these; the mean of that over
    all rotations is one too, and circulant.
    """
    n = law.size
    ranks = np.arange(n)
    place = np.minimum((ranks[:, None] - ranks) % n, (ranks - ranks[:, None]) % n)
    times = np.sqrt(np.bincount(place[0]).astype(np.float64))

    def apply(v: Floats) -> Floats:
        row = law.forward((v / times)[place])[0]
        # Rows of W sum to 1, so that what is even in X stays even, and goes here.
        return np.asarray((row - row.mean())[: len(times)] * times)

    return _positive_radius(apply, len(times), law.is_symmetric)


def _positive_radius(apply: Operator, size: int, symmetric: bool) -> float:
    """Return the spectral radius of a map that keeps a cone, so that it is an eigenvalue."""
    if size <= _SMALL:
        dense = np.array([apply(unit) for unit in np.eye(size)]).T
        return float(np.abs(np.linalg.eigvals(dense)).max())
    restarts = _spectrum.LONG // 10
    find = lanczos if symmetric else arnoldi
    found = find(apply, size, restarts=restarts)
    if found is None:
        raise TopologyError(
            f"the mean-square rate did not converge in {20 * restarts} steps; use "
            "expected_contraction, which bounds it, or a smaller graph of the same family"
        )
    return max(0.0, found)


def _away(X: Floats) -> Floats:
    """Return Q X Q."""
    rows = X - X.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1)[:, None])


def _largest(M: Floats) -> float:
    if len(M) <= _spectrum.DENSE:
        return max(0.0, float(np.linalg.eigvalsh(M)[-1]))
    found = lanczos(lambda v: np.asarray(M @ v), len(M), restarts=_spectrum.LONG)
    return max(0.0, float(np.linalg.eigvalsh(M)[-1]) if found is None else found)


def _law(who: str, schedule: Schedule) -> Law:
    try:
        law = schedule.law
    except TopologyError as error:
        raise TopologyError(f"{who}: {error}") from None
    _need_rows(who, schedule, row_sums(law.mean))
    return law


def _need_rows(who: str, schedule: Schedule, sums: Floats) -> None:
    if np.abs(sums - 1.0).max() > TOLERANCE:
        raise TopologyError(
            f"{who} needs rows of W that sum to 1, and those of {schedule.name} do not, so a "
            "constant does not stay put; use weights='metropolis_hastings' or 'sinkhorn'"
        )
