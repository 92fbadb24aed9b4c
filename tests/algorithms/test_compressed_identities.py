"""Without compression the compressed algorithms are those that they compress."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology

PROBLEM = problems.Quadratic.random(8, 4, kappa=4.0, heterogeneity=1.0, seed=0)
RING = topology.ring(8)
START = np.random.default_rng(1).normal(size=(8, 4))
EXACT = {"compressor": "identity"}


def run(algorithm, steps=50, *, graph=RING, x0=START, problem=PROBLEM):
    options = {"topology": graph, "steps": steps, "x0": x0, "record_every": steps}
    return dectool.solve(algorithm, problem, **options)


def a(name, **parameters):
    return algorithms.get(name, **parameters)


# the compressed algorithm, what it is then, and on which graph
SAME = {
    "CHOCO": (a("CHOCO", lr=0.05, gamma=1.0, **EXACT), a("ATC", lr=0.05), RING),
    "DCD": (a("DCD", lr=0.05, **EXACT), a("DGD", lr=0.05), RING),
    "ECD": (a("ECD", lr=0.05, **EXACT), a("DGD", lr=0.05), RING),
    "LowPrecision": (a("LowPrecisionDecentralized", lr=0.05, **EXACT), a("DGD", lr=0.05), RING),
    "DeepSqueeze": (a("DeepSqueeze", lr=0.05, eta=1.0, **EXACT), a("ATC", lr=0.05), RING),
    "DeepSqueeze, half": (
        a("DeepSqueeze", lr=0.05, eta=0.5, **EXACT), a("ATC", lr=0.05), RING.lazy(),
    ),
    "LEAD": (a("LEAD", lr=0.1, gamma=1.0, rate=1.0, **EXACT), a("NIDS", lr=0.1), RING),
    "LEAD, slow replicas": (
        a("LEAD", lr=0.1, gamma=1.0, rate=0.3, **EXACT), a("NIDS", lr=0.1), RING,
    ),
    "CEDAS": (a("CEDAS", lr=0.1, gamma=1.0, **EXACT), a("ExactDiffusion", lr=0.1), RING),
    # Of full rank, half a power iteration finds all of the difference.
    "PowerGossip": (a("PowerGossip", lr=0.05, rank=2, shape=(2, 2)), a("ATC", lr=0.05), RING),
}  # fmt: skip


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
@pytest.mark.parametrize("name", SAME)
def test_identity(name, steps):
    one, other, graph = SAME[name]
    found, expected = run(one, steps), run(other, steps, graph=graph)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("steps", [1, 2, 7, 50])
def test_beer_is_diging_from_its_first_iterate(steps):
    # Replicas begin at zero, so the first step does not average, and then v is the gradient.
    first = START - 0.02 * PROBLEM.grad(START, np.arange(8))
    found = run(algorithms.BEER(lr=0.02, gamma=1.0, compressor="identity"), steps + 1)
    expected = run(algorithms.DIGing(lr=0.02), steps, x0=first)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.state["v"], expected.state["y"], rtol=0, atol=1e-12)


def test_choco_gossip_is_gossip():
    averaging = problems.Averaging(START)
    found = run(algorithms.CHOCOGossip(1.0, "identity"), 20, problem=averaging)
    expected = run(algorithms.Gossip(), 20, problem=averaging)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-14)


@pytest.mark.parametrize("compressor", ["topk:1", "qsgd:2"])
def test_choco_of_step_size_zero_is_choco_gossip(compressor):
    found = run(algorithms.CHOCO(lr=0, gamma=0.1, compressor=compressor), 20)
    expected = run(algorithms.CHOCOGossip(gamma=0.1, compressor=compressor), 20)
    assert found.x.tobytes() == expected.x.tobytes()
    assert found.about["gradients"] == 0


@pytest.mark.parametrize("compressor", ["identity", "topk:2", "qsgd:8"])
def test_lead_is_cedas_from_its_first_iterate(compressor):
    first = START - 0.1 * PROBLEM.grad(START, np.arange(8))
    found = run(algorithms.LEAD(lr=0.1, compressor=compressor), 31)
    expected = run(algorithms.CEDAS(lr=0.1, compressor=compressor), 30, x0=first)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["QSGD", "EFSGD", "EF21", "DGC", "ByteGrad"])
def test_centralized_ones_are_gradient_descent(name):
    same = np.tile(START[0], (8, 1))
    found = run(algorithms.get(name, lr=0.05, compressor="identity"), 30, x0=same)
    expected = run(algorithms.AllReduceGD(lr=0.05), 30, x0=same)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-13)
    assert np.ptp(found.x, axis=0).max() == 0.0


def test_one_bit_adam_is_adam_with_a_variance_that_is_frozen():
    x = np.tile(START[0], (8, 1))
    m, v = np.zeros(4), np.zeros(4)
    for t in range(40):
        g = PROBLEM.grad(x, np.arange(8)).mean(axis=0)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2 if t < 15 else v
        x = x - 0.01 * m / (np.sqrt(v) + 1e-8)
    algorithm = algorithms.OneBitAdam(lr=0.01, warmup=15, compressor="identity")
    found = run(algorithm, 40, x0=np.tile(START[0], (8, 1)))
    np.testing.assert_allclose(found.x, x, rtol=0, atol=1e-12)


def test_moniqua_of_many_bits_is_nearly_dgd():
    # Each reading errs by at most delta B, and DGD forgets what was wrong.
    theta, bits = 16.0, 16
    found = run(algorithms.Moniqua(lr=0.05, theta=theta, bits=bits), 50)
    expected = run(algorithms.DGD(lr=0.05), 50)
    off = np.abs(found.x - expected.x).max()
    assert 0 < off < 50 * 2 * theta * 2.0 ** -(bits + 1)
