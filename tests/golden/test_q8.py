"""The Q8 table: eight scalar quadratics on a ring, every algorithm, both simulated backends.

n = 8, W = 1/3 on the ring, h = (1, 2, 3, 4, 1, 2, 3, 4), b_i = i, x0 = 0, step size 0.1. The
values were computed from the algorithms' published recursions in dense float64 arithmetic.
"""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology

H = np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0])[:, None]
B = np.arange(8.0)[:, None]

# name: spectral radius, x_0 at k = 50, distance to the optimum at k = 50
TABLE = {
    "DGD": (0.766666666667, 1.062148085058, 1.257364313372),
    "ATC": (0.755763899765, 1.156453221921, 1.093922000969),
    "CTA": (0.755763899765, 1.040807546627, 1.383184528043),
    "EXTRA": (0.849349395532, 1.399905273868, 2.349423787e-4),
    "NIDS": (0.860163268550, 1.399843444423, 3.640207211e-4),
    "ExactDiffusion": (0.860163268550, 1.399853212516, 3.401191022e-4),
    "D2": (0.867454610888, 1.399990300995, 4.210099400e-5),
    "ATCGradientTracking": (0.927472730628, 1.399480820052, 1.691765461e-2),
    "SemiATCGradientTracking": (0.934622576600, 1.399239839770, 2.183372886e-2),
    "DIGing": (1.075959303218, 2.994525228355, 5.406688744),
}

LIMIT_BIAS = {"DGD": 1.257364744673, "ATC": 1.093922064331, "CTA": 1.383184646961}


def quadratic():
    return problems.Quadratic(h=H, b=B)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("name", TABLE)
def test_iterate_after_50_steps(name, backend):
    # D2's theory asks for lambda_min > -1/3; here it equals -1/3 and h > 0 keeps it stable.
    history = dectool.solve(
        algorithms.get(name, lr=0.1),
        quadratic(),
        topology=topology.ring(8),
        steps=50,
        backend=backend,
        check=name != "D2",
    )
    _, first, distance = TABLE[name]
    assert history.x[0, 0] == pytest.approx(first, abs=1e-10)
    assert history.last["distance"] == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize("name", TABLE)
def test_spectral_radius(name):
    found = theory.rate(algorithms.get(name, lr=0.1), quadratic(), topology.ring(8))
    assert found == pytest.approx(TABLE[name][0], abs=1e-10)


@pytest.mark.parametrize("name", LIMIT_BIAS)
def test_bias_of_inexact_methods(name):
    history = dectool.solve(
        algorithms.get(name, lr=0.1), quadratic(), topology=topology.ring(8), steps=400
    )
    assert history.last["distance"] == pytest.approx(LIMIT_BIAS[name], abs=1e-10)


def test_bias_of_adapt_then_combine_shrinks_with_the_step():
    history = dectool.solve(
        algorithms.ATC(lr=0.01), quadratic(), topology=topology.ring(8), steps=4000
    )
    assert history.last["distance"] == pytest.approx(0.195582034429, abs=1e-10)


def test_largest_stable_step_of_diging():
    # The step at which the spectral radius reaches 1 is 0.084272354.
    def rate(lr):
        return theory.rate(algorithms.DIGing(lr=lr), quadratic(), topology.ring(8))

    assert rate(0.08427235) < 1.0 < rate(0.08427236)


def test_largest_stable_step_of_nids():
    # 0.564932546: beyond the 2/L = 0.5 that suffices.
    def rate(lr):
        return theory.rate(algorithms.NIDS(lr=lr), quadratic(), topology.ring(8))

    assert rate(0.5649325) < 1.0 < rate(0.5649326)


def test_one_peer_exponential_graph_by_its_period():
    # The published figures hold for ranks that receive from i + 2^t in the order t = 0, 1, 2.
    steps = [
        topology.from_matrix(
            0.5 * np.eye(8) + 0.5 * np.roll(np.eye(8), 2**t, axis=1), require_connected=False
        )
        for t in range(3)
    ]
    schedule = topology.periodic(steps)
    atc = algorithms.ATC(lr=0.1)
    assert theory.rate(atc, quadratic(), schedule) == pytest.approx(0.762000898782, abs=1e-10)
    history = dectool.solve(atc, quadratic(), topology=schedule, steps=300)
    assert history.last["distance"] == pytest.approx(0.165486057739, abs=1e-10)


def test_one_peer_exponential_graph_in_the_usual_direction():
    # Sending to i + 2^t instead gives the spectrum of the reversed product: computed densely here.
    M = np.eye(8)
    for t in range(3):
        W = 0.5 * np.eye(8) + 0.5 * np.roll(np.eye(8), 2**t, axis=0)
        M = W @ (np.eye(8) - 0.1 * np.diag(H[:, 0])) @ M
    expected = np.abs(np.linalg.eigvals(M)).max() ** (1 / 3)
    found = theory.rate(algorithms.ATC(lr=0.1), quadratic(), topology.one_peer_exponential(8))
    assert found == pytest.approx(expected, abs=1e-10)
