"""RelaySum without waiting: exact once all has come, and its delays where ranks are in step."""

import networkx as nx
import numpy as np

from dectool import problems, sim, topology
from dectool.algorithms import AsynchronousRelaySGD, AsynchronousRelaySum
from tests.algorithms.pacing import B, H, N, quadratic, run_until, solve

TREE = topology.from_graph(nx.Graph([(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (3, 6), (6, 7)]))
DISTANCE = np.array(
    [[nx.shortest_path_length(TREE.graph, i, j) for j in range(N)] for i in range(N)]
)


def test_relayed_sums_are_exact_once_all_has_come():
    values = np.sin(1 + 7 * np.arange(N)[:, None] + np.arange(3))
    h = solve(
        AsynchronousRelaySum(),
        TREE,
        60,
        problems.Averaging(values),
        network=sim.AlphaBeta(latency=0.7),
        compute=sim.PerRank({4: 5.0}, sim.Exponential(1.0)),
    )
    np.testing.assert_allclose(h.x, np.tile(values.mean(axis=0), (N, 1)), atol=1e-15)


def test_relaying_in_step_is_one_step_later_than_waiting():
    """x_i^{k+1} = (1/n) sum_j u_j^{k - dist}, from the diameter on."""
    lr, steps = 0.03, 40
    states = run_until(
        float(steps),
        AsynchronousRelaySGD(lr),
        quadratic(),
        TREE,
        network=sim.AlphaBeta(latency=0.4),
        compute=sim.Constant(1.0),
    )
    X = np.array([[s.x for s in each] for each in states]).transpose(1, 0, 2)
    U = X - lr * (H * X - B)
    for k in range(DISTANCE.max(), steps):
        expected = [np.mean([U[k - DISTANCE[i, j], j] for j in range(N)]) for i in range(N)]
        np.testing.assert_allclose(X[k + 1, :, 0], expected, atol=1e-13)


def test_relayed_descent_reaches_the_optimum_whatever_the_delays():
    h = solve(
        AsynchronousRelaySGD(0.08),
        TREE,
        500,
        network=sim.AlphaBeta(latency=0.7),
        compute=sim.Exponential(1.0),
        record_every=500,
    )
    np.testing.assert_allclose(h.x, 1.4, atol=1e-10)
