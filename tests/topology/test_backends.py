"""Random schedules are the same on every rank and backend, bit for bit."""

import numpy as np
import pytest

import dectool
from dectool import topology

N = 6
SCHEDULES = {
    "equidyn": topology.equidyn(N, seed=3),
    "directed equidyn": topology.equidyn(N, directed=True, seed=3),
    "matcha": topology.matcha(topology.ring(N), budget=0.5, seed=3),
    "random pair": topology.random_pair(topology.ring(N), seed=3),
    "geographic gossip": topology.geographic_gossip(N, 0.9, seed=3),
    "B-connected": topology.b_connected(topology.complete(N), 3, seed=3),
    "Base-2": topology.base_k(N),
    "Laplacian sequence": topology.laplacian_sequence(topology.path(N)),
    "inner-outer": topology.inner_outer_exponential(2, 3),
}


def program(comm, schedules):
    x = comm.rng("start").standard_normal(4)
    for schedule in schedules:
        for k in range(5):
            x = comm.neighbor_allreduce(x, topology=schedule.at(k))
    return x


def results(backend, schedules):
    values = dectool.run(program, N, backend=backend, args=(schedules,)).values
    return np.stack(list(values))


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_one_at_a_time(backend):
    for schedule in SCHEDULES.values():
        x = results(backend, [schedule])
        start = results("sim", [])
        for k in range(5):
            start = np.asarray(schedule.at(k).W @ start)
        np.testing.assert_allclose(x, start, atol=1e-13)


def test_all_backends_agree_to_the_last_bit():
    all_of_them = list(SCHEDULES.values())
    expected = results("sim", all_of_them)
    np.testing.assert_array_equal(results("stacked", all_of_them), expected)
    np.testing.assert_array_equal(results("mpi", all_of_them), expected)
