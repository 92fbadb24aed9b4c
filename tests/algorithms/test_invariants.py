"""What holds for every run: conserved sums, special cases that coincide, exact polynomials."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, topology

TRACKING = ["DIGing", "SemiATCGradientTracking", "ATCGradientTracking"]
EXACT = [
    n
    for n, k in algorithms.ALGORITHMS.items()
    if k.exact and k.uses_gradient and not k.asynchronous and not k.needs.tree
]


def quadratic(n, d=3, seed=0):
    return problems.Quadratic.random(n, d, kappa=4.0, heterogeneity=1.0, seed=seed)


@pytest.mark.parametrize("name", TRACKING)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(n=st.integers(2, 9), seed=st.integers(0, 99), steps=st.integers(0, 30))
def test_tracked_sum_is_the_sum_of_gradients(name, n, seed, steps):
    graph = topology.erdos_renyi(n, 0.7, seed=seed)
    state = dectool.solve(
        algorithms.get(name, lr=0.02), quadratic(n, seed=seed), topology=graph, steps=steps
    ).state
    np.testing.assert_allclose(state["y"].sum(axis=0), state["g"].sum(axis=0), atol=1e-11)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(n=st.integers(2, 9), seed=st.integers(0, 99), steps=st.integers(0, 20))
def test_push_sum_conserves_mass_and_weight(backend, n, seed, steps):
    import networkx as nx

    edges = [(i, (i + 1) % n) for i in range(n)]
    chords = np.random.default_rng(seed).integers(0, n, (n // 2, 2))
    graph = nx.DiGraph(edges + [(int(a), int(b)) for a, b in chords if a != b])
    C = topology.from_graph(graph, weights="uniform_push")
    X = np.random.default_rng(seed).normal(size=(n, 2))
    state = dectool.solve(
        algorithms.PushSum(), problems.Averaging(X), topology=C, steps=steps, backend=backend
    ).state
    np.testing.assert_allclose(state["s"].sum(axis=0), X.sum(axis=0), atol=1e-12)
    assert state["w"].sum() == pytest.approx(n, abs=1e-12)


@pytest.mark.parametrize("name", ["ATC", "D2", "ATCGradientTracking"])
def test_complete_averaging_is_centralized_descent(name):
    problem, graph = quadratic(5), topology.complete(5)
    history = dectool.solve(
        algorithms.get(name, lr=0.1), problem, topology=graph, steps=20, check=False
    )
    central = dectool.solve(algorithms.AllReduceGD(lr=0.1), problem, topology=graph, steps=20)
    np.testing.assert_allclose(history.x, central.x, atol=1e-13)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_exact_methods_reach_the_optimum(name, backend):
    problem = quadratic(6)
    graph = topology.ring(6).lazy()
    inverts = algorithms.ALGORITHMS[name].oracle != "gradient"
    parameters = {} if inverts else {"lr": 0.05}
    history = dectool.solve(
        algorithms.ALGORITHMS[name].for_problem(problem, graph, **parameters), problem,
        topology=graph, steps=1500, backend=backend, record_every=500,
    )  # fmt: skip
    np.testing.assert_allclose(history.x, np.tile(problem.optimum, (6, 1)), atol=1e-9)


def test_chebyshev_error_is_its_polynomial():
    """On an eigenvector of eigenvalue l the error is T_k(l/rho)/T_k(1/rho) times the first."""
    graph = topology.ring(16)
    values, vectors = np.linalg.eigh(graph.to_dense())
    steps = 12
    for mode in (0, 5, 14):
        X = vectors[:, [mode]]
        history = dectool.solve(
            algorithms.ChebyshevGossip(), problems.Averaging(X), topology=graph, steps=steps
        )
        k = np.polynomial.chebyshev.Chebyshev.basis(steps)
        factor = k(values[mode] / graph.rho) / k(1 / graph.rho)
        np.testing.assert_allclose(history.x, factor * X, atol=1e-12)


def test_tight_chebyshev_on_a_lopsided_spectrum():
    # Ring of 16, 15 rounds: worst mode .00532 with the affine map, .01514 without.
    graph = topology.ring(16)
    worst = {}
    for interval in ("tight", "symmetric"):
        history = dectool.solve(
            algorithms.ChebyshevGossip(interval=interval),
            problems.Averaging(np.eye(16)),
            topology=graph,
            steps=15,
        )
        worst[interval] = np.linalg.norm(history.x - 1 / 16, 2)
    assert worst["tight"] == pytest.approx(0.00532, abs=5e-6)
    assert worst["symmetric"] == pytest.approx(0.01514, abs=5e-6)


def test_shift_register_at_the_double_root():
    """The mode of eigenvalue rho decays as q^k (1 + k sqrt(1 - rho^2)), exactly."""
    graph = topology.ring(16)
    values, vectors = np.linalg.eigh(graph.to_dense())
    X = vectors[:, [np.argsort(values)[-2]]]
    root = np.sqrt(1 - graph.rho**2)
    q = graph.rho / (1 + root)
    history = dectool.solve(
        algorithms.ShiftRegisterGossip(), problems.Averaging(X), topology=graph, steps=20
    )
    np.testing.assert_allclose(history.x, q**20 * (1 + 20 * root) * X, atol=1e-12)


def test_gossip_contracts_by_rho_on_the_second_eigenvector():
    graph = topology.ring(8)
    values, vectors = np.linalg.eigh(graph.to_dense())
    X = vectors[:, [np.argsort(values)[-2]]]
    history = dectool.solve(algorithms.Gossip(), problems.Averaging(X), topology=graph, steps=30)
    ratios = history["consensus_error"][1:] / history["consensus_error"][:-1]
    np.testing.assert_allclose(ratios, graph.rho, rtol=1e-12)


@pytest.mark.parametrize("n", [4, 8, 16])
def test_one_peer_exponential_averages_exactly(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    schedule = topology.one_peer_exponential(n)
    history = dectool.solve(
        algorithms.Gossip(), problems.Averaging(X), topology=schedule, steps=schedule.period
    )
    assert history.last["consensus_error"] < 1e-14
