"""Claims on gradient tracking, also on digraphs: they hold, and would be seen to fail."""

import pytest

from dectool import algorithms, problems, topology
from dectool.algorithms import State
from dectool.errors import TopologyError
from dectool.theory import claims

DIRECTED = (topology.random_digraph(7, 0.4, seed=2), topology.star(7), topology.directed_ring(7))
PLANE = problems.Quadratic.random(7, 2, kappa=5.0)
LOGISTIC = problems.LogisticRegression.from_data(problems.breast_cancer(rows=70), n=7, l2=0.1)


@pytest.mark.parametrize(
    "graph", [topology.ring(7), topology.exponential(7)], ids=lambda graph: graph.name
)
def test_tracking_on_many_graphs(graph):
    assert claims.gradient_tracking_is_its_block_matrix(graph, PLANE, lr=0.03).verdict
    assert claims.tracked_gradients_sum_to_the_gradients(graph, LOGISTIC).verdict


@pytest.mark.parametrize("graph", DIRECTED, ids=lambda graph: graph.name)
def test_tracking_on_many_digraphs(graph):
    assert claims.push_pull_is_its_block_matrix(graph, PLANE).verdict
    assert claims.push_sum_tracking_tends_to_its_block_matrix(graph, PLANE).verdict
    assert claims.tracked_gradients_sum_to_the_gradients(graph, LOGISTIC).verdict


def failed(found):
    return {check.quantity.split(":")[0] for check in found.checks if not check}


def test_gossip_of_gradients_in_place_of_what_tracks_is_seen(monkeypatch):
    def step(self, comm, s, grad):
        Wx, Wg = comm.neighbor_allreduce((s.x, s.g))
        x = Wx - self.lr * s.y
        g = grad(x)
        return State(x=x, y=Wg + g - s.g, g=g)

    monkeypatch.setattr(algorithms.DIGing, "step", step)
    assert failed(claims.gradient_tracking_is_its_block_matrix()) == {"DIGing"}
    ring = topology.ring(7)
    # The sum of y is right all the same.
    assert claims.tracked_gradients_sum_to_the_gradients(ring, PLANE).verdict


def test_a_start_that_is_not_the_gradient_is_seen(monkeypatch):
    init = algorithms.PushPull.init

    def at_zero(self, comm, x, grad):
        s = init(self, comm, x, grad)
        return s.replace(y=0.0 * s.y)

    monkeypatch.setattr(algorithms.PushPull, "init", at_zero)
    assert failed(claims.push_pull_is_its_block_matrix()) >= {"PushPull"}
    assert failed(claims.tracked_gradients_sum_to_the_gradients()) >= {"PushPull"}


def test_rows_in_place_of_columns_are_seen(monkeypatch):
    def swapped(self, comm):
        from dectool.algorithms._graph_weights import row_stochastic

        return row_stochastic(comm.topology), row_stochastic(comm.topology)

    monkeypatch.setattr(algorithms.AB, "_matrices", swapped)
    assert failed(claims.push_pull_is_its_block_matrix()) == {"AB"}
    assert failed(claims.tracked_gradients_sum_to_the_gradients()) == {"AB"}


def test_iterates_that_are_not_divided_are_seen(monkeypatch):
    step = algorithms.PushDIGing.step

    def undivided(self, comm, s, grad):
        return step(self, comm, s.replace(v=0.0 * s.v + 1.0), grad)

    monkeypatch.setattr(algorithms.PushDIGing, "step", undivided)
    assert failed(claims.push_sum_tracking_tends_to_its_block_matrix()) == {"PushDIGing"}


def test_what_is_refused():
    with pytest.raises(TopologyError, match=r"not doubly stochastic.*push_pull_is_its"):
        claims.gradient_tracking_is_its_block_matrix(DIRECTED[0])
