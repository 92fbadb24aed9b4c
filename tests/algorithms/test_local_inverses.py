"""D-ADMM, SSDA and MSDA: published values and matrices, invariants, and what is refused.

The golden rows are of eight scalar quadratics on a ring (n = 8, W = 1/3, h = 1, 2, 3, 4, 1, 2, 3,
4, b_i = i, x0 = 0), computed from the published recursions in dense float64 arithmetic.
"""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.algorithms import MSDA, SSDA, ChebyshevGossip, DecentralizedADMM
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from tests.solving import BACKENDS, logistic, quadratic, same_bits
from tests.theory.q8 import QUADRATIC, RING

GOLDEN = {
    "D-ADMM": (DecentralizedADMM(penalty=0.5), 0.913535719651, 1.402186314466, 1.348854581e-2),
    "SSDA": (
        SSDA.for_problem(QUADRATIC, RING), 0.805124423382, 1.400000228446, 5.285252716e-5,
    ),
}  # fmt: skip
RNG = np.random.default_rng(3)
N, D = 6, 2
ROOTS = RNG.normal(size=(N, D, D))
FULL = problems.Quadratic(
    h=ROOTS @ ROOTS.transpose(0, 2, 1) + 0.5 * np.eye(D), b=RNG.normal(size=(N, D))
)
GRAPH = topology.erdos_renyi(N, 0.5, seed=4)
H = np.zeros((N * D, N * D))
for i in range(N):
    H[D * i : D * i + D, D * i : D * i + D] = FULL.hessian(np.zeros(D), i)
EYE = np.eye(N * D)
K = EYE - np.kron(GRAPH.to_dense(), np.eye(D))
ADJACENCY = (GRAPH.to_dense() != 0) & ~np.eye(N, dtype=bool)
DEGREES = np.kron(np.diag(ADJACENCY.sum(axis=1)), np.eye(D))
NEIGHBORS = np.kron(ADJACENCY.astype(float), np.eye(D))


# -- published values ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", GOLDEN)
def test_iterate_after_50_steps(name, backend):
    algorithm, _, first, distance = GOLDEN[name]
    h = dectool.solve(algorithm, QUADRATIC, topology=RING, steps=50, backend=backend)
    assert h.x[0, 0] == pytest.approx(first, abs=1e-11)
    assert h.last["distance"] == pytest.approx(distance, abs=1e-11)


@pytest.mark.parametrize("name", GOLDEN)
def test_spectral_radius_and_fixed_point(name):
    algorithm, radius, _, _ = GOLDEN[name]
    assert theory.rate(algorithm, QUADRATIC, RING) == pytest.approx(radius, abs=1e-11)
    end = theory.fixed_point(algorithm, QUADRATIC, RING)
    assert end.attracts
    assert end.bias < 1e-12


def test_parameters_of_the_paper():
    ssda = GOLDEN["SSDA"][0]
    assert ssda.lr == pytest.approx(1 / (1 - RING.lambda_min), rel=1e-14)
    assert ssda.momentum == pytest.approx(0.678779457508, abs=1e-12)
    # gamma = (1 - sqrt(1/2)) / 2, so that 1/sqrt(gamma) = 2.6.
    gamma = (1 - RING.lambda_2) / (1 - RING.lambda_min)
    assert gamma == pytest.approx(0.146446609407, abs=1e-12)
    c = ((1 - np.sqrt(gamma)) / (1 + np.sqrt(gamma))) ** 2
    msda = MSDA.for_problem(QUADRATIC, RING)
    assert msda.rounds == 2
    assert msda.lr == pytest.approx((1 + c**2) / (1 + c) ** 2, rel=1e-13)
    # Algorithm 2's momentum as printed, with kappa = 4.
    assert msda.momentum == pytest.approx(((1 + c) * 2 - 1 + c) / ((1 + c) * 2 + 1 - c), rel=1e-13)


def test_rounds_are_not_lost_to_rounding():
    # 1/sqrt(gamma) is a whole number here, or just below it.
    W = np.full((2, 2), 0.5)
    assert MSDA.for_problem(problems.Averaging(np.eye(2)), topology.from_matrix(W)).rounds == 1
    for target in range(2, 12):
        values = np.diag([1.0, 1.0 - 1.0 / target**2, 0.0])
        Q = np.linalg.qr(np.c_[np.ones(3), np.eye(3)[:, :2]])[0]
        graph = topology.from_matrix(Q @ values @ Q.T)
        assert MSDA.for_problem(problems.Averaging(np.eye(3)), graph).rounds == target


# -- matrix forms ----------------------------------------------------------------------------------


def moduli(matrix):
    values = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    return values[values > 1e-7]


def test_admm_is_its_block_matrix():
    """[[c M L+, -M], [c^2 L- M L+, I - c L- M]] with M = (H + 2 c D)^-1 and L+- = D +- A."""
    c = 0.7
    M = np.linalg.inv(H + 2 * c * DEGREES)
    plus, minus = DEGREES + NEIGHBORS, DEGREES - NEIGHBORS
    published = np.block([[c * M @ plus, -M], [c**2 * minus @ M @ plus, EYE - c * minus @ M]])
    found = theory.iteration(DecentralizedADMM(penalty=c), FULL, GRAPH)
    assert list(found.fields) == ["x", "phi", "apart"]
    # The third part of the state is what neighbours said last: L- x.
    zero = np.zeros_like(EYE)
    embed = np.block([[EYE, zero], [zero, EYE], [minus, zero]])
    np.testing.assert_allclose(found.matrix @ embed, embed @ published, atol=1e-13)
    np.testing.assert_allclose(moduli(found.matrix), moduli(published), rtol=1e-7)


@pytest.mark.parametrize("kind", [SSDA, MSDA])
def test_dual_ascent_is_its_block_matrix(kind):
    """[[(1 + t) P, -t P], [I, 0]] on (y, y_prev), with P = I - lr K H^-1, and P_K(K) for K."""
    algorithm = kind.for_problem(FULL, GRAPH, **({"rounds": 3} if kind is MSDA else {}))
    gossip = K
    if kind is MSDA:
        # I - T_3(W') / T_3(1'), where ' maps [lambda_n, lambda_2] to [-1, 1].
        low, high = GRAPH.lambda_min, GRAPH.lambda_2
        values, vectors = np.linalg.eigh(EYE - K)
        T = np.polynomial.chebyshev.Chebyshev.basis(3, domain=[low, high])
        gossip = EYE - vectors @ np.diag(T(values) / T(1.0)) @ vectors.T
    t, P = algorithm.momentum, EYE - algorithm.lr * gossip @ np.linalg.inv(H)
    published = np.block([[(1 + t) * P, -t * P], [EYE, np.zeros_like(EYE)]])
    found = theory.iteration(algorithm, FULL, GRAPH)
    assert list(found.fields) == ["x", "y", "y_prev"]
    dual = found.matrix[N * D :, N * D :]
    np.testing.assert_allclose(dual, published, atol=1e-12)
    # The first part of the state is where the last step looked: nothing depends on it.
    np.testing.assert_array_equal(found.matrix[:, : N * D], 0.0)
    # The eigenvalues 1 are those of the sum of y; momentum leaves the kernel t of it.
    values = np.abs(found.eigenvalues)
    assert found.conserved == D
    assert np.count_nonzero(np.abs(values - t) < 1e-9) >= D


@pytest.mark.parametrize("name", ["DecentralizedADMM", "SSDA", "MSDA"])
def test_affine_map_predicts_the_trajectory(name):
    algorithm = algorithms.ALGORITHMS[name].for_problem(FULL, GRAPH)
    found = theory.iteration(algorithm, FULL, GRAPH)
    early, late = (dectool.solve(algorithm, FULL, topology=GRAPH, steps=k) for k in (4, 24))
    s = found.pack(early.state)
    for _ in range(20):
        s = found.matrix @ s + found.constant
    np.testing.assert_allclose(s, found.pack(late.state), atol=1e-11)
    assert theory.compare(late, theory.predict(algorithm, FULL, GRAPH)).verdict


def test_msda_of_one_round_is_ssda_of_another_step():
    """One Chebyshev round takes away a multiple of (I - W) x."""
    ssda = SSDA.for_problem(FULL, GRAPH)
    scale = 2 / (2 - GRAPH.lambda_2 - GRAPH.lambda_min)
    msda = MSDA(lr=ssda.lr / scale, momentum=ssda.momentum, rounds=1)
    a, b = (dectool.solve(one, FULL, topology=GRAPH, steps=30) for one in (ssda, msda))
    np.testing.assert_allclose(a.x, b.x, atol=1e-12)


def test_what_msda_takes_away_is_what_gossip_does():
    values = problems.Averaging(RNG.normal(size=(N, D)))
    gossip = dectool.solve(ChebyshevGossip("tight"), values, topology=GRAPH, steps=4)
    # From y = 0 the first primal point is each rank's own minimiser, here its value.
    msda = dectool.solve(MSDA(lr=1.0, rounds=4), values, topology=GRAPH, steps=1)
    np.testing.assert_array_equal(msda.state["x"], values.initial(values.ranks))
    np.testing.assert_allclose(-msda.state["y"], msda.state["x"] - gossip.x, atol=1e-15)


# -- invariants ------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None, derandomize=True)
@given(n=st.integers(2, 9), seed=st.integers(0, 99), steps=st.integers(1, 30))
@pytest.mark.parametrize("name", ["DecentralizedADMM", "SSDA", "MSDA"])
def test_multipliers_sum_to_zero(name, n, seed, steps):
    problem = problems.Quadratic.random(n, 3, kappa=4.0, seed=seed)
    graph = topology.erdos_renyi(n, 0.7, seed=seed)
    algorithm = algorithms.ALGORITHMS[name].for_problem(problem, graph)
    state = dectool.solve(algorithm, problem, topology=graph, steps=steps).state
    dual = state["phi" if name == "DecentralizedADMM" else "y"]
    assert np.abs(dual.sum(axis=0)).max() <= 1e-12 * max(1.0, np.abs(dual).max()) * n
    # SSDA's primal point has z for its gradient, so local gradients sum to 0 as well.
    if name != "DecentralizedADMM":
        g = problem.grad(state["x"], problem.ranks)
        assert np.abs(g.sum(axis=0)).max() <= 1e-11 * max(1.0, np.abs(g).max()) * n


def test_admm_knows_the_graph_alone():
    runs = [
        dectool.solve(
            DecentralizedADMM(), FULL, steps=25,
            topology=topology.from_graph(GRAPH.graph, weights=weights),
        ).x
        for weights in ("metropolis_hastings", "uniform", "max_degree")
    ]  # fmt: skip
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-13)
    np.testing.assert_allclose(runs[2], runs[0], atol=1e-13)


def test_dual_ascent_does_not_know_the_start():
    runs = [dectool.solve(SSDA(lr=0.2), FULL, topology=GRAPH, steps=5, x0=x0).x for x0 in (0, 9)
            for x0 in [np.full(D, float(x0))]]  # fmt: skip
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_message_per_neighbour_and_round(backend):
    edges = int(GRAPH.in_degrees.sum())
    for algorithm, first, each in [
        (DecentralizedADMM(), 1, 1),
        (SSDA(lr=0.1), 0, 1),
        (MSDA(lr=0.1, rounds=3), 0, 3),
    ]:
        h = dectool.solve(algorithm, FULL, topology=GRAPH, steps=7, backend=backend)
        assert h.last["messages"] == (first + 7 * each) * edges
        assert h.last["bytes"] == (first + 7 * each) * edges * 8 * D
        assert h.about["gradients"] == 7


@pytest.mark.parametrize("name", ["DecentralizedADMM", "SSDA", "MSDA"])
def test_single_precision_stays(name):
    algorithm = algorithms.ALGORITHMS[name].for_problem(FULL, GRAPH)
    runs = [
        dectool.solve(algorithm, FULL, topology=GRAPH, steps=30, backend=backend,
                      x0=np.zeros((N, D), np.float32))
        for backend in BACKENDS
    ]  # fmt: skip
    same_bits(*runs)
    assert {runs[0].state[key].dtype.name for key in runs[0].state} == {"float32"}
    exact = dectool.solve(algorithm, FULL, topology=GRAPH, steps=30)
    np.testing.assert_allclose(runs[0].x, exact.x, atol=1e-5)


# -- beyond quadratics -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["DecentralizedADMM", "SSDA", "MSDA"])
def test_logistic_regression_to_its_optimum(name):
    problem = logistic()
    graph = (
        RING
        if name == "MSDA"
        else topology.from_graph(topology.exponential(8).graph.to_undirected())
    )
    kind = algorithms.ALGORITHMS[name]
    given_ = {"penalty": 0.05} if kind is DecentralizedADMM else {}
    algorithm = kind.for_problem(problem, graph, **given_)
    runs = [
        dectool.solve(algorithm, problem, topology=graph, steps=400, record_every=50,
                      backend=backend, stop={"distance": 1e-10})
        for backend in BACKENDS
    ]  # fmt: skip
    assert runs[0].status == "stopped"
    same_bits(*runs)


def test_softmax_has_matrices_for_variables():
    A = RNG.normal(size=(24, 3))
    problem = problems.SoftmaxRegression(A, A.argmax(axis=1), n=4, l2=0.5)
    h = dectool.solve(DecentralizedADMM(0.3), problem, topology=topology.ring(4), steps=60)
    assert h.x.shape == (4, 3, 3)
    assert h.state["x"].shape == (4, 9)
    assert h.last["distance"] < 1e-9


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_proximal_point_takes_the_time_of_a_gradient(backend):
    compute = dectool.sim.Constant(2e-3)
    h = dectool.solve(
        DecentralizedADMM(), FULL, topology=GRAPH, steps=5, backend=backend, compute=compute
    )
    assert h.last["time"] == pytest.approx(5 * 2e-3)


# -- what is refused -------------------------------------------------------------------------------

FLAT = problems.Quadratic(h=np.arange(8.0)[:, None], b=np.ones((8, 1)))
BENT = problems.Quadratic(h=np.arange(-1.0, 7.0)[:, None], b=np.ones((8, 1)))


@pytest.mark.parametrize(
    ("algorithm", "problem", "parts"),
    [
        (SSDA(lr=0.1), FLAT, [
            "SSDA asks for the gradient of each local function's conjugate", "strongly convex",
            "one of Quadratic(n=8, d=1, diagonal) is 0", "l2 > 0", "check=False insists",
        ]),
        (MSDA(lr=0.1), BENT, ["MSDA asks for", "is -1"]),
        (DecentralizedADMM(), BENT, [
            "DecentralizedADMM asks for the proximal point of each local function",
            "so all must be convex", "is -1", "such as EXTRA",
        ]),
    ],
)  # fmt: skip
def test_local_functions_that_bend_the_wrong_way(algorithm, problem, parts):
    with pytest.raises(ArgumentError) as caught:
        dectool.solve(algorithm, problem, topology=RING, steps=3)
    for part in parts:
        assert part in str(caught.value)


def test_insisting():
    """With check=False the weight decides: 2 c d = 8 is above the curvature -1."""
    h = dectool.solve(DecentralizedADMM(2.0), BENT, topology=RING, steps=400, check=False)
    assert h.last["distance"] < 1e-9
    with pytest.raises(ArgumentError, match=r"f_0 of Quadratic.* has the curvature 0, so its conj"):
        dectool.solve(SSDA(lr=0.1), FLAT, topology=RING, steps=3, check=False)
    # Flat functions have proximal points.
    h = dectool.solve(DecentralizedADMM(), FLAT, topology=RING, steps=300)
    assert h.last["distance"] < 1e-9


@pytest.mark.parametrize("algorithm", [DecentralizedADMM(), SSDA(lr=0.1), MSDA(lr=0.1)])
def test_samples_do_not_do(algorithm):
    with pytest.raises(ArgumentError) as caught:
        dectool.solve(algorithm, logistic(), topology=RING, steps=3, batch_size=4)
    for part in ("batch_size=4", algorithm.name, "leave batch_size out", "such as EXTRA"):
        assert part in str(caught.value)


def test_noise_does_not_enter():
    with pytest.raises(ArgumentError, match=r"SSDA inverts local gradients .*'conjugate'"):
        theory.steady_state(SSDA(lr=0.1), quadratic(), RING)


def test_wrong_graphs():
    digraph = topology.exponential(8)
    with pytest.raises(TopologyError, match="some edges go one way only"):
        dectool.solve(DecentralizedADMM(), quadratic(), topology=digraph, steps=1)
    with pytest.raises(TopologyError, match=r"SSDA .* W must be symmetric"):
        dectool.solve(SSDA(lr=0.1), quadratic(), topology=digraph, steps=1)
    with pytest.raises(TopologyError, match="MSDA needs a fixed topology"):
        dectool.solve(MSDA(lr=0.1), quadratic(), topology=topology.one_peer_exponential(8), steps=1)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: DecentralizedADMM(0.0), ArgumentError, "penalty=0.0 must be finite and above 0"),
        (lambda: DecentralizedADMM("1"), ArgumentTypeError, "penalty is '1'; give a number"),
        (lambda: SSDA(lr=0.1, momentum=1.0), ArgumentError, "SSDA: momentum=1.0 must be at least"),
        (lambda: SSDA(lr=0.1, momentum=None), ArgumentTypeError, "momentum is None; give a numb"),
        (lambda: MSDA(lr=0.1, momentum=-0.1), ArgumentError, "MSDA: momentum=-0.1"),
        (lambda: MSDA(lr=0.1, rounds=0), ArgumentError, "MSDA: rounds=0 must be an integer"),
        (lambda: SSDA(lr=-1.0), ArgumentError, "SSDA: lr=-1.0"),
        (
            lambda: SSDA.for_problem(FLAT, RING), ArgumentError,
            "SSDA has no parameters for Quadratic.* is 0, and it must be above 0",
        ),
    ],
)  # fmt: skip
def test_wrong_parameters(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize(
    "graph",
    [
        topology.ring(8),
        topology.path(8),
        topology.star(8),
        topology.complete(8),
        topology.grid(2, 4),
    ],
    ids=lambda graph: graph.name,
)
def test_the_suggested_penalty_is_almost_the_best(graph):
    def steps(c):
        return 1 / -np.log(theory.rate(DecentralizedADMM(c), QUADRATIC, graph))

    c = DecentralizedADMM.for_problem(QUADRATIC, graph).penalty
    best = min(steps(c * factor) for factor in np.geomspace(0.2, 5.0, 11))
    assert best <= steps(c) <= 1.8 * best


def test_where_no_penalty_is_suggested():
    # mu = 1, L = 4; degrees 2; l_2 = 2 - 2 cos(pi/4).
    c = DecentralizedADMM.for_problem(QUADRATIC, RING).penalty
    assert c == pytest.approx(np.sqrt(1 / (2 - np.sqrt(2))), rel=1e-12)
    for problem, graph in [
        (FLAT, RING),
        (QUADRATIC, topology.exponential(8)),
        (problems.Averaging([[1.0]]), topology.ring(1)),
        (
            problems.Averaging(np.eye(4)),
            topology.from_matrix(np.kron(np.eye(2), np.full((2, 2), 0.5)), require_connected=False),
        ),
    ]:
        assert DecentralizedADMM.for_problem(problem, graph) == DecentralizedADMM()


@pytest.mark.parametrize("kind", [SSDA, MSDA])
def test_parameters_need_a_connected_graph(kind):
    W = np.kron(np.eye(2), np.full((2, 2), 0.5))
    apart = topology.from_matrix(W, require_connected=False)
    with pytest.raises(TopologyError, match=rf"{kind.__name__} has no parameters on .*lambda_2 is"):
        kind.for_problem(problems.Averaging(np.eye(4)), apart)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("problem", [QUADRATIC, logistic()], ids=["quadratic", "logistic"])
def test_divergence_is_no_error_of_newton(backend, problem):
    with pytest.warns(RuntimeWarning, match="diverged"):
        h = dectool.solve(
            SSDA(lr=1e40), problem, topology=RING, steps=100, backend=backend, record_every=20
        )
    assert h.status == "diverged"


def test_largest_stable_step_of_the_method_of_uzawa():
    gossip = np.eye(8) - RING.to_dense()
    most = np.linalg.eigvals(gossip @ np.diag(1 / np.array([1.0, 2, 3, 4] * 2))).real.max()
    found = theory.largest_stable_lr(SSDA(lr=0.1), QUADRATIC, RING)
    assert found == pytest.approx(2 / most, rel=1e-8)


def test_suggestions():
    q = quadratic()
    assert algorithms.EXTRA.for_problem(q, RING) == algorithms.EXTRA(lr=0.125)
    assert algorithms.EXTRA.for_problem(q, RING, lr=0.2) == algorithms.EXTRA(lr=0.2)
    assert algorithms.Gossip.suggested(q, RING) == {}
    assert SSDA.for_problem(q, RING, momentum=0.0) == SSDA(lr=SSDA.for_problem(q, RING).lr)
    alone = problems.Quadratic(h=[[4.0]], b=[[8.0]])
    assert SSDA.for_problem(alone, topology.ring(1)) == SSDA(lr=4.0)
    assert MSDA.for_problem(alone, topology.complete(1)) == MSDA(lr=4.0)
    assert dectool.solve(SSDA(lr=4.0), alone, topology=topology.ring(1), steps=1).x == 2.0
