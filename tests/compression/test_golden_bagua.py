"""BAGUA's golden values, from our classes: its vectors, and the norms that its CI asserts.

The CI trains one layer of 32 by 32 on two devices; what it asserts equals training on the even
samples alone, with the compression of the named algorithm in between.
"""

import numpy as np
import pytest

from dectool import compression, topology
from tests.bagua import (
    BYTEGRAD_GRADIENTS,
    BYTEGRAD_MEAN,
    RING_CODES,
    RING_GRADIENTS,
    RING_LR,
    RING_WEIGHTS,
    RING_X,
)

torch = pytest.importorskip("torch")

MINMAX = compression.MinMax8()
CLOSE = 5e-7


def there_and_back(x):
    return MINMAX.decompress(MINMAX.compress(x))


# Section 7.1: numbers, codes, decoded.
VECTORS = {
    "V1": ([0, 0.25, 0.5, 1], [0, 64, 127, 255], [0, 0.25098044, 0.49803928, 1.0000001]),
    "V2": (
        [-0.3, 0.1, 0.2, 0.7],
        [1, 102, 128, 255],
        [-0.29803923, 0.09803922, 0.20000002, 0.69803929],
    ),
    "V3": (
        [-1, -0.5, 0, 0.5, 1],
        [0, 63, 127, 191, 255],
        [-0.99607843, -0.50196081, 0, 0.50196081, 1.0039216],
    ),
    "V3b": (
        [-0.25, -0.1, 0, 0.1, 0.25],
        [1, 77, 128, 179, 255],
        [-0.24901967, -0.10000002, 0, 0.10000002, 0.24901967],
    ),
    "V4": ([0, 0, 0], [255, 255, 255], [0, 0, 0]),
    "V5": ([2, 2], [0, 0], [2, 2]),
    "V7": ([0.001, -0.002, 0.003, 100], [0, 0, 0, 255], [0, 0, 0, 100.00201]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_minmax8_gives_the_codes_and_values_of_bagua(name):
    numbers, codes, decoded = VECTORS[name]
    x = np.array(numbers, np.float32)
    payload = MINMAX.compress(x)
    assert payload.nbytes == 64
    assert payload.data[0, 32 : 32 + len(x)].tolist() == codes
    assert payload.data[0, :8].tobytes() == np.array([x.min(), x.max()], "<f4").tobytes()
    np.testing.assert_allclose(MINMAX.decompress(payload), decoded, rtol=CLOSE, atol=0)


def test_two_chunks_have_the_bytes_of_bagua():
    c = compression.MinMax8(block=3)
    payload = c.compress(np.array([0, 0.25, 0.5, 1, -0.3, 0.7], np.float32))
    data = payload.to_bytes()
    assert len(data) == c.wire_bytes(6) == 128
    assert data[:8].hex(" ", 4) == "00000000 0000003f"
    assert list(data[32:35]) == [0, 127, 255]
    assert data[64:72].hex(" ", 4) == "9a9999be 0000803f"
    assert list(data[96:99]) == [255, 0, 196]
    want = [0, 0.2490197, 0.5000001, 0.9992157, -0.3007843, 0.6984314]
    np.testing.assert_allclose(c.decompress(payload), want, rtol=CLOSE)


@pytest.mark.parametrize(
    ("count", "chunks", "size"), [(1_000_000, 16, 1_000_960), (1000, 8, 1280), (10, 2, 128)]
)
def test_sizes_are_those_of_bagua(count, chunks, size):
    assert compression.MinMax8(block=count // chunks).wire_bytes(count) == size


def test_bytegrad_of_two_ranks():
    """Section 7.2: compress in two chunks, exchange, average, compress again."""
    gradients = np.pad(BYTEGRAD_GRADIENTS, [(0, 0), (0, 1)])
    c = compression.MinMax8(block=2)
    arrived = c.decompress(c.compress(gradients))
    reduced = (arrived[0] + arrived[1]) / np.float32(2)
    np.testing.assert_allclose(reduced, [0.3000001, -0.1, 0.1, 0], rtol=CLOSE, atol=1e-9)
    second = c.compress(reduced)
    assert second.data[0, [32, 33, 96, 97]].tolist() == [255, 0, 255, 0]
    np.testing.assert_allclose(c.decompress(second)[:3], BYTEGRAD_MEAN, rtol=CLOSE)


def test_low_precision_ring_of_three():
    """Section 7.3: t = x + l/3 + r/3 - 5w/3, and everyone moves every replica by C(t)."""
    x = RING_X
    w, left, right = (np.zeros_like(x) for _ in range(3))
    third, five_thirds = np.float32(1 / 3), np.float32(5 / 3)
    for k in range(3):
        payload = MINMAX.compress(x + left * third + right * third - w * five_thirds)
        assert payload.data[:, 32:36].tolist() == RING_CODES[k]
        moved = MINMAX.decompress(payload)
        w, left, right = w + moved, left + np.roll(moved, 1, 0), right + np.roll(moved, -1, 0)
        np.testing.assert_allclose(w, RING_WEIGHTS[k], atol=CLOSE)
        x = w - np.float32(RING_LR) * RING_GRADIENTS


class Training:
    """The layer, samples and loss of BAGUA's CI, with the parameters in one flat vector."""

    def __init__(self, devices):
        torch.manual_seed(13)
        torch.nn.Linear(32, 2)
        self.layer = torch.nn.Linear(32, 32)
        data = torch.randn(64, 32)
        order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
        self.samples = data[order][::devices]

    def gradient(self, sample):
        output = self.layer(sample[None])
        loss = torch.nn.functional.mse_loss(output, torch.ones_like(output))
        weight, bias = torch.autograd.grad(loss, [self.layer.weight, self.layer.bias])
        return torch.cat([bias, weight.reshape(-1)])

    @property
    def parameters(self):
        return torch.cat([self.layer.bias, self.layer.weight.reshape(-1)]).detach()

    @parameters.setter
    def parameters(self, values):
        with torch.no_grad():
            self.layer.bias.copy_(values[:32])
            self.layer.weight.copy_(values[32:].reshape(32, 32))

    @property
    def norm(self):
        return float(self.layer.weight.detach().norm())


def sgd(devices, compress=lambda g: g):
    training = Training(devices)
    for sample in training.samples:
        training.parameters = training.parameters - 0.1 * compress(training.gradient(sample))
    return training.norm


def low_precision_ring_of_one():
    training = Training(2)
    w = left = right = training.parameters
    third, five_thirds = float(np.float32(1 / 3)), float(np.float32(5 / 3))
    for sample in training.samples:
        x = training.parameters - 0.1 * training.gradient(sample)
        moved = there_and_back(x + left * third + right * third - w * five_thirds)
        w, left, right = w + moved, left + moved, right + moved
        training.parameters = w
    return training.norm


def qadam(compress=lambda m: there_and_back(there_and_back(m)), warmup=20, lr=0.05):
    """BAGUA's QAdam, with the gradient of step number ``warmup`` dropped as there."""
    training = Training(2)
    m = v = torch.zeros(32 * 33)
    for t, sample in enumerate(training.samples, 1):
        g = training.gradient(sample)
        if t < warmup:
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        elif t > warmup:
            m = compress(0.9 * m + 0.1 * g)
        size = v.sqrt() / (1 - 0.999**t) ** 0.5 + 1e-8
        training.parameters = training.parameters - lr / (1 - 0.9**t) * m / size
    return training.norm


@pytest.mark.parametrize(
    ("norm", "asserted", "relative"),
    [
        (lambda: Training(1).norm, 3.1995556354522705, 4e-7),  # a norm summed on a GPU
        (lambda: sgd(1), 2.4819390773773193, 4e-7),
        (lambda: sgd(2), 2.835376262664795, 2e-7),
        (lambda: sgd(2, lambda g: there_and_back(there_and_back(g))), 2.835047960281372, 1e-15),
        (low_precision_ring_of_one, 2.8350701332092285, 2e-7),
        (qadam, 6.891299724578857, 2e-7),
    ],
    ids=["initial", "one device", "two devices", "bytegrad", "low precision", "qadam"],
)
def test_norms_of_baguas_ci(norm, asserted, relative):
    assert norm() == pytest.approx(asserted, rel=relative)


def test_norms_tell_the_compression():
    """Without the second pass, or with none, the same norms come out different."""
    assert abs(sgd(2, there_and_back) - 2.835047960281372) > 1e-7
    assert abs(qadam(compress=lambda m: m) - 6.891299724578857) > 1e-4


SHIFT_ONE = {
    2: [[1, 0]],
    4: [[2, 3, 0, 1], [3, 2, 1, 0]],
    6: [[3, 4, 5, 0, 1, 2], [4, 5, 3, 2, 0, 1], [5, 3, 4, 1, 2, 0]],
    8: [
        [4, 5, 6, 7, 0, 1, 2, 3],
        [5, 6, 7, 4, 3, 0, 1, 2],
        [6, 7, 4, 5, 2, 3, 0, 1],
        [7, 4, 5, 6, 1, 2, 3, 0],
    ],
}


@pytest.mark.parametrize("n", SHIFT_ONE)
def test_shift_one_pairs(n):
    """Section 7.4: the peers of each step, with period n/2; x + x_peer over 2 averages."""
    schedule = topology.shift_one(n)
    for step in range(3 * n):
        graph = schedule.at(step)
        peers = [graph.out_neighbors(rank) for rank in range(n)]
        assert [list(p) for p in peers] == [[p] for p in SHIFT_ONE[n][step % (n // 2)]]
        assert set(graph.to_dense()[np.arange(n), np.arange(n)]) == {0.5}


def test_shift_one_averages():
    x = np.arange(8.0)
    want = [
        [2, 3, 4, 5, 2, 3, 4, 5],
        [2.5, 3.5, 4.5, 3.5, 3.5, 2.5, 3.5, 4.5],
        [3, 4, 4, 3, 4, 3, 3, 4],
        [3.5, 4, 3.5, 3, 4, 3.5, 3, 3.5],
    ]
    for step, values in enumerate(want):
        x = topology.shift_one(8).at(step).to_dense() @ x
        assert x.tolist() == values
