"""Maps of methods on digraphs, where weights have settled, against the published block matrices."""

import networkx as nx
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from tests.theory.q8 import EYE, PULL, PUSH, QUADRATIC, B, H

LR = 0.05
h = np.diag(H)
R, C = PULL.to_dense(), PUSH.to_dense()
S = np.diag(1 / PUSH.perron)
A = S @ C @ np.linalg.inv(S)

NAMES = ["AB", "PushPull", "ATCPushPull", "PushDIGing", "ADDOPT", "SGP", "SubgradientPush"]
GRAPHS = dict.fromkeys(NAMES[:3], PULL) | dict.fromkeys(NAMES[3:], PUSH)


def form(name, lr=LR):
    """Return the matrix on (x, y); on x alone, where nothing is tracked."""
    blocks = {
        "AB": [[R, -lr * EYE], [h @ (R - EYE), C - lr * h]],
        "PushPull": [[R, -lr * R], [h @ (R - EYE), C - lr * h @ R]],
        "ATCPushPull": [[R, -lr * R], [C @ h @ (R - EYE), C @ (EYE - lr * h @ R)]],
        "PushDIGing": [[A, -lr * S @ C], [h @ (A - EYE), C - lr * h @ S @ C]],
        "ADDOPT": [[A, -lr * S], [h @ (A - EYE), C - lr * h @ S]],
        "SGP": [[A - lr * S @ C @ h]],
        # s = z - lr h x with x = S z, so S C s is what it is above.
        "SubgradientPush": [[A - lr * S @ C @ h]],
    }
    return np.block(blocks[name])


@pytest.mark.parametrize("name", NAMES)
def test_spectrum_is_that_of_the_block_matrix(name):
    M = form(name)
    conserved = 1 if len(M) == 16 else 0
    found = theory.iteration(algorithms.get(name, lr=LR), QUADRATIC, GRAPHS[name])
    assert found.conserved == conserved
    for power in range(1, 17):
        expected = np.trace(np.linalg.matrix_power(M, power)) - conserved
        assert np.sum(found.eigenvalues**power) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_iterates_end_where_it_is_predicted(name):
    algorithm = algorithms.get(name, lr=LR)
    limit = theory.fixed_point(algorithm, QUADRATIC, GRAPHS[name])
    history = dectool.solve(algorithm, QUADRATIC, topology=GRAPHS[name], steps=1200)
    np.testing.assert_allclose(history.x, limit.x, atol=1e-12)
    assert (limit.bias < 1e-11) == algorithm.exact


@pytest.mark.parametrize("lr", [1.0, 5.0, 50.0])
def test_fixed_points_are_known_where_iterates_overflow_before_weights_settle(lr):
    push = theory.fixed_point(algorithms.SGP(lr=lr), QUADRATIC, PUSH)
    end = np.linalg.solve(EYE - form("SGP", lr), lr * S @ C @ B)
    np.testing.assert_allclose(push.x[:, 0], end, rtol=1e-9)
    tracking = theory.fixed_point(algorithms.PushDIGing(lr=lr), QUADRATIC, PUSH)
    assert tracking.bias < 1e-7
    assert not push.attracts
    assert not tracking.attracts


@pytest.mark.parametrize("name", ["PushDIGing", "SGP"])
def test_every_iterate_is_predicted_though_weights_settle_first(name):
    algorithm = algorithms.get(name, lr=LR)
    prediction = theory.predict(algorithm, QUADRATIC, PUSH)
    # Rounding is all that is left of 0.76^k after some 140 steps.
    history = dectool.solve(algorithm, QUADRATIC, topology=PUSH, steps=300)
    assert theory.compare(history, prediction).verdict


@pytest.mark.parametrize("name", ["AB", "ATCPushPull", "PushDIGing"])
def test_largest_stable_step(name):
    largest = theory.largest_stable_lr(algorithms.get(name, lr=LR), QUADRATIC, GRAPHS[name])
    moduli = [
        np.sort(np.abs(np.linalg.eigvals(form(name, factor * largest))))[::-1]
        for factor in (1 - 1e-6, 1 + 1e-6)
    ]
    # The eigenvalue 1 of the conserved sum stays.
    assert moduli[0][0] == pytest.approx(1.0, abs=1e-9)
    assert moduli[0][1] < 1.0
    assert moduli[1][0] > 1.0


def test_schedules_of_digraphs_settle_to_a_period():
    one_peer = topology.one_peer_exponential(8)
    star = topology.star(8, weights="uniform_push")
    schedule = topology.periodic([one_peer.at(0), star, one_peer.at(2)])
    push = algorithms.PushDIGing(lr=LR)
    found = theory.iteration(push, QUADRATIC, schedule)
    assert found.period == 3
    history = dectool.solve(push, QUADRATIC, topology=schedule, steps=450)
    prediction = theory.predict(push, QUADRATIC, schedule)
    assert theory.compare(history, prediction).verdict
    assert prediction.bias < 1e-11


def test_periods_of_given_matrices_count():
    pulls = topology.periodic([PULL, topology.ring(8)])
    pushes = topology.periodic([PUSH, PUSH, topology.complete(8)])
    push_pull = algorithms.PushPull(lr=0.02, pull=pulls, push=pushes)
    assert push_pull.period == 6
    found = theory.predict(push_pull, QUADRATIC, topology.ring(8))
    assert found.period == 6
    history = dectool.solve(push_pull, QUADRATIC, topology=topology.ring(8), steps=120)
    assert theory.compare(history, found).verdict


def test_push_sum_on_slow_graphs_settles_too():
    ring = nx.DiGraph([(i, (i + 1) % 20) for i in range(20)] + [(0, 5)])
    graph = topology.from_graph(ring, weights="uniform_push")
    assert graph.slem > 0.95
    problem = problems.Averaging(np.eye(20)[:, :1])
    found = theory.rate(algorithms.PushSum(), problem, graph)
    assert found == pytest.approx(graph.slem, abs=1e-9)
