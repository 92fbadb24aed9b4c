"""PG-EXTRA and NIDS with a common term: they end at the optimum of the sum; others are refused."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError
from dectool.problems import L1, Box, Composite
from dectool.sim import Crash
from tests.solving import BACKENDS, logistic, quadratic, same_bits
from tests.theory.q8 import RING

PROXIMAL = [algorithms.PGEXTRA, algorithms.NIDS]
RNG = np.random.default_rng(1)
LASSO = Composite(
    problems.LeastSquares(RNG.normal(size=(48, 5)), RNG.normal(size=48), n=8), L1(0.15)
)


@pytest.mark.parametrize("kind", PROXIMAL)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "problem", [LASSO, Composite(LASSO.smooth, Box(-0.05, 0.02))], ids=["l1", "box"]
)
def test_the_end_is_the_optimum_of_the_sum(kind, backend, problem):
    h = dectool.solve(
        kind(lr=0.2), problem, topology=RING, steps=1200, record_every=400, backend=backend
    )
    assert h.last["distance"] < 1e-10
    assert abs(h.last["gap"]) < 1e-10
    assert h.last["grad_norm"] < 1e-9
    # Entries that r holds at a corner are there exactly, on every rank.
    corner = np.isin(problem.optimum, [0.0, -0.05, 0.02])
    assert corner.any()
    np.testing.assert_array_equal(h.x[:, corner], np.tile(problem.optimum[corner], (8, 1)))


@pytest.mark.parametrize("kind", PROXIMAL)
def test_real_data(kind):
    smooth = logistic()
    problem = Composite(smooth, L1(0.05))
    graph = topology.complete(8)
    h = dectool.solve(
        kind.for_problem(problem, graph), problem, topology=graph, steps=3000,
        record_every=500, stop={"distance": 1e-9},
    )  # fmt: skip
    assert h.status == "stopped"
    assert 0 < np.count_nonzero(problem.optimum) < 31


@pytest.mark.parametrize("kind", PROXIMAL)
def test_one_step_is_the_equation(kind):
    """The first two iterates, with z, W and W-tilde as in the papers."""
    q, lr, r = quadratic(), 0.1, L1(0.4)
    W, H, b = RING.to_dense(), np.diag([1.0, 2, 3, 4] * 2), np.arange(8.0)
    half = (np.eye(8) + W) / 2
    x0 = RNG.normal(size=8)
    x = [x0]

    def g(k):
        return H @ x[k] - b

    z = (W @ x0 if kind is algorithms.PGEXTRA else x0) - lr * g(0)
    x.append(r.prox(z, lr))
    for k in range(3):
        if kind is algorithms.PGEXTRA:
            z = W @ x[k + 1] + z - half @ x[k] - lr * (g(k + 1) - g(k))
        else:
            z = z - x[k + 1] + half @ (2 * x[k + 1] - x[k] - lr * (g(k + 1) - g(k)))
        x.append(r.prox(z, lr))
        h = dectool.solve(kind(lr=lr), Composite(q, r), topology=RING, steps=k + 2, x0=x0[:, None])
        np.testing.assert_allclose(h.x[:, 0], x[k + 2], atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_term_pg_extra_is_extra(backend):
    runs = [
        dectool.solve(kind(lr=0.1), quadratic(), topology=RING, steps=40, backend=backend)
        for kind in (algorithms.EXTRA, algorithms.PGEXTRA)
    ]
    assert runs[0].x.tobytes() == runs[1].x.tobytes()


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("kind", PROXIMAL)
def test_backends_agree(kind, batch_size):
    options = {"topology": RING, "steps": 30, "batch_size": batch_size}
    same_bits(*(dectool.solve(kind(lr=0.2), LASSO, backend=b, **options) for b in BACKENDS))


def test_those_that_are_left_have_the_term_too():
    h = dectool.solve(
        algorithms.PGEXTRA(lr=0.2), LASSO, topology=topology.complete(8), steps=600,
        record_every=200, backend="sim", faults=[Crash(rank=3, at=0.0)], missing="renormalize",
        detection=0.1,
    )  # fmt: skip
    assert h.last["alive"] == 7
    left = Composite(problems.Among(LASSO.smooth, [0, 1, 2, 4, 5, 6, 7]), LASSO.regularizer)
    assert h.last["objective"] - h.last["gap"] == pytest.approx(left.optimal_value, rel=1e-12)


@pytest.mark.parametrize(
    "algorithm", [algorithms.EXTRA(lr=0.1), algorithms.DecentralizedADMM(), algorithms.Gossip()]
)
def test_who_knows_no_common_term(algorithm):
    with pytest.raises(ArgumentError) as caught:
        dectool.solve(algorithm, LASSO, topology=RING, steps=1, check=False)
    for part in (algorithm.name, "the common term of Composite(LeastSquares", "PGEXTRA or NIDS"):
        assert part in str(caught.value)


def test_corners_have_no_matrix():
    with pytest.raises(ArgumentError, match=r"has corners, so no quadratic agrees with it"):
        theory.rate(algorithms.PGEXTRA(lr=0.1), LASSO, RING)
    assert theory.rate(algorithms.PGEXTRA(lr=0.1), quadratic(), RING) == pytest.approx(
        0.849349395532, abs=1e-10
    )
