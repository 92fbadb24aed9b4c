"""Claims on the bias of descent with local mixing: they hold, and would be seen to fail."""

import matplotlib as mpl
import pytest

from dectool import algorithms, problems, topology
from dectool.algorithms import State
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.theory import claims

mpl.use("Agg")


def plain_momentum(self, comm, s, grad):
    """Step as with a momentum that knows nothing of mixing."""
    m = self.beta * s.m + grad(s.x)
    return State(x=comm.neighbor_allreduce(s.x - self.lr * m), m=m)


def untracked(self, comm, s, grad):
    """Step without what gradient tracking corrects."""
    return s.replace(x=comm.neighbor_allreduce(s.x - self.lr * grad(s.x)))


def test_diffusion_ends_at_its_fixed_point():
    assert claims.diffusion_ends_at_its_fixed_point().verdict
    found = claims.diffusion_ends_at_its_fixed_point(topology.exponential(6))
    assert found.verdict
    assert len(found.plot().lines) == 6


def test_diffusion_of_another_order_ends_elsewhere(monkeypatch):
    monkeypatch.setattr(algorithms.ATC, "step", algorithms.CTA.step)
    verdict = claims.diffusion_ends_at_its_fixed_point().verdict
    assert not verdict
    assert "FAIL ATC: bias" in verdict.text
    assert "ok   CTA: bias" in verdict.text


def test_bias_is_proportional_to_step_and_inverse_gap():
    assert claims.bias_is_proportional_to_step_and_inverse_gap().verdict
    graphs = [topology.grid(2, 3), topology.star(5), topology.petersen()]
    assert claims.bias_is_proportional_to_step_and_inverse_gap(graphs, lr=3e-4).verdict


def test_bias_of_another_order_is_another(monkeypatch):
    monkeypatch.setattr(algorithms.ATC, "step", algorithms.CTA.step)
    found = claims.bias_is_proportional_to_step_and_inverse_gap()
    assert "FAIL ATC: bias (worst of 4 step sizes)" in found.verdict.text


def test_runs_that_are_too_short_do_not_agree():
    assert not claims.bias_is_proportional_to_step_and_inverse_gap(steps=40).verdict


def test_ranks_that_agree_on_the_optimum_have_no_bias():
    """The bias is zero but for rounding, and so is what is predicted."""
    h = [[1.0, 3.0], [2.0, 0.7], [0.3, 1.1], [1.7, 0.9]]
    same = problems.Quadratic(h=h, b=[[0.3 * a, 1.7 * b] for a, b in h])
    for claim in (claims.diffusion_ends_at_its_fixed_point, claims.momentum_enlarges_the_bias):
        found = claim(topology.ring(4), same)
        assert found.verdict, found
    # With W = J all end where gradient descent on the mean does.
    found = claims.bias_is_proportional_to_heterogeneity(topology.complete(5))
    assert found.verdict, found


def test_bias_is_proportional_to_heterogeneity():
    assert claims.bias_is_proportional_to_heterogeneity().verdict
    grid = topology.grid(2, 3).lazy()
    assert claims.bias_is_proportional_to_heterogeneity(grid, lr=0.1, scales=[3.0]).verdict


def test_a_method_that_is_not_exact_is_found(monkeypatch):
    monkeypatch.setattr(algorithms.ATCGradientTracking, "step", untracked)
    verdict = claims.bias_is_proportional_to_heterogeneity(scales=[1.0]).verdict
    assert not verdict
    assert "FAIL ATCGradientTracking: bias" in verdict.text
    assert "ok   EXTRA: bias" in verdict.text


def test_momentum_enlarges_the_bias():
    assert claims.momentum_enlarges_the_bias().verdict
    problem = problems.Quadratic.random(5, 2, kappa=3.0, seed=1)
    assert claims.momentum_enlarges_the_bias(topology.star(5), problem, beta=0.5).verdict


def test_momentum_that_knows_nothing_of_mixing_is_found(monkeypatch):
    monkeypatch.setattr(algorithms.DecentLaM, "step", plain_momentum)
    verdict = claims.momentum_enlarges_the_bias().verdict
    assert not verdict
    assert "FAIL DecentLaM, as ATC(0.02): bias" in verdict.text
    assert "ok   QuasiGlobalMomentum" in verdict.text


@pytest.mark.parametrize(
    ("check", "kind", "message"),
    [
        (
            lambda: claims.diffusion_ends_at_its_fixed_point(problem=problems.Averaging([[1.0]])),
            ArgumentTypeError,
            "problem is a Averaging; closed forms are for",
        ),
        (
            lambda: claims.momentum_enlarges_the_bias(
                topology.ring(5), problems.Quadratic.random(4, 2, kappa=2.0)
            ),
            ArgumentError,
            "the problem has 4 ranks and the topology 5",
        ),
        (
            lambda: claims.momentum_enlarges_the_bias(beta=1.0),
            ArgumentError,
            r"beta=1\.0 must be above 0 and below 1",
        ),
        (
            lambda: claims.bias_is_proportional_to_step_and_inverse_gap([topology.ring(8)]),
            ArgumentError,
            "two or more, with different lambda_2",
        ),
        (
            lambda: claims.bias_is_proportional_to_step_and_inverse_gap(lr=0.1),
            ArgumentError,
            "must be below a twentieth of the smallest",
        ),
        (
            lambda: claims.bias_is_proportional_to_step_and_inverse_gap(
                [topology.exponential(4), topology.exponential(8)]
            ),
            TopologyError,
            "symmetric doubly stochastic",
        ),
        (
            lambda: claims.bias_is_proportional_to_step_and_inverse_gap(
                [topology.ring(8), topology.complete(4)]
            ),
            TopologyError,
            "complete graph of 4 must have .* lambda_2 above 0",
        ),
        (
            lambda: claims.diffusion_ends_at_its_fixed_point(lr=0.4),
            ArgumentError,
            "DGD does not converge on ring of 8: its rate is",
        ),
        (
            lambda: claims.momentum_enlarges_the_bias(topology.exponential(6)),
            ArgumentError,
            "DecentLaM does not converge on exponential graph of 6",
        ),
        (
            lambda: claims.bias_is_proportional_to_heterogeneity(scales=[]),
            ArgumentError,
            "scales is empty",
        ),
    ],
)
def test_arguments_are_checked(check, kind, message):
    with pytest.raises(kind, match=message):
        check()
