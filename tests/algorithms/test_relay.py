"""RelaySum and RelaySGD: exact averages on trees, with the delays of the paper."""

import networkx as nx
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import TopologyError
from tests.algorithms.pacing import B, H, quadratic

TREES = {
    "path": topology.path(7),
    "star": topology.star(8),
    "binary": topology.from_graph(nx.balanced_tree(2, 2)),
    "two ranks": topology.path(2),
}


def distances(graph):
    lengths = dict(nx.all_pairs_shortest_path_length(nx.Graph(graph.graph)))
    return np.array([[lengths[i][j] for j in range(graph.size)] for i in range(graph.size)])


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("name", TREES)
def test_the_average_after_the_diameter_and_not_before(name, backend):
    graph = TREES[name]
    diameter = distances(graph).max()
    problem = problems.Averaging(np.sin(1 + 7 * np.arange(graph.size)[:, None] + np.arange(3)))
    h = dectool.solve(
        algorithms.RelaySum(), problem, topology=graph, steps=diameter, backend=backend
    )
    np.testing.assert_allclose(h.x, np.tile(problem.optimum, (graph.size, 1)), atol=4e-16)
    assert h["consensus_error"][-2] > 1e-3


@pytest.mark.parametrize("name", TREES)
def test_iterates_are_means_of_values_with_a_delay(name):
    """x_i^{t+1} = (1/n) sum_j u_j^{t - max(dist - 1, 0)}, for u_j the value after its gradient."""
    graph, lr, steps = TREES[name], 0.05, 30
    n = graph.size
    lag = np.maximum(distances(graph) - 1, 0)
    h, b = H[:n], B[:n]
    problem = problems.Quadratic(h=h, b=b)
    X = [
        dectool.solve(algorithms.RelaySGD(lr), problem, topology=graph, steps=k).x
        for k in range(1, steps)
    ]
    U = [x - lr * (h * x - b) for x in [np.zeros((n, 1)), *X]]
    for t in range(lag.max(), steps - 1):
        expected = [np.mean([U[t - lag[i, j]][j] for j in range(n)]) for i in range(n)]
        np.testing.assert_allclose(X[t][:, 0], expected, atol=1e-14)


def test_the_optimum_is_reached_whatever_the_data():
    h = dectool.solve(
        algorithms.RelaySGD(lr=0.1), quadratic(), topology=topology.path(8), steps=1500
    )
    np.testing.assert_allclose(h.x, 1.4, atol=1e-12)


@pytest.mark.parametrize("name", ["RelaySum", "RelaySGD", "AsynchronousRelaySum"])
def test_other_graphs_than_trees_are_refused(name):
    options = {"lr": 0.1} if name == "RelaySGD" else {}
    for graph, part in (
        (topology.ring(8), "8 edges among 8 ranks"),
        (topology.exponential(8), "one way only"),
    ):
        with pytest.raises(TopologyError, match=part):
            dectool.solve(
                algorithms.get(name, **options),
                problems.Averaging(np.eye(8)),
                topology=graph,
                steps=1,
                backend="sim",
            )
