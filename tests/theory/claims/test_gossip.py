"""Claims on averaging with a fixed matrix: they hold, and would be seen to fail."""

import dataclasses
import math

import pytest

from dectool import algorithms, topology
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims

GRAPHS = (topology.ring(16), topology.star(9), topology.grid(4, 4), topology.petersen())
CLAIMS = (
    claims.gossip_contracts_at_rho,
    claims.chebyshev_gossip_follows_its_polynomial,
    claims.shift_register_gossip_follows_its_polynomial,
    claims.acceleration_takes_the_root_of_rounds,
)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_claims_hold(claim, graph):
    assert claim(graph).verdict


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_chebyshev_gossip_on_the_tight_interval(graph):
    claim = claims.chebyshev_gossip_follows_its_polynomial
    assert claim(graph, interval="tight", steps=12).verdict


def test_published_errors_of_chebyshev_gossip():
    """Ring of 16 after 15 rounds, at worst."""
    claim = claims.chebyshev_gossip_follows_its_polynomial
    worst = {"symmetric": 0.01514, "tight": 0.00532}
    for interval, value in worst.items():
        found = claim(topology.ring(16), steps=15, interval=interval).checks[-1]
        assert found.measured == pytest.approx(value, abs=5e-6)
        assert found.measured == pytest.approx(found.predicted, rel=1e-9)


def test_shift_register_gossip_reaches_its_bound():
    found = claims.shift_register_gossip_follows_its_polynomial(topology.ring(16)).checks[-1]
    root = math.sqrt(1 - topology.ring(16).rho ** 2)
    q = topology.ring(16).rho / (1 + root)
    assert found.measured == pytest.approx(q**30 * (1 + 30 * root), rel=1e-9)


def test_gossip_of_another_matrix_contracts_otherwise(monkeypatch):
    monkeypatch.setattr(topology.Topology, "rho", property(lambda self: 0.9))
    found = claims.gossip_contracts_at_rho(topology.ring(16))
    assert not found.verdict
    assert "FAIL error from the slowest mode" in found.verdict.text


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("ChebyshevGossip", claims.chebyshev_gossip_follows_its_polynomial),
        ("ShiftRegisterGossip", claims.shift_register_gossip_follows_its_polynomial),
        ("ChebyshevGossip", claims.acceleration_takes_the_root_of_rounds),
    ],
)
def test_another_momentum_is_seen(name, claim, monkeypatch):
    kind = getattr(algorithms, name)
    right = kind.step

    def wrong(self, comm, s, grad):
        found = right(self, comm, s, grad)
        return found.replace(omega=0.99 * found.omega)

    monkeypatch.setattr(kind, "step", wrong)
    assert not claim().verdict


def test_modes_of_the_wrong_sign_in_every_other_step_are_seen(monkeypatch):
    """After an even number of steps all is well, and before the error is right."""
    right = algorithms.ShiftRegisterGossip.step

    def mirrored(self, comm, s, grad):
        found = right(self, comm, s, grad)
        x, x_prev = (2.0 * x.mean(axis=0) - x for x in (found.x, found.x_prev))
        return found.replace(x=x, x_prev=x_prev)

    monkeypatch.setattr(algorithms.ShiftRegisterGossip, "step", mirrored)
    found = claims.shift_register_gossip_follows_its_polynomial(steps=30)
    assert [bool(check) for check in found.checks] == [True, False, True]


def test_an_error_that_is_eps_itself_takes_no_round_more():
    # rho of the Petersen graph is 1/2.
    claim = claims.acceleration_takes_the_root_of_rounds
    for rounds in range(1, 30):
        found = claim(topology.petersen(), eps=0.5**rounds)
        assert found.verdict, found
        assert found.checks[0].measured == rounds


def test_another_interval_is_seen(monkeypatch):
    right = algorithms.ChebyshevGossip._bounds

    def wrong(self, comm):
        return right(dataclasses.replace(self, interval="symmetric"), comm)

    monkeypatch.setattr(algorithms.ChebyshevGossip, "_bounds", wrong)
    claim = claims.chebyshev_gossip_follows_its_polynomial
    assert claim(topology.ring(16)).verdict
    assert not claim(topology.ring(16), interval="tight").verdict


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_symmetric_weights_are_needed(claim):
    with pytest.raises(TopologyError, match="not symmetric and doubly stochastic"):
        claim(topology.exponential(8))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="interval must be 'symmetric' or 'tight', got 'x'"):
        claims.chebyshev_gossip_follows_its_polynomial(interval="x")
    with pytest.raises(ArgumentError, match="eps must be at least 1e-12 and below 1, got 1"):
        claims.acceleration_takes_the_root_of_rounds(eps=1)
    for claim in CLAIMS:
        with pytest.raises(TopologyError, match="has one rank, with nothing to average"):
            claim(topology.complete(1))
    with pytest.raises(TopologyError, match="nothing to accelerate"):
        claims.chebyshev_gossip_follows_its_polynomial(topology.complete(5))
    with pytest.raises(TopologyError, match="where it lies between 0 and 1"):
        claims.acceleration_takes_the_root_of_rounds(topology.complete(5))
