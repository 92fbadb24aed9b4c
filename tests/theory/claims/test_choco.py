"""Claims on compressed gossip: they hold, and would be seen to fail."""

import pytest

from dectool import compression, topology
from dectool.algorithms import choco
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.theory import claims

RATES = (0.03125, 0.125)


@pytest.mark.parametrize("graph", [topology.ring(8), topology.star(5), topology.complete(6)])
@pytest.mark.parametrize("compressor", [compression.TopK(2), compression.QSGD(4)], ids=repr)
def test_choco_gossip_keeps_its_bound(graph, compressor):
    found = claims.choco_gossip_keeps_its_bound(graph, compressor, numbers=6, steps=200)
    assert found.verdict


@pytest.mark.parametrize("graph", [topology.ring(8), topology.path(4), topology.complete(5)])
def test_choco_gossip_slows_down_with_the_contraction(graph):
    found = claims.choco_gossip_slows_down_with_the_contraction(graph, contractions=RATES)
    assert found.verdict


def test_ranks_that_do_not_move_are_seen(monkeypatch):
    monkeypatch.setattr(choco, "pull", lambda comm, q: 0.0 * q.value)
    found = claims.choco_gossip_keeps_its_bound(topology.complete(8), steps=500)
    assert "FAIL error (worst of 500 steps: 500)" in found.verdict.text


def test_ranks_that_do_not_move_are_seen_where_the_gap_is_small(monkeypatch):
    """Replicas come closer, which for long keeps the bound on the whole error."""
    monkeypatch.setattr(choco, "pull", lambda comm, q: 0.0 * q.value)
    found = claims.choco_gossip_keeps_its_bound()
    assert [bool(check) for check in found.checks] == [True, False]


def test_another_pull_is_seen(monkeypatch):
    pull = choco.pull
    monkeypatch.setattr(choco, "pull", lambda comm, q: 0.7 * pull(comm, q))
    found = claims.choco_gossip_slows_down_with_the_contraction(contractions=RATES)
    assert "FAIL error with RandomK" in found.verdict.text
    assert "FAIL error after 10 steps without compression" in found.verdict.text


def test_arguments():
    bound = claims.choco_gossip_keeps_its_bound
    with pytest.raises(ArgumentTypeError, match="compressor is 'topk'"):
        bound(compressor="topk")
    with pytest.raises(ArgumentError, match="has no contraction above 0"):
        bound(compressor=compression.RandomK(1, unbiased=True))
    with pytest.raises(TopologyError, match="symmetric doubly stochastic"):
        bound(topology.exponential(8))
    with pytest.raises(TopologyError, match="two ranks or more"):
        bound(topology.complete(1))
    slower = claims.choco_gossip_slows_down_with_the_contraction
    for wrong, text in [
        ((0.25,), "two numbers or more"),
        ((0.25, 0.75), "at most 1/2"),
        ((0.1, 0.2), "multiples of 1/2048"),
        ((0.25, 0.125001), "multiples of 1/2048"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            slower(contractions=wrong)
