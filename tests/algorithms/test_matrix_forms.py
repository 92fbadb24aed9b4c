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


STEP = EYE - LR * H
J = np.kron(np.full((N, N), 1 / N), np.eye(D))
BETA, ROUND = 0.9, 4  # as without arguments


def rounds(inside, last):
    """Return the map of a round of descent, with one matrix after each step but the last."""
    return last @ STEP @ np.linalg.matrix_power(inside @ STEP, ROUND - 1)


def slow_momentum(beta=0.5):
    """Return the map of a round of SlowMo with slow step 1, on (x, start of the round, u)."""
    way = rounds(EYE, J)
    zero = np.zeros_like(EYE)
    x = [way, zero, -LR * beta * EYE]
    return np.block([x, x, [-way / LR, EYE / LR, beta * EYE]])


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
ATC = W @ STEP
FORMS = {
    "DmSGD": (np.block([[ATC, -LR * BETA * W], [H, BETA * EYE]]), 0),
    "DecentLaM": (np.block([[ATC, -LR * BETA * EYE], [(EYE - ATC) / LR, BETA * EYE]]), 0),
    "QuasiGlobalMomentum": (
        np.block(
            [
                [ATC, -LR * BETA * W],
                [(1 - BETA) * (EYE - ATC) / LR, BETA * (EYE + (1 - BETA) * W)],
            ]
        ),
        0,
    ),
    "LocalSGD": (rounds(EYE, J), 0),
    "CooperativeSGD": (rounds(EYE, W), 0),
    "GossipPGA": (rounds(W, J), 0),
    "SlowMo": (slow_momentum(), 0),
    "DGD": (W - LR * H, 0),
    "ATC": (W @ (EYE - LR * H), 0),
    "CTA": ((EYE - LR * H) @ W, 0),
    "EXTRA": (two_step(EYE + W - LR * H, W_TILDE - LR * H), D),
    "PGEXTRA": (two_step(EYE + W - LR * H, W_TILDE - LR * H), D),
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

# Where R = C = W and weights are 1, methods of directed graphs have forms of undirected ones.
FORMS |= {
    name: FORMS[of]
    for name, of in {
        "AB": "DIGing",
        "PushPull": "SemiATCGradientTracking",
        "ATCPushPull": "ATCGradientTracking",
        "PushDIGing": "SemiATCGradientTracking",
        "ADDOPT": "DIGing",
        "SGP": "ATC",
        "SubgradientPush": "CTA",
    }.items()
}
# Two rounds of gossip, by default.
FORMS |= {"NEARDGD": (W @ W @ (EYE - LR * H), 0), "DGDt": (W @ W - LR * H, 0)}


def linearized_admm(c=1.0):
    """Return the form of DLM on (x, phi)."""
    A = np.kron(GRAPH.to_dense() != 0, np.eye(D)) - EYE
    degrees = A.sum(axis=1)
    laplacian, step = np.diag(degrees) - A, np.diag(1 / (2 * c * degrees + 1 / LR))
    descend = EYE - step @ (H + c * laplacian)
    return np.block([[descend, -step], [c * laplacian @ descend, EYE - c * laplacian @ step]])


def polynomial(rounds, low, high, fast):
    """Return what rounds of shift-register (fast) or of Chebyshev gossip are, from eigenvalues."""
    values, vectors = np.linalg.eigh(GRAPH.to_dense())
    if fast:
        q = high / (1 + np.sqrt(1 - high**2))
        p = [np.ones_like(values), values]
        for _ in range(rounds - 1):
            p.append((1 + q**2) * values * p[-1] - q**2 * p[-2])
        factors = p[rounds]
    else:
        T = np.polynomial.chebyshev.Chebyshev.basis(rounds, domain=[low, high])
        factors = T(values) / T(1.0)
    return np.kron(vectors @ np.diag(factors) @ vectors.T, np.eye(D))


def mudag(kappa=100.0):
    """Return the form of Mudag on (x, y, y_prev)."""
    rho = GRAPH.rho
    q = rho / (1 + np.sqrt(1 - rho**2))
    P = polynomial(int(np.ceil(np.log(1 + kappa) / np.log(1 / q))), -rho, rho, fast=True)
    beta = (np.sqrt(kappa) - 1) / (np.sqrt(kappa) + 1)
    x = np.hstack([P, P @ (EYE - LR * H), -P @ (EYE - LR * H)])
    zero = np.zeros_like(EYE)
    y = (1 + beta) * x - beta * np.hstack([EYE, zero, zero])
    return np.vstack([x, y, np.hstack([zero, EYE, zero])])


def opapc(kappa=100.0):
    """Return the form of OPAPC on (x, x_f, y)."""
    values = np.linalg.eigvalsh(GRAPH.to_dense())
    low, high = values[0], values[-2]
    rounds = int(np.sqrt((1 - low) / (1 - high)))
    P = EYE - polynomial(rounds, low, high, fast=False)
    delta = 1 / np.polynomial.chebyshev.Chebyshev.basis(rounds, domain=[low, high])(1.0)
    mu, tau = 1 / (kappa * LR), min(1.0, np.sqrt((1 + delta) / (1 - delta) / kappa) / 2)
    eta = LR / (4 * tau)
    x, x_f, y = np.split(np.eye(3 * N * D), 3)
    x_g = tau * x + (1 - tau) * x_f
    half = (x - eta * ((H - mu * EYE) @ x_g + y)) / (1 + eta * mu)
    y_next = y + P @ half / (eta * (1 + delta))
    x_next = (x - eta * ((H - mu * EYE) @ x_g + y_next)) / (1 + eta * mu)
    return np.vstack([x_next, x_g + 2 * tau / (2 - tau) * (x_next - x), y_next])


FORMS |= {"DLM": (linearized_admm(), D), "Mudag": (mudag(), D), "OPAPC": (opapc(), D)}


@pytest.mark.parametrize("name", FORMS)
def test_spectrum_is_that_of_the_published_form(name):
    matrix, conserved = FORMS[name]
    found = theory.iteration(algorithms.get(name, lr=LR), Q, GRAPH)
    moduli = np.abs(found.eigenvalues)
    expected = spectrum(matrix, conserved)
    assert found.conserved == conserved
    np.testing.assert_allclose(moduli[: len(expected)], expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["DGD", "ATC", "CTA", "LocalSGD", "CooperativeSGD", "GossipPGA"])
def test_first_order_forms_are_the_matrix_itself(name):
    found = theory.iteration_matrix(algorithms.get(name, lr=LR), Q, GRAPH)
    np.testing.assert_allclose(found, FORMS[name][0], atol=1e-15)


def test_every_linear_gradient_algorithm_has_a_form_here():
    """Those that compress, clip or screen are not linear; RelaySGD is tested with its delays."""
    without = {"AllReduceGD", "Moniqua", "PowerGossip", "RelaySGD", "ClippedGossipSGD", "BRIDGE"}
    linear = {
        name
        for name, kind in algorithms.ALGORITHMS.items()
        if kind.uses_gradient
        and not kind.asynchronous
        and kind.oracle == "gradient"
        and not issubclass(kind, CompressedAlgorithm)
    }
    assert linear - without == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_affine_map_predicts_the_trajectory(name):
    """s_k - s_inf = M^k (s_0 - s_inf), here as s_{k+1} = M s_k + c along a real run."""
    import dectool

    algorithm = algorithms.get(name, lr=LR)
    found = theory.iteration(algorithm, Q, GRAPH)
    run = [dectool.solve(algorithm, Q, topology=GRAPH, steps=k, check=False).state for k in (8, 28)]
    s = found.pack(run[0])
    for _ in range(20 // found.period):
        s = found.matrix @ s + found.constant
    np.testing.assert_allclose(s, found.pack(run[1]), atol=1e-12)
