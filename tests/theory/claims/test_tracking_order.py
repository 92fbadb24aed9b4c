"""The claim on the steps of gradient tracking: it holds, and would be seen to fail."""

import numpy as np
import pytest

from dectool import algorithms, topology
from dectool.errors import ArgumentError, TopologyError
from dectool.theory import claims
from dectool.theory.claims import _tracking_order

claim = claims.gradient_tracking_needs_one_over_p_steps


@pytest.mark.parametrize("condition", [1.0, 4.0, 16.0])
def test_steps_are_of_their_order(condition):
    assert claim(condition=condition).verdict


def test_other_topologies():
    assert claim([topology.path(n) for n in (8, 12, 16, 24)]).verdict
    assert claim([topology.ring(n).lazy() for n in (12, 24, 48)]).verdict


def test_another_algorithm_has_another_rate(monkeypatch):
    kind = algorithms.ATCGradientTracking
    monkeypatch.setattr(kind, "step", algorithms.SemiATCGradientTracking.step)
    assert "FAIL rate on ring of 16" in claim().verdict.text


def test_steps_of_a_higher_order_are_seen(monkeypatch):
    best = _tracking_order._best

    def slower(values, h):
        factor, lr = best(values, h)
        return 1.0 - (1.0 - factor) * (1.0 - values[-2]), lr

    monkeypatch.setattr(_tracking_order, "_best", slower)
    assert "FAIL exponent of 1/p" in claim().verdict.text


def test_arguments():
    with pytest.raises(ArgumentError, match="condition=0"):
        claim(condition=0.5)
    with pytest.raises(ArgumentError, match="three of different rho"):
        claim([topology.ring(8), topology.ring(16)])
    with pytest.raises(TopologyError, match="symmetric doubly stochastic"):
        claim([topology.exponential(n) for n in (8, 16, 32)])
    assert np.isfinite(claim().checks[0].measured)
