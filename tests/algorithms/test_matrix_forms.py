"""Each algorithm's step equals its published matrix form on quadratics, block by block."""

import numpy as np
import pytest

from dectool import algorithms, problems, theory, topology
from dectool.algorithms._compressed import CompressedAlgorithm

N, D, LR = 6, 2, 0.07
RNG = np.random.default_rng(3)
Q = problems.Quadratic(h=RNG.uniform(0.5, 2.0, (N, D)), b=RNG.normal(size=(N, D)))
GRAPH = topology.erdos_renyi(N, 0.5, seed=4)
W = np.kron(GRAPH.to_dense(), np.eye(D))
H = np.diag(
    np.asarray(Q.hessian(np.zeros((N, D)), np.arange(N))).diagonal(axis1=1, axis2=2).ravel()
)
EYE = np.eye(N * D)
W_TILDE = (EYE + W) / 2


def spectrum(matrix, conserved):
    """Return the eigenvalues but for the conserved ones and zeros, as sorted moduli."""
    values = np.linalg.eigvals(matrix)
    values = values[np.argsort(np.abs(values - 1.0))][conserved:]
    moduli = np.sort(np.abs(values))[::-1]
    return moduli[moduli > 1e-7]


def two_step(P, Q_):
    """Return the companion matrix of x+ = P x - Q x_prev."""
    return np.block([[P, -Q_], [EYE, np.zeros_like(EYE)]])


# Block forms as published; the second-order ones act on (x, x_prev).
FORMS = {
    "DGD": (W - LR * H, 0),
    "ATC": (W @ (EYE - LR * H), 0),
    "CTA": ((EYE - LR * H) @ W, 0),
    "EXTRA": (two_step(EYE + W - LR * H, W_TILDE - LR * H), D),
    "ExactDiffusion": (two_step(W_TILDE @ (2 * EYE - LR * H), W_TILDE @ (EYE - LR * H)), D),
    "NIDS": (two_step(W_TILDE @ (2 * EYE - LR * H), W_TILDE @ (EYE - LR * H)), D),
    "D2": (two_step(W @ (2 * EYE - LR * H), W @ (EYE - LR * H)), D),
    "DIGing": (np.block([[W, -LR * EYE], [H @ (W - EYE), W - LR * H]]), D),
    "SemiATCGradientTracking": (
        np.block([[W, -LR * W], [H @ (W - EYE), W - LR * H @ W]]),
        D,
    ),
    "ATCGradientTracking": (
        np.block([[W, -LR * W], [W @ H @ (W - EYE), W @ (EYE - LR * H @ W)]]),
        D,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_spectrum_is_that_of_the_published_form(name):
    matrix, conserved = FORMS[name]
    found = theory.iteration(algorithms.get(name, lr=LR), Q, GRAPH)
    moduli = np.abs(found.eigenvalues)
    expected = spectrum(matrix, conserved)
    assert found.conserved == conserved
    np.testing.assert_allclose(moduli[: len(expected)], expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["DGD", "ATC", "CTA"])
def test_first_order_forms_are_the_matrix_itself(name):
    found = theory.iteration_matrix(algorithms.get(name, lr=LR), Q, GRAPH)
    np.testing.assert_allclose(found, FORMS[name][0], atol=1e-15)


def test_every_linear_gradient_algorithm_has_a_form_here():
    """Those that compress are not linear; RelaySGD, on trees alone, is tested with its delays."""
    without = {"AllReduceGD", "Moniqua", "PowerGossip", "RelaySGD"}
    linear = {
        name
        for name, kind in algorithms.ALGORITHMS.items()
        if kind.uses_gradient
        and not kind.asynchronous
        and not issubclass(kind, CompressedAlgorithm)
    }
    assert linear - without == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_affine_map_predicts_the_trajectory(name):
    """s_k - s_inf = M^k (s_0 - s_inf), here as s_{k+1} = M s_k + c along a real run."""
    import dectool

    algorithm = algorithms.get(name, lr=LR)
    found = theory.iteration(algorithm, Q, GRAPH)
    run = [dectool.solve(algorithm, Q, topology=GRAPH, steps=k, check=False).state for k in (5, 25)]
    s = found.pack(run[0])
    for _ in range(20):
        s = found.matrix @ s + found.constant
    np.testing.assert_allclose(s, found.pack(run[1]), atol=1e-12)
