"""Mean square errors of noisy runs in closed form and by sampling; transients by exhaustion."""

import math

import numpy as np
import pytest

from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.theory import _transient
from tests.theory.q8 import PUSH, QUADRATIC, RING, B, H, W

FLAT = problems.Quadratic(h=np.full((8, 1), 2.0), b=B[:, None])


def closed(lr, steps, noise=1.0):
    """ATC on one curvature from 0: the first two steps are without noise."""
    values, vectors = np.linalg.eigh(W)
    r, b = values * (1 - 2.0 * lr), vectors.T @ B
    mean = lr * values * b / (1 - r) * (1 - r**steps)
    mean[-1] -= vectors[:, -1] @ np.full(8, B.mean() / 2.0)
    spread = (lr * values * noise) ** 2 / (1 - r**2) * (1 - r ** (2 * max(0, steps - 2)))
    return (np.sum(mean**2) + np.sum(spread)) / 8


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10, 1000, 10**9])
def test_one_curvature(steps):
    found = theory.mean_square_error(algorithms.ATC(lr=0.1), FLAT, RING, steps, noise=0.5)
    assert found == pytest.approx(closed(0.1, steps, 0.5), rel=1e-9)


def test_long_runs_have_bias_and_steady_state():
    for kind in (algorithms.DGD, algorithms.NIDS, algorithms.ATCGradientTracking):
        algorithm = kind(lr=0.05)
        spread = theory.steady_state(algorithm, QUADRATIC, RING, noise=0.3).variance
        bias = theory.fixed_point(algorithm, QUADRATIC, RING).bias
        found = theory.mean_square_error(algorithm, QUADRATIC, RING, 10**6, noise=0.3)
        assert found == pytest.approx(spread + bias**2 / 8, rel=1e-9)


def test_sampled_runs():
    # Gradient tracking, whose noise is kept for the next step, sampled with its own recursion.
    rng, lr, count = np.random.default_rng(0), 0.05, 20_000
    x = np.zeros((count, 8))
    g = H * x - B
    y, mixed = g, W
    for k in range(8):
        x = (x - lr * y) @ mixed
        # The map is read off behind two steps, so that noise begins there.
        noise = rng.normal(size=x.shape) if k >= 2 else 0.0
        new = H * x - B + noise
        y, g = (y + new - g) @ mixed, new
    algorithm = algorithms.ATCGradientTracking(lr=lr)
    found = theory.mean_square_error(algorithm, QUADRATIC, RING, 8)
    squares = np.mean((x - 1.4) ** 2, axis=1)
    assert abs(found - squares.mean()) < 5 * squares.std() / math.sqrt(count)


def test_schedules_and_starts():
    graph, x0 = topology.one_peer_exponential(8), np.arange(8.0)[:, None]
    atc = algorithms.ATC(lr=0.1)
    assert theory.mean_square_error(atc, QUADRATIC, graph, 0, x0=x0) == pytest.approx(
        np.mean((np.arange(8.0) - 1.4) ** 2)
    )
    # In whole periods of three steps.
    found = [theory.mean_square_error(atc, QUADRATIC, graph, k, x0=x0) for k in (11, 12, 13, 14)]
    assert found[0] != found[1]
    assert found[1] == found[2] == found[3]


def test_noise_is_not_known_before_weights_settle():
    push = algorithms.SGP(lr=0.05)
    with pytest.raises(ArgumentError, match="SGP has weights that settle in the first"):
        theory.mean_square_error(push, QUADRATIC, PUSH, 20)
    start = theory.mean_square_error(push, QUADRATIC, PUSH, 0)
    assert start == pytest.approx(1.4**2)
    spread = theory.steady_state(push, QUADRATIC, PUSH).variance
    bias = theory.fixed_point(push, QUADRATIC, PUSH).bias
    found = theory.mean_square_error(push, QUADRATIC, PUSH, 10**6)
    assert found == pytest.approx(spread + bias**2 / 8, rel=1e-9)


def test_transients_by_exhaustion():
    even = problems.Quadratic(h=np.ones((8, 1)), b=np.zeros((8, 1)))
    values = np.linalg.eigvalsh(W)

    def fails(T):
        lr = min(0.5, math.sqrt(8 / T))
        r, alone = values * (1 - lr), 1 - lr
        spread = (lr * values) ** 2 / (1 - r**2) * (1 - r ** (2 * (T - 2))) / 8
        base = lr**2 / 8 / (1 - alone**2) * (1 - alone ** (2 * (T - 2)))
        return spread.sum() > 2.0 * base

    last = max(T for T in range(3, 400) if fails(T))
    assert last == 160
    assert theory.transient_time(algorithms.ATC(lr=0.1), even, RING, most=2**12) == last + 1


def test_what_is_no_number_is_no_gain(monkeypatch):
    monkeypatch.setattr(_transient, "_error_after", lambda *_: math.nan)
    time = theory.transient_time(algorithms.ATC(lr=0.1), FLAT, RING, most=2**6)
    assert time == math.inf


def test_arguments_of_transients():
    atc = algorithms.ATC(lr=0.1)
    time = theory.transient_time
    # A constant step leaves the modes apart as long as it runs.
    assert time(atc, FLAT, RING, lr=lambda T: 0.2, most=2**10) == math.inf
    # From the start on, where all agree, or where much is allowed.
    assert time(atc, FLAT, topology.complete(8), most=2**10) == 1
    assert time(atc, FLAT, RING, factor=1e6, most=2**6) == 1
    # Steps that do not converge only fail: below 64 they do not.
    lr = lambda T: 1e-3 if T >= 64 else 5.0  # noqa: E731
    even = problems.Quadratic(h=np.ones((8, 1)), b=np.zeros((8, 1)))
    assert time(atc, even, RING, lr=lr, most=2**10) == 64
    with pytest.raises(ArgumentError, match="factor=1"):
        time(atc, FLAT, RING, factor=1.0)
    with pytest.raises(ArgumentTypeError, match="give a function of the horizon"):
        time(atc, FLAT, RING, lr=0.1)
    with pytest.raises(ArgumentError, match="has no step size lr"):
        time(algorithms.Gossip(), FLAT, RING)
    with pytest.raises(ArgumentError, match="most must be at least 1"):
        time(atc, FLAT, RING, most=0)
    with pytest.raises(ArgumentError, match="steps must be at least 0"):
        theory.mean_square_error(atc, FLAT, RING, -1)
