"""Asynchronous algorithms on real processes: ranks that sleep, and all that must hold anyway."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.processes

N = 4
SLEEPY = sim.PerRank({1: 10.0}, sim.Exponential(1e-3))
VALUES = np.sin(1 + 7 * np.arange(N)[:, None] + np.arange(3))


@pytest.fixture(scope="module")
def cluster():
    with dectool.Cluster(n=N, backend="mpi") as opened:
        yield opened


def averaged(comm, algorithm, values, steps, window):
    """Step without gradients; return the last x, and what is left once all has come."""

    def nothing(x):
        with comm.computing():
            return 0.0 * x

    state = algorithm.init(comm, values[comm.rank], nothing)
    for _ in range(steps):
        state = algorithm.step(comm, state, nothing)
    comm.barrier()
    win = comm.windows[window]
    win.fence()
    if win.push_sum:
        win.collect()
    return state.x, win.value, win.weight


def test_push_sum_of_sleeping_ranks(cluster):
    """The true average, and no mass is lost, with one of four ranks ten times slower."""
    found = dectool.run(
        averaged,
        args=(algorithms.AsynchronousPushSum(), VALUES, 150, "AsynchronousPushSum"),
        topology=topology.exponential(N),
        backend=cluster,
        compute=SLEEPY,
    ).values
    for x, _, _ in found:
        np.testing.assert_allclose(x, VALUES.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(sum(v for _, v, _ in found), VALUES.sum(axis=0), atol=1e-12)
    assert sum(w for _, _, w in found) == pytest.approx(N, abs=1e-12)


@pytest.mark.parametrize("algorithm", [algorithms.ADPSGD(0.1), algorithms.SwarmSGD(0.1)])
def test_pairs_keep_the_sum(algorithm, cluster):
    """Atomic averages under the mutexes: what is added here is taken there."""
    found = dectool.run(
        averaged,
        args=(algorithm, VALUES, 60, algorithm.name),
        topology=topology.complete(N),
        backend=cluster,
        compute=SLEEPY,
    ).values
    models = np.array([value for _, value, _ in found])
    np.testing.assert_allclose(models.mean(axis=0), VALUES.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(models - models.mean(axis=0), 0.0, atol=1e-8)


def solve(algorithm, cluster, steps, graph, problem=None):
    q = problems.Quadratic(h=[[1.0], [2.0], [3.0], [4.0]], b=[[0.0], [1.0], [2.0], [3.0]])
    return dectool.solve(
        algorithm,
        q if problem is None else problem,
        topology=graph,
        steps=steps,
        backend=cluster,
        compute=sim.Exponential(1e-3),
        record_every=steps,
    )


def test_limits_do_not_depend_on_delays(cluster):
    """Those of DGD where values that no longer change are all that counts; or the optimum."""
    ring, everybody = topology.ring(N), topology.complete(N)
    q = problems.Quadratic(h=[[1.0], [2.0], [3.0], [4.0]], b=[[0.0], [1.0], [2.0], [3.0]])
    for algorithm, graph in (
        (algorithms.BoundedStaleness(0.1, 2), ring),
        (algorithms.NewestModelAverage(0.1), everybody),
    ):
        expected = dectool.solve(algorithms.DGD(0.1), q, topology=graph, steps=2000).x
        found = solve(algorithm, cluster, 120, graph).x
        np.testing.assert_allclose(found, expected, atol=1e-6)
    relayed = solve(algorithms.AsynchronousRelaySGD(0.08), cluster, 300, topology.path(N))
    np.testing.assert_allclose(relayed.x, q.optimum[0], atol=1e-6)


def test_meetings_give_the_bits_of_the_simulator(cluster):
    """The order of events is the same, so what ranks make of them is, too."""
    problem = problems.Averaging(VALUES)
    gossip = algorithms.RandomizedGossip(rate=500.0, interval=2e-3)
    options = {"topology": topology.ring(N), "steps": 20, "seed": 5}
    for algorithm in (gossip, algorithms.BroadcastGossip(rate=500.0, interval=2e-3)):
        real = dectool.solve(algorithm, problem, backend=cluster, **options)
        simulated = dectool.solve(algorithm, problem, backend="sim", **options)
        assert real.x.tobytes() == simulated.x.tobytes()
    swarm = algorithms.BlockingSwarmSGD(0.05)
    assert (
        dectool.solve(swarm, problem, backend=cluster, **options).x.tobytes()
        == dectool.solve(swarm, problem, backend="sim", **options).x.tobytes()
    )
