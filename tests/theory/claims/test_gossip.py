"""Claims on averaging with a fixed matrix: they hold, and would be seen to fail."""

import pytest

from dectool import topology
from dectool.errors import TopologyError
from dectool.theory import claims

GRAPHS = (topology.ring(16), topology.star(9), topology.grid(4, 4), topology.petersen())


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_gossip_contracts_at_rho(graph):
    assert claims.gossip_contracts_at_rho(graph).verdict


def test_gossip_of_another_matrix_contracts_otherwise(monkeypatch):
    monkeypatch.setattr(topology.Topology, "rho", property(lambda self: 0.9))
    found = claims.gossip_contracts_at_rho(topology.ring(16))
    assert not found.verdict
    assert "FAIL error from the slowest mode" in found.verdict.text


def test_gossip_needs_symmetric_weights():
    with pytest.raises(TopologyError, match="not symmetric and doubly stochastic"):
        claims.gossip_contracts_at_rho(topology.exponential(8))
