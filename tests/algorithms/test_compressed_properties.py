"""What the theory of compressed algorithms promises: sums that are kept, rates, and accuracy."""

import warnings

import numpy as np
import pytest

import dectool
from dectool import algorithms, compression, problems, topology
from dectool.algorithms._two_phases import first_errors, mean_with_feedback

RING = topology.ring(8)
PROBLEM = problems.Quadratic.random(8, 24, kappa=4.0, heterogeneity=1.0, seed=0)
ALIKE = problems.Quadratic.random(8, 24, kappa=4.0, heterogeneity=0.0, seed=0)
START = np.random.default_rng(1).normal(size=(8, 24))
COMPRESSORS = ["topk:3", "sign", "randomk:0.2", "qsgd:4", "minmax8", "natural"]


def run(algorithm, steps, problem=PROBLEM, **options):
    options = {"topology": RING, "record_every": steps, **options}
    return dectool.solve(algorithm, problem, steps=steps, **options)


def distance(algorithm, steps, problem=PROBLEM, **options):
    return run(algorithm, steps, problem, **options).last["distance"]


# -- sums that are kept -----------------------------------------------------------------------


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_choco_gossip_keeps_the_mean(compressor):
    history = run(algorithms.CHOCOGossip(0.1, compressor), 200, problems.Averaging(START))
    np.testing.assert_allclose(history.x.mean(axis=0), START.mean(axis=0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_beer_tracks_the_sum_of_gradients(compressor):
    state = run(algorithms.BEER(lr=0.01, gamma=0.1, compressor=compressor), 60, x0=START).state
    tracked, gradients = state["v"].sum(axis=0), state["gradient"].sum(axis=0)
    np.testing.assert_allclose(tracked, gradients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["LEAD", "CEDAS"])
@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_dual_variables_sum_to_zero(name, compressor):
    state = run(algorithms.get(name, lr=0.05, gamma=0.1, compressor=compressor), 60).state
    np.testing.assert_allclose(state["d"].sum(axis=0), 0.0, atol=1e-11)


@pytest.mark.parametrize("name", ["CHOCO", "DCD", "LEAD", "CEDAS"])
@pytest.mark.parametrize("compressor", ["topk:3", "qsgd:4"])
def test_the_sum_that_is_kept_is_that_of_the_replicas(name, compressor):
    state = run(algorithms.get(name, lr=0.02, compressor=compressor), 60, x0=START).state
    replicas = state[{"CHOCO": "x_hat", "DCD": "x"}.get(name, "h")]
    expected = RING.to_dense() @ replicas - replicas
    np.testing.assert_allclose(state["pull"], expected, rtol=0, atol=1e-12)


def test_means_that_move_as_in_gradient_descent():
    """With equal Hessians the mean of these is gradient descent, whatever is lost in between."""
    problem = problems.Quadratic(h=np.full((8, 24), 2.0), b=START)
    x = START.mean(axis=0)
    for _ in range(40):
        x = x - 0.05 * (2.0 * x - START.mean(axis=0))
    for algorithm in (
        algorithms.CHOCO(lr=0.05, gamma=0.1, compressor="sign"),
        algorithms.Moniqua(lr=0.05, theta=20.0, bits=4),
        algorithms.PowerGossip(lr=0.05),
    ):
        found = run(algorithm, 40, problem, x0=START).x.mean(axis=0)
        np.testing.assert_allclose(found, x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["DeepSqueeze", "EFSGD"])
def test_what_is_lost_is_owed(name):
    # Without curvature: x + e (x - e) moves by the mean gradient alone.
    flat = problems.Quadratic(h=np.full((8, 24), 1e-300), b=START)
    state = run(algorithms.get(name, lr=0.1, compressor="topk:3"), 30, flat).state
    sign = 1 if name == "DeepSqueeze" else -1
    found = (state["x"] + sign * state["error"]).mean(axis=0)
    np.testing.assert_allclose(found, 30 * 0.1 * START.mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("compressor", ["sign", "topk:1", "qsgd:2"])
def test_the_mean_with_feedback_loses_nothing(compressor, size, backend):
    """What came out by now is the mean of what went in, less the errors that are still owed."""
    d, made = 11, compression.get(compressor)
    V = np.random.default_rng(5).normal(size=(9, size, d))

    def program(comm):
        errors, draws = first_errors(comm, V[0][comm.rank]), 0
        total = 0.0
        for v in V:
            mean, errors, draws = mean_with_feedback(comm, v[comm.rank], errors, made, draws)
            total = total + mean
        return total, *errors

    values = dectool.run(program, n=size, backend=backend).values
    totals, own, of_mean = (
        np.stack([np.asarray(v) for v in part]) for part in zip(*values, strict=True)
    )
    expected = V.sum(axis=0).mean(axis=0) - own.mean(axis=0) - of_mean.ravel()[:d]
    np.testing.assert_allclose(totals, np.tile(expected, (size, 1)), rtol=0, atol=1e-13)
    assert np.ptp(totals, axis=0).max() == 0.0
    assert not of_mean.ravel()[d:].any()


# -- rates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compressor", ["topk:8", "topk:20", "randomk:0.5", "identity"])
def test_choco_gossip_converges_as_proved(compressor):
    """e(k) <= (1 - gap**2 delta / 82)**k e(0) with the theoretical gamma."""
    delta = compression.get(compressor).contraction(24)
    gamma = algorithms.choco_gamma(RING, delta)
    mean = START.mean(axis=0)
    first = np.sum((START - mean) ** 2) + np.sum(START**2)
    last = first
    for steps in (100, 1000, 4000):
        state = run(
            algorithms.CHOCOGossip(gamma, compressor), steps, problems.Averaging(START)
        ).state
        error = np.sum((state["x"] - mean) ** 2) + np.sum((state["x"] - state["x_hat"]) ** 2)
        assert error <= (1 - (1 - RING.rho) ** 2 * delta / 82) ** steps * first
        assert error < last
        last = error


@pytest.mark.parametrize("compressor", ["identity", "topk:2", "topk:1"])
@pytest.mark.parametrize("size", [8, 16, 32, 64])
def test_the_rate_proved_for_choco_gossip_holds_on_the_slowest_mode(size, compressor):
    graph = topology.ring(size)
    X = np.tile(np.linalg.eigh(graph.to_dense())[1][:, [-2]], (1, 4))
    delta = compression.get(compressor).contraction(4)
    gamma = algorithms.choco_gamma(graph, delta)
    errors = []
    for steps in (500, 2000):
        algorithm = algorithms.CHOCOGossip(gamma, compressor)
        state = run(algorithm, steps, problems.Averaging(X), topology=graph).state
        errors.append(np.sum(state["x"] ** 2) + np.sum((state["x"] - state["x_hat"]) ** 2))
    gap = 1 - graph.rho
    assert errors[1] <= (1 - gap**2 * delta / 82) ** 1500 * errors[0]
    if compressor == "identity":
        assert errors[1] == pytest.approx((1 - gamma * gap) ** 3000 * errors[0], rel=1e-9)
        # With the square of the gap in the numerator, gamma * gap is smaller by that factor.
        assert (size >= 32) == ((1 - gamma * gap**2) ** 2 > 1 - gap**2 / 82)


@pytest.mark.parametrize(
    ("gamma", "compressor"), [(0.2, "topk:3"), (0.2, "sign"), (0.6, "qsgd:4"), (0.1, "randomk:0.2")]
)
def test_choco_gossip_reaches_the_average(gamma, compressor):
    history = run(algorithms.CHOCOGossip(gamma, compressor), 1500, problems.Averaging(START))
    assert history.last["consensus_error"] < 1e-10


# name and parameters: steps, and the distance reached by then
EXACT = [
    ("LEAD", {"lr": 0.1, "compressor": "qsgd:4"}, 700, 1e-10),
    ("LEAD", {"lr": 0.1, "gamma": 0.1, "compressor": "randomk:0.5,unbiased=true"}, 1500, 1e-10),
    ("LEAD", {"lr": 0.1, "gamma": 0.1, "compressor": "topk:3"}, 2500, 1e-10),
    ("CEDAS", {"lr": 0.1, "compressor": "natural"}, 700, 1e-10),
    ("BEER", {"lr": 0.02, "gamma": 0.3, "compressor": "topk:5"}, 2500, 1e-10),
    ("BEER", {"lr": 0.02, "gamma": 0.2, "compressor": "sign"}, 3500, 1e-10),
    ("EF21", {"lr": 0.05, "compressor": "topk:2"}, 1500, 1e-10),
    ("EF21", {"lr": 0.05, "compressor": "sign"}, 1500, 1e-10),
]


@pytest.mark.parametrize(("name", "parameters", "steps", "within"), EXACT)
def test_exact_ones_reach_the_optimum(name, parameters, steps, within):
    assert distance(algorithms.get(name, **parameters), steps) < within


@pytest.mark.parametrize(
    "algorithm",
    [
        algorithms.DCD(lr=0.02, compressor="qsgd:16"),
        algorithms.DCD(lr=0.02, compressor="minmax8"),
        algorithms.LowPrecisionDecentralized(lr=0.02),
    ],
    ids=["qsgd", "minmax8", "bagua"],
)
def test_difference_compression_has_exactly_the_bias_of_dgd(algorithm):
    dgd = distance(algorithms.DGD(lr=0.02), 3000)
    assert distance(algorithm, 3000) == pytest.approx(dgd, abs=1e-10)


def test_difference_compression_diverges_where_the_variance_is_too_large():
    # The theory asks for (1 - rho)^2 / (4 |I - W|^2) = 0.0054, and this has 23.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = run(algorithms.DCD(lr=0.02, compressor="randomk:1,unbiased=true"), 2000)
    assert history.status == "diverged" or history.last["distance"] > 1e3


def test_extrapolation_compression_averages_errors_out():
    # Errors of fixed size: that of an estimate falls as 1/t.
    dgd = run(algorithms.DGD(lr=0.02), 2000).x
    off = [
        np.abs(run(algorithms.ECD(lr=0.02, compressor="qsgd:512"), steps).x - dgd).max()
        for steps in (500, 2000)
    ]
    assert off[1] < 0.05


SHRINKING = {
    "CHOCO": {"gamma": 0.2, "compressor": "topk:5"},
    "EFSGD": {"compressor": "topk:3"},
    "QSGD": {"compressor": "qsgd:4"},
    "DGC": {"momentum": 0.5, "compressor": "topk:6"},
    "PowerGossip": {"rank": 2},
}


@pytest.mark.parametrize("name", SHRINKING)
def test_inexact_ones_come_nearer_with_a_smaller_step(name):
    coarse, fine = (
        distance(algorithms.get(name, lr=lr, **SHRINKING[name]), round(40 / lr))
        for lr in (0.04, 0.01)
    )
    assert 0 < fine < 0.7 * coarse


def test_quantised_gradients_that_vanish_at_the_optimum_reach_it():
    assert distance(algorithms.QSGD(lr=0.05, compressor="qsgd:4"), 800, ALIKE) < 1e-10


@pytest.mark.parametrize("bits", [4, 8, 12])
def test_moniqua_is_near_dgd_by_its_resolution(bits):
    dgd = run(algorithms.DGD(lr=0.02), 800).x
    found = run(algorithms.Moniqua(lr=0.02, theta=8.0, bits=bits), 800).x
    error = compression.Moniqua(8.0, bits).error
    assert np.abs(found - dgd).max() < 20 * error


def test_moniqua_misreads_neighbours_that_are_too_far():
    far = 50.0 * np.arange(8.0)[:, None] * np.ones(24)
    plain = run(algorithms.DGD(lr=0.02), 1, x0=far).x
    found = run(algorithms.Moniqua(lr=0.02, theta=1.0), 1, x0=far).x
    assert np.abs(found - plain).max() > 1.0


@pytest.mark.parametrize("name", ["OneBitAdam", "QAdam"])
def test_adam_comes_near(name):
    def rate(k):
        return 0.05 * 0.5 ** (k // 200)

    assert distance(algorithms.get(name, lr=rate, warmup=400), 2400) < 0.05


def test_bytegrad_is_as_near_as_eight_bits_tell():
    history = run(algorithms.ByteGrad(lr=0.1), 300)
    assert 0 < history.last["distance"] < 0.02
    assert np.ptp(history.x, axis=0).max() == 0.0


def test_power_gossip_averages_exactly_what_it_has_found():
    # All differences have the rows of one matrix, which the first half iteration finds, so that
    # the second, on the other side, is plain gossip.
    left, right = np.random.default_rng(2).normal(size=(8, 4)), np.arange(-2.0, 4.0)
    problem = problems.Averaging(np.einsum("ni,j->nij", left, right).reshape(8, 24))
    algorithm = algorithms.PowerGossip(lr=0, shape=(4, 6))
    first, second = (run(algorithm, steps, problem).x for steps in (1, 2))
    np.testing.assert_allclose(second, RING.to_dense() @ first, rtol=0, atol=1e-12)
    assert run(algorithm, 300, problem).last["consensus_error"] < 1e-9


def test_decreasing_steps_suit_cedas():
    data = problems.breast_cancer(rows=200)
    problem = problems.LogisticRegression.from_data(data, n=8, l2=0.1, bias=True)
    algorithm = algorithms.CEDAS(lr=lambda k: 2.0 / (k + 20), compressor="qsgd:8")
    early, late = (run(algorithm, k, problem, batch_size=5).last["gap"] for k in (50, 3000))
    assert 0 < late < early / 10
