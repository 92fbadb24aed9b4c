"""Claims on exact methods and their largest steps: they hold, and would be seen to fail."""

import dataclasses

import numpy as np
import pytest

from dectool import algorithms, problems, topology
from dectool.algorithms import State, dlm, exact_diffusion
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims

GRAPHS = (topology.ring(8), topology.star(9), topology.grid(2, 3).lazy())
PLANES = {graph.size: problems.Quadratic.random(graph.size, 2, kappa=5.0) for graph in GRAPHS}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_exact_methods_on_many_graphs(graph):
    problem = PLANES[graph.size]
    assert claims.exact_methods_are_their_block_matrices(graph, problem, lr=0.03).verdict
    assert claims.linearized_admm_is_its_block_matrix(graph, problem, penalty=1.5).verdict


def test_exact_methods_from_starts_apart():
    start = problems.Quadratic.random(8, 2, seed=3)
    start.initial = lambda ranks: np.random.default_rng(0).normal(size=(8, 2))
    assert claims.exact_methods_are_their_block_matrices(problem=start).verdict
    assert claims.linearized_admm_is_its_block_matrix(problem=start, lr=0.05).verdict


def test_a_wrong_step_of_exact_diffusion_is_seen(monkeypatch):
    def step(self, comm, s, grad):
        psi = s.x - self.lr * grad(s.x)
        return State(x=comm.neighbor_allreduce(psi + s.x - s.psi), psi=psi)

    monkeypatch.setattr(exact_diffusion.ExactDiffusion, "step", step)
    found = claims.exact_methods_are_their_block_matrices()
    assert [check.quantity.split(":")[0] for check in found.checks if not check] == [
        "ExactDiffusion"
    ] * 3


def test_a_wrong_first_step_is_seen_though_the_rate_is_right(monkeypatch):
    init = exact_diffusion.NIDS.init

    def averaged(self, comm, x, grad):
        return init(self, comm, x, grad).replace(share=1.0)

    monkeypatch.setattr(exact_diffusion.NIDS, "init", averaged)
    failed = [
        check for check in claims.exact_methods_are_their_block_matrices().checks if not check
    ]
    assert [check.quantity[:14] for check in failed] == ["NIDS: distance", "NIDS: how far "]


def test_iterates_that_overflow_agree_with_nothing():
    """Relative to what is infinite, every error would be 0."""
    with np.errstate(all="ignore"):
        found = claims.exact_methods_are_their_block_matrices(lr=50.0, steps=100)
    for check in found.checks:
        assert bool(check) == check.quantity.endswith("rate"), check


def test_a_wrong_laplacian_of_linearized_admm_is_seen(monkeypatch):
    right = dlm.laplacian
    monkeypatch.setattr(dlm, "laplacian", lambda comm, x: 0.9 * right(comm, x))
    assert not claims.linearized_admm_is_its_block_matrix().verdict


def test_largest_steps_on_other_graphs():
    for graph in GRAPHS[1:]:
        problem = PLANES[graph.size]
        assert claims.exact_methods_outlast_their_theorems(graph, problem).verdict


def test_a_method_that_stands_smaller_steps_is_seen(monkeypatch):
    step = algorithms.NIDS.step

    def hasty(self, comm, s, grad):
        return step(dataclasses.replace(self, lr=1.2 * self.lr), comm, s, grad)

    monkeypatch.setattr(algorithms.NIDS, "step", hasty)
    failed = [check for check in claims.exact_methods_outlast_their_theorems().checks if not check]
    assert [check.relation for check in failed] == ["=", ">="]
    assert all(check.quantity.startswith("NIDS") for check in failed)


def test_d2_stops_at_minus_a_third():
    found = claims.d2_is_stable_above_minus_a_third()
    assert found.verdict
    assert found.checks[0].measured == pytest.approx(-1 / 3, abs=1e-6)
    assert claims.d2_is_stable_above_minus_a_third([0.8]).verdict


def test_exact_diffusion_in_place_of_d2_is_seen(monkeypatch):
    def step(self, comm, s, grad):
        psi = s.x - self.lr * grad(s.x)
        phi = psi + s.x - s.psi
        return State(x=(phi + comm.neighbor_allreduce(phi)) / 2, psi=psi)

    monkeypatch.setattr(algorithms.D2, "step", step)
    assert not any(claims.d2_is_stable_above_minus_a_third([1e-6]).checks)


def test_what_is_refused():
    with pytest.raises(TopologyError, match="not symmetric and doubly stochastic"):
        claims.exact_methods_are_their_block_matrices(topology.exponential(8))
    with pytest.raises(TopologyError, match=r"eigenvalue -1, so EXTRA .*lazy"):
        claims.exact_methods_outlast_their_theorems(
            topology.ring(8, weights="metropolis_hastings_boyd")
        )
    concave = problems.Quadratic(h=[[-1.0], [4.0]], b=[[0.0], [1.0]])
    with pytest.raises(ArgumentError, match="has the curvature -1; make h positive"):
        claims.exact_methods_outlast_their_theorems(topology.ring(2), concave)
    with pytest.raises(TopologyError, match="DLM is for undirected graphs"):
        claims.linearized_admm_is_its_block_matrix(topology.directed_ring(8))
    for given in ((), (0.0,), (1.5,)):
        with pytest.raises(ArgumentError, match="must be numbers above 0 and at most 1"):
            claims.d2_is_stable_above_minus_a_third(given)
