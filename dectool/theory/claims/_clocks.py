"""Ranks on Poisson clocks: exact means over all orders of events, held against simulations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from scipy import stats

from dectool.algorithms import (
    ADPSGD,
    Algorithm,
    BlockingSwarmSGD,
    BroadcastGossip,
    RandomizedGossip,
)
from dectool.communicator import Communicator
from dectool.errors import ArgumentTypeError, TopologyError
from dectool.problems import Averaging, Quadratic
from dectool.run import run
from dectool.solve import solve
from dectool.theory._arguments import Floats, whole
from dectool.theory._evidence import Check, Evidence
from dectool.theory.claims._given import checked_rate, checked_topology
from dectool.theory.claims._samples import copies, mean_is, of_ranks, squares
from dectool.topology import (
    Law,
    Topology,
    expected_contraction,
    mean_square_rate,
    random_broadcast,
    random_pair,
    ring,
)

_SETTLED = 1e-13


def gossip_on_clocks_has_an_exponential_mean(
    topology: Topology | None = None, *, time: int = 3, runs: int = 60, seed: int = 0
) -> Evidence:
    r"""Check the mean and the mean square of randomized gossip on Poisson clocks.

    The clock of each of n ranks ticks once a second on average, so after t seconds

    .. math:: E[x(t)] = e^{n t (\bar W - I)} x(0), \qquad
       E[x(t) x(t)^\top] = e^{n t (\Phi - I)} \big( x(0) x(0)^\top \big), \qquad
       \Phi(X) = E[W X W^\top]

    with the W of one random pair and :math:`\bar W = E[W]`.

    Args:
        topology: Connected and undirected, at least 3 ranks; default: a ring of 6.
        time: Seconds t, at least 1.
        runs: Runs of which the mean is taken, at least 2.
        seed: Of the clocks and of the starting point.

    Raises:
        TopologyError: The graph is directed, not connected, or has fewer ranks.

    Example:
        >>> bool(gossip_on_clocks_has_an_exponential_mean(runs=20).verdict)
        True

    References:
        S. Boyd, A. Ghosh, B. Prabhakar & D. Shah, Randomized gossip algorithms, IEEE TIT 52(6),
        2006.
    """
    graph, time = _undirected(topology, ring(6)), whole("time", time, 1)
    if graph.size < 3:
        raise TopologyError(f"{graph.name} has {graph.size} ranks; a pair averages exactly, use 3")
    start = np.random.default_rng(seed).standard_normal(graph.size)
    law = random_pair(graph).law
    runs = whole("runs", runs, 2)
    found = _simulated(RandomizedGossip(), graph, start, time, runs, seed)
    ticks = float(graph.size * time)
    mean = scipy.linalg.expm(ticks * (law.mean.toarray() - np.eye(graph.size))) @ start
    second = _after_ticks(law, np.outer(start, start), ticks)
    square = float(np.trace(second) - second.mean() * graph.size)
    return Evidence(
        f"randomized gossip on the clocks of {graph.name} has the mean exp(n t (Wbar - I)) x(0)",
        (
            mean_is(f"values after {time} s", found, mean),
            mean_is(f"squared error after {time} s", squares(found), square),
            Check.equal(
                "average of the values (farthest of all runs)",
                float(np.abs(found.mean(axis=1) - start.mean()).max()),
                0.0,
                tolerance=1e-12,
            ),
        ),
        (of_ranks(f"mean of {runs} runs", found, mean),),
        x="rank",
        y=f"value after {time} s",
        scale="linear",
    )


def broadcast_gossip_agrees_on_a_random_value(
    topology: Topology | None = None,
    *,
    gamma: float = 0.5,
    time: int = 3,
    runs: int = 100,
    seed: int = 0,
) -> Evidence:
    r"""Check that broadcasts keep the average in mean alone, and by how much it scatters.

    Nobody answers a broadcast, so the mean over ranks :math:`\bar x(t)` is a martingale,
    :math:`E \bar x(t) = \bar x(0)`, whose variance grows to that of the value that all agree on,
    above 0. Both follow exactly from :math:`\Phi(X) = E[W X W^\top]`, which is applied for each
    tick of the clocks, one per rank and second on average.

    Args:
        topology: Connected and undirected, at least 2 ranks; default: a ring of 6.
        gamma: What a neighbor keeps of its own value, above 0, below 1.
        time: Seconds t, at least 1.
        runs: Runs of which the mean is taken, at least 2.
        seed: Of the clocks and of the starting point.

    Raises:
        ArgumentError: gamma is out of range.
        TopologyError: The graph is directed, not connected, or has one rank.

    Example:
        >>> bool(broadcast_gossip_agrees_on_a_random_value(gamma=0.3, runs=30).verdict)
        True

    References:
        T. C. Aysal, M. E. Yildiz, A. D. Sarwate & A. Scaglione, Broadcast gossip algorithms for
        consensus, IEEE TSP 57(7), 2009.
    """
    graph, time = _undirected(topology, ring(6)), whole("time", time, 1)
    if graph.size < 2:
        raise TopologyError(f"{graph.name} has one rank, which agrees with itself; use 2 or more")
    n, start = graph.size, np.random.default_rng(seed).standard_normal(graph.size)
    gossip, runs = BroadcastGossip(gamma=gamma), whole("runs", runs, 2)
    schedule = random_broadcast(graph, gamma=gamma)
    law = schedule.law
    found = _simulated(gossip, graph, start, time, runs, seed)
    mean = scipy.linalg.expm(n * time * (law.mean.toarray() - np.eye(n))) @ start
    second = _after_ticks(law, np.outer(start, start), float(n * time))
    variance = float(second.mean() - start.mean() ** 2)
    means = found.mean(axis=1)
    rate = mean_square_rate(schedule)
    X = np.outer(start, start)
    for _ in range(math.ceil(math.log(_SETTLED) / math.log(rate))):
        X = law.forward(X)
    limit = float(X.mean() - start.mean() ** 2)
    return Evidence(
        f"broadcast gossip on {graph.name} agrees on a random value with the right mean (Aysal et "
        "al. 2009)",
        (
            mean_is(f"values after {time} s", found, mean),
            mean_is(f"average after {time} s", means, float(start.mean())),
            mean_is(
                f"squared distance of the average from its mean after {time} s",
                np.square(means - start.mean()),
                variance,
            ),
            mean_is(
                f"squared error after {time} s",
                squares(found),
                float(np.trace(second) - n * second.mean()),
            ),
            Check.at_least("variance of the value agreed on", limit, variance),
            Check.at_least("variance of the average", variance, 1e-12),
            Check.at_most("factor in the long run", rate, expected_contraction(schedule)),
        ),
        (of_ranks(f"mean of {runs} runs", found, mean),),
        x="rank",
        y=f"value after {time} s",
        scale="linear",
    )


def adpsgd_mean_follows_a_linear_recursion(
    problem: Quadratic | None = None,
    topology: Topology | None = None,
    *,
    lr: float = 0.3,
    time: float = 4.0,
    runs: int = 60,
    seed: int = 0,
) -> Evidence:
    r"""Check the mean of AD-PSGD on quadratics, with gradients that take exponential times.

    Rank i ends a gradient once a second on average, averages with a random neighbor j, and
    descends by the gradient at the model :math:`\hat x_i` that it has read before:

    .. math:: x_i, x_j \leftarrow \tfrac12 (x_i + x_j), \qquad
       x_i \leftarrow x_i - \alpha (H_i \hat x_i - b_i), \qquad \hat x_i \leftarrow x_i

    Each event is an affine map :math:`z \leftarrow A_{ij} z + c_{ij}` of :math:`z = (x, \hat x)`,
    so that the mean over all orders of events is exactly

    .. math:: \frac{d}{dt} E z = \sum_i \frac{1}{d_i} \sum_{j \in N_i} \big( (A_{ij} - I)\, E z
       + c_{ij} \big)

    Args:
        problem: A :class:`dectool.problems.Quadratic`; default: scalar ones of curvatures 1 to 4.
        topology: Connected and undirected, of as many ranks; default: a ring.
        lr: Step size α.
        time: Seconds, above 0.
        runs: Runs of which the mean is taken, at least 2.
        seed: Of the times and of the neighbors.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: The graph is directed, not connected, or of another size.

    Example:
        >>> bool(adpsgd_mean_follows_a_linear_recursion(runs=20, time=2.0).verdict)
        True

    References:
        X. Lian, W. Zhang, C. Zhang & J. Liu, Asynchronous decentralized parallel stochastic
        gradient descent, ICML 2018.
    """
    quadratic, graph = _problem_on(problem, topology)
    alpha, time = checked_rate("lr", lr), checked_rate("time", time)
    runs = whole("runs", runs, 2)
    H, b, d = *_curvatures(quadratic), quadratic.dim
    n = graph.size
    generator = np.zeros((2 * n * d + 1, 2 * n * d + 1))
    for i, j, rate in _events(graph):
        event = np.eye(len(generator))
        x, other, read = (slice(at * d, (at + 1) * d) for at in (i, j, n + i))
        half = 0.5 * np.eye(d)
        event[x, x] = event[x, other] = event[other, x] = event[other, other] = half
        event[x, read] -= alpha * H[i]
        event[x, -1] += alpha * b[i]
        event[read] = event[x]
        generator += rate * (event - np.eye(len(generator)))
    end = scipy.linalg.expm(time * generator)[:, -1][:-1].reshape(2, n, d)
    found = _read_last(ADPSGD(lr=lr), _many(quadratic, runs), copies(graph, runs), time, seed)
    return Evidence(
        f"the mean of AD-PSGD on {graph.name}, step {lr:g}, follows the linear recursion of its "
        f"events for {time:g} s",
        (
            mean_is(
                f"models that ranks have read last after {time:g} s",
                found.reshape(runs, n, d),
                end[1],
            ),
        ),
        (of_ranks(f"mean of {runs} runs", found.reshape(runs, n, d), end[1]),),
        x="rank (and coordinate)",
        y=f"model after {time:g} s",
        scale="linear",
    )


def swarm_mean_follows_a_linear_recursion(
    problem: Quadratic | None = None,
    topology: Topology | None = None,
    *,
    lr: float = 0.1,
    local_steps: int = 2,
    time: int = 1,
    runs: int = 100,
    seed: int = 0,
) -> Evidence:
    r"""Check the mean of SwarmSGD (blocking) on quadratics, on Poisson clocks.

    Two ranks i and j that meet do H local steps :math:`y \leftarrow y - \alpha (H_i y - b_i)`
    each, and average. A meeting is an affine map of x, and ranks i and j meet
    :math:`1/d_i + 1/d_j` times in a unit of time, so that the mean over all orders of meetings is
    exactly

    .. math:: \frac{d}{dt} E x = \sum_{(i, j)} \Big( \frac{1}{d_i} + \frac{1}{d_j} \Big)
       \big( (A_{ij} - I)\, E x + c_{ij} \big)

    Args:
        problem: A :class:`dectool.problems.Quadratic`; default: scalar ones of curvatures 1 to 4.
        topology: Connected and undirected, of as many ranks; default: a ring.
        lr: Step size α.
        local_steps: Local steps H before a meeting, at least 1.
        time: Units of time, in which each clock ticks once on average, at least 1.
        runs: Runs of which the mean is taken, at least 2.
        seed: Of the clocks.

    Raises:
        ArgumentError: An argument breaks its rule.
        TopologyError: The graph is directed, not connected, or of another size.

    Example:
        >>> bool(swarm_mean_follows_a_linear_recursion(runs=20, local_steps=3).verdict)
        True

    References:
        G. Nadiradze, A. Sabour, P. Davies, S. Li & D. Alistarh, Asynchronous decentralized SGD
        with quantized and local updates, NeurIPS 2021, Algorithm 1.
    """
    quadratic, graph = _problem_on(problem, topology)
    alpha, time = checked_rate("lr", lr), whole("time", time, 1)
    runs, local_steps = whole("runs", runs, 2), whole("local_steps", local_steps, 1)
    H, b, d = *_curvatures(quadratic), quadratic.dim
    n = graph.size
    generator = np.zeros((n * d + 1, n * d + 1))
    for i, j, rate in _events(graph):
        event = np.eye(len(generator))
        x, other = (slice(at * d, (at + 1) * d) for at in (i, j))
        for at, rank in ((x, i), (other, j)):
            for _ in range(local_steps):
                step = event[at] - alpha * (H[rank] @ event[at])
                step[:, -1] += alpha * b[rank]
                event[at] = step
        event[x] = event[other] = 0.5 * (event[x] + event[other])
        generator += rate * (event - np.eye(len(generator)))
    end = scipy.linalg.expm(time * generator)[:, -1][:-1].reshape(n, d)
    history = solve(
        BlockingSwarmSGD(lr=lr, local_steps=local_steps),
        _many(quadratic, runs),
        topology=copies(graph, runs),
        steps=time,
        x0=np.zeros(quadratic.shape),
        backend="sim",
        seed=seed,
        record_every=time,
        check=False,
        progress=False,
    )
    found = history.x.reshape(runs, n, d)
    return Evidence(
        f"the mean of SwarmSGD on {graph.name}, step {lr:g}, {local_steps} local steps, follows "
        f"the linear recursion of its meetings for {time} units of time",
        (mean_is(f"models after {time}", found, end),),
        (of_ranks(f"mean of {runs} runs", found, end),),
        x="rank (and coordinate)",
        y=f"model after {time}",
        scale="linear",
    )


def _simulated(
    algorithm: Algorithm, graph: Topology, start: Floats, time: int, runs: int, seed: int
) -> Floats:
    """Return the values of many runs after a time, (runs, n), from one run of many copies."""
    history = solve(
        algorithm,
        Averaging(np.tile(start, runs)[:, None]),
        topology=copies(graph, runs),
        steps=time,
        record_every=time,
        backend="sim",
        seed=seed,
        check=False,
        progress=False,
    )
    return np.asarray(history.x.reshape(runs, graph.size))


def _read_last(
    algorithm: Algorithm, problem: Quadratic, topology: Topology, time: float, seed: int
) -> Floats:
    """Return each rank's state after its last step by a time, if a gradient takes Exp(1)."""

    def program(comm: Communicator) -> Floats:
        rng = comm.rng("compute")

        def grad(x: Floats) -> Floats:
            comm.elapse(float(rng.exponential()))
            return np.asarray(problem.grad(x, comm.rank))

        descent: Any = grad
        state = algorithm.init(comm, np.zeros(problem.shape), descent)
        x = state.x
        while comm.now() <= time:
            x = state.x
            state = algorithm.step(comm, state, descent)
        return np.asarray(x)

    found = run(program, topology.size, backend="sim", topology=topology, seed=seed)
    return np.stack(list(found.values))


def _after_ticks(law: Law, X: Floats, ticks: float) -> Floats:
    """Return the mean of Φ^k(X) over a Poisson number k of ticks with a mean of ``ticks``."""
    total = np.zeros_like(X)
    for k in range(int(ticks + 12.0 * math.sqrt(ticks) + 12.0)):
        total += stats.poisson.pmf(k, ticks) * X
        X = law.forward(X)
    return total


def _events(graph: Topology) -> Iterator[tuple[int, int, float]]:
    """Yield rank, neighbor and how often the first picks the second in a unit of time."""
    for i in range(graph.size):
        for j in graph.in_neighbors(i):
            yield i, j, 1.0 / graph.in_degree(i)


def _undirected(topology: Topology | None, default: Topology) -> Topology:
    graph = checked_topology(topology, default)
    if graph.is_directed or not graph.is_connected:
        raise TopologyError(
            f"{graph.name} must be undirected and connected; use graph.to_undirected()"
        )
    return graph


def _problem_on(problem: Quadratic | None, topology: Topology | None) -> tuple[Quadratic, Topology]:
    scalars = Quadratic(h=np.arange(1.0, 5.0)[:, None], b=np.arange(4.0)[:, None])
    quadratic = scalars if problem is None else problem
    if not isinstance(quadratic, Quadratic):
        raise ArgumentTypeError(
            f"problem is a {type(quadratic).__name__}; the mean is linear for problems.Quadratic"
        )
    graph = _undirected(topology, ring(quadratic.size))
    if graph.size != quadratic.size:
        raise TopologyError(
            f"{graph.name} has {graph.size} ranks, and the problem {quadratic.size}; give as many"
        )
    return quadratic, graph


def _curvatures(problem: Quadratic) -> tuple[Floats, Floats]:
    """Return H, (n, d, d), and b, (n, d)."""
    zero, ranks = np.zeros((problem.size, problem.dim)), problem.ranks
    H = np.asarray(problem.hessian(zero, ranks), np.float64)
    return H, -np.asarray(problem.grad(zero, ranks), np.float64)


def _many(problem: Quadratic, number: int) -> Quadratic:
    H, b = _curvatures(problem)
    return Quadratic(h=np.tile(H, (number, 1, 1)), b=np.tile(b, (number, 1)))
