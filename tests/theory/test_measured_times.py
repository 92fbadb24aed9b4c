"""Simulated clocks against predicted cycle times.

Exponential times: independent copies of a graph run side by side as one topology, so the standard
error comes from their spread, and five of them are allowed. On graphs of 8 the chain forgets its
start to 1e-13 within the warm-up; on the large ones what is left is far below the error. Constant
times: equal but for rounding.
"""

import math

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import dectool
from dectool import sim, theory, topology

WARM_UP = 100
GRAPHS = {
    "ring 4": topology.ring(4),
    "ring 8": topology.ring(8),
    "path 5": topology.path(5),
    "star 4": topology.star(4),
    "complete 4": topology.complete(4),
    "static exponential 8": topology.exponential(8),
    "one-peer exponential 8": topology.one_peer_exponential(8),
    "directed ring 8": topology.from_graph(
        nx.cycle_graph(8, create_using=nx.DiGraph), weights="uniform"
    ),
}
DIRECTED_RING_32 = topology.from_graph(
    nx.cycle_graph(32, create_using=nx.DiGraph), weights="uniform"
)
# Graphs with too many states, their cycle times and how exactly they are known: from longer runs of
# another simulation of the recursion, and for the directed ring from its closed form.
LARGE = {
    "ring 16": (topology.ring(16), 2.276, 0.002),
    "ring 64": (topology.ring(64), 2.357, 0.001),
    "directed ring 32": (DIRECTED_RING_32, 2 - 1 / 32, 0.0),
    "one-peer exponential 16": (topology.one_peer_exponential(16), 2.119, 0.004),
    "one-peer exponential 64": (topology.one_peer_exponential(64), 2.303, 0.004),
    "static exponential 64": (topology.exponential(64), 3.317, 0.004),
}


def side_by_side(graph, copies):
    schedule = topology.as_schedule(graph)
    return topology.periodic(
        [
            topology.from_matrix(
                sp.block_diag([schedule.at(k).W] * copies, format="csr"), require_connected=False
            )
            for k in range(schedule.period)
        ]
    )


def clocks(backend, graph, compute, steps, delay=0.0):
    """Return all ranks' clocks after the warm-up and at the end."""
    schedule, kept = topology.as_schedule(graph), []

    def program(comm):
        x = np.zeros((comm.size, 1)) if backend == "stacked" else np.zeros(1)
        marks = []
        for k in range(WARM_UP + steps):
            with comm.computing():
                pass
            if k == WARM_UP - 1:
                marks.append(comm.now())
            if k < WARM_UP + steps - 1:
                comm.neighbor_allreduce(x, schedule.at(k))
        marks.append(comm.now())
        kept.append(marks)
        return marks

    run = dectool.run(
        program,
        n=graph.size,
        backend=backend,
        compute=compute,
        network=sim.AlphaBeta(latency=delay, port="parallel"),
        seed=1,
    )
    marks = np.transpose(kept[0]) if backend == "stacked" else np.array(run.values)
    return marks[:, 0], marks[:, 1]


def measured(backend, graph, compute, copies, steps):
    """Return the mean seconds per step, and its standard error over the copies."""
    first, last = clocks(backend, side_by_side(graph, copies), compute, steps)
    per_copy = ((last - first) / steps).reshape(copies, graph.size).mean(axis=1)
    return per_copy.mean(), per_copy.std(ddof=1) / math.sqrt(copies)


@pytest.mark.parametrize("name", GRAPHS)
def test_stacked_clocks_have_the_exact_cycle_time(name):
    graph = GRAPHS[name]
    mean, error = measured("stacked", graph, sim.Exponential(2.0), copies=200, steps=800)
    assert error < 2e-3 * mean
    assert abs(mean - theory.exponential_cycle_time(graph, mean=2.0)) < 5 * error


@pytest.mark.parametrize("name", LARGE)
def test_stacked_clocks_on_large_graphs(name):
    graph, expected, within = LARGE[name]
    mean, error = measured("stacked", graph, sim.Exponential(1.0), copies=40, steps=600)
    assert error < 4e-3 * mean
    assert abs(mean - expected) < 5 * math.hypot(error, within)


@pytest.mark.parametrize("name", ["ring 8", "path 5", "one-peer exponential 8"])
def test_simulated_clocks_have_the_exact_cycle_time(name):
    graph = GRAPHS[name]
    mean, error = measured("sim", graph, sim.Exponential(1.0), copies=25, steps=250)
    assert error < 1e-2 * mean
    assert abs(mean - theory.exponential_cycle_time(graph)) < 5 * error


def test_unequal_means():
    means = [1.0, 2.0, 0.5, 1.5, 1.0]
    compute = sim.PerRank(means * 200, sim.Exponential(1.0))
    mean, error = measured("stacked", topology.path(5), compute, copies=200, steps=800)
    assert abs(mean - theory.exponential_cycle_time(topology.path(5), means)) < 5 * error


@pytest.mark.parametrize("delay", [0.0, 0.7])
@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("name", ["path 5", "directed ring 8", "one-peer exponential 8"])
def test_constant_times_have_the_maximum_cycle_mean(name, backend, delay):
    graph = GRAPHS[name]
    c = np.random.default_rng(3).uniform(0.5, 1.5, graph.size)
    # From some step on, clocks advance alike over multiples of the critical circuit's length.
    first, last = clocks(backend, graph, sim.PerRank(c), 840, delay)
    expected = theory.cycle_time(graph, c, delay=delay)
    np.testing.assert_allclose((last - first) / 840, expected, rtol=1e-12)


def test_messages_in_turn_are_delays():
    n, latency, on_port, kept = 6, 0.3, 0.2, []
    c = np.linspace(1.0, 2.0, n)
    graph = topology.ring(n)
    delay = np.zeros((n, n))
    for i in range(n):
        for turn, j in enumerate(graph.out_neighbors(i), start=1):
            delay[i, j] = latency + turn * on_port

    def program(comm):
        for _ in range(400):
            with comm.computing():
                pass
            kept.append(comm.now())
            comm.neighbor_allreduce(np.zeros((n, 1)))

    network = sim.AlphaBeta(latency=latency, bandwidth=8 / on_port)
    dectool.run(program, topology=graph, backend="stacked", network=network, compute=sim.PerRank(c))
    expected = theory.cycle_time(graph, c, delay=delay)
    np.testing.assert_allclose((kept[-1] - kept[-61]) / 60, expected, rtol=1e-12)
    assert expected > theory.cycle_time(graph, c)


def test_slowness_spreads_by_one_edge_a_step():
    graph, kept = topology.ring(9), []

    def program(comm):
        for _ in range(8):
            with comm.computing():
                pass
            kept.append(np.array(comm.now()))
            comm.neighbor_allreduce(np.zeros((9, 1)))

    dectool.run(program, topology=graph, backend="stacked", compute=sim.PerRank({0: 3.0}))
    steps = np.diff(kept, axis=0)
    distance = np.minimum(np.arange(9), 9 - np.arange(9))
    expected = np.where(distance <= np.arange(1, 8)[:, None], 3.0, 1.0)
    np.testing.assert_allclose(steps, expected)


def test_barrier_costs_the_expected_maximum():
    steps, n, marks = 4000, 8, []

    def program(comm):
        for _ in range(steps):
            with comm.computing():
                pass
            comm.barrier()
        marks.append(comm.now())

    for model in (sim.Exponential(1.0), sim.ShiftedExponential(1.0, 0.5), sim.LogNormal(1.0, 0.5)):
        dectool.run(program, n=n, backend="stacked", compute=model)
        error = math.sqrt(theory.variance_of_maximum(model, n) / steps)
        assert abs(marks[-1][0] / steps - theory.expected_maximum(model, n)) < 5 * error


def test_local_steps_share_a_wait():
    rounds, steps, marks = 2000, 5, []

    def program(comm):
        for _ in range(rounds):
            for _ in range(steps):
                with comm.computing():
                    pass
            comm.barrier()
        marks.append(comm.now())

    dectool.run(program, n=2, backend="stacked", compute=sim.Exponential(1.0))
    error = math.sqrt(theory.variance_of_maximum(stats.gamma(steps), 2) / rounds)
    assert abs(marks[0][0] / rounds - theory.local_sgd_round_time(2, steps)) < 5 * error


@pytest.mark.parametrize("random", [False, True])
def test_nobody_waits_with_windows(random):
    n, horizon = 8, 200.0

    def program(comm):
        done = 0
        with comm.window(np.zeros(1), name="x") as window:
            while True:
                with comm.computing():
                    pass
                if comm.now() > horizon:
                    return done
                done += 1
                window.iput(np.ones(1))
                window.update()

    means = [4.0] + [1.0] * (n - 1)
    compute = sim.PerRank(means, sim.Exponential(1.0) if random else sim.Constant(1.0))
    run = dectool.run(program, topology=topology.ring(n), backend="sim", compute=compute)
    expected = horizon * theory.asynchronous_throughput(means)
    # Counts of exponential times are Poisson variables.
    assert abs(sum(run.values) - expected) <= (5 * math.sqrt(expected) if random else 0.0)
