"""Claims on the onset of linear speed-up: they hold, and would be seen to fail."""

import numpy as np
import pytest

from dectool import algorithms, topology
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims
from dectool.theory.claims import _transient

CLAIMS = (
    claims.sgd_gains_after_n3_over_gap4,
    claims.exact_diffusion_gains_after_n3_over_gap2,
)
GRAPHS = [*(topology.ring(n) for n in (12, 24, 48)), *(topology.grid(m, m) for m in (6, 8, 10))]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("heterogeneity", [1.0, 0.0])
def test_transients_are_of_their_order(claim, heterogeneity):
    assert claim(heterogeneity=heterogeneity).verdict


def test_other_topologies():
    assert claims.exact_diffusion_gains_after_n3_over_gap2(GRAPHS, heterogeneity=4.0).verdict


def test_the_order_is_reached_by_ranks_that_disagree():
    found = claims.sgd_gains_after_n3_over_gap4().checks
    assert found[1].measured == pytest.approx(3.0, abs=0.05)
    assert found[2].measured == pytest.approx(4.0, abs=0.1)


def test_another_algorithm_has_another_transient(monkeypatch):
    monkeypatch.setattr(algorithms.DGD, "step", algorithms.CTA.step)
    found = claims.sgd_gains_after_n3_over_gap4()
    assert "FAIL transient on a ring of 8" in found.verdict.text


def test_a_bias_that_nothing_removes_is_seen(monkeypatch):
    modes = _transient._descent
    monkeypatch.setattr(_transient, "_exact_diffusion", modes)
    text = claims.exact_diffusion_gains_after_n3_over_gap2().verdict.text
    assert "FAIL transient on hypercube of 256, with and without heterogeneity" in text
    assert "FAIL exponent of 1/(1 - rho)" in text


def test_what_is_no_number_is_no_gain(monkeypatch):
    monkeypatch.setattr(_transient, "_descent", lambda values, *_: np.full(len(values), np.nan))
    found = claims.sgd_gains_after_n3_over_gap4()
    assert "FAIL transient on a ring of 8" in found.verdict.text
    assert found.curves[0].measured.min() == 2.0**62


def test_arguments():
    claim = claims.sgd_gains_after_n3_over_gap4
    with pytest.raises(ArgumentError, match="two exponents need four"):
        claim(GRAPHS[:3])
    of_one_size = [topology.ring(8), topology.path(8), topology.star(8), topology.hypercube(3)]
    with pytest.raises(ArgumentError, match="four of different sizes"):
        claim(of_one_size)
    with pytest.raises(ArgumentError, match="heterogeneity=-1"):
        claim(heterogeneity=-1.0)
    with pytest.raises(TopologyError, match="symmetric doubly stochastic"):
        claim([topology.exponential(8)] * 4)
