"""Claims on sequences and periods of graphs: they hold, and would be seen to fail."""

import numpy as np
import pytest

from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.theory import claims
from dectool.theory.claims import _changing, _finite_time
from tests.theory.q8 import QUADRATIC as EIGHT


def backwards(n):
    """The one-peer exponential graph in which ranks hear those ahead of them."""
    steps = topology.one_peer_exponential(n)
    return topology.periodic(
        [
            topology.from_matrix(steps.at(k).W.T, require_connected=False)
            for k in range(steps.period)
        ]
    )


EXACT = {
    "Laplacian, ring": lambda: claims.laplacian_steps_average_exactly(topology.ring(11)),
    "Laplacian, grid": lambda: claims.laplacian_steps_average_exactly(topology.grid(4, 4)),
    "Laplacian, star": lambda: claims.laplacian_steps_average_exactly(topology.star(8)),
    "one-peer": claims.one_peer_exponential_averages_exactly,
    "one-peer, symmetric": lambda: claims.one_peer_exponential_averages_exactly(8, symmetric=True),
    "one-peer, 12": lambda: claims.one_peer_exponential_averages_exactly(12),
    "Base-2 of 21": lambda: claims.base_k_averages_exactly(21),
    "Base-4 of 10": lambda: claims.base_k_averages_exactly(10, k=3),
    "de Bruijn": claims.de_bruijn_averages_exactly,
    "de Bruijn, 3": lambda: claims.de_bruijn_averages_exactly(3, 2),
    "de Bruijn, one digit": lambda: claims.de_bruijn_averages_exactly(4, 1),
}


@pytest.mark.parametrize("name", EXACT)
def test_sequences_average_exactly(name):
    assert EXACT[name]().verdict


def test_predicted_rounds():
    counts = {
        claims.laplacian_steps_average_exactly(topology.hypercube(4)): 4,
        claims.laplacian_steps_average_exactly(topology.petersen()): 2,
        claims.one_peer_exponential_averages_exactly(8): 3,
        claims.base_k_averages_exactly(25, k=2): 6,
        claims.de_bruijn_averages_exactly(2, 5): 5,
    }
    for found, rounds in counts.items():
        assert found.checks[0].predicted == found.checks[0].measured == rounds


def test_a_step_too_few_is_seen(monkeypatch):
    right = topology.laplacian_sequence

    def short(graph):
        whole = right(graph)
        return topology.periodic([whole.at(k) for k in range(whole.period - 1)])

    monkeypatch.setattr(_finite_time, "laplacian_sequence", short)
    assert not claims.laplacian_steps_average_exactly().verdict
    monkeypatch.setattr(_finite_time, "base_k", lambda n, k: topology.alternating_ring(n))
    assert not claims.base_k_averages_exactly().verdict
    lazy = topology.complete(16).lazy()
    monkeypatch.setattr(_finite_time, "de_bruijn", lambda n, degree: lazy)
    assert not claims.de_bruijn_averages_exactly().verdict


def test_another_cycle_is_seen(monkeypatch):
    right = topology.one_peer_exponential

    def wrong(n, symmetric):
        steps = right(n, symmetric=symmetric)
        return topology.periodic([steps.at(max(1, k)) for k in range(steps.period)])

    monkeypatch.setattr(_finite_time, "one_peer_exponential", wrong)
    assert not claims.one_peer_exponential_averages_exactly(16).verdict
    pairs = topology.base_k(12)
    monkeypatch.setattr(_finite_time, "one_peer_exponential", lambda n, symmetric: pairs)
    assert not claims.one_peer_exponential_averages_exactly(12).verdict


def test_another_part_that_stays_is_seen(monkeypatch):
    assert claims.one_peer_exponential_averages_exactly(6).checks[0].predicted == pytest.approx(
        0.216506350946, abs=1e-12
    )
    right = claims.one_peer_exponential_averages_exactly(25)
    assert right.verdict
    assert right.checks[0].predicted == pytest.approx(0.192116154287, abs=1e-12)
    other = topology.alternating_ring(12)
    monkeypatch.setattr(_finite_time, "one_peer_exponential", lambda n, symmetric: other)
    found = claims.one_peer_exponential_averages_exactly(12)
    assert "FAIL error after 2 rounds" in found.verdict.text


def test_a_start_that_the_second_round_brings_closer_is_seen(monkeypatch):
    """W - J is nilpotent and of norm 1, and of norm 1/2 after another round."""
    u = np.linalg.qr(np.column_stack([np.ones(8), np.eye(8)[:, :3]]))[0].T[1:]
    W = 1 / 8 + np.outer(u[0], u[1]) + 0.5 * np.outer(u[1], u[2])
    graph = topology.from_matrix(W)
    assert graph.rho == pytest.approx(1.0)
    monkeypatch.setattr(_finite_time, "de_bruijn", lambda n, degree: graph)
    found = claims.de_bruijn_averages_exactly(2, 3)
    assert [bool(check) for check in found.checks] == [True, False]
    assert found.checks[1].measured == pytest.approx(0.5)


def test_a_cycle_that_is_exact_from_its_first_step_alone_is_seen(monkeypatch):
    """Once blocks of 4 agree, any pairs between blocks will do; before, they will not."""

    def pairs(partner):
        W = (np.eye(16) + np.eye(16)[[partner(i) for i in range(16)]]) / 2
        return topology.from_matrix(W, require_connected=False)

    def across(bit, order):
        def partner(i):
            low = order[i % 4] if not i & bit else order.index(i % 4)
            return (i ^ bit) // 4 * 4 + low

        return partner

    steps = [lambda i: i ^ 1, lambda i: i ^ 2, across(4, [0, 2, 3, 1]), across(8, [3, 1, 0, 2])]
    cycle = topology.periodic([pairs(step) for step in steps])
    assert topology.finite_time_length(cycle, start=0) == 4 < topology.finite_time_length(cycle)
    monkeypatch.setattr(_finite_time, "one_peer_exponential", lambda n, symmetric: cycle)
    assert not claims.one_peer_exponential_averages_exactly(16).verdict


@pytest.mark.parametrize(
    "schedule",
    [
        None,
        topology.one_peer_exponential(12),
        topology.periodic([topology.star(6), topology.ring(6)]),
        topology.equidyn(10),
    ],
    ids=repr,
)
def test_products_contract(schedule):
    assert claims.products_contract_by_the_product_of_factors(schedule, steps=8).verdict


def test_smaller_factors_are_seen(monkeypatch):
    schedule = topology.periodic([topology.complete(6).lazy(), topology.star(6)])
    claim = claims.products_contract_by_the_product_of_factors
    monkeypatch.setattr(_changing, "dobrushin", lambda W: 0.9 * topology.dobrushin(W))
    assert "FAIL Dobrushin" in claim(schedule, steps=4).verdict.text
    monkeypatch.undo()
    assert claim(schedule, steps=4).verdict
    rho = topology.Topology.rho.func
    monkeypatch.setattr(topology.Topology, "rho", property(lambda t: 0.9 * rho(t)))
    assert "FAIL norm" in claim(schedule, steps=1).verdict.text


@pytest.mark.parametrize("graph", [None, topology.grid(3, 3), topology.path(2)], ids=str)
def test_joint_connectivity(graph):
    found = claims.averaging_needs_joint_connectivity(graph, window=2, windows=10, seed=3)
    assert found.verdict


def test_parts_that_are_connected_are_seen(monkeypatch):
    monkeypatch.setattr(_changing, "_without_bridges", lambda step: step)
    assert not claims.averaging_needs_joint_connectivity().verdict
    monkeypatch.undo()
    never = _changing._without_bridges
    dealt = topology.b_connected
    monkeypatch.setattr(
        _changing,
        "b_connected",
        lambda graph, window, seed: topology.Schedule(
            lambda k: never(dealt(graph, window, seed=seed).at(k)),
            size=graph.size,
            period=None,
            name="never",
        ),
    )
    assert "FAIL largest factor" in claims.averaging_needs_joint_connectivity().verdict.text


def test_published_rate_and_bias_of_one_peer_descent():
    found = claims.descent_on_a_cycle_follows_its_period_map(EIGHT, backwards(8))
    assert found.verdict
    rate, bias = found.checks[-2:]
    assert rate.measured == pytest.approx(0.762000898782, abs=1e-12)
    assert bias.measured == pytest.approx(0.165486057739, abs=1e-12)


@pytest.mark.parametrize(
    ("problem", "schedule", "lr"),
    [
        (None, None, 0.1),
        (EIGHT, topology.alternating_ring(8), 0.2),
        (problems.Quadratic.random(6, 3, seed=1), topology.base_k(6), 0.05),
    ],
)
def test_descent_on_cycles(problem, schedule, lr):
    found = claims.descent_on_a_cycle_follows_its_period_map(problem, schedule, lr=lr, periods=40)
    assert found.verdict, found


def test_a_way_that_is_not_that_of_the_period_map_is_seen(monkeypatch):
    """Rate and limit are right, and where the iterates begin is not."""
    right = algorithms.ATC.init

    def elsewhere(self, comm, x, grad):
        return right(self, comm, x + 1.0, grad)

    monkeypatch.setattr(algorithms.ATC, "init", elsewhere)
    found = claims.descent_on_a_cycle_follows_its_period_map()
    assert [bool(check) for check in found.checks] == [False, True, True, True, True]


def test_descent_on_another_number_of_ranks():
    assert claims.descent_on_a_cycle_follows_its_period_map(schedule=topology.base_k(6)).verdict
    with pytest.raises(ArgumentError, match="the problem has 8 ranks and the topology 6"):
        claims.descent_on_a_cycle_follows_its_period_map(EIGHT, topology.base_k(6))


def test_another_descent_is_seen(monkeypatch):
    monkeypatch.setattr(_changing, "ATC", algorithms.CTA)
    found = claims.descent_on_a_cycle_follows_its_period_map()
    assert "FAIL iterates" in found.verdict.text


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: claims.one_peer_exponential_averages_exactly(1), ArgumentError, "n must be at"),
        (
            lambda: claims.one_peer_exponential_averages_exactly(6, symmetric=True),
            ArgumentError,
            "power of two",
        ),
        (
            lambda: claims.laplacian_steps_average_exactly(topology.exponential(8)),
            TopologyError,
            "connected undirected",
        ),
        (
            lambda: claims.products_contract_by_the_product_of_factors(
                topology.laplacian_sequence(topology.ring(8))
            ),
            TopologyError,
            "negative",
        ),
        (
            lambda: claims.averaging_needs_joint_connectivity(topology.exponential(8)),
            TopologyError,
            "must be undirected",
        ),
        (
            lambda: claims.descent_on_a_cycle_follows_its_period_map(
                schedule=topology.random_pair(topology.ring(8))
            ),
            TopologyError,
            "no period",
        ),
        (
            lambda: claims.descent_on_a_cycle_follows_its_period_map(lr=3.0),
            ArgumentError,
            "lr=3 is too large",
        ),
        (
            lambda: claims.descent_on_a_cycle_follows_its_period_map(problems.Averaging(np.eye(8))),
            ArgumentTypeError,
            "closed forms are for",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
