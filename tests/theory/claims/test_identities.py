"""Claims on methods that are others in disguise: they hold, and would be seen to fail."""

import pytest

from dectool import algorithms, problems, topology
from dectool.algorithms import relay
from dectool.errors import TopologyError
from dectool.theory import claims

PLANE = problems.Quadratic.random(6, 2, kappa=5.0)
LOGISTIC = problems.LogisticRegression.from_data(problems.breast_cancer(rows=60), n=6, l2=0.1)


def failed(found):
    return {check.quantity.split(":")[0] for check in found.checks if not check}


@pytest.mark.parametrize("problem", [PLANE, LOGISTIC], ids=lambda problem: type(problem).__name__)
def test_identities_on_other_functions_and_graphs(problem):
    grid = topology.grid(2, 3)
    assert claims.uncompressed_methods_are_their_originals(grid, problem).verdict
    for graph in (grid, topology.exponential(6)):
        assert claims.push_methods_are_their_undirected_ones(graph, problem).verdict
    assert claims.complete_averaging_is_gradient_descent(problem, lr=0.1).verdict
    for tree in (topology.star(6), topology.path(6), topology.tree(6, 2)):
        assert claims.relayed_gradients_arrive_late(tree, problem).verdict


def hasty(monkeypatch, kind):
    """Let steps of an algorithm be a hair too long."""
    step = kind.step

    def longer(self, comm, s, grad):
        return step(self, comm, s, lambda x: (1 + 1e-9) * grad(x))

    monkeypatch.setattr(kind, "step", longer)


@pytest.mark.parametrize("name", ["LEAD", "CEDAS", "CHOCO", "DCD", "BEER"])
def test_a_slip_of_one_billionth_without_compression_is_seen(monkeypatch, name):
    hasty(monkeypatch, algorithms.ALGORITHMS[name])
    assert failed(claims.uncompressed_methods_are_their_originals()) == {name}


@pytest.mark.parametrize("name", ["AB", "PushPull", "ATCPushPull", "PushDIGing", "ADDOPT", "SGP"])
def test_a_slip_of_one_billionth_on_digraphs_is_seen(monkeypatch, name):
    hasty(monkeypatch, algorithms.ALGORITHMS[name])
    assert failed(claims.push_methods_are_their_undirected_ones()) == {name}


def test_averaging_that_is_not_complete_is_seen(monkeypatch):
    ring = topology.ring(8)
    monkeypatch.setattr(claims._identities, "complete", lambda n: ring)
    found = claims.complete_averaging_is_gradient_descent()
    assert len(failed(found)) == len(found.checks)


def test_a_wrong_count_of_late_values_is_seen(monkeypatch):
    monkeypatch.setattr(
        relay, "relay_average", lambda size, u, m, c: (u + relay.total(m)) / (1 + relay.total(c))
    )
    assert not claims.relayed_gradients_arrive_late().verdict


def test_what_is_refused():
    with pytest.raises(TopologyError, match="compressed methods need"):
        claims.uncompressed_methods_are_their_originals(topology.exponential(6), PLANE)
    with pytest.raises(TopologyError, match="R = C = W is not possible"):
        claims.push_methods_are_their_undirected_ones(topology.star(6, weights="uniform"), PLANE)
    for graph in (topology.ring(6), topology.directed_ring(6)):
        with pytest.raises(TopologyError, match=r"relayed along trees, and .* is none"):
            claims.relayed_gradients_arrive_late(graph, PLANE)
