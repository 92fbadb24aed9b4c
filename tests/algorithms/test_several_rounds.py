"""Methods with several rounds of gossip in each step, and linearized ADMM."""

import math

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError

GRAPH = topology.ring(6)


def quadratic(n=6, d=3, kappa=4.0, seed=0):
    return problems.Quadratic.random(n, d, kappa=kappa, heterogeneity=1.0, seed=seed)


@pytest.mark.parametrize(("name", "single"), [("NEARDGD", "ATC"), ("DGDt", "DGD")])
def test_rounds_are_powers_of_the_matrix(name, single):
    problem = quadratic()
    once, thrice = (algorithms.get(name, lr=0.05, rounds=rounds) for rounds in (1, 3))
    one = algorithms.get(single, lr=0.05)
    found = dectool.solve(once, problem, topology=GRAPH, steps=25)
    assert found.x.tobytes() == dectool.solve(one, problem, topology=GRAPH, steps=25).x.tobytes()
    cube = topology.from_matrix(np.linalg.matrix_power(GRAPH.to_dense(), 3))
    expected = dectool.solve(one, problem, topology=cube, steps=25)
    history = dectool.solve(thrice, problem, topology=GRAPH, steps=25)
    np.testing.assert_allclose(history.x, expected.x, atol=1e-13)
    assert history.last["messages"] == 3 * 25 * 12


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_rounds_that_grow_lead_near_dgd_to_the_optimum(backend):
    problem = quadratic()
    growing = algorithms.NEARDGD(lr=0.2, rounds=lambda k: k + 1)
    history = dectool.solve(growing, problem, topology=GRAPH, steps=120, backend=backend)
    np.testing.assert_allclose(history.x, np.tile(problem.optimum, (6, 1)), atol=1e-9)
    assert history.last["messages"] == 12 * 120 * 121 / 2


def test_bias_of_near_dgd_shrinks_as_gossip_does():
    # By rho per round in the limit, where that of DGD with many rounds stays.
    bias = {
        name: [
            theory.fixed_point(algorithms.get(name, lr=0.05, rounds=t), quadratic(), GRAPH).bias
            for t in (20, 21)
        ]
        for name in ("NEARDGD", "DGDt")
    }
    assert bias["NEARDGD"][1] / bias["NEARDGD"][0] == pytest.approx(GRAPH.rho, rel=1e-3)
    assert bias["DGDt"][1] / bias["DGDt"][0] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("rounds", [0, 1.5, True, "2"])
@pytest.mark.parametrize("name", ["NEARDGD", "DGDt", "Mudag", "OPAPC"])
def test_rounds_that_are_refused(name, rounds):
    with pytest.raises(ArgumentError, match=f"{name}: rounds={rounds!r} must be an integer"):
        algorithms.get(name, lr=0.1, rounds=rounds)


def test_rounds_are_checked_where_they_are_a_function():
    shrinking = algorithms.NEARDGD(lr=0.1, rounds=lambda k: 1 - k)
    with pytest.raises(ArgumentError, match="NEARDGD: rounds=0 must be an integer, at least 1"):
        dectool.solve(shrinking, quadratic(), topology=GRAPH, steps=2)


@pytest.mark.parametrize("kappa", [10.0, 1000.0])
@pytest.mark.parametrize(
    "graph", [topology.ring(16), topology.star(9), topology.complete(8)], ids=lambda one: one.name
)
def test_rates_of_accelerated_methods(graph, kappa):
    problem = quadratic(graph.size, 4, kappa, seed=1)
    mudag = algorithms.Mudag.for_problem(problem, graph)
    assert mudag.condition == pytest.approx(kappa)
    # Nesterov's method on the mean.
    expected = 1 - 1 / math.sqrt(kappa)
    assert theory.rate(mudag, problem, graph) == pytest.approx(expected, rel=1e-3)
    opapc = algorithms.OPAPC.for_problem(problem, graph)
    assert opapc.condition == pytest.approx(problem.L_max / problem.mu_min)
    chi = (1 - graph.lambda_min) / (1 - graph.lambda_2)
    c = ((math.sqrt(chi) - 1) / (math.sqrt(chi) + 1)) ** math.floor(math.sqrt(chi) + 1e-9)
    left = ((1 + c) / (1 - c)) ** 2
    slowest = min(1 / math.sqrt(opapc.condition * left), 1 / left)
    assert theory.rate(opapc, problem, graph) ** 2 <= 1 / (1 + slowest / 4)


def test_steps_of_opapc_grow_with_the_root_of_the_condition():
    graph = topology.ring(16)
    problem = [quadratic(16, 4, kappa, seed=1) for kappa in (100.0, 10_000.0)]
    rates = [theory.rate(algorithms.OPAPC.for_problem(one, graph), one, graph) for one in problem]
    assert math.log(rates[0]) / math.log(rates[1]) == pytest.approx(10.0, rel=0.05)


def test_mudag_with_complete_averaging_is_nesterovs_method():
    problem, graph = quadratic(5), topology.complete(5)
    history = dectool.solve(
        algorithms.Mudag(lr=0.2, condition=9.0, rounds=1), problem, topology=graph, steps=15
    )
    ranks = np.arange(5)
    x = y = np.zeros(3)
    for _ in range(15):
        g = problem.grad(np.tile(y, (5, 1)), ranks).mean(axis=0)
        x, before = y - 0.2 * g, x
        y = x + 0.5 * (x - before)
    np.testing.assert_allclose(history.x, np.tile(x, (5, 1)), atol=1e-13)


def test_accelerated_methods_from_apart():
    # Conserved quantities are right wherever the ranks start.
    problem = quadratic(kappa=100.0)
    x0 = np.random.default_rng(0).normal(size=(6, 3))
    for name, steps in (("Mudag", 250), ("OPAPC", 900)):
        algorithm = algorithms.ALGORITHMS[name].for_problem(problem, GRAPH)
        history = dectool.solve(algorithm, problem, topology=GRAPH, steps=steps, x0=x0)
        np.testing.assert_allclose(history.x, np.tile(problem.optimum, (6, 1)), atol=1e-9)


@pytest.mark.parametrize("name", ["Mudag", "OPAPC"])
@pytest.mark.parametrize("condition", [0.5, math.inf, math.nan])
def test_conditions_that_are_refused(name, condition):
    with pytest.raises(ArgumentError, match=f"{name}: condition={condition!r} must be finite"):
        algorithms.get(name, lr=0.1, condition=condition)


def test_linearized_admm_looks_at_the_graph_alone():
    problem, dlm = quadratic(5), algorithms.DLM(lr=0.1, penalty=0.7)
    graphs = [
        topology.star(5, weights=weights) for weights in ("metropolis_hastings", "uniform_push")
    ]
    runs = [dectool.solve(dlm, problem, topology=graph, steps=20) for graph in graphs]
    assert runs[0].x.tobytes() == runs[1].x.tobytes()
    np.testing.assert_allclose(runs[0].state["phi"].sum(axis=0), 0.0, atol=1e-13)


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.inf, math.nan])
def test_penalties_that_are_refused(penalty):
    with pytest.raises(ArgumentError, match=f"DLM: penalty={penalty} must be finite and above 0"):
        algorithms.DLM(lr=0.1, penalty=penalty)
