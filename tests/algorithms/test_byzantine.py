"""Averages with Byzantine neighbours: what they may do, and what nothing of theirs does."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.algorithms import BRIDGE, ClippedGossip, ClippedGossipSGD, State
from dectool.errors import ArgumentError, ArgumentTypeError
from tests.solving import BACKENDS, quadratic, solve
from tests.theory.q8 import RING, W

INFINITE = float("inf")
ANYTHING = st.floats(allow_nan=True, allow_infinity=True, width=64)
START = np.random.default_rng(0).normal(size=(6, 2))
GRAPH = topology.erdos_renyi(6, 0.8, seed=1)


def one_step(algorithm, x, graph=GRAPH, backend="stacked"):
    """Return the iterates after a step from x, with gradients zero."""
    x = np.array(x)

    def program(comm):
        state = algorithm.step(comm, State(x=x[comm.rank], m=0.0 * x[comm.rank]), np.zeros_like)
        return state["x"]

    with np.errstate(all="ignore"):
        found = dectool.run(program, len(x), backend=backend, topology=graph).values
    return np.reshape(found, x.shape)


@pytest.mark.parametrize("backend", BACKENDS)
def test_infinite_radius_is_gossip(backend):
    problem = problems.Averaging(START)
    options = {"problem": problem, "topology": GRAPH, "backend": backend}
    found = solve(ClippedGossip(radius=INFINITE), **options)
    np.testing.assert_allclose(found.x, solve(algorithms.Gossip(), **options).x, atol=1e-15)
    found = solve(ClippedGossipSGD(lr=0.05, radius=INFINITE), quadratic(), backend=backend)
    expected = solve(algorithms.ATC(lr=0.05), quadratic(), backend=backend)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-14)


def test_clipping_in_one_step():
    # On the ring, rank 0 has neighbours at distances 3 and 5, of which radius 2 is left.
    x = np.zeros((8, 2))
    x[1], x[7] = [0.0, 3.0], [-3.0, 4.0]
    found = one_step(ClippedGossip(radius=2.0), x, RING)
    np.testing.assert_allclose(found[0], [(-3.0 / 5) * 2 / 3, (2 + 4 / 5 * 2) / 3], atol=1e-15)
    np.testing.assert_allclose(found[4], 0.0, atol=0)


def test_radius_of_the_neighbors():
    x = np.zeros((8, 2))
    x[1], x[7] = [0.0, 3.0], [-3.0, 4.0]
    farther = one_step(ClippedGossip(), x, RING)
    np.testing.assert_allclose(farther[0], one_step(ClippedGossip(radius=3.0), x, RING)[0])
    none = one_step(ClippedGossip(farthest=0), x, RING)
    np.testing.assert_allclose(none, W @ x, atol=1e-15)
    # Rank 0 of a path has one neighbour, and trusts it.
    ends = one_step(ClippedGossip(), [[0.0], [3.0], [9.0]], topology.path(3))
    np.testing.assert_allclose(ends[0], [1.0], atol=1e-15)


def test_a_rank_with_few_neighbors_clips_at_the_nearest():
    found = one_step(ClippedGossip(farthest=5), [[0.0], [3.0], [9.0]], topology.path(3))
    np.testing.assert_allclose(found, [[1.0], [3.0], [7.0]], atol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_steps_with_momentum_by_hand(backend):
    """Ranks at 0 and 4 descend apart along (2, -2), and radius 1 lets each come 1/2 back."""
    algorithm = ClippedGossipSGD(lr=0.5, radius=1.0, beta=0.5)

    def program(comm):
        slope = comm.per_rank(lambda rank: np.array([2.0, -2.0])[[rank]])
        state = algorithm.init(comm, comm.per_rank(lambda rank: np.array([4.0 * rank])), None)
        found = []
        for _ in range(2):
            state = algorithm.step(comm, state, lambda x: slope)
            found += [state.x, state.m]
        return np.concatenate(found, axis=-1)

    result = dectool.run(program, 2, backend=backend, topology=topology.complete(2))
    expected = [[0.0, 1.0, -0.25, 1.5], [4.0, -1.0, 4.25, -1.5]]
    np.testing.assert_array_equal(np.reshape(result.values, (2, 4)), expected)


def test_momentum_leaves_the_end_of_adapt_then_combine():
    """Where nothing is clipped: at rest, m is the gradient."""
    descent = ClippedGossipSGD(lr=0.05, radius=INFINITE, beta=0.9)
    found = solve(descent, quadratic(), topology=RING, steps=4000)
    end = theory.fixed_point(algorithms.ATC(lr=0.05), quadratic(), RING)
    np.testing.assert_allclose(found.x, end.x, atol=1e-11)


def test_radius_may_be_a_function_of_the_step():
    shrinking = ClippedGossip(radius=lambda k: 1.0 / (k + 1))
    assert shrinking.at(3).radius == 0.25
    problem = problems.Averaging(1e6 * START)
    moved = solve(shrinking, problem, topology=GRAPH, steps=3)["change"][1:]
    assert (moved <= np.sqrt(6) / np.arange(1, 4)).all()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(attack=st.tuples(ANYTHING, ANYTHING), radius=st.floats(0.1, 10.0))
@example(attack=(np.nan, 0.0), radius=1.0)
@example(attack=(INFINITE, -INFINITE), radius=1.0)
@example(attack=(1e308, 1e308), radius=1.0)
def test_a_byzantine_neighbor_moves_at_most_by_weight_times_radius(backend, attack, radius):
    x = START.copy()
    for i in range(1, 6):
        x[0] = START[i]
        without = one_step(ClippedGossip(radius=radius), x, backend=backend)[i]
        x[0] = attack
        found = one_step(ClippedGossip(radius=radius), x, backend=backend)[i]
        bound = GRAPH.to_dense()[i, 0] * radius
        assert np.linalg.norm(found - without) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("screening", ["median", "trimmed_mean"])
@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(attack=st.tuples(ANYTHING, ANYTHING))
@example(attack=(np.nan, 0.0))
@example(attack=(INFINITE, -INFINITE))
def test_screened_values_are_among_those_of_the_others(screening, backend, attack):
    x = START.copy()
    x[0] = attack
    algorithm = BRIDGE(lr=0.1, screening=screening)
    found = one_step(algorithm, x, topology.complete(6), backend)[1:]
    low, high = START[1:].min(axis=0), START[1:].max(axis=0)
    assert (found >= low - 1e-15).all()
    assert (found <= high + 1e-15).all()


def test_screening_in_one_step():
    x = np.array([[9.0], [1.0], [5.0], [2.0], [7.0]])
    everyone = topology.complete(5)
    np.testing.assert_array_equal(one_step(BRIDGE(lr=0.1), x, everyone), np.full((5, 1), 5.0))
    trimmed = one_step(BRIDGE(lr=0.1, screening="trimmed_mean"), x, everyone)
    assert trimmed[0, 0] == (9.0 + 2.0 + 5.0) / 3  # own, and the others without 1 and 7
    even = one_step(BRIDGE(lr=0.1), x[:4], topology.complete(4))
    np.testing.assert_array_equal(even, np.full((4, 1), 3.5))


def test_trimming_none_is_descent_with_equal_weights():
    screened = solve(BRIDGE(lr=0.05, screening="trimmed_mean", trim=0), quadratic())
    np.testing.assert_allclose(
        screened.x, solve(algorithms.DGD(lr=0.05), quadratic()).x, atol=1e-14
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_too_few_neighbors_to_trim(backend):
    with pytest.raises(
        ArgumentError, match=r"BRIDGE: trim=1 needs 3 neighbours or more, but a rank has 2; use a"
    ):
        solve(BRIDGE(lr=0.05, screening="trimmed_mean"), quadratic(), backend=backend)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: ClippedGossip(radius=0.0), ArgumentError, r"radius=0\.0 must be above 0"),
        (lambda: ClippedGossip(radius=float("nan")), ArgumentError, "radius=nan must be above 0"),
        (lambda: ClippedGossip(radius="far"), ArgumentTypeError, "radius is 'far'; give a number"),
        (lambda: ClippedGossip(farthest=-1), ArgumentError, "farthest=-1 must be at least 0"),
        (lambda: ClippedGossipSGD(lr=0.1, beta=1.0), ArgumentError, r"beta=1\.0 must be at least"),
        (lambda: BRIDGE(lr=0.1, screening="krum"), ArgumentError, "screening='krum' is not known"),
        (lambda: BRIDGE(lr=0.1, trim=-1), ArgumentError, "trim=-1 must be at least 0"),
    ],
)
def test_parameters_are_checked(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
