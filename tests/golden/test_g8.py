"""The G8 table: averaging of X0[i, j] = sin(1 + 7i + 3j) on eight ranks, both backends."""

import networkx as nx
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology

X0 = np.sin(1.0 + 7.0 * np.arange(8)[:, None] + 3.0 * np.arange(6))

# algorithm, steps, consensus error, X[0, 0]
TABLE = [
    (algorithms.Gossip(), 10, 0.575847394077, 0.042986829207),
    (algorithms.ChebyshevGossip(), 10, 0.010916475840, -0.033054960166),
]


def digraph():
    """The ring 0 -> 1 -> ... -> 7 -> 0 with the chords 0 -> 3, 2 -> 6 and 5 -> 1."""
    edges = [(i, (i + 1) % 8) for i in range(8)] + [(0, 3), (2, 6), (5, 1)]
    return nx.DiGraph(edges)


def average(algorithm, steps, graph, backend):
    problem = problems.Averaging(X0)
    return dectool.solve(algorithm, problem, topology=graph, steps=steps, backend=backend)


def test_the_data():
    assert X0.mean(axis=0)[0] == pytest.approx(-0.034662071461, abs=1e-11)
    assert np.linalg.norm(X0 - X0.mean(axis=0)) == pytest.approx(5.107464244393, abs=1e-11)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize(("algorithm", "steps", "error", "corner"), TABLE)
def test_averaging(algorithm, steps, error, corner, backend):
    history = average(algorithm, steps, topology.ring(8), backend)
    assert history.last["consensus_error"] == pytest.approx(error, abs=1e-10)
    assert history.x[0, 0] == pytest.approx(corner, abs=1e-10)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_push_sum_on_the_digraph(backend):
    graph = topology.from_graph(digraph(), weights="uniform_push")
    history = average(algorithms.PushSum(), 20, graph, backend)
    # The average that counts is that of X0: push-sum does not keep the mean of x on the way.
    assert history.last["distance"] == pytest.approx(1.469441653e-2, abs=1e-10)
    assert history.x[0, 0] == pytest.approx(-0.036768580019, abs=1e-10)
    assert history.state["w"][0, 0] == pytest.approx(0.827565817558, abs=1e-10)


def test_push_sum_weights_tend_to_the_perron_vector():
    graph = topology.from_graph(digraph(), weights="uniform_push")
    history = average(algorithms.PushSum(), 400, graph, "stacked")
    n_pi = [0.827586, 1.103448, 0.827586, 1.103448, 1.103448, 0.827586, 1.103448, 1.103448]
    np.testing.assert_allclose(history.state["w"][:, 0], n_pi, atol=1e-6)
    assert graph.slem == pytest.approx(0.763762615826, abs=1e-11)
