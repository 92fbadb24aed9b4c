"""The Q8 table, continued: ADMM without local solutions on the ring, trackers on a digraph.

The values were computed from the published recursions in dense float64 arithmetic.
"""

import numpy as np
import pytest

import dectool
from dectool import algorithms, theory
from tests.theory.q8 import PULL, PUSH, QUADRATIC, RING

DLM = algorithms.DLM(lr=1 / 4, penalty=0.5)

# algorithm, topology, spectral radius, x_0 at k = 50
ROWS = [
    (DLM, RING, 0.911727507309, 1.402251815457),
    (algorithms.ATCPushPull(lr=0.02), PULL, 0.950512024116, 1.289949115123),
    (algorithms.PushDIGing(lr=0.02), PUSH, 0.950023788026, 1.292081959621),
]


def names(value):
    return value.name if isinstance(value, algorithms.Algorithm) else None


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize(("algorithm", "graph", "rate", "first"), ROWS, ids=names)
def test_iterate_after_50_steps(algorithm, graph, rate, first, backend):
    history = dectool.solve(algorithm, QUADRATIC, topology=graph, steps=50, backend=backend)
    assert history.x[0, 0] == pytest.approx(first, abs=1e-10)


@pytest.mark.parametrize(("algorithm", "graph", "rate", "first"), ROWS, ids=names)
def test_spectral_radius(algorithm, graph, rate, first):
    assert theory.rate(algorithm, QUADRATIC, graph) == pytest.approx(rate, abs=1e-10)
    np.testing.assert_allclose(theory.fixed_point(algorithm, QUADRATIC, graph).x, 1.4, atol=1e-11)


def test_distance_of_dlm():
    history = dectool.solve(DLM, QUADRATIC, topology=RING, steps=50)
    assert history.last["distance"] == pytest.approx(1.273580164e-2, abs=1e-10)


def test_either_weights_of_the_digraph_make_the_same_matrices():
    push_pull = algorithms.ATCPushPull(lr=0.02)
    given = algorithms.ATCPushPull(lr=0.02, pull=PULL, push=PUSH)
    on_rows = dectool.solve(push_pull, QUADRATIC, topology=PULL, steps=20).x
    on_columns = dectool.solve(push_pull, QUADRATIC, topology=PUSH, steps=20).x
    assert on_rows.tobytes() == on_columns.tobytes()
    assert dectool.solve(given, QUADRATIC, topology=RING, steps=20).x.tobytes() == on_rows.tobytes()
