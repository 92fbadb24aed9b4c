"""How long stochastic gradients take to gain from all ranks: linear speed-up, and its onset."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dectool.algorithms import DGD, Algorithm, ExactDiffusion
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Quadratic
from dectool.theory._arguments import Floats, real
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._transient import transient_time
from dectool.theory.claims._given import checked_topologies
from dectool.topology import Topology, hypercube, ring, torus

_FACTOR = 2.0
_LARGEST = 2**62
_Modes = Callable[[Floats, Floats, float, int], Floats]
"""Mean squares of all modes of given eigenvalues and linear terms, for a step and a horizon."""


def sgd_gains_after_n3_over_gap4(
    topologies: Sequence[Topology] | None = None, *, heterogeneity: float = 1.0
) -> Evidence:
    r"""Check that decentralized SGD gains from all ranks after n³/(1-ρ)⁴ steps, but for a factor.

    That is the published order for convex functions and a step of :math:`\sqrt{n/T}`, with local
    functions that disagree. Here all have the curvature 1, disagree along the slowest mode
    of W, and gradients have the variance 1. Then modes decouple, and of each, bias and variance
    after T steps are a geometric series. First their transient is held against
    :func:`dectool.theory.transient_time` of the library's code, on a small ring; then exponents of
    n and of 1/(1-ρ) are fitted to all topologies at once.

    Args:
        topologies: At least four, with symmetric doubly stochastic weights, of different sizes and
            gaps; default: rings, tori and hypercubes. A bound of an order says something of large
            graphs with small gaps.
        heterogeneity: Mean squared norm of the local gradients at the optimum, at least 0.

    Raises:
        ArgumentError: There are too few topologies, or the heterogeneity is negative.
        TopologyError: Some W is not symmetric and doubly stochastic, or does not average.

    Example:
        >>> sgd_gains_after_n3_over_gap4().verdict.agrees
        True

    References:
        K. Yuan, S. A. Alghunaim & X. Huang, Removing data heterogeneity influence enhances network
        topology dependence of decentralized SGD, JMLR 24, 2023, arXiv:2105.08023.
    """
    return _evidence("decentralized SGD", DGD(lr=0.1), _descent, 4.0, topologies, heterogeneity)


def exact_diffusion_gains_after_n3_over_gap2(
    topologies: Sequence[Topology] | None = None, *, heterogeneity: float = 1.0
) -> Evidence:
    r"""Check that exact diffusion gains from all ranks after n³/(1-ρ)² steps, but for a factor.

    As :func:`sgd_gains_after_n3_over_gap4`, with half the exponent of the gap, since
    only noise keeps the ranks apart: the transient is the same without heterogeneity, which is
    checked, too.

    Args:
        topologies: As there.
        heterogeneity: As there.

    Raises:
        ArgumentError: As there.
        TopologyError: As there.

    Example:
        >>> exact_diffusion_gains_after_n3_over_gap2().verdict.agrees
        True

    References:
        K. Yuan, S. A. Alghunaim & X. Huang, Removing data heterogeneity influence enhances network
        topology dependence of decentralized SGD, JMLR 24, 2023, arXiv:2105.08023.
    """
    return _evidence(
        "exact diffusion", ExactDiffusion(lr=0.1), _exact_diffusion, 2.0, topologies, heterogeneity
    )


def _evidence(
    name: str,
    algorithm: Algorithm,
    modes: _Modes,
    power: float,
    topologies: Sequence[Topology] | None,
    heterogeneity: float,
) -> Evidence:
    graphs = _checked(topologies, heterogeneity)
    small = ring(8)
    spectra = [_spectrum(graph, heterogeneity) for graph in (small, *graphs)]
    own, *times = (_transient(modes, *spectrum) for spectrum in spectra)
    vectors = np.linalg.eigh(small.to_dense())[1]
    problem = Quadratic(h=np.ones((8, 1)), b=(vectors @ spectra[0][1])[:, None])
    checks = [
        Check.equal(
            "transient on a ring of 8, of the code and of its modes",
            transient_time(algorithm, problem, small),
            own,
            tolerance=1e-3,
        )
    ]
    if power == 2.0:
        alike = _transient(modes, *_spectrum(graphs[-1], 0.0))
        checks.append(
            Check.equal(
                f"transient on {graphs[-1].name}, with and without heterogeneity",
                times[-1],
                alike,
                tolerance=1e-3,
            )
        )
    sizes = np.array([graph.size for graph in graphs], np.float64)
    gaps = np.array([1.0 - graph.rho for graph in graphs])
    rows = np.stack([np.ones(len(graphs)), np.log(sizes), -np.log(gaps)], axis=1)
    fitted = np.linalg.lstsq(rows, np.log(times))[0]
    checks += [
        Check.at_most("exponent of n", float(fitted[1]), 3.0),
        Check.at_most("exponent of 1/(1 - rho)", float(fitted[2]), power),
    ]
    order = sizes**3 / gaps**power
    ranked = np.argsort(order)
    measured = np.array(times, np.float64)
    scale = float(np.max(measured / order))
    return Evidence(
        f"{name} reaches linear speed-up after O(n^3/(1 - rho)^{power:g}) steps of size "
        "sqrt(n/T) (Yuan, Alghunaim & Huang 2023)",
        tuple(checks),
        (Curve("transient", order[ranked], measured[ranked], scale * order[ranked]),),
        x=f"n^3/(1 - rho)^{power:g}",
        y="steps",
        scale="loglog",
    )


def _checked(topologies: Sequence[Topology] | None, heterogeneity: float) -> list[Topology]:
    if not 0.0 <= real("heterogeneity", heterogeneity) < math.inf:
        raise ArgumentError(f"heterogeneity={heterogeneity} must be finite and at least 0")
    if topologies is None:
        return [
            *(ring(n) for n in (16, 32, 64)),
            *(torus(m, m) for m in (8, 12, 16)),
            *(hypercube(d) for d in (5, 6, 7, 8)),
        ]
    graphs = checked_topologies(topologies, ())
    for graph in graphs:
        if not (graph.is_symmetric and graph.is_doubly_stochastic and graph.rho < 1.0 - 1e-12):
            raise TopologyError(
                f"{graph.name} must have symmetric doubly stochastic weights that average, rho < 1"
            )
    different = {(graph.size, round(graph.rho, 9)) for graph in graphs}
    if len(different) < 4 or len({size for size, _ in different}) < 2:
        raise ArgumentError(
            f"topologies are {len(graphs)}, and two exponents need four of different sizes and "
            "gaps, or more"
        )
    return graphs


def _spectrum(graph: Topology, heterogeneity: float) -> tuple[Floats, Floats]:
    """Return the eigenvalues of W, ascending, and the linear terms in its eigenvectors."""
    values: Floats = np.linalg.eigvalsh(graph.to_dense()).astype(np.float64)
    terms = np.zeros(graph.size)
    terms[-2] = math.sqrt(graph.size * heterogeneity)
    return values, terms


def _transient(modes: _Modes, values: Floats, terms: Floats) -> int:
    """Return from which horizon on the mean square error is at most twice that of all-reduce."""
    n = len(values)
    # Equal eigenvalues with equal terms are one mode.
    keys, first, counts = np.unique(
        np.stack([values.round(12), terms]), axis=1, return_index=True, return_counts=True
    )
    del keys
    distinct, driven = values[first], terms[first]

    def fails(horizon: int) -> bool:
        lr = min(0.5, math.sqrt(n / horizon))
        alone = lr * -math.expm1(2 * horizon * math.log1p(-lr)) / (2.0 - lr)
        squares = modes(distinct, driven, lr, horizon)
        return not float(counts @ squares) <= _FACTOR * alone

    high = _LARGEST
    while high > 1 and not fails(high // 2):
        high //= 2
    low = high // 2
    while high - low > max(1, low // 2000):
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


def _descent(values: Floats, terms: Floats, lr: float, steps: int) -> Floats:
    """From 0: x' = (l - lr) x + lr (b - xi)."""
    r = values - lr
    if np.abs(r).max() >= 1.0:
        return np.full(len(r), math.inf)
    with np.errstate(under="ignore"):
        left = r ** float(steps)
    squares: Floats = (lr * terms / (1.0 - r) * (1.0 - left)) ** 2
    squares += lr**2 / (1.0 - r**2) * (1.0 - left**2)
    return squares


def _exact_diffusion(values: Floats, terms: Floats, lr: float, steps: int) -> Floats:
    """From 0: psi' = (1 - lr) x + lr (b - xi), x' = w (psi' + x - psi), w = (1 + l)/2."""
    n, w = len(values), (1.0 + values) / 2.0
    A: Any = np.zeros((n, 2, 2))
    A[:, 0, 0], A[:, 0, 1], A[:, 1, 0] = w * (2.0 - lr), -w, 1.0 - lr
    g = lr * np.stack([w, np.ones(n)], axis=1)
    # On the mean x = psi at any time, and what is left is gradient descent.
    mean = w > 1.0 - 1e-12
    A[mean], g[mean] = [[1.0 - lr, 0.0], [0.0, 0.0]], [lr, 0.0]
    c, Q = g * terms[:, None], g[:, :, None] * g[:, None, :]
    m, C = np.zeros((n, 2)), np.zeros((n, 2, 2))
    # The map of 2^j steps, for each binary digit of the number of steps.
    while steps:
        if steps % 2:
            m = np.einsum("nij,nj->ni", A, m) + c
            C = A @ C @ A.swapaxes(1, 2) + Q
        c = np.einsum("nij,nj->ni", A, c) + c
        Q = A @ Q @ A.swapaxes(1, 2) + Q
        A, steps = A @ A, steps // 2
    squares: Floats = m[:, 0] ** 2 + C[:, 0, 0]
    return squares
