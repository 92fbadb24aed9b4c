"""Methods that are others in disguise: the same iterates, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from dectool import algorithms
from dectool.algorithms import Algorithm
from dectool.errors import TopologyError
from dectool.problems import Problem
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Curve, Evidence
from dectool.theory.claims._given import checked_problem, checked_rate, checked_topology
from dectool.theory.claims._trajectories import iterates
from dectool.topology import Topology, complete, exponential, path, ring

TOLERANCE = 1e-11


def uncompressed_methods_are_their_originals(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.05,
    steps: int = 60,
) -> Evidence:
    r"""Check that LEAD, CEDAS, BEER and CHOCO-SGD without compression are what they extend.

    With the identity for a compressor and full steps of gossip, LEAD has the iterates of NIDS,
    CEDAS those of exact diffusion, CHOCO-SGD those of adapt-then-combine, and DCD those of DGD.
    BEER, whose replicas begin at zero, descends once without averaging, and from
    :math:`x^1 = x^0 - \alpha \nabla f(x^0)` on has the iterates of DIGing that starts there.

    Args:
        topology: With symmetric doubly stochastic weights; default: a ring of 8.
        problem: n local functions, quadratic or not; default: eight scalar quadratics, or random
            ones for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not symmetric and doubly stochastic.

    Example:
        >>> bool(uncompressed_methods_are_their_originals().verdict)
        True

    References:
        X. Liu, Y. Li, R. Wang, J. Tang & M. Yan, Linear convergent decentralized optimization with
        compression, ICLR 2021; H. Zhao, B. Li, Z. Li, P. Richtárik & Y. Chi, BEER, NeurIPS 2022;
        K. Huang & S. Pu, CEDAS, 2023; A. Koloskova, S. U. Stich & M. Jaggi, ICML 2019.
    """
    graph = checked_topology(topology, ring(8))
    if not (graph.is_symmetric and graph.is_doubly_stochastic):
        raise TopologyError(
            f"{graph.name} has weights that are not symmetric and doubly stochastic, which "
            "compressed methods need"
        )
    alpha = checked_rate("lr", lr)

    def plain(name: str, **parameters: float) -> Algorithm:
        return algorithms.get(name, lr=alpha, compressor="identity", **parameters)

    functions = checked_problem(problem, graph.size)
    start = _apart_points(functions)
    points = start.reshape(functions.size, *functions.shape)
    g = np.asarray(functions.grad(points, functions.ranks)).reshape(start.shape)
    return _same(
        f"without compression LEAD, CEDAS, BEER, CHOCO-SGD and DCD on {graph.name} are NIDS, "
        "exact diffusion, DIGing, ATC and DGD (Liu et al. 2021, Huang & Pu 2023, Zhao et al. 2022, "
        "Koloskova et al. 2019)",
        {
            plain("LEAD", gamma=1.0, rate=1.0): algorithms.NIDS(lr=alpha),
            plain("CEDAS", gamma=1.0, rate=1.0): algorithms.ExactDiffusion(lr=alpha),
            plain("CHOCO", gamma=1.0): algorithms.ATC(lr=alpha),
            plain("DCD"): algorithms.DGD(lr=alpha),
            plain("BEER", gamma=1.0): algorithms.DIGing(lr=alpha),
        },
        graph,
        functions,
        steps,
        start,
        {"BEER": start - alpha * g},
    )


def push_methods_are_their_undirected_ones(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.05,
    steps: int = 60,
) -> Evidence:
    r"""Check that methods of digraphs are those of undirected graphs if R = C = W.

    On doubly stochastic weights AB and ADD-OPT have the iterates of DIGing, push-pull and
    Push-DIGing those of gradient tracking that is adapt-then-combine in x, push-pull that is so in
    y too those of the same without directions, and stochastic gradient push those of ATC, since
    the weights of push-sum stay 1.

    Args:
        topology: With doubly stochastic weights; default: the static exponential graph of 8.
        problem: n local functions, quadratic or not; default: eight scalar quadratics, or random
            ones for another number of ranks.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: W is not doubly stochastic.

    Example:
        >>> bool(push_methods_are_their_undirected_ones().verdict)
        True

    References:
        S. Pu, W. Shi, J. Xu & A. Nedić, Push-pull gradient methods for distributed optimization
        in networks, IEEE TAC 66(1), 2021; M. Assran, N. Loizou, N. Ballas & M. Rabbat, ICML 2019.
    """
    graph = checked_topology(topology, exponential(8))
    if not graph.is_doubly_stochastic:
        raise TopologyError(
            f"{graph.name} has weights that are not doubly stochastic, so R = C = W is not possible"
        )
    functions = checked_problem(problem, graph.size)
    a = checked_rate("lr", lr)
    return _same(
        f"on the doubly stochastic weights of {graph.name}, methods of digraphs are those of "
        "undirected graphs (Pu, Shi, Xu & Nedić 2021, Assran et al. 2019)",
        {
            algorithms.AB(lr=a): algorithms.DIGing(lr=a),
            algorithms.PushPull(lr=a): algorithms.SemiATCGradientTracking(lr=a),
            algorithms.ATCPushPull(lr=a): algorithms.ATCGradientTracking(lr=a),
            algorithms.PushDIGing(lr=a): algorithms.SemiATCGradientTracking(lr=a),
            algorithms.ADDOPT(lr=a): algorithms.DIGing(lr=a),
            algorithms.SGP(lr=a): algorithms.ATC(lr=a),
        },
        graph,
        functions,
        steps,
        _apart_points(functions),
    )


def complete_averaging_is_gradient_descent(
    problem: Problem | None = None, *, lr: float = 0.05, steps: int = 60
) -> Evidence:
    r"""Check that methods which end a step by averaging are gradient descent if W = J.

    .. math:: x^{k+1} = x^k - \frac{\alpha}{n} \sum_i \nabla f_i(x^k)

    That holds for ATC, D², gradient tracking that is adapt-then-combine in both, its form on
    digraphs, stochastic gradient push and NEAR-DGD, from a start that all ranks share.

    Args:
        problem: n local functions, quadratic or not; default: eight scalar quadratics.
        lr: Step size α.
        steps: Steps of each run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.

    Example:
        >>> bool(complete_averaging_is_gradient_descent().verdict)
        True

    References:
        A. H. Sayed, Adaptation, learning, and optimization over networks, Foundations and Trends
        in Machine Learning 7(4-5), 2014.
    """
    functions = checked_problem(problem)
    a = checked_rate("lr", lr)
    central = algorithms.AllReduceGD(lr=a)
    names = ("ATC", "D2", "ATCGradientTracking", "ATCPushPull", "SGP", "NEARDGD")
    return _same(
        f"with W = J among {functions.size} ranks, diffusion, D², gradient tracking and gradient "
        "push are gradient descent (Sayed 2014)",
        {algorithms.get(name, lr=a): central for name in names},
        complete(functions.size),
        functions,
        steps,
        np.tile(_apart_points(functions)[:1], (functions.size, 1)),
    )


def relayed_gradients_arrive_late(
    topology: Topology | None = None,
    problem: Problem | None = None,
    *,
    lr: float = 0.05,
    steps: int = 60,
) -> Evidence:
    r"""Check that RelaySGD averages what each rank had as many steps ago as it is away.

    .. math:: x_i^{k+1} = \frac1n \sum_j u_j^{k - \max(d_{ij} - 1,\, 0)}, \qquad
       u_j^k = x_j^k - \alpha \nabla f_j(x_j^k)

    where :math:`d_{ij}` is the distance in the tree, with one's own :math:`u_i^k` in place of what
    has not come yet.

    Args:
        topology: A tree, whose weights do not matter; default: a path of 8.
        problem: n local functions, quadratic or not; default: eight scalar quadratics, or random
            ones for another number of ranks.
        lr: Step size α.
        steps: Steps of the run, at least 1.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: The graph is no tree.

    Example:
        >>> bool(relayed_gradients_arrive_late().verdict)
        True

    References:
        T. Vogels, L. He, A. Koloskova, S. P. Karimireddy, T. Lin, S. U. Stich & M. Jaggi,
        RelaySum for decentralized deep learning on heterogeneous data, NeurIPS 2021.
    """
    tree = checked_topology(topology, path(8))
    if tree.is_directed or not nx.is_tree(tree.graph):
        raise TopologyError(f"values are relayed along trees, and {tree.name} is none")
    functions = checked_problem(problem, tree.size)
    alpha, steps = checked_rate("lr", lr), whole("steps", steps, 1)
    measured = iterates(algorithms.RelaySGD(lr=alpha), functions, tree, steps)
    n, lengths = tree.size, dict(nx.all_pairs_shortest_path_length(tree.graph))
    delay = np.array([[max(lengths[i][j] - 1, 0) for j in range(n)] for i in range(n)])
    x, sent = measured[0], []
    expected = [x]
    for k in range(steps):
        points = x.reshape(n, *functions.shape)
        sent.append(x - alpha * np.asarray(functions.grad(points, functions.ranks)).reshape(n, -1))
        x = np.array(
            [
                sum(sent[k - late][j] if late <= k else sent[k][i] for j, late in enumerate(row))
                for i, row in enumerate(delay)
            ]
        ) / n  # fmt: skip
        expected.append(x)
    predicted = np.array(expected)
    return Evidence(
        f"RelaySGD on {tree.name} averages values that are as late as they come from far (Vogels "
        "et al. 2021)",
        (_apart("RelaySGD", "delayed averages", measured, predicted),),
        (_distances("RelaySGD", functions, measured, predicted),),
        y="distance from the optimum",
    )


def _same(
    claim: str,
    pairs: Mapping[Algorithm, Algorithm],
    graph: Topology,
    functions: Problem,
    steps: int,
    start: Floats,
    second: Mapping[str, Floats] | None = None,
) -> Evidence:
    """Hold the iterates of some algorithms against those of others.

    Args:
        claim: What is claimed.
        pairs: What is held against what.
        graph: On which topology.
        functions: On which functions.
        steps: Of each run.
        start: Where both start, shape (n, d).
        second: By the name of the first of a pair, its first iterate, where the other starts.
    """
    steps, late = whole("steps", steps, 1), second or {}
    checks: list[Check] = []
    curves: list[Curve] = []
    for one, other in pairs.items():
        name = one.name
        found = iterates(one, functions, graph, steps + (name in late), start)
        expected = iterates(other, functions, graph, steps, late.get(name, start))
        if name in late:
            found = found[1:]
        checks.append(_apart(name, other.name, found, expected))
        curves.append(_distances(f"{name} ({other.name})", functions, found, expected))
    return Evidence(claim, tuple(checks), tuple(curves), y="distance from the optimum")


def _apart_points(problem: Problem) -> Floats:
    """Return points that are apart, so that averaging counts from the first step on."""
    points: Floats = np.random.default_rng(0).normal(size=(problem.size, problem.dim))
    return points


def _apart(name: str, of: str, found: Floats, expected: Floats) -> Check:
    scale = float(np.abs(expected).max()) or 1.0
    apart = np.abs(found - expected).max(axis=(1, 2))
    worst = int(np.argmax(apart))
    return Check.equal(
        f"{name}: how far from {of} (worst step: {worst}; relative)",
        float(apart[worst]),
        0.0,
        tolerance=TOLERANCE,
        scale=scale,
    )


def _distances(label: str, problem: Problem, found: Floats, expected: Floats) -> Curve:
    optimum = np.asarray(problem.optimum).ravel()
    norms: Sequence[Floats] = [np.linalg.norm(x - optimum, axis=(1, 2)) for x in (found, expected)]
    return Curve(label, np.arange(float(len(found))), norms[0], norms[1])
