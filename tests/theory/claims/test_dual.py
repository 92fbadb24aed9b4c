"""Claims on algorithms that invert local gradients: they hold, and would be seen to fail."""

import numpy as np
import pytest

from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.theory import claims

MATRICES = (claims.admm_is_its_block_matrix, claims.ssda_is_its_block_matrix)
COUNTS = (
    claims.ssda_needs_root_of_kappa_over_gamma,
    claims.msda_needs_root_of_kappa,
    claims.opapc_needs_root_of_kappa,
)
FLAT = problems.Quadratic(h=np.arange(8.0)[:, None], b=np.ones((8, 1)))
PLANE = problems.Quadratic.random(10, 2, kappa=20.0, seed=1)
ALONE = topology.from_matrix(np.eye(2), require_connected=False)


@pytest.mark.parametrize("claim", MATRICES)
@pytest.mark.parametrize(
    ("graph", "problem"),
    [(None, None), (topology.path(5), None), (topology.petersen(), PLANE)],
    ids=["ring", "path", "petersen"],
)
def test_matrices(claim, graph, problem):
    found = claim(graph, problem)
    assert found.verdict, found
    assert len(found.curves[0].x) == 51


def faulty(kind, name, change):
    """Return a plant that changes an array of the state after each step of an algorithm."""

    def plant(monkeypatch):
        step = kind.step

        def wrong(self, comm, s, grad):
            after = step(self, comm, s, grad)
            return after.replace(**{name: change(after[name])})

        monkeypatch.setattr(kind, "step", wrong)

    return plant


FAULTS = {
    "multipliers grow too fast": (
        claims.admm_is_its_block_matrix,
        faulty(algorithms.DecentralizedADMM, "phi", lambda phi: 1.01 * phi),
    ),
    "duals decay": (
        claims.ssda_is_its_block_matrix,
        faulty(algorithms.SSDA, "y", lambda y: 0.999 * y),
    ),
    "extrapolation is too short": (
        claims.ssda_needs_root_of_kappa_over_gamma,
        faulty(algorithms.SSDA, "y_prev", lambda y_prev: 1.1 * y_prev),
    ),
    "gossip does not accelerate": (
        claims.msda_needs_root_of_kappa,
        lambda m: m.setattr(
            "dectool.algorithms.dual_accelerated.ChebyshevGossip",
            lambda interval: algorithms.Gossip(),
        ),
    ),
    "a correction is left out": (
        claims.opapc_needs_root_of_kappa,
        faulty(algorithms.OPAPC, "y", lambda y: 0.99 * y),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault, monkeypatch):
    claim, plant = FAULTS[fault]
    plant(monkeypatch)
    found = claim()
    assert not found.verdict
    assert "FAIL" in found.verdict.text


def test_the_penalty_is_no_matter_and_is_looked_at(monkeypatch):
    assert claims.admm_is_its_block_matrix(penalty=3.0, steps=10).verdict
    real = algorithms.DecentralizedADMM
    monkeypatch.setattr(
        "dectool.theory.claims._dual.DecentralizedADMM", lambda penalty: real(penalty=0.4)
    )
    text = claims.admm_is_its_block_matrix().verdict.text
    assert text.count("FAIL") == 3


def test_a_larger_step_breaks_the_bound(monkeypatch):
    monkeypatch.setattr(
        "dectool.algorithms.dual_accelerated._accelerated",
        lambda *_: {"lr": 0.75, "momentum": 0.9},
    )
    assert "FAIL SSDA: rate: measured" in claims.ssda_is_its_block_matrix().verdict.text


@pytest.mark.parametrize("claim", COUNTS)
def test_counts(claim):
    found = claim()
    assert found.verdict, found
    assert found.scale == "loglog"
    for curve in found.curves:
        np.testing.assert_array_equal(curve.measured, curve.predicted)
        slope = np.polyfit(np.log(curve.x), np.log(curve.measured), 1)[0]
        assert slope == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("claim", COUNTS)
def test_counts_on_other_graphs(claim):
    graphs = [topology.complete(4), topology.star(5), topology.path(4, weights="max_degree")]
    assert claim(graphs, conditions=(40, 90), seed=3).verdict


def test_steps_of_msda_do_not_know_the_graph():
    graphs = [topology.ring(5), topology.ring(10), topology.ring(20)]
    found = {
        claim: [c.measured[-1] for c in claim(graphs, conditions=(50, 60), accuracy=1e-2).curves]
        for claim in COUNTS[:2]
    }
    # 1/sqrt(gamma) doubles with the ring, and with it the steps of SSDA alone.
    steps = found[claims.ssda_needs_root_of_kappa_over_gamma]
    np.testing.assert_allclose(np.divide(steps[1:], steps[:-1]), 2.0, atol=0.2)
    steps = found[claims.msda_needs_root_of_kappa]
    assert max(steps) < 1.4 * min(steps)


def test_small_condition_numbers_do_not_double():
    """Where sqrt(gamma/kappa) is not small, steps grow by more than sqrt(2)."""
    found = claims.ssda_needs_root_of_kappa_over_gamma([topology.complete(4)], conditions=(2, 4))
    assert "FAIL SSDA on complete graph of 4: steps grow" in found.verdict.text


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: COUNTS[0](conditions=[32.0]), ArgumentError, r"conditions=\[32.0\] must be two"),
        (lambda: COUNTS[0](conditions=[64, 32]), ArgumentError, "above 1, ascending"),
        (lambda: COUNTS[1](conditions=[1, 32]), ArgumentError, "above 1, ascending"),
        (lambda: COUNTS[1](accuracy=1.0), ArgumentError, r"accuracy=1.0 must be above 0 and below"),
        (lambda: COUNTS[2]([]), ArgumentError, "topologies is empty"),
        (lambda: COUNTS[2]([topology.exponential(8)]), TopologyError, "and symmetric doubly stoch"),
        (
            lambda: COUNTS[0]([ALONE]),
            TopologyError, "use a connected undirected graph",
        ),
        (lambda: MATRICES[0](topology.exponential(8)), TopologyError, "is directed"),
        (lambda: MATRICES[0](penalty=0.0), ArgumentError, "penalty=0.0 must be above 0"),
        (lambda: MATRICES[0](steps=0), ArgumentError, "steps must be at least 1"),
        (lambda: MATRICES[1](topology.exponential(8)), TopologyError, "symmetric doubly stochas"),
        (
            lambda: MATRICES[1](None, FLAT),
            ArgumentError, "has the curvature 0; make h positive",
        ),
        (
            lambda: MATRICES[1](topology.ring(2), problems.Averaging([[1.0], [2.0]])),
            ArgumentTypeError, "closed forms are for problems.Quadratic",
        ),
    ],
)  # fmt: skip
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
