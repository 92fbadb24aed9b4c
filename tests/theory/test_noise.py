"""Noise floors: discrete Lyapunov equations against closed forms, and against a simulation."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory
from dectool.algorithms import Algorithm, State
from dectool.errors import ArgumentError
from tests.theory.q8 import QUADRATIC, RING, W

FLAT = problems.Quadratic(h=np.full((8, 1), 2.0), b=np.arange(8.0)[:, None])
LR, SIGMA = 0.05, 0.7


def test_published_value():
    found = theory.steady_state(algorithms.ATC(lr=LR), QUADRATIC, RING)
    assert found.variance == pytest.approx(0.002278121764, abs=1e-12)
    assert found.mean_variance == pytest.approx(0.001342451905, abs=1e-12)


@pytest.mark.parametrize("name", ["DGD", "ATC"])
def test_modes_with_equal_curvature(name):
    values, vectors = np.linalg.eigh(W)
    gain, decay = (values, values * (1 - LR * 2)) if name == "ATC" else (1.0, values - LR * 2)
    expected = (LR * SIGMA * gain) ** 2 / (1 - decay**2)
    found = theory.steady_state(algorithms.get(name, lr=LR), FLAT, RING, noise=SIGMA)
    modes = vectors.T @ found.covariance @ vectors
    np.testing.assert_allclose(modes, np.diag(expected), atol=1e-15)
    # The mean over ranks gains exactly n, whatever the matrix.
    assert found.mean_variance == pytest.approx(LR * SIGMA**2 / (8 * 2 * (2 - LR * 2)), rel=1e-12)


@pytest.mark.parametrize("name", ["EXTRA", "NIDS", "D2", "DIGing", "ATCGradientTracking"])
def test_mean_of_exact_methods_with_equal_curvature(name):
    # The mean over ranks is that of gradient descent for each of them.
    found = theory.steady_state(algorithms.get(name, lr=LR), FLAT, RING)
    assert found.mean_variance == pytest.approx(LR / (8 * 2 * (2 - LR * 2)), rel=1e-9)


@pytest.mark.parametrize("name", ["EXTRA", "DIGing"])
def test_covariance_is_that_of_simulated_noise(name):
    # Gradients with noise, taken from the problem's own method, on 20,000 steps.
    algorithm = algorithms.get(name, lr=LR)
    found = theory.steady_state(algorithm, QUADRATIC, RING)
    limit = theory.fixed_point(algorithm, QUADRATIC, RING)
    rng = np.random.default_rng(1)
    squares = []

    def program(comm):
        def grad(x):
            return QUADRATIC.grad(x, comm.rank) + rng.normal(size=x.shape)

        state = algorithm.init(comm, np.zeros((8, 1)), grad)
        for k in range(20_000):
            state = algorithm.step(comm, state, grad)
            if k >= 500:
                squares.append(((state["x"] - limit.x) ** 2).mean())

    dectool.run(program, 8, backend="stacked", topology=RING)
    assert np.mean(squares) == pytest.approx(found.variance, rel=0.05)


def test_noise_of_one_rank_alone_is_a_share_of_all():
    parts = [
        theory.steady_state(algorithms.EXTRA(lr=LR), QUADRATIC, RING, noise=unit[:, None])
        for unit in np.eye(8)
    ]
    whole = theory.steady_state(algorithms.EXTRA(lr=LR), QUADRATIC, RING)
    np.testing.assert_allclose(sum(p.covariance for p in parts), whole.covariance, atol=1e-14)


class Collects(Algorithm):
    """Descent that sums up how two gradients at one point differ: noise alone."""

    def init(self, comm, x, grad):
        return State(x=x, z=0.0 * x)

    def step(self, comm, s, grad):
        g = grad(s.x)
        return State(x=comm.neighbor_allreduce(s.x - LR * g), z=s.z + g - grad(s.x))


@pytest.mark.parametrize("noise", [1e6, 1.0, 1e-10])
def test_noise_that_adds_up_has_no_spread_however_small(noise):
    with pytest.raises(ArgumentError, match="Collects adds up noise in a quantity"):
        theory.steady_state(Collects(), QUADRATIC, RING, noise=noise)


def test_refusals():
    with pytest.raises(ArgumentError, match=r"DIGing does not converge here \(rate 1\.07"):
        theory.steady_state(algorithms.DIGing(lr=0.1), QUADRATIC, RING)
    with pytest.raises(ArgumentError, match="at least 0"):
        theory.steady_state(algorithms.ATC(lr=0.1), QUADRATIC, RING, noise=-1.0)
    with pytest.raises(ArgumentError, match="does not broadcast"):
        theory.steady_state(algorithms.ATC(lr=0.1), QUADRATIC, RING, noise=[1.0, 2.0, 3.0])
