"""Conserved quantities: what the algorithm's own start makes of them."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.algorithms import Algorithm, State
from dectool.errors import ArgumentError
from tests.theory.q8 import QUADRATIC, RING

LR = 0.08


def compressed(name, **parameters):
    return algorithms.get(name, lr=LR, compressor="identity", **parameters)


@pytest.mark.parametrize(
    ("same", "of"),
    [
        (compressed("LEAD", gamma=1.0, rate=1.0), algorithms.NIDS(lr=LR)),
        (compressed("CEDAS", gamma=1.0, rate=1.0), algorithms.ExactDiffusion(lr=LR)),
        (compressed("BEER", gamma=1.0), algorithms.DIGing(lr=LR)),
        (compressed("EF21"), algorithms.AllReduceGD(lr=LR)),
        (compressed("DCD"), algorithms.DGD(lr=LR)),
    ],
    ids=lambda algorithm: algorithm.name,
)
def test_without_compression_the_rate_is_that_of_the_method_itself(same, of):
    expected = theory.rate(of, QUADRATIC, RING)
    assert expected < 1.0
    assert theory.rate(same, QUADRATIC, RING) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", ["LEAD", "CEDAS", "BEER", "CHOCO", "DeepSqueeze", "EF21", "EFSGD"])
def test_compressed_methods_end_where_they_are_predicted(name):
    algorithm = compressed(name)
    limit = theory.fixed_point(algorithm, QUADRATIC, RING)
    history = dectool.solve(algorithm, QUADRATIC, topology=RING, steps=2500)
    np.testing.assert_allclose(history.x, limit.x, atol=1e-10)


def test_gossip_ends_at_the_mean_of_its_start():
    problem = problems.Averaging(np.arange(8.0)[:, None])
    limit = theory.fixed_point(algorithms.Gossip(), problem, RING)
    np.testing.assert_allclose(limit.x, 3.5, atol=1e-12)
    elsewhere = theory.fixed_point(algorithms.Gossip(), problem, RING, x0=[[2.0]] * 8)
    np.testing.assert_allclose(elsewhere.x, 2.0, atol=1e-12)


class Drift(Algorithm):
    """Gossip that adds 1 in each step."""

    def init(self, comm, x, grad):
        return State(x=x)

    def step(self, comm, s, grad):
        return State(x=comm.neighbor_allreduce(s.x) + 1.0)


def test_a_conserved_quantity_that_is_pushed_has_no_fixed_point():
    with pytest.raises(ArgumentError, match="Drift has no fixed point"):
        theory.fixed_point(Drift(), QUADRATIC, RING)


def test_start_of_the_wrong_size_is_refused():
    with pytest.raises(ArgumentError, match=r"x0 has shape \(3, 1\); give 8 points of 1"):
        theory.fixed_point(algorithms.DGD(lr=0.1), QUADRATIC, RING, x0=np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        (algorithms.RobustPushSum(), "RobustPushSum is not affine"),
        (algorithms.RandomizedGossip(), "at their own pace"),
        (algorithms.LEAD(lr=0.1, compressor="qsgd:2"), r"changes from step to step .*draws"),
        (algorithms.CHOCO(lr=0.1, compressor="sign"), "CHOCO is not affine"),
    ],
    ids=lambda value: getattr(value, "name", "reason"),
)
def test_what_has_no_matrix_says_why(algorithm, reason):
    with pytest.raises(ArgumentError, match=reason):
        theory.iteration(algorithm, QUADRATIC, topology.ring(8))
