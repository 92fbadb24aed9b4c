"""Gradient methods on directed graphs: what is conserved, special cases, what is refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError

TWO_MATRICES = ["AB", "PushPull", "ATCPushPull"]
TRACKING = [*TWO_MATRICES, "PushDIGing", "ADDOPT"]
ON_ONE = {
    "AB": "DIGing",
    "PushPull": "SemiATCGradientTracking",
    "ATCPushPull": "ATCGradientTracking",
    "PushDIGing": "SemiATCGradientTracking",
    "ADDOPT": "DIGing",
    "SGP": "ATC",
}


def quadratic(n, d=2, seed=0):
    return problems.Quadratic.random(n, d, kappa=4.0, heterogeneity=1.0, seed=seed)


def digraph(n, seed, weights):
    edges = [(i, (i + 1) % n) for i in range(n)]
    chords = np.random.default_rng(seed).integers(0, n, (n // 2, 2))
    graph = nx.DiGraph(edges + [(int(a), int(b)) for a, b in chords if a != b])
    return topology.from_graph(graph, weights=weights)


@pytest.mark.parametrize("name", TRACKING)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(n=st.integers(2, 8), seed=st.integers(0, 99), steps=st.integers(0, 20))
def test_tracked_sum_is_the_sum_of_gradients(name, n, seed, steps):
    graph = digraph(n, seed, "uniform_push")
    state = dectool.solve(
        algorithms.get(name, lr=0.02), quadratic(n, seed=seed), topology=graph, steps=steps
    ).state
    np.testing.assert_allclose(state["y"].sum(axis=0), state["g"].sum(axis=0), atol=1e-11)
    if "v" in state:
        assert state["v"].sum() == pytest.approx(n, abs=1e-12)


@pytest.mark.parametrize("name", ON_ONE)
def test_doubly_stochastic_weights_make_it_a_method_of_undirected_graphs(name):
    # Weights of 1/4 are exact, so push-sum weights are 1 to the bit, and so are the iterates.
    problem, graph = quadratic(8), topology.exponential(8)
    found, same = (
        dectool.solve(algorithms.get(one, lr=0.05), problem, topology=graph, steps=30).x
        for one in (name, ON_ONE[name])
    )
    assert found.tobytes() == same.tobytes()


def test_subgradient_push_on_doubly_stochastic_weights_descends_from_averages():
    problem, graph = quadratic(8), topology.exponential(8)
    x0 = np.random.default_rng(0).normal(size=(8, 2))
    push = algorithms.SubgradientPush(lr=0.05)
    found = dectool.solve(push, problem, topology=graph, steps=31, x0=x0)
    start = graph.to_dense() @ x0
    same = dectool.solve(algorithms.ATC(lr=0.05), problem, topology=graph, steps=30, x0=start)
    np.testing.assert_allclose(found.x, same.x, atol=1e-14)


@pytest.mark.parametrize("name", ["ATCPushPull", "SGP", "NEARDGD"])
def test_complete_averaging_is_centralized_descent(name):
    problem, graph = quadratic(5), topology.complete(5)
    history = dectool.solve(algorithms.get(name, lr=0.1), problem, topology=graph, steps=20)
    central = dectool.solve(algorithms.AllReduceGD(lr=0.1), problem, topology=graph, steps=20)
    np.testing.assert_allclose(history.x, central.x, atol=1e-13)


@pytest.mark.parametrize("name", [*TWO_MATRICES, "PushDIGing"])
def test_digraphs_that_change_lead_to_the_optimum(name):
    # No graph of the period is connected; both together are.
    weights = "uniform" if name in TWO_MATRICES else "uniform_push"
    halves = []
    for edges in ([(0, 1), (2, 3)], [(1, 2), (3, 4), (4, 0), (2, 0)]):
        graph = nx.empty_graph(5, create_using=nx.DiGraph)
        graph.add_edges_from(edges)
        halves.append(topology.from_graph(graph, weights=weights, require_connected=False))
    problem = quadratic(5)
    history = dectool.solve(
        algorithms.get(name, lr=0.03), problem, topology=topology.periodic(halves), steps=1200
    )
    np.testing.assert_allclose(history.x, np.tile(problem.optimum, (5, 1)), atol=1e-9)


def test_leader_and_followers():
    # Followers pull from rank 0 along a path, and push what they track back to it.
    down = topology.from_matrix(
        [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]],
        require_connected=False,
        name="path away from 0",
    )
    up = topology.from_matrix(down.to_dense().T, require_connected=False, name="path to 0")
    problem = quadratic(4)
    graph = topology.path(4)
    for name in TWO_MATRICES:
        led = algorithms.get(name, lr=0.02, pull=down, push=up)
        history = dectool.solve(led, problem, topology=graph, steps=1500)
        np.testing.assert_allclose(history.x, np.tile(problem.optimum, (4, 1)), atol=1e-9)
    back = topology.from_matrix(np.flip(up.to_dense()), require_connected=False, name="path to 3")
    with pytest.raises(TopologyError, match=r"no rank is heard by all along pull=path away from 0"):
        algorithms.PushPull(lr=0.02, pull=down, push=back)


@pytest.mark.parametrize("name", TWO_MATRICES)
def test_matrices_that_are_refused(name):
    rows, columns = digraph(5, 0, "uniform"), digraph(5, 0, "uniform_push")
    with pytest.raises(TopologyError, match=f"{name}: pull=.* must be row stochastic.*'uniform'"):
        algorithms.get(name, lr=0.1, pull=columns)
    with pytest.raises(TopologyError, match=f"{name}: push=.* must be column stochastic.*_push'"):
        algorithms.get(name, lr=0.1, push=topology.periodic([columns, rows]))
    with pytest.raises(ArgumentTypeError, match=f"{name}: pull is a list; give a dectool.topology"):
        algorithms.get(name, lr=0.1, pull=[[1.0]])
    with pytest.raises(TopologyError, match=r"has 5 ranks, and push=.* 4; build both"):
        algorithms.get(name, lr=0.1, pull=rows, push=digraph(4, 0, "uniform_push"))
    short = algorithms.get(name, lr=0.1, pull=rows)
    with pytest.raises(ArgumentError, match="5 ranks, but the communicator has 4"):
        dectool.solve(short, quadratic(4), topology=topology.ring(4), steps=1)


def test_matrices_that_never_repeat_have_no_period():
    random = topology.random_matching(topology.complete(4), seed=0)
    push_pull = algorithms.PushPull(lr=0.1, pull=random)
    with pytest.raises(ArgumentError, match=r"PushPull: pull=.* has no period"):
        dectool.theory.rate(push_pull, quadratic(4), topology.ring(4))
    history = dectool.solve(push_pull, quadratic(4), topology=topology.ring(4), steps=600)
    np.testing.assert_allclose(history.x, np.tile(quadratic(4).optimum, (4, 1)), atol=1e-9)


def test_a_saved_run_with_given_matrices_goes_on(tmp_path):
    push_pull = algorithms.PushPull(lr=0.05, pull=digraph(5, 0, "uniform"))
    options = {"topology": topology.ring(5)}
    whole = dectool.solve(push_pull, quadratic(5), steps=9, **options)
    half = dectool.solve(push_pull, quadratic(5), steps=4, **options).save(tmp_path / "half.npz")
    rest = dectool.solve(push_pull, quadratic(5), steps=9, resume=half, **options)
    assert rest.x.tobytes() == whole.x.tobytes()


def test_steps_that_decrease_lead_subgradient_push_to_the_optimum():
    # Like 1/k, as the steps do.
    graph, problem = digraph(6, 1, "uniform_push"), quadratic(6)
    push = algorithms.SubgradientPush(lr=lambda k: 2 / (k + 10))
    history = dectool.solve(push, problem, topology=graph, steps=1600, record_every=400)
    distance = dict(zip(history["step"], history["distance"], strict=True))
    assert distance[1600] < 0.02
    assert distance[400] / distance[1600] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("name", TRACKING)
def test_suggested_steps_are_stable(name):
    for graph in (
        topology.directed_ring(8),
        topology.directed_ring(12),
        topology.star(8, weights="uniform_push"),
        topology.exponential(8),
        digraph(8, 4, "uniform_push"),
        topology.ring(8),
    ):
        problem = quadratic(graph.size)
        suggested = algorithms.ALGORITHMS[name].for_problem(problem, graph)
        assert dectool.theory.rate(suggested, problem, graph) < 1.0, graph.name
    # Not because it is tiny: on a ring it is a good part of 1/L.
    assert suggested.lr >= 0.1 / problem.L_max
    schedule = topology.one_peer_exponential(8)
    assert dectool.theory.rate(suggested.for_problem(problem, schedule), problem, schedule) < 1.0
