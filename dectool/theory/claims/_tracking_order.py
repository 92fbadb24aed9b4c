"""How many steps gradient tracking takes on sparse graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from dectool.algorithms import ATCGradientTracking
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Quadratic
from dectool.theory._arguments import Floats, real
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._iteration import rate
from dectool.theory.claims._given import checked_topologies
from dectool.topology import Topology, ring


def gradient_tracking_needs_one_over_p_steps(
    topologies: Sequence[Topology] | None = None, *, condition: float = 4.0
) -> Evidence:
    r"""Check that gradient tracking needs 1/p steps at its best step size, and not 1/p².

    With :math:`p = 1 - \rho^2`, that is the published order without noise, on graphs whose
    eigenvalues stay away from -1. All local functions have the curvatures 1 and κ in two
    coordinates. Then modes decouple into pairs of x and y,

    .. math:: \begin{pmatrix} \lambda & -\alpha \lambda \\
       \lambda h (\lambda - 1) & \lambda (1 - \alpha \lambda h) \end{pmatrix}, \qquad
       h \in \{1, \kappa\}

    and the best α is searched for by the largest of their spectral radii. At it, the rate on the
    first topology is held against :func:`dectool.theory.rate` of the library's code; then the
    exponent of 1/p in 1 / (1 - rate) is fitted.

    Args:
        topologies: At least three, with symmetric doubly stochastic weights that average, and
            different p; default: rings of 16 to 128.
        condition: κ, at least 1.

    Raises:
        ArgumentError: There are too few topologies, or the condition is below 1.
        TopologyError: Some W is not symmetric and doubly stochastic, or does not average.

    Example:
        >>> gradient_tracking_needs_one_over_p_steps().verdict.agrees
        True

    References:
        A. Koloskova, T. Lin & S. U. Stich, An improved analysis of gradient tracking for
        decentralized machine learning, NeurIPS 2021.
    """
    condition = real("condition", condition)
    if not 1.0 <= condition < math.inf:
        raise ArgumentError(f"condition={condition} must be finite and at least 1")
    graphs = _checked(topologies)
    h = np.array([1.0, condition])
    found = [_best(_spectrum(graph), h) for graph in graphs]
    first, lr = graphs[0], found[0][1]
    n = first.size
    problem = Quadratic(h=np.tile(h, (n, 1)), b=np.zeros((n, 2)))
    inverse = np.array([1.0 / (1.0 - graph.rho**2) for graph in graphs])
    steps = np.array([1.0 / (1.0 - factor) for factor, _ in found])
    exponent = float(np.polyfit(np.log(inverse), np.log(steps), 1)[0])
    order = np.argsort(inverse)
    scale = float(np.max(steps / inverse))
    return Evidence(
        "gradient tracking needs O(1/p) steps, p = 1 - rho^2 (Koloskova, Lin & Stich 2021)",
        (
            Check.equal(
                f"rate on {first.name} at its best step, of the code and of its modes",
                rate(ATCGradientTracking(lr=lr), problem, first),
                found[0][0],
                tolerance=1e-6,
            ),
            Check.at_most("exponent of 1/p", exponent, 1.0, tolerance=0.05),
        ),
        (Curve("steps", inverse[order], steps[order], scale * inverse[order]),),
        x="1/p",
        y="steps for a factor of e",
        scale="loglog",
    )


def _checked(topologies: Sequence[Topology] | None) -> list[Topology]:
    graphs = checked_topologies(topologies, [ring(n) for n in (16, 32, 64, 128)])
    for graph in graphs:
        if not (graph.is_symmetric and graph.is_doubly_stochastic and graph.rho < 1.0 - 1e-12):
            raise TopologyError(
                f"{graph.name} must have symmetric doubly stochastic weights that average, rho < 1"
            )
    if len({round(graph.rho, 9) for graph in graphs}) < 3:
        raise ArgumentError(
            f"topologies are {len(graphs)}, and an exponent needs three of different rho, or more"
        )
    return graphs


def _spectrum(graph: Topology) -> Floats:
    """Return the eigenvalues of W, ascending."""
    return np.linalg.eigvalsh(graph.to_dense()).astype(np.float64)


def _best(values: Floats, h: Floats) -> tuple[float, float]:
    """Return the least rate over all step sizes, and its step size."""
    line = values[:-1, None]

    def factor(log_lr: float) -> float:
        lr = math.exp(log_lr)
        # The roots of r^2 - t r + d, for each mode of the network and each curvature.
        trace = line * (2.0 - lr * line * h)
        root = np.sqrt((trace**2 / 4.0 - line**2 * (1.0 - lr * h)).astype(np.complex128))
        network = np.maximum(np.abs(trace / 2.0 + root), np.abs(trace / 2.0 - root))
        return float(max(network.max(), np.abs(1.0 - lr * h).max()))

    ends = math.log(1e-4 * (1.0 - values[-2]) / h[-1]), math.log(2.0 / h[-1])
    grid = np.linspace(*ends, 200)
    least = int(np.argmin([factor(at) for at in grid]))
    around = grid[max(least - 1, 0)], grid[min(least + 1, 199)]
    found = optimize.minimize_scalar(
        factor, bounds=around, method="bounded", options={"xatol": 1e-6}
    )
    return float(found.fun), math.exp(float(found.x))
