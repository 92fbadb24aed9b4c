"""Compressed algorithms: trajectories of G8 and of its vector quadratics, and BAGUA's vectors.

The first were computed from the published recursions in dense float64 arithmetic, with W = 1/3 on
the ring of eight, X0[i, j] = sin(1 + 7i + 3j), and for the quadratics h = (1, 2, 3, 4, 1, 2, 3, 4),
b = 4 X0 and x0 = 0. BAGUA's are what its kernels of version 0.9.2 give, re-derived in float32.
"""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.algorithms import State
from tests.bagua import (
    BYTEGRAD_GRADIENTS,
    BYTEGRAD_MEAN,
    RING_GRADIENTS,
    RING_LR,
    RING_WEIGHTS,
    RING_X,
)
from tests.golden.test_g8 import X0

H = np.repeat(np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])[:, None], 6, axis=1)
RING = topology.ring(8)

# algorithm, steps, consensus error, X[0, 0]
GOSSIP = {
    "top-2": (0.3, "topk:2", 1.515797224e-5, -0.034659776067),
    "scaled sign": (0.1, "sign", 9.624043282e-2, -0.022603973522),
}

LEAD = algorithms.LEAD(lr=0.1, gamma=0.3, rate=0.5, compressor="topk:2")
BEER = algorithms.BEER(lr=0.02, gamma=0.3, compressor="topk:2")
CHOCO = algorithms.CHOCO(lr=0.02, gamma=0.3, compressor="topk:2")
DCD = algorithms.DCD(lr=0.02, compressor="minmax8")

# algorithm, steps, distance to the optimum, how exactly it is known. LEAD's table counts from the
# iterate after its first step, which only descends: one step more here.
DISTANCES = [
    (LEAD, 101, 1.057e-2, 5e-6),
    (LEAD, 501, 7.09e-9, 5e-12),
    (BEER, 100, 0.2988, 5e-5),
    (BEER, 500, 3.257e-5, 5e-9),
    (CHOCO, 2000, 3.713, 5e-4),
    (DCD, 2000, 1.661700460124, 5e-13),
]


def distance(algorithm, steps, backend="stacked"):
    problem = problems.Quadratic(h=H, b=4 * X0)
    options = {"topology": RING, "steps": steps, "record_every": steps, "backend": backend}
    return dectool.solve(algorithm, problem, **options).last["distance"]


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("case", GOSSIP)
def test_choco_gossip(case, backend):
    gamma, compressor, error, corner = GOSSIP[case]
    history = dectool.solve(
        algorithms.CHOCOGossip(gamma, compressor),
        problems.Averaging(X0),
        topology=RING,
        steps=200,
        backend=backend,
    )
    assert history.last["consensus_error"] == pytest.approx(error, rel=1e-9)
    assert history.x[0, 0] == pytest.approx(corner, abs=1e-11)


@pytest.mark.parametrize(("algorithm", "steps", "expected", "within"), DISTANCES)
def test_distance_to_the_optimum(algorithm, steps, expected, within):
    assert distance(algorithm, steps) == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("algorithm", [LEAD, BEER])
def test_floor_is_that_of_rounding(algorithm):
    assert distance(algorithm, 2000) < 2e-13


def test_sum_in_place_of_replicas_does_not_drift():
    # Keeping W h itself in place of (W - I) h, rounding errors add up: 6e-11 after 4000 steps.
    problem = problems.Quadratic.random(8, 64, kappa=4.0, heterogeneity=1.0, seed=0)
    for name in ("LEAD", "CEDAS"):
        algorithm = algorithms.get(name, lr=0.1, compressor="qsgd:4")
        options = {"topology": RING, "steps": 4000, "record_every": 1000}
        history = dectool.solve(algorithm, problem, **options)
        assert history["distance"][1:].max() < 5e-12


def test_low_precision_decentralized_is_bagua_s():
    """Three rounds on three ranks: what is sent, and x after each gradient step."""
    algorithm = algorithms.LowPrecisionDecentralized(lr=RING_LR)

    def program(comm):
        # BAGUA's first round sends x itself, from replicas at zero.
        zero = 0 * RING_X[comm.rank]
        state = State(x=zero, pull=zero, draws=0)
        out = []
        for gradients in (-10 * RING_X, RING_GRADIENTS, RING_GRADIENTS):
            state = algorithm.step(comm, state, lambda x, g=gradients: g[comm.rank])
            out.append(state.x)
        return np.stack(out, axis=-2)

    for backend in ("stacked", "sim"):
        values = dectool.run(program, n=3, backend=backend).values
        found = np.stack([np.asarray(values[rank]) for rank in range(3)], axis=1)
        np.testing.assert_allclose(found, RING_WEIGHTS, atol=5e-7)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_bytegrad_is_bagua_s(backend):
    G = BYTEGRAD_GRADIENTS
    algorithm = algorithms.ByteGrad(lr=1.0)

    def program(comm):
        x = 0 * G[comm.rank]
        state = algorithm.init(comm, x, None)
        return -algorithm.step(comm, state, lambda x: G[comm.rank]).x

    for value in dectool.run(program, n=2, backend=backend).values:
        np.testing.assert_allclose(value, BYTEGRAD_MEAN, atol=1e-7)


# m, v and x after steps with gradients 1, 2, 3, 4, 5; the third is dropped.
QADAM = [
    (0.1, 0.001, 0.900000001),
    (0.29, 0.004999, 0.803481799),
    (0.29, 0.004999, 0.720624537),
    (0.661, 0.004999, 0.548821056),
    (1.0949, 0.004999, 0.281693261),
]


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_qadam_is_bagua_s(backend):
    algorithm = algorithms.QAdam(lr=0.1, warmup=3)

    def program(comm):
        state = algorithm.init(comm, comm.per_rank(lambda rank: np.ones(1)), None)
        out = []
        for k in range(5):
            state = algorithm.step(comm, state, lambda x, k=k: 0 * x + k + 1)
            out.append(np.concatenate([state.m, state.v, state.x], axis=-1))
        return np.stack(out, axis=-2)

    for value in dectool.run(program, n=2, backend=backend).values:
        np.testing.assert_allclose(value, QADAM, atol=5e-10)
