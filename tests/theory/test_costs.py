"""Seconds of a round in closed form, and costs that runs to the accuracy really have."""

import math

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, theory, topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError

A, B, M = 1e-5, 1.25e9, 10**8
NETWORK = sim.AlphaBeta(latency=A, bandwidth=B)
PARALLEL = sim.AlphaBeta(latency=A, bandwidth=B, port="parallel")
ROUNDS = [
    (topology.ring(8), NETWORK, A + 2 * M / B),
    (topology.one_peer_exponential(8), NETWORK, A + M / B),
    (topology.exponential(8), NETWORK, A + 3 * M / B),
    (topology.complete(5), NETWORK, A + 4 * M / B),
    # The port of the hub is never idle: it has the next round's values before it is free.
    (topology.star(8), NETWORK, 7 * M / B),
    (topology.star(8), PARALLEL, A + M / B),
    (topology.complete(2), sim.LogGP(L=1e-3, o=1e-4, G=1e-9), 1e-3 + 2e-4 + (M - 1) * 1e-9),
]


@pytest.mark.parametrize(("graph", "network", "expected"), ROUNDS)
def test_seconds_per_round(graph, network, expected):
    assert theory.seconds_per_round(graph, network, M) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("graph", [topology.path(5), topology.one_peer_exponential(8)])
def test_rounds_with_computations_have_the_maximum_cycle_mean(graph):
    c = np.random.default_rng(0).uniform(0.5, 1.5, graph.size)
    found = theory.seconds_per_round(graph, PARALLEL, M, compute=sim.PerRank(c))
    delay = A + M / B
    assert found == pytest.approx(theory.cycle_time(graph, c, delay=delay), rel=1e-12)


LOGGP = sim.LogGP(L=1e-5, o=1e-6, G=1e-9)
PROBLEM = problems.Quadratic.random(8, 3, kappa=5.0, seed=0)
RING = topology.ring(8)
RUNS = [
    (algorithms.EXTRA(lr=0.08), RING, "predicted"),
    (algorithms.ATCGradientTracking(lr=0.05), topology.one_peer_exponential(8), "predicted"),
    (algorithms.AllReduceGD(lr=0.2), RING, "predicted"),
    (algorithms.LEAD(lr=0.12, compressor="qsgd:8"), RING, "measured"),
    (algorithms.ATCGradientTracking(lr=0.1), topology.equidyn(8), "measured"),
]


@pytest.mark.parametrize(("algorithm", "graph", "source"), RUNS, ids=str)
@pytest.mark.parametrize("network", [NETWORK, LOGGP], ids=["AlphaBeta", "LogGP"])
def test_a_run_costs_what_is_said(algorithm, graph, source, network):
    compute = sim.PerRank({3: 3.0}, sim.Constant(1e-4))
    cost = theory.cost_to_accuracy(
        algorithm, graph, network, PROBLEM, eps=1e-4, compute=compute, most=1000
    )
    assert cost.source == source
    backend = "sim" if network.serial_receive else "stacked"
    history = dectool.solve(
        algorithm,
        PROBLEM,
        topology=graph,
        steps=int(cost.steps),
        backend=backend,
        network=network,
        compute=compute,
    )
    apart = history["distance"] / history["distance"][0]
    assert apart[-1] <= 1e-4 * (1 + 1e-9) < apart[-2]
    assert cost.seconds == pytest.approx(history.last["time"], rel=1e-9)
    assert cost.bytes == history.last["bytes"] / 8
    assert cost.messages == history.last["messages"] / 8
    assert cost.seconds_per_step == cost.seconds / cost.steps


@pytest.mark.parametrize(
    "algorithm", [algorithms.EXTRA(lr=0.08), algorithms.AllReduceGD(lr=0.2)], ids=str
)
def test_a_small_problem_costs_what_a_large_model_does(algorithm):
    h, b = (np.full((8, 1), value) for value in (2.0, 1.0))
    h[3], b[5] = 4.0, -2.0
    small = problems.Quadratic(h=h, b=b)
    large = problems.Quadratic(h=np.repeat(h, 9000, axis=1), b=np.repeat(b, 9000, axis=1))
    slow = sim.AlphaBeta(latency=1e-3, bandwidth=1e7)
    found = theory.cost_to_accuracy(algorithm, RING, slow, small, eps=1e-3, nbytes=72_000)
    history = dectool.solve(
        algorithm, large, topology=RING, steps=int(found.steps), network=slow, record_every=100
    )
    assert found.seconds == pytest.approx(history.last["time"])
    assert found.bytes == pytest.approx(history.last["bytes"] / 8)
    assert found.messages == history.last["messages"] / 8


def test_what_overlaps_is_paid_once():
    compute, slow = sim.Constant(0.3), sim.AlphaBeta(latency=0.1, port="parallel")
    q = problems.Quadratic(h=np.full((4, 1), 1.0), b=np.ones((4, 1)))
    dgd, atc = (
        theory.cost_to_accuracy(kind(lr=0.5), topology.ring(4), slow, q, compute=compute)
        for kind in (algorithms.DGD, algorithms.ATC)
    )
    assert dgd.steps == atc.steps == math.ceil(math.log(1e-6) / math.log(0.5))
    assert dgd.seconds_per_step == pytest.approx(0.3)
    assert atc.seconds_per_step == pytest.approx(0.4)
    assert sorted([atc, dgd]) == [dgd, atc]


def test_steps_that_differ_repeat_as_they_do():
    # Exact averages every seventh step, and gossip in between.
    same = problems.Quadratic(h=np.ones((8, 2)), b=np.tile([[1.0, 2.0]], (8, 1)))
    pga = algorithms.GossipPGA(lr=0.02, period=7)
    cost = theory.cost_to_accuracy(pga, RING, NETWORK, same, eps=1e-4)
    history = dectool.solve(pga, same, topology=RING, steps=int(cost.steps), network=NETWORK)
    assert cost.steps == math.ceil(math.log(1e-4) / math.log(0.98))
    assert cost.seconds == pytest.approx(history.last["time"], rel=1e-9)
    assert cost.bytes == history.last["bytes"] / 8
    assert cost.messages == history.last["messages"] / 8


def test_gossip_starts_everywhere():
    cost = theory.cost_to_accuracy(algorithms.Gossip(), RING, NETWORK, eps=1e-3)
    # The norm of W^k - J, where every start is equally likely.
    powers = np.linalg.eigvalsh(RING.to_dense() - 1 / 8)[:, None] ** np.arange(60)
    shrunk = np.sqrt((powers**2).sum(axis=0) / 7)
    assert cost.steps == np.argmax(shrunk[1:] <= 1e-3) + 1


def test_what_is_never_reached():
    cases = [
        (algorithms.DGD(lr=0.05), "it ends at"),
        (algorithms.EXTRA(lr=2.0), "it does not converge: its rate is"),
        (algorithms.LEAD(lr=0.01), "not within 30 steps"),
        (algorithms.LEAD(lr=3.0), "it diverges"),
    ]
    for algorithm, text in cases:
        with np.errstate(all="ignore"):
            most = 30 if algorithm.lr == 0.01 else 2000
            if "diverges" in text:
                with pytest.warns(RuntimeWarning, match="diverged"):
                    cost = theory.cost_to_accuracy(algorithm, RING, NETWORK, PROBLEM, most=most)
            else:
                cost = theory.cost_to_accuracy(algorithm, RING, NETWORK, PROBLEM, most=most)
        assert text in cost.reason
        assert cost.steps == cost.seconds == math.inf
        assert "never" in repr(cost)
        assert math.isnan(cost.seconds_per_step)


def test_runs_that_end_too_early_go_on_at_the_predicted_rate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], size=40)
    task = problems.LogisticRegression(X, y, n=4, l2=0.5)
    nids, graph = algorithms.NIDS(lr=0.2), topology.ring(4)
    whole = theory.cost_to_accuracy(nids, graph, NETWORK, task, eps=1e-9)
    early = theory.cost_to_accuracy(nids, graph, NETWORK, task, eps=1e-9, most=60)
    assert theory.cost_to_accuracy(nids, graph, NETWORK, task, eps=1e-9, most=1).steps > 10
    assert (whole.source, early.source) == ("measured", "extrapolated")
    assert whole.steps > 100
    assert early.steps == pytest.approx(whole.steps, abs=3)
    assert early.seconds == pytest.approx(whole.seconds, rel=0.03)


def test_long_predictions_end_at_the_rate():
    # Modes 1 - 1e-4 and 1 - 5e-4 from 1: after 16,384 steps only the first is left.
    q = problems.Quadratic(h=np.tile([[1e-4, 5e-4]], (2, 1)), b=np.ones((2, 2)))
    gd = algorithms.AllReduceGD(lr=1.0)
    start = theory.predict(gd, q, topology.ring(2)).limit.x[0]
    target = 1e-3 * np.linalg.norm(start)
    expected = math.ceil(math.log(target / start[0]) / math.log1p(-1e-4))
    assert expected > 2**14
    cost = theory.cost_to_accuracy(gd, topology.ring(2), NETWORK, q, eps=1e-3)
    assert cost.steps == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("algorithm", [algorithms.DGD(lr=0.05), algorithms.EXTRA(lr=2.0)], ids=str)
def test_who_is_there_needs_no_steps(algorithm):
    cost = theory.cost_to_accuracy(algorithm, RING, NETWORK, PROBLEM, x0=PROBLEM.optimum)
    assert (cost.steps, cost.seconds, cost.reason) == (0, 0.0, "")


def test_asynchronous_algorithms_are_run():
    push = algorithms.AsynchronousPushSum()
    graph = topology.ring(4, weights="uniform_push")
    compute = sim.Exponential(1e-3)
    cost = theory.cost_to_accuracy(push, graph, NETWORK, compute=compute, eps=1e-2, most=400)
    assert cost.source == "measured"
    assert 0 < cost.steps < 400
    assert cost.seconds > 0


def test_arguments():
    gossip, extra = algorithms.Gossip(), algorithms.EXTRA(lr=0.1)
    with pytest.raises(ArgumentTypeError, match="give a network model"):
        theory.cost_to_accuracy(gossip, RING, None)
    with pytest.raises(ArgumentTypeError, match="give a network model"):
        theory.seconds_per_round(RING, sim.AlphaBeta, 8)
    with pytest.raises(ArgumentError, match="nbytes must be at least 1"):
        theory.seconds_per_round(RING, NETWORK, 0)
    with pytest.raises(ArgumentError, match="problem is missing"):
        theory.cost_to_accuracy(extra, RING, NETWORK)
    for eps in (0.0, 1.0, math.nan):
        with pytest.raises(ArgumentError, match="eps="):
            theory.cost_to_accuracy(gossip, RING, NETWORK, eps=eps)
    with pytest.raises(TopologyError, match="must be symmetric"):
        theory.cost_to_accuracy(extra, topology.exponential(8), NETWORK, PROBLEM)
    table = sim.AlphaBeta(latency=np.zeros((4, 4)))
    with pytest.raises(ArgumentError, match="there are 8 ranks"):
        theory.cost_to_accuracy(algorithms.EXTRA(lr=0.05), RING, table, PROBLEM)
