"""EXTRA, exact diffusion, NIDS, D² and DLM: their matrices, and how large steps may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dectool import algorithms
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Problem, Quadratic
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory._iteration import rate
from dectool.theory._stability import largest_stable_lr
from dectool.theory.claims._blocks import Blocks, blocks
from dectool.theory.claims._given import checked_quadratic, checked_rate, checked_topology
from dectool.theory.claims._linear import largest_step, powers, radius
from dectool.topology import Topology, from_matrix, ring

NAMES = ("EXTRA", "ExactDiffusion", "NIDS", "D2")


def exact_methods_are_their_block_matrices(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.1,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of EXTRA, exact diffusion, NIDS and D² on quadratics, and their rates.

    .. math:: x^{k+2} - x^* = P (x^{k+1} - x^*) - Q (x^k - x^*)

    with :math:`P = I + W - \alpha H` and :math:`Q = \tilde W - \alpha H` for EXTRA,
    :math:`P = V (2 I - \alpha H)` and :math:`Q = V (I - \alpha H)` for the others, where V is
    :math:`\tilde W = (I + W) / 2` for exact diffusion and NIDS and W for D², from the first
    iterate that each has. The rate is the largest modulus of an eigenvalue of the companion
    matrix, but for one eigenvalue 1 for each variable.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic.

    Example:
        >>> bool(exact_methods_are_their_block_matrices().verdict)
        True

    References:
        W. Shi, Q. Ling, G. Wu & W. Yin, EXTRA, SIAM J. Optim. 25(2), 2015; K. Yuan, B. Ying, X.
        Zhao & A. H. Sayed, Exact diffusion, IEEE TSP 67(3), 2019; Z. Li, W. Shi & M. Yan, IEEE
        TSP 67(17), 2019; H. Tang, X. Lian, M. Yan, C. Zhang & J. Liu, D², ICML 2018.
    """
    graph, quadratic = _checked(topology, problem)
    alpha, steps = checked_rate("lr", lr), whole("steps", steps, 1)
    q = blocks(quadratic, graph)
    optimum = np.tile(quadratic.optimum, graph.size)
    x0 = np.asarray(quadratic.initial(quadratic.ranks)).ravel()
    half = (np.eye(len(q.b)) + q.W) / 2
    descended = x0 - alpha * (q.H @ x0 - q.b)
    first = {
        "EXTRA": q.W @ x0 + descended - x0,
        "ExactDiffusion": half @ descended,
        "NIDS": descended,
        "D2": q.W @ descended,
    }
    found = []
    for name in NAMES:
        M = _companion(name, q, alpha)
        s = np.concatenate([first[name] - optimum, x0 - optimum])
        iterates = [x0, first[name]]
        for _ in range(steps - 1):
            s = M @ s
            iterates.append(optimum + s[: len(x0)])
        method = algorithms.get(name, lr=alpha)
        found.append(powers(method, quadratic, graph, np.array(iterates), M, quadratic.dim))
    return Evidence(
        f"EXTRA, exact diffusion, NIDS and D² on {graph.name} with lr={alpha:g} are powers of "
        "their block matrices (Shi et al. 2015, Yuan et al. 2019, Li et al. 2019, Tang et al. "
        "2018)",
        tuple(check for one in found for check in one.checks),
        tuple(one.curve for one in found),
        y="distance from the optimum",
    )


def linearized_admm_is_its_block_matrix(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.25,
    penalty: float = 0.5,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of DLM on quadratics, and its rate, against a matrix power.

    .. math:: \begin{pmatrix} x - x^* \\ \phi - \phi^* \end{pmatrix}^{k+1} = \begin{pmatrix}
       I - M (H + c \mathcal L) & -M \\ c \mathcal L (I - M (H + c \mathcal L)) &
       I - c \mathcal L M \end{pmatrix} \begin{pmatrix} x - x^* \\ \phi - \phi^*
       \end{pmatrix}^k, \qquad M = \Big(2 c D + \frac1\alpha I\Big)^{-1}

    where D has the degrees of the graph, :math:`\mathcal L` is its Laplacian, c is ``penalty``,
    and in the end :math:`\phi^* = b - H x^*`. The rate is the largest modulus of an eigenvalue,
    but for one eigenvalue 1 for each variable, which belongs to the sum of φ.

    Args:
        topology: Undirected and connected, whose weights do not matter; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        penalty: Penalty c.
        steps: Steps of the run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: The graph is directed.

    Example:
        >>> bool(linearized_admm_is_its_block_matrix().verdict)
        True

    References:
        Q. Ling, W. Shi, G. Wu & A. Ribeiro, DLM: decentralized linearized alternating direction
        method of multipliers, IEEE TSP 63(15), 2015.
    """
    graph = checked_topology(topology, ring(8))
    if graph.is_directed:
        raise TopologyError(f"DLM is for undirected graphs, and {graph.name} is directed")
    quadratic, steps = checked_quadratic(problem, graph.size), whole("steps", steps, 1)
    alpha, c = checked_rate("lr", lr), checked_rate("penalty", penalty)
    q, size = blocks(quadratic, graph), graph.size * quadratic.dim
    adjacency = np.zeros((graph.size, graph.size))
    adjacency[graph.edges.receivers, graph.edges.senders] = 1.0
    degrees = np.repeat(adjacency.sum(axis=1), quadratic.dim)
    laplacian = np.diag(degrees) - np.kron(adjacency, np.eye(quadratic.dim))
    M, eye = np.diag(1.0 / (2.0 * c * degrees + 1.0 / alpha)), np.eye(size)
    descend = eye - M @ (q.H + c * laplacian)
    matrix = np.block([[descend, -M], [c * laplacian @ descend, eye - c * laplacian @ M]])
    optimum = np.tile(quadratic.optimum, graph.size)
    x0 = np.asarray(quadratic.initial(quadratic.ranks)).ravel()
    s, iterates = np.concatenate([x0 - optimum, q.H @ optimum - q.b]), [x0]
    for _ in range(steps):
        s = matrix @ s
        iterates.append(optimum + s[:size])
    dlm = algorithms.DLM(lr=alpha, penalty=c)
    found = powers(dlm, quadratic, graph, np.array(iterates), matrix, quadratic.dim)
    return Evidence(
        f"DLM on {graph.name} with lr={alpha:g} and penalty {c:g} is a power of its block matrix "
        "(Ling, Shi, Wu & Ribeiro 2015)",
        found.checks,
        (found.curve,),
        y="distance from the optimum",
    )


def exact_methods_outlast_their_theorems(
    topology: Topology | None = None, problem: Problem | None = None
) -> Evidence:
    r"""Check up to which step EXTRA and NIDS converge on quadratics, next to what is proved.

    .. math:: \text{EXTRA: } \alpha < \frac{2 \lambda_{\min}(\tilde W)}{L}, \qquad
       \text{NIDS: } \alpha < \frac2L, \qquad \tilde W = \frac{I + W}{2}

    with the largest smoothness L of a local function. The largest stable step is where the
    spectral radius of the block matrix comes to 1, and it is at least the bound: that of NIDS does
    not depend on the network, that of EXTRA does.

    Args:
        topology: With symmetric doubly stochastic weights, no eigenvalue -1; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic` with positive definite local curvatures;
            default: eight scalar ones, or random ones for another number of ranks.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic, or has an eigenvalue -1.

    Example:
        >>> bool(exact_methods_outlast_their_theorems().verdict)
        True

    References:
        W. Shi, Q. Ling, G. Wu & W. Yin, EXTRA, SIAM J. Optim. 25(2), 2015, Theorem 3.3; Z. Li,
        W. Shi & M. Yan, A decentralized proximal-gradient method with network independent
        step-sizes and separated convergence rates, IEEE TSP 67(17), 2019.
    """
    graph, quadratic = _checked(topology, problem)
    smallest, q = float(np.linalg.eigvalsh(graph.to_dense())[0]), blocks(quadratic, graph)
    if smallest < -1.0 + 1e-9:
        raise TopologyError(
            f"{graph.name} has an eigenvalue -1, so EXTRA and NIDS have no stable step; use "
            "topology.lazy()"
        )
    curvatures = np.linalg.eigvalsh(q.H)
    if curvatures[0] <= 0.0:
        raise ArgumentError(
            f"the theorems are for convex local functions, and one of {quadratic!r} has the "
            f"curvature {curvatures[0]:g}; make h positive"
        )
    L = float(curvatures[-1])
    bounds = {"EXTRA": (1.0 + smallest) / L, "NIDS": 2.0 / L}
    checks, curves = [], []
    for name, bound in bounds.items():
        method = algorithms.get(name, lr=bound)

        def matrix(lr: float, name: str = name) -> Floats:
            return _companion(name, q, lr)

        predicted = largest_step(matrix, quadratic.dim, bound / 4)
        largest = largest_stable_lr(method, quadratic, graph)
        checks += [
            Check.equal(f"{name}: largest stable step", largest, predicted, tolerance=1e-6),
            Check.at_least(f"{name}: largest stable step, next to the theorem", largest, bound),
        ]
        grid = np.linspace(0.1, 1.1, 11) * predicted
        curves.append(
            Curve(
                name,
                grid,
                np.array([rate(algorithms.get(name, lr=float(a)), quadratic, graph) for a in grid]),
                np.array([radius(matrix(float(a)), quadratic.dim) for a in grid]),
            )
        )
    return Evidence(
        f"EXTRA and NIDS on {graph.name} converge up to the steps of their theorems and beyond "
        "(Shi et al. 2015, Li et al. 2019)",
        tuple(checks),
        tuple(curves),
        x="step size",
        y="contraction per step",
        scale="linear",
    )


def d2_is_stable_above_minus_a_third(
    curvatures: Sequence[float] = (1e-6, 0.25, 0.5, 1.0), *, steps: int = 40
) -> Evidence:
    r"""Check that D² on quadratics of one curvature h is stable iff :math:`\lambda_n(W) > -1/3`.

    The mode of an eigenvalue λ of W, with :math:`a = \alpha h \le 1`, is

    .. math:: e^{k+2} = \lambda \big((2 - a) e^{k+1} - (1 - a) e^k\big), \qquad
       e^1 = \lambda (1 - a) e^0

    whose roots lie within 1 iff :math:`\lambda > -1 / (3 - 2 a)`, which is -1/3 for small steps.
    For them the larger root is :math:`|\lambda| + \sqrt{\lambda^2 + |\lambda|}` of a negative λ,
    and :math:`\sqrt \lambda` of a positive one. Measured is the disagreement of two ranks.

    Args:
        curvatures: Values of a, above 0 and at most 1.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(d2_is_stable_above_minus_a_third().verdict)
        True

    References:
        H. Tang, X. Lian, M. Yan, C. Zhang & J. Liu, D²: decentralized training over decentralized
        data, ICML 2018.
    """
    steps = whole("steps", steps, 1)
    if not len(curvatures) or not all(0.0 < a <= 1.0 for a in curvatures):
        raise ArgumentError(f"curvatures={curvatures!r} must be numbers above 0 and at most 1")
    pair = Quadratic(h=[[1.0], [1.0]], b=[[0.0], [0.0]])
    checks, curves = [], []
    for a in curvatures:
        d2 = algorithms.D2(lr=a)
        # Below -1 + 1e-9 the two ranks hardly average, and above 0 nothing is at stake.
        low, high = -1.0 + 1e-9, 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if rate(d2, pair, _pair(middle)) < 1.0 else (middle, high)
        checks.append(
            Check.equal(
                f"lr h = {a:g}: smallest eigenvalue that is stable",
                high,
                max(-1.0, -1.0 / (3.0 - 2.0 * a)),
                tolerance=1e-5,
            )
        )
    a = float(curvatures[0])
    for value in (-0.4, -0.3, 0.5):
        history = solve(
            algorithms.D2(lr=a),
            pair,
            topology=_pair(value),
            steps=steps,
            x0=[[1.0], [-1.0]],
            check=False,
        )
        e = [1.0, value * (1.0 - a)]
        while len(e) <= steps:
            e.append(value * ((2.0 - a) * e[-1] - (1.0 - a) * e[-2]))
        predicted = math.sqrt(2.0) * np.abs(e[: steps + 1])
        measured = history["consensus_error"]
        worst = int(np.argmax(np.abs(measured - predicted)))
        checks.append(
            Check.equal(
                f"eigenvalue {value:g}: disagreement (worst step: {worst}; relative to the "
                "largest)",
                float(measured[worst]),
                float(predicted[worst]),
                tolerance=1e-11,
                scale=float(predicted.max()),
            )
        )
        curves.append(Curve(f"eigenvalue {value:g}", np.arange(steps + 1.0), measured, predicted))
    return Evidence(
        "D² is stable for small steps iff the eigenvalues of W are above -1/3 (Tang et al. 2018)",
        tuple(checks),
        tuple(curves),
        y="disagreement",
    )


def _pair(value: float) -> Topology:
    """Return two ranks whose W has the eigenvalues 1 and ``value``."""
    own, other = (1.0 + value) / 2, (1.0 - value) / 2
    return from_matrix([[own, other], [other, own]], name=f"pair of eigenvalue {value:g}")


def _companion(name: str, q: Blocks, alpha: float) -> Floats:
    """Return the matrix on :math:`(x^{k+1}, x^k)`."""
    eye = np.eye(len(q.b))
    if name == "EXTRA":
        P, Q = eye + q.W - alpha * q.H, (eye + q.W) / 2 - alpha * q.H
    else:
        V = q.W if name == "D2" else (eye + q.W) / 2
        P, Q = V @ (2 * eye - alpha * q.H), V @ (eye - alpha * q.H)
    return np.block([[P, -Q], [eye, np.zeros_like(eye)]])


def _checked(topology: Topology | None, problem: Problem | None) -> tuple[Topology, Quadratic]:
    graph = checked_topology(topology, ring(8))
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"{graph.name} has weights that are not symmetric and doubly stochastic, which these "
            "methods need; use an undirected graph with weights='metropolis_hastings'"
        )
    return graph, checked_quadratic(problem, graph.size)
