"""Claims on rounds of descent: they hold, and would be seen to fail."""

import dataclasses

import pytest

from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims


def test_local_descent_ends_at_a_weighted_mean():
    found = claims.local_descent_ends_at_a_weighted_mean()
    assert found.verdict
    assert found.curves[0].measured[0] < 1e-12  # rounds of one step are exact
    problem = problems.Quadratic.random(5, 3, kappa=4.0, seed=2)
    assert claims.local_descent_ends_at_a_weighted_mean(problem, lr=0.05, periods=[3, 8]).verdict


def test_local_descent_that_averages_each_time_is_found(monkeypatch):
    monkeypatch.setattr(algorithms.LocalSGD, "ends_round", property(lambda self: True))
    verdict = claims.local_descent_ends_at_a_weighted_mean().verdict
    assert "ok   H = 1:" in verdict.text
    assert "FAIL H = 4:" in verdict.text


@pytest.mark.parametrize("period", [1, 3, 8])
def test_global_averages_follow_their_period_map(period):
    assert claims.global_averages_follow_their_period_map(period=period).verdict
    graph = topology.exponential(5)
    problem = problems.Quadratic.random(5, 2, kappa=3.0)
    assert claims.global_averages_follow_their_period_map(graph, problem, period=period).verdict


def test_rounds_that_begin_a_step_late_are_found(monkeypatch):
    def late(self, k):
        return dataclasses.replace(self, phase=(self.phase + k + 1) % self.period)

    monkeypatch.setattr(algorithms.GossipPGA, "at", late)
    found = claims.global_averages_follow_their_period_map()
    assert "FAIL distance of the last iterates" in found.verdict.text


@pytest.mark.parametrize("graph", [topology.ring(12), topology.grid(3, 4), topology.petersen()])
def test_global_averages_help_up_to_one_over_the_gap(graph):
    assert claims.global_averages_help_up_to_one_over_the_gap(graph).verdict


def test_averages_that_are_never_exact_are_found(monkeypatch):
    monkeypatch.setattr(algorithms.GossipPGA, "ends_round", property(lambda self: False))
    found = claims.global_averages_help_up_to_one_over_the_gap()
    assert "FAIL largest disagreement of a round" in found.verdict.text


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="steps=10 is no multiple of the period 4"):
        claims.local_descent_ends_at_a_weighted_mean(steps=10, periods=[4])
    with pytest.raises(ArgumentError, match="periods is empty"):
        claims.local_descent_ends_at_a_weighted_mean(periods=[])
    with pytest.raises(ArgumentError, match="period must be at least 2, got 1"):
        claims.global_averages_help_up_to_one_over_the_gap(periods=[1])
    with pytest.raises(TopologyError, match="lambda_2 above 0; use topology"):
        claims.global_averages_help_up_to_one_over_the_gap(topology.complete(4))
