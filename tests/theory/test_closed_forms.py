"""Maps and fixed points read off the code, against the matrices and formulas of the literature."""

import numpy as np
import pytest

from dectool import algorithms, problems, theory, topology
from tests.theory.q8 import EYE, QUADRATIC, RING, B, H, W

LR = 0.1
h = np.diag(H)
half = (EYE + W) / 2
zero = np.zeros((8, 8))

SINGLE = {
    "DGD": (W - LR * h, np.linalg.solve(EYE - W + LR * h, LR * B)),
    "ATC": (W @ (EYE - LR * h), np.linalg.solve(EYE - W + LR * W @ h, LR * W @ B)),
    "CTA": ((EYE - LR * h) @ W, np.linalg.solve(EYE - W + LR * h @ W, LR * B)),
}
BIAS = {"DGD": 1.257364744673, "ATC": 1.093922064331, "CTA": 1.383184646961}

BLOCKS = {
    "EXTRA": [[EYE + W - LR * h, -(half - LR * h)], [EYE, zero]],
    "NIDS": [[half @ (2 * EYE - LR * h), -half @ (EYE - LR * h)], [EYE, zero]],
    "ExactDiffusion": [[half @ (2 * EYE - LR * h), -half @ (EYE - LR * h)], [EYE, zero]],
    "D2": [[W @ (2 * EYE - LR * h), -W @ (EYE - LR * h)], [EYE, zero]],
    "DIGing": [[W, -LR * EYE], [h @ (W - EYE), W - LR * h]],
    "SemiATCGradientTracking": [[W, -LR * W], [h @ (W - EYE), W - LR * h @ W]],
    "ATCGradientTracking": [[W, -LR * W], [W @ h @ (W - EYE), W @ (EYE - LR * h @ W)]],
}


@pytest.mark.parametrize("name", SINGLE)
def test_matrix_and_fixed_point_of_inexact_methods(name):
    M, end = SINGLE[name]
    algorithm = algorithms.get(name, lr=LR)
    found = theory.iteration_matrix(algorithm, QUADRATIC, RING)
    np.testing.assert_allclose(found, M, atol=1e-14)
    limit = theory.fixed_point(algorithm, QUADRATIC, RING)
    np.testing.assert_allclose(limit.x[:, 0], end, atol=1e-13)
    assert limit.bias == pytest.approx(BIAS[name], abs=1e-11)
    assert limit.bias**2 == pytest.approx(limit.consensus_error**2 + 8 * limit.mean_bias**2)


@pytest.mark.parametrize("name", BLOCKS)
def test_spectrum_of_exact_methods_is_that_of_the_block_matrix(name):
    # Sums of powers determine a spectrum but for zeros, which the code's longer state adds.
    M = np.block(BLOCKS[name])
    found = theory.iteration(algorithms.get(name, lr=LR), QUADRATIC, RING)
    assert found.conserved == 1
    for power in range(1, 17):
        expected = np.trace(np.linalg.matrix_power(M, power)) - 1.0
        assert np.sum(found.eigenvalues**power) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", BLOCKS)
def test_exact_methods_end_at_the_optimum(name):
    limit = theory.fixed_point(algorithms.get(name, lr=LR), QUADRATIC, RING)
    np.testing.assert_allclose(limit.x, 1.4, atol=1e-12)
    assert limit.attracts == (name != "DIGing")


@pytest.mark.parametrize("name", ["DGD", "ATC"])
def test_modes_of_the_bias_with_equal_curvature(name):
    values, vectors = np.linalg.eigh(W)
    flat = problems.Quadratic(h=np.full((8, 1), 2.0), b=B[:, None])
    gain = values if name == "ATC" else np.ones(8)
    modes = LR * gain * (vectors.T @ B) / (1 - values + LR * gain * 2.0)
    limit = theory.fixed_point(algorithms.get(name, lr=LR), flat, RING)
    np.testing.assert_allclose(vectors.T @ limit.x[:, 0], modes, atol=1e-13)
    assert limit.mean_bias < 1e-13


def test_bias_of_adapt_then_combine_with_a_small_step():
    limit = theory.fixed_point(algorithms.ATC(lr=0.01), QUADRATIC, RING)
    assert limit.bias == pytest.approx(0.195582034429, abs=1e-11)


def test_momentum_enlarges_the_bias():
    # As adapt-then-combine with the step lr / (1 - beta).
    limit = theory.fixed_point(algorithms.DmSGD(lr=0.01, beta=0.9), QUADRATIC, RING)
    assert limit.bias == pytest.approx(1.093922064331, abs=1e-11)
    np.testing.assert_allclose(limit.x[:, 0], SINGLE["ATC"][1], atol=1e-12)


def test_fixed_point_of_momentum_that_is_averaged_too():
    both = algorithms.DmSGD(lr=0.01, beta=0.9, mix_momentum=True)
    step = np.block([[W, -0.01 * W], [W @ h, 0.9 * W]])
    np.testing.assert_allclose(theory.iteration_matrix(both, QUADRATIC, RING), step, atol=1e-14)
    limit = theory.fixed_point(both, QUADRATIC, RING)
    descent = 0.01 * W @ np.linalg.solve(EYE - 0.9 * W, W)
    end = np.linalg.solve(EYE - W + descent @ h, descent @ B)
    np.testing.assert_allclose(limit.x[:, 0], end, atol=1e-12)


@pytest.mark.parametrize("kind", [algorithms.QuasiGlobalMomentum, algorithms.DecentLaM])
def test_momentum_that_knows_of_mixing_keeps_the_bias(kind):
    # That of adapt-then-combine with the same step.
    limit = theory.fixed_point(kind(lr=0.01, beta=0.9), QUADRATIC, RING)
    assert limit.bias == pytest.approx(0.195582034429, abs=1e-11)


@pytest.mark.parametrize("name", ["DGD", "ATC", "CTA", "EXTRA", "NIDS"])
def test_bias_is_proportional_to_heterogeneity(name):
    # Local gradients at one optimum, scaled; the bias of exact methods stays zero.
    apart = H * 1.4 - B
    bias = [
        theory.fixed_point(
            algorithms.get(name, lr=LR),
            problems.Quadratic(h=H[:, None], b=(H * 1.4 - scale * apart)[:, None]),
            RING,
        ).bias
        for scale in (0.0, 1.0, 3.0)
    ]
    expected = BIAS.get(name, 0.0)
    assert bias == pytest.approx([0.0, expected, 3 * expected], abs=1e-11)


@pytest.mark.parametrize(
    ("period", "expected"), [(1, 1.4), (4, 1.432816033689), (16, 1.497701984564)]
)
def test_local_descent_favors_small_curvatures(period, expected):
    weights = 1.0 - (1.0 - LR * H) ** period
    assert (weights * B / H).sum() / weights.sum() == pytest.approx(expected, abs=1e-11)
    limit = theory.fixed_point(algorithms.LocalSGD(lr=LR, period=period), QUADRATIC, RING)
    np.testing.assert_allclose(limit.x, expected, atol=1e-11)


def test_fixed_point_on_a_schedule_is_that_of_the_period():
    schedule = topology.periodic(
        [
            topology.from_matrix((EYE + np.roll(EYE, 2**t, axis=1)) / 2, require_connected=False)
            for t in range(3)
        ]
    )
    atc = algorithms.ATC(lr=LR)
    assert theory.rate(atc, QUADRATIC, schedule) == pytest.approx(0.762000898782, abs=1e-11)
    assert theory.fixed_point(atc, QUADRATIC, schedule).bias == pytest.approx(
        0.165486057739, abs=1e-11
    )
