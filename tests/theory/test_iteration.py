"""The affine map of a step, its rate, and what refuses to have one."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError


def test_rate_of_gossip_is_rho():
    graph = topology.ring(10)
    found = theory.iteration(algorithms.Gossip(), problems.Averaging(np.eye(10)), graph)
    assert found.conserved == 10
    assert found.rate == pytest.approx(graph.rho, abs=1e-12)


def test_rate_on_a_schedule_is_per_step():
    schedule = topology.one_peer_exponential(6)
    found = theory.iteration(algorithms.Gossip(), problems.Averaging(np.eye(6)[:, :1]), schedule)
    assert found.period == 3
    assert found.rate**3 <= schedule.contraction() + 1e-12


def test_linearized_problem_agrees_at_the_optimum():
    problem = problems.LogisticRegression.from_data(problems.breast_cancer(), n=4, l2=0.1)
    quadratic = theory.linearize(problem)
    np.testing.assert_allclose(quadratic.optimum, problem.optimum, atol=1e-9)
    for rank in range(4):
        x = problem.optimum
        np.testing.assert_allclose(quadratic.grad(x, rank), problem.grad(x, rank), atol=1e-12)


@pytest.mark.parametrize("name", ["EXTRA", "ExactDiffusion", "ATCGradientTracking"])
def test_measured_rate_is_the_predicted_one_on_logistic_regression(name):
    # Features of unequal scale keep the Hessian's eigenvalues apart, so one mode is slowest soon.
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 3)) * [3.0, 2.0, 1.0]
    y = np.sign(A @ [1.0, -1.0, 2.0] + rng.normal(size=80))
    problem = problems.LogisticRegression(A, y, n=4, l2=0.05)
    algorithm, graph = algorithms.get(name, lr=0.3), topology.ring(4)
    history = dectool.solve(algorithm, problem, topology=graph, steps=1500)
    predicted = theory.rate(algorithm, problem, graph)
    assert history.rate() == pytest.approx(predicted, rel=1e-3)


def test_changing_parameters_have_no_matrix():
    with pytest.raises(ArgumentError, match=r"ChebyshevGossip changes from step to step .*omega"):
        theory.iteration(
            algorithms.ChebyshevGossip(), problems.Averaging(np.eye(5)), topology.ring(5)
        )


def test_push_sum_has_the_matrix_of_its_last_weights():
    # On a star the weight of the hub tends to its limit without ever being there.
    graph, problem = topology.star(4, weights="uniform_push"), problems.Averaging(np.eye(4))
    found = theory.iteration(algorithms.PushSum(), problem, graph)
    assert list(found.fields) == ["x", "s"]
    assert found.rate == pytest.approx(graph.slem, abs=1e-12)
    limit = theory.fixed_point(algorithms.PushSum(), problem, graph)
    np.testing.assert_allclose(limit.x, 0.25, atol=1e-14)


def test_steps_that_change_have_no_matrix():
    quadratic = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
    decreasing = algorithms.DGD(lr=lambda k: 1 / (k + 2))
    with pytest.raises(ArgumentError, match=r"DGD changes from step to step \(lr\).*give a const"):
        theory.rate(decreasing, quadratic, topology.ring(2))
    assert theory.rate(decreasing.at(0), quadratic, topology.ring(2)) == pytest.approx(0.5)


def test_push_sum_on_doubly_stochastic_weights_is_gossip():
    problem, graph = problems.Averaging(np.eye(8)[:, :1]), topology.exponential(8)
    expected = theory.rate(algorithms.Gossip(), problem, graph)
    assert theory.rate(algorithms.PushSum(), problem, graph) == pytest.approx(expected, abs=1e-12)


def test_random_schedules_have_no_period():
    schedule = topology.random_matching(topology.complete(4), seed=0)
    with pytest.raises(ArgumentError, match="random and has no period"):
        theory.rate(algorithms.Gossip(), problems.Averaging(np.eye(4)), schedule)
