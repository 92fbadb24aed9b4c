"""Gradient tracking, on undirected and directed graphs: matrices, and what is conserved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dectool import algorithms
from dectool.errors import TopologyError
from dectool.problems import Problem, Quadratic
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._blocks import Blocks, blocks
from dectool.theory.claims._given import (
    checked_problem,
    checked_quadratic,
    checked_rate,
    checked_topology,
)
from dectool.theory.claims._linear import Found, powers
from dectool.theory.claims._trajectories import states
from dectool.topology import Topology, from_graph, random_digraph, ring

ON_ONE = ("DIGing", "SemiATCGradientTracking", "ATCGradientTracking")
ON_TWO = ("AB", "PushPull", "ATCPushPull")
BY_PUSH_SUM = ("PushDIGing", "ADDOPT")


def gradient_tracking_is_its_block_matrix(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.05,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of gradient tracking on quadratics, and its rate.

    .. math:: \begin{pmatrix} x^{k+1} - x^* \\ y^{k+1} \end{pmatrix} = \begin{pmatrix}
       A & -\alpha B \\ D H (A - I) & E - \alpha D H B \end{pmatrix}
       \begin{pmatrix} x^k - x^* \\ y^k \end{pmatrix}

    with (A, B, D, E) = (W, I, I, W) for DIGing, (W, W, I, W) for adapt-then-combine in x, and
    (W, W, W, W) in y too. The rate is the largest modulus of an eigenvalue, but for one
    eigenvalue 1 for each variable, which belongs to the sum of what tracks.

    Args:
        topology: With doubly stochastic weights; default: a ring of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not doubly stochastic.

    Example:
        >>> bool(gradient_tracking_is_its_block_matrix().verdict)
        True

    References:
        A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017; P. Di Lorenzo & G. Scutari,
        IEEE T-SIPN 2(2), 2016; J. Xu, S. Zhu, Y. C. Soh & L. Xie, CDC 2015.
    """
    graph = checked_topology(topology, ring(8))
    if not graph.is_doubly_stochastic:
        raise TopologyError(
            f"{graph.name} has weights that are not doubly stochastic, which these methods need; "
            "see push_pull_is_its_block_matrix for directed graphs"
        )
    quadratic = checked_quadratic(problem, graph.size)
    found = _powers(ON_ONE, graph, graph, graph, quadratic, checked_rate("lr", lr), steps)
    return _evidence(
        f"gradient tracking on {graph.name} with lr={lr:g} is a power of its block matrix (Nedić, "
        "Olshevsky & Shi 2017, Di Lorenzo & Scutari 2016, Xu et al. 2015)",
        found,
    )


def push_pull_is_its_block_matrix(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.02,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of AB and push-pull on quadratics, and their rates.

    .. math:: \begin{pmatrix} x^{k+1} - x^* \\ y^{k+1} \end{pmatrix} = \begin{pmatrix}
       R & -\alpha B \\ D H (R - I) & C - \alpha D H B \end{pmatrix}
       \begin{pmatrix} x^k - x^* \\ y^k \end{pmatrix}

    with (B, D) = (I, I) for AB, (R, I) for push-pull, and (R, C) for adapt-then-combine in both;
    R has the weights 1/(1 + in-degree), and C has 1/(1 + out-degree). The rate is the largest
    modulus of an eigenvalue, but for one eigenvalue 1 for each variable.

    Args:
        topology: Strongly connected, whose weights do not matter; default: a digraph of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(push_pull_is_its_block_matrix().verdict)
        True

    References:
        R. Xin & U. A. Khan, IEEE L-CSS 2(3), 2018; S. Pu, W. Shi, J. Xu & A. Nedić, IEEE TAC
        66(1), 2021.
    """
    graph = checked_topology(topology, random_digraph(8, 0.3, seed=0))
    pull, push = (
        from_graph(graph.graph, weights=weights, name=graph.name)
        for weights in ("uniform", "uniform_push")
    )
    quadratic = checked_quadratic(problem, graph.size)
    found = _powers(ON_TWO, pull, pull, push, quadratic, checked_rate("lr", lr), steps)
    return _evidence(
        f"AB and push-pull on {graph.name} with lr={lr:g} are powers of their block matrices (Xin "
        "& Khan 2018, Pu, Shi, Xu & Nedić 2021)",
        found,
    )


def push_sum_tracking_tends_to_its_block_matrix(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.02,
    steps: int = 50,
) -> Evidence:
    r"""Check every iterate of Push-DIGing and ADD-OPT on quadratics, and their rates.

    With the weights :math:`v^k = C^k 1`, which tend to :math:`n \pi` with :math:`C \pi = \pi`, and
    :math:`S_k = \operatorname{diag}(v^k)^{-1}`, each step is

    .. math:: \begin{pmatrix} x^{k+1} - x^* \\ y^{k+1} \end{pmatrix} = \begin{pmatrix}
       A_k & -\alpha B_k \\ H (A_k - I) & C - \alpha H B_k \end{pmatrix}
       \begin{pmatrix} x^k - x^* \\ y^k \end{pmatrix}, \qquad A_k = S_{k+1} C S_k^{-1}

    with :math:`B_k = S_{k+1} C` for Push-DIGing and :math:`S_{k+1}` for ADD-OPT. In the limit of
    the weights it is one matrix, and the rate is the largest modulus of an eigenvalue of it, but
    for one eigenvalue 1 for each variable.

    Args:
        topology: Strongly connected, whose weights do not matter; default: a digraph of 8.
        problem: A :class:`dectool.problems.Quadratic`; default: eight scalar ones, or random ones
            for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(push_sum_tracking_tends_to_its_block_matrix().verdict)
        True

    References:
        A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017; C. Xi, R. Xin & U. A. Khan,
        IEEE TAC 63(5), 2018.
    """
    graph = checked_topology(topology, random_digraph(8, 0.3, seed=0))
    push = from_graph(graph.graph, weights="uniform_push", name=graph.name)
    quadratic, alpha = checked_quadratic(problem, graph.size), checked_rate("lr", lr)
    steps, q = whole("steps", steps, 1), blocks(quadratic, push)
    values, vectors = np.linalg.eig(push.to_dense())
    pi = vectors[:, np.argmax(values.real)].real
    limit = np.repeat(pi / pi.sum() * graph.size, quadratic.dim)
    found = []
    for name in BY_PUSH_SUM:
        x, y, optimum = _start(quadratic, q)
        s, v, reached = np.concatenate([x - optimum, y]), np.ones(len(x)), [x]
        for _ in range(steps):
            after = q.W @ v
            s = _push_sum_form(name, q, v, after, alpha) @ s
            v = after
            reached.append(optimum + s[: len(x)])
        matrix = _push_sum_form(name, q, limit, limit, alpha)
        method = algorithms.get(name, lr=alpha)
        found.append(powers(method, quadratic, push, np.array(reached), matrix, quadratic.dim))
    return _evidence(
        f"Push-DIGing and ADD-OPT on {graph.name} with lr={lr:g} tend to powers of their block "
        "matrices (Nedić, Olshevsky & Shi 2017, Xi, Xin & Khan 2018)",
        found,
    )


def tracked_gradients_sum_to_the_gradients(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.02,
    steps: int = 50,
) -> Evidence:
    r"""Check that what tracks sums to the gradients over ranks, in every step.

    .. math:: \sum_i y_i^k = \sum_i \nabla f_i(x_i^k)

    for gradient tracking where the weights are doubly stochastic, and for AB, push-pull,
    Push-DIGing and ADD-OPT on any strongly connected graph. It holds whether a method converges
    or not, and is what leads it to the optimum.

    Args:
        topology: Strongly connected; default: a digraph of 8.
        problem: n local functions, quadratic or not; default: eight scalar quadratics, or random
            ones for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(tracked_gradients_sum_to_the_gradients().verdict)
        True

    References:
        P. Di Lorenzo & G. Scutari, NEXT: in-network nonconvex optimization, IEEE T-SIPN 2(2),
        2016; A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017.
    """
    graph = checked_topology(topology, random_digraph(8, 0.3, seed=0))
    functions = checked_problem(problem, graph.size)
    alpha, steps = checked_rate("lr", lr), whole("steps", steps, 1)
    push = graph
    if not graph.is_column_stochastic:
        push = from_graph(graph.graph, weights="uniform_push", name=graph.name)
    names = [*(ON_ONE if graph.is_doubly_stochastic else ()), *ON_TWO, *BY_PUSH_SUM]
    checks, curves = [], []
    for name in names:
        run = states(algorithms.get(name, lr=alpha), functions, push, steps)
        tracked = np.array([s["y"].sum(axis=0) for s in run])
        gradients = np.array([_sum_of_gradients(functions, s["x"]) for s in run])
        scale = float(np.abs([s["y"] for s in run]).max()) * graph.size or 1.0
        apart = np.abs(tracked - gradients).max(axis=1)
        worst = int(np.argmax(apart))
        checks.append(
            Check.equal(
                f"{name}: sum of what tracks less that of gradients (worst step: {worst}; "
                "relative to what is summed)",
                float(apart[worst]),
                0.0,
                tolerance=1e-12,
                scale=scale,
            )
        )
        places = np.arange(steps + 1.0)
        curves.append(
            Curve(
                name,
                places,
                np.linalg.norm(tracked, axis=1),
                np.linalg.norm(gradients, axis=1),
            )
        )
    return Evidence(
        f"what tracks on {graph.name} sums to the gradients in every step (Di Lorenzo & Scutari "
        "2016)",
        tuple(checks),
        tuple(curves),
        y="norm of the sum",
    )


def _sum_of_gradients(problem: Problem, x: Floats) -> Floats:
    points = x.reshape(problem.size, *problem.shape)
    g = np.asarray(problem.grad(points, problem.ranks)).reshape(problem.size, -1)
    total: Floats = g.sum(axis=0)
    return total


def _powers(
    names: Sequence[str],
    graph: Topology,
    pull: Topology,
    push: Topology,
    quadratic: Quadratic,
    alpha: float,
    steps: int,
) -> list[Found]:
    steps = whole("steps", steps, 1)
    q, C = blocks(quadratic, pull), blocks(quadratic, push).W
    found = []
    for name in names:
        matrix = _tracking_form(name, q, C, alpha)
        x, y, optimum = _start(quadratic, q)
        s, reached = np.concatenate([x - optimum, y]), [x]
        for _ in range(steps):
            s = matrix @ s
            reached.append(optimum + s[: len(x)])
        method = algorithms.get(name, lr=alpha)
        found.append(powers(method, quadratic, graph, np.array(reached), matrix, quadratic.dim))
    return found


def _start(quadratic: Quadratic, q: Blocks) -> tuple[Floats, Floats, Floats]:
    """Return the first x, the gradients there, and the optimum for each rank."""
    x = np.asarray(quadratic.initial(quadratic.ranks), np.float64).ravel()
    return x, q.H @ x - q.b, np.tile(quadratic.optimum, quadratic.size)


def _form(A: Floats, B: Floats, D: Floats, C: Floats, H: Floats, alpha: float) -> Floats:
    eye = np.eye(len(H))
    return np.block([[A, -alpha * B], [D @ H @ (A - eye), C - alpha * D @ H @ B]])


def _tracking_form(name: str, q: Blocks, C: Floats, alpha: float) -> Floats:
    """Return the matrix by W, or by R and C."""
    R, eye = q.W, np.eye(len(q.b))
    B = eye if name in ("DIGing", "AB") else R
    # Where y is combined after it is adapted, so are the differences of the gradients.
    D = C if name.startswith("ATC") else eye
    return _form(R, B, D, C, q.H, alpha)


def _push_sum_form(name: str, q: Blocks, v: Floats, after: Floats, alpha: float) -> Floats:
    S, C, eye = np.diag(1.0 / after), q.W, np.eye(len(q.b))
    B = S @ C if name == "PushDIGing" else S
    return _form(S @ C @ np.diag(v), B, eye, C, q.H, alpha)


def _evidence(claim: str, found: Sequence[Found]) -> Evidence:
    return Evidence(
        claim,
        tuple(check for one in found for check in one.checks),
        tuple(one.curve for one in found),
        y="distance from the optimum",
    )
