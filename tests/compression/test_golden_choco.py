"""Published trajectories that a compressor must reproduce: averaging on eight ranks in a ring.

The algorithms are written out here, on all ranks at once; X0[i, j] = sin(1 + 7i + 3j).
"""

import numpy as np
import pytest

from dectool import compression

X0 = np.sin(1.0 + 7.0 * np.arange(8)[:, None] + 3.0 * np.arange(6))
W = sum(np.roll(np.eye(8), shift, axis=1) for shift in (-1, 0, 1)) / 3
H = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]


def send(c, x):
    return c.decompress(c.compress(x))


@pytest.mark.parametrize(
    ("c", "gamma", "error", "first"),
    [
        (compression.TopK(2), 0.3, 1.515797224e-5, -0.034659776067),
        (compression.ScaledSign(), 0.1, 9.624043282e-2, -0.022603973522),
    ],
)
def test_choco_gossip(c, gamma, error, first):
    x, replica = X0, np.zeros_like(X0)
    for _ in range(200):
        replica = replica + send(c, x - replica)
        x = x + gamma * (W @ replica - replica)
    assert np.linalg.norm(x - X0.mean(axis=0)) == pytest.approx(error, rel=1e-8)
    assert x[0, 0] == pytest.approx(first, abs=1e-12)


def test_dcd_with_8_bits_tends_to_the_bias_of_dgd():
    """The differences that are sent tend to zero, so min-max must keep its levels at any scale."""
    b, alpha = 4 * X0, 0.02
    bias = alpha * np.linalg.solve(np.eye(8) - W + alpha * np.diag(H[:, 0]), b)
    optimum = b.sum(axis=0) / H.sum()
    c, x = compression.MinMax8(), np.zeros_like(X0)
    for _ in range(3000):
        x = x + send(c, W @ x - alpha * (H * x - b) - x)
    assert np.linalg.norm(x - optimum) == pytest.approx(1.661700460124, abs=1e-12)
    assert np.abs(x - bias).max() < 1e-14
