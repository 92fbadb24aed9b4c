"""The size of a bucket: a closed form, and the simulator's own timing."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dectool
from dectool import fusion, topology
from dectool.communicator._bucket_size import Pipeline
from dectool.errors import ArgumentError
from dectool.sim import AlphaBeta, LogGP

TOTAL = 2**20
PARTS = 256


@given(st.floats(1e-7, 1e-2), st.floats(1e6, 1e11), st.integers(10**4, 10**10), st.integers(1, 9))
def test_alpha_beta_has_the_closed_form(latency, bandwidth, total, messages):
    network = AlphaBeta(latency, bandwidth)
    a, b, _ = network.message_cost(messages)
    assert a == pytest.approx(latency, rel=1e-3, abs=1e-12)
    assert b == pytest.approx(messages / bandwidth, rel=1e-9)
    expected = math.sqrt(total * latency * bandwidth / messages)
    found = fusion.best_bucket_bytes(total, network, messages=messages)
    assert found == pytest.approx(min(total, max(1.0, expected)), rel=1e-2, abs=2)


def test_a_port_for_each_message_pays_bytes_once():
    network = AlphaBeta(1e-5, 1e9, port="parallel")
    assert network.message_cost(4)[1] == pytest.approx(1e-9)


def test_loggp_pays_latency_and_overheads():
    a, b, busy = LogGP(L=5e-6, o=2e-6, g=0.0, G=1e-9).message_cost()
    assert busy == 4e-6
    assert a == pytest.approx(5e-6 + 2 * 2e-6, abs=2e-9)
    assert b == pytest.approx(1e-9)


def test_the_slowest_link_counts():
    latency = np.full((3, 3), 1e-6)
    latency[2, 0] = 5e-5
    assert AlphaBeta(latency, 1e9).message_cost(1, 3)[0] == pytest.approx(5e-5)
    assert AlphaBeta(1e-5, 1e9).message_cost(1, 1) == (0.0, 0.0, 0.0)


def test_limits():
    best = fusion.best_bucket_bytes
    assert best(1000, AlphaBeta()) == 1000
    assert best(1000, AlphaBeta(latency=1.0)) == 1000
    assert best(1000, AlphaBeta(bandwidth=1.0)) == 1
    assert best(0, AlphaBeta(1e-5, 1e9)) == 1
    # What is made slowly hides what is sent: only the last bucket is seen.
    slow = best(10**8, AlphaBeta(1e-4, 1e9), rate=1e8)
    assert slow == pytest.approx(1e-4 / (1e-8 - 1e-9), rel=1e-3)
    with pytest.raises(ArgumentError, match="network is None"):
        best(1000, None)
    with pytest.raises(ArgumentError, match="messages=0"):
        best(1000, AlphaBeta(), messages=0)
    with pytest.raises(ArgumentError, match="rate=-1"):
        best(1000, AlphaBeta(), rate=-1.0)


def pipeline(comm, limit, rate):
    """Send each bucket while the next is made, and wait for it before the next is sent."""
    arrays = comm.per_rank(lambda rank: [np.zeros(TOTAL // PARTS // 8)] * PARTS)
    pending = None
    for bucket in comm.buckets(arrays, limit, rate=rate):
        comm.elapse(bucket.nbytes / rate)
        if pending is not None:
            pending.wait()
        pending = comm.ineighbor_allreduce(bucket)
    pending.wait()


def seconds(limit, network, graph, rate, backend="sim"):
    return dectool.run(
        pipeline, topology=graph, backend=backend, network=network, args=(limit, rate)
    ).time


NETWORKS = {
    "AlphaBeta": AlphaBeta(latency=2e-5, bandwidth=1e9),
    "parallel ports": AlphaBeta(latency=2e-5, bandwidth=1e9, port="parallel"),
    "long": AlphaBeta(latency=1e-3, bandwidth=1e9),
    "LogGP": LogGP(L=1e-5, o=3e-6, g=1e-6, G=1e-9),
}


@pytest.mark.parametrize("speed", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_other_size_is_much_faster_in_the_simulator(name, speed):
    network, graph = NETWORKS[name], topology.ring(4)
    rate = speed / network.message_cost(2, 4)[1]
    sweep = [int(TOTAL / 2 ** (step / 2)) for step in range(17)]
    times = [seconds(limit, network, graph, rate) for limit in sweep]
    chosen = seconds("auto", network, graph, rate)
    assert chosen <= 1.03 * min(times)
    assert max(times) > 1.2 * chosen


@given(
    st.floats(1e-6, 1e-3), st.floats(1e-10, 1e-7), st.floats(0, 1), st.floats(1e-10, 1e-7),
    st.integers(10**3, 10**8),
)  # fmt: skip
def test_the_formula_is_at_the_least_time(fixed, each, share, making, total):
    stages = Pipeline(fixed, each, share * fixed, making)
    best = stages.best(total)
    assert 1.0 <= best <= total
    for size in np.geomspace(1.0, total, 200):
        assert stages.of_equal(total, best) <= stages.of_equal(total, size) * (1 + 1e-9)


def test_the_pipeline_takes_the_time_of_the_formula():
    network, graph = NETWORKS["AlphaBeta"], topology.ring(4)
    a, b, _ = network.message_cost(2, 4)
    for size in (2**13, 2**16, 2**18):
        for rate in (0.5 / b, 1.0 / b, 3.0 / b):
            making, sending = size / rate, a + b * size
            expected = making + sending + (TOTAL / size - 1) * max(making, sending)
            assert seconds(size, network, graph, rate) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("backend", ["sim", "stacked"])
def test_a_communicator_knows_its_network(backend):
    network = AlphaBeta(latency=2e-5, bandwidth=1e9)

    arrays = [np.zeros(TOTAL // PARTS // 8)] * PARTS

    def program(comm):
        return comm.buckets(comm.per_rank(lambda rank: arrays), "auto").bucket_bytes

    found = dectool.run(program, topology=topology.ring(4), backend=backend, network=network)
    same = fusion.Buckets(arrays, "auto", network=network, messages=2, ranks=4)
    assert found.values[0] == same.bucket_bytes
    about = fusion.best_bucket_bytes(TOTAL, network, messages=2, ranks=4)
    assert about / 1.5 < same.bucket_bytes < 1.5 * about
