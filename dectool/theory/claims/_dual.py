"""Published matrices of algorithms that invert local gradients: D-ADMM and SSDA."""

from __future__ import annotations

import numpy as np

from dectool.algorithms import SSDA, DecentralizedADMM
from dectool.errors import ArgumentError, TopologyError
from dectool.problems import Problem
from dectool.theory._arguments import whole
from dectool.theory._evidence import Check, Evidence
from dectool.theory._iteration import rate
from dectool.theory.claims._blocks import blocks
from dectool.theory.claims._given import checked_quadratic, checked_rate, checked_topology
from dectool.theory.claims._linear import powers
from dectool.topology import Topology, ring


def admm_is_its_block_matrix(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    penalty: float = 0.5,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of D-ADMM on quadratics, and its rate, against a matrix power.

    .. math:: \begin{pmatrix} x \\ \phi \end{pmatrix}^{k} - \begin{pmatrix} x \\ \phi
       \end{pmatrix}^* = \begin{pmatrix} c M L_+ & -M \\ c^2 L_- M L_+ & I - c L_- M
       \end{pmatrix}^k \left( \begin{pmatrix} x \\ \phi \end{pmatrix}^0 - \begin{pmatrix} x \\ \phi
       \end{pmatrix}^* \right), \qquad M = (H + 2 c D)^{-1}, \quad L_\pm = D \pm A

    where A and D are the adjacency and the degrees of the graph, c is ``penalty``, and in the end
    :math:`\phi^* = b - H x^*`. The rate is the largest modulus of an eigenvalue, but for one
    eigenvalue 1 for each variable, which belong to the sum of φ.

    Args:
        topology: Undirected and connected; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        penalty: Penalty c.
        steps: Steps of the run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: The graph is directed.

    Example:
        >>> bool(admm_is_its_block_matrix().verdict)
        True

    References:
        W. Shi, Q. Ling, K. Yuan, G. Wu & W. Yin, On the linear convergence of the ADMM in
        decentralized consensus optimization, IEEE TSP 62(7), 2014.
    """
    graph = checked_topology(topology, ring(8))
    if graph.is_directed:
        raise TopologyError(f"D-ADMM is for undirected graphs, and {graph.name} is directed")
    quadratic, c = checked_quadratic(problem, graph.size), checked_rate("penalty", penalty)
    steps = whole("steps", steps, 1)
    _, H, b = blocks(quadratic, graph)
    adjacency = np.zeros((graph.size, graph.size))
    adjacency[graph.edges.receivers, graph.edges.senders] = 1.0
    D = np.kron(np.diag(adjacency.sum(axis=1)), np.eye(quadratic.dim))
    A, eye = np.kron(adjacency, np.eye(quadratic.dim)), np.eye(len(b))
    M, plus, minus = np.linalg.inv(H + 2 * c * D), D + A, D - A
    matrix = np.block([[c * M @ plus, -M], [c**2 * minus @ M @ plus, eye - c * minus @ M]])
    optimum = np.tile(quadratic.optimum, graph.size)
    end = np.concatenate([optimum, b - H @ optimum])
    s = np.concatenate([quadratic.initial(quadratic.ranks).ravel(), np.zeros(len(b))])
    iterates = [s[: len(b)]]
    for _ in range(steps):
        s = end + matrix @ (s - end)
        iterates.append(s[: len(b)])
    algorithm = DecentralizedADMM(penalty=c)
    found = powers(algorithm, quadratic, graph, np.array(iterates), matrix, quadratic.dim)
    return Evidence(
        f"D-ADMM on {graph.name} with penalty {c:g} is its block matrix (Shi, Ling, Yuan, Wu & Yin "
        "2014)",
        found.checks,
        (found.curve,),
        y="distance from the optimum",
    )


def ssda_is_its_block_matrix(
    topology: Topology | None = None, problem: Problem | None = None, *, steps: int = 50
) -> Evidence:
    r"""Check every iterate of SSDA on quadratics, its rate, and the bound of its rate.

    .. math:: \begin{pmatrix} y^{k+1} \\ y^k \end{pmatrix} - y^* = \begin{pmatrix} (1 + \theta) P
       & -\theta P \\ I & 0 \end{pmatrix} \left( \begin{pmatrix} y^k \\ y^{k-1} \end{pmatrix}
       - y^* \right), \qquad P = I - \eta K H^{-1}, \quad K = I - W

    with the parameters of the paper, :math:`y^* = H x^* - b`, and :math:`x^{k+1} = H^{-1} (z^k +
    b)`. One eigenvalue 1 for each variable belongs to the sum of y; the largest modulus of the
    others is the rate, at most

    .. math:: 1 - \sqrt{\gamma / \kappa}, \qquad \gamma = \frac{1 - \lambda_2}{1 - \lambda_n},
       \quad \kappa = \frac{\max_i L_i}{\min_i \mu_i}

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic` with positive definite local curvatures;
            default: eight scalar ones, or random ones for another number of ranks.
        steps: Steps of the run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic.

    Example:
        >>> bool(ssda_is_its_block_matrix().verdict)
        True

    References:
        K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, Optimal algorithms for smooth and
        strongly convex distributed optimization in networks, ICML 2017.
    """
    graph = checked_topology(topology, ring(8))
    quadratic, steps = checked_quadratic(problem, graph.size), whole("steps", steps, 1)
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"SSDA needs symmetric doubly stochastic weights, and those of {graph.name} are not"
        )
    W, H, b = blocks(quadratic, graph)
    curvatures = np.linalg.eigvalsh(H)
    if curvatures[0] <= 0.0:
        raise ArgumentError(
            f"SSDA needs strongly convex local functions, and one of {quadratic!r} has the "
            f"curvature {curvatures[0]:g}; make h positive"
        )
    eye, gaps = np.eye(len(b)), np.sort(1.0 - np.linalg.eigvalsh(graph.to_dense()))
    root = float(np.sqrt(gaps[1] / gaps[-1] * curvatures[0] / curvatures[-1]))
    eta, theta = curvatures[0] / gaps[-1], (1.0 - root) / (1.0 + root)
    P = eye - eta * (eye - W) @ np.linalg.inv(H)
    matrix = np.block([[(1 + theta) * P, -theta * P], [eye, np.zeros_like(eye)]])
    optimum = np.tile(quadratic.optimum, graph.size)
    dual = H @ optimum - b
    s, iterates = np.zeros(2 * len(b)), [np.ravel(quadratic.initial(quadratic.ranks))]
    for _ in range(steps):
        z = (1 + theta) * s[: len(b)] - theta * s[len(b) :]
        iterates.append(np.asarray(np.linalg.solve(H, z + b), np.float64))
        s = np.tile(dual, 2) + matrix @ (s - np.tile(dual, 2))
    algorithm = SSDA.for_problem(quadratic, graph)
    found = powers(algorithm, quadratic, graph, np.array(iterates), matrix, quadratic.dim)
    # A double root is found to the square root of rounding.
    bound = Check.at_most(
        "SSDA: rate", rate(algorithm, quadratic, graph), 1.0 - root, tolerance=1e-6
    )
    return Evidence(
        f"SSDA on {graph.name} is its block matrix, and contracts by 1 - sqrt(gamma/kappa) = "
        f"{1 - root:.9g} or faster (Scaman et al. 2017)",
        (*found.checks, bound),
        (found.curve,),
        y="distance from the optimum",
    )
