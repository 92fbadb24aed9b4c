"""Claims on noise floors: they hold, and would be seen to fail."""

import pytest

from dectool import algorithms, topology
from dectool.algorithms import State
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims


def hasty(self, comm, s, grad):
    """Step of adapt-then-combine that goes a fifth too far."""
    return State(x=comm.neighbor_allreduce(s.x - 1.2 * self.lr * grad(s.x)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("graph", [topology.ring(8), topology.complete(5), topology.star(6)])
def test_noise_has_a_floor_in_each_mode(graph, seed):
    found = claims.noise_has_a_floor_in_each_mode(graph, seed=seed, steps=150)
    assert found.verdict, found.verdict


def test_other_curvature_and_noise():
    assert claims.noise_has_a_floor_in_each_mode(lr=0.1, curvature=3.0, noise=0.2).verdict
    assert claims.noise_of_the_mean_is_divided_by_n(lr=0.1, curvature=3.0, noise=0.2).verdict


def test_floor_of_another_order_is_another(monkeypatch):
    monkeypatch.setattr(algorithms.ATC, "step", algorithms.CTA.step)
    verdict = claims.noise_has_a_floor_in_each_mode().verdict
    assert "FAIL ATC: variance in the mode" in verdict.text
    assert "FAIL ATC: mean variance" in verdict.text
    assert "ok   DGD: variance in the mode" in verdict.text


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_the_mean_is_divided_by_n(seed):
    found = claims.noise_of_the_mean_is_divided_by_n(seed=seed)
    assert found.verdict, found.verdict
    assert len(found.checks) == 6


def test_noise_of_longer_steps_is_found(monkeypatch):
    monkeypatch.setattr(algorithms.ATC, "step", hasty)
    found = claims.noise_of_the_mean_is_divided_by_n([topology.ring(4)])
    assert "FAIL variance of the mean of 4 ranks" in found.verdict.text


def test_a_mean_that_depends_on_the_graph_is_found(monkeypatch):
    def unlike(self, comm, s, grad):
        factor = 1.0 + 0.01 * comm.topology.max_degree
        return State(x=comm.neighbor_allreduce(s.x - factor * self.lr * grad(s.x)))

    monkeypatch.setattr(algorithms.ATC, "step", unlike)
    graphs = [topology.ring(6), topology.complete(6)]
    found = claims.noise_of_the_mean_is_divided_by_n(graphs)
    assert "FAIL complete graph of 6: path of the mean" in found.verdict.text


def test_arguments_are_checked():
    with pytest.raises(TopologyError, match="not symmetric and doubly stochastic"):
        claims.noise_has_a_floor_in_each_mode(topology.exponential(8))
    with pytest.raises(ArgumentError, match="DGD does not converge on ring of 8 with lr="):
        claims.noise_has_a_floor_in_each_mode(lr=0.9)
    push = topology.star(4, weights="uniform_push")
    with pytest.raises(TopologyError, match="not doubly stochastic, so it does not keep the mean"):
        claims.noise_of_the_mean_is_divided_by_n([push])
    with pytest.raises(ArgumentError, match="topologies is empty"):
        claims.noise_of_the_mean_is_divided_by_n([])
    with pytest.raises(ArgumentError, match=r"lr=2\.0 must be above 0 and below 2"):
        claims.noise_of_the_mean_is_divided_by_n(lr=2.0)
