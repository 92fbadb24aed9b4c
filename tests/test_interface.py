"""The interface as users first meet it: each line here is a promise."""

import numpy as np
import pytest
import scipy.sparse as sp

import dectool
from dectool import algorithms, problems, theory, topology


def test_topologies():
    t = topology.ring(16)
    assert sp.issparse(t.W)
    assert t.W.format == "csr"
    for value in (t.rho, t.slem, t.spectral_gap):
        assert isinstance(value, float)
    assert t.W[0, 1] == pytest.approx(1 / 3)
    sizes = [
        graph.size
        for graph in (
            topology.grid(4, 4),
            topology.torus(4, 4),
            topology.hypercube(4),
            topology.exponential(16),
        )
    ]
    assert sizes == [16, 16, 16, 16]
    assert topology.path(8, weights="max_degree").is_doubly_stochastic
    assert topology.star(8, weights="best_constant").is_doubly_stochastic
    assert topology.from_matrix(np.full((3, 3), 1 / 3)).rho == pytest.approx(0.0, abs=1e-12)
    schedule = topology.one_peer_exponential(16)
    assert isinstance(schedule, topology.Schedule)
    assert isinstance(schedule.at(2), topology.Topology)


def test_solving():
    h = np.array([1.0, 2, 3, 4, 1, 2, 3, 4])[:, None]
    q = problems.Quadratic(h=h, b=np.arange(8.0)[:, None])
    hist = dectool.solve(
        algorithms.EXTRA(lr=0.1), q, topology=topology.ring(8), steps=50, backend="stacked"
    )
    assert hist.x.shape == (8, 1)
    np.testing.assert_array_equal(hist.x0, np.zeros((8, 1)))
    columns = set(hist.to_pandas().columns)
    assert columns >= {"step", "time", "bytes", "messages", "gap", "consensus_error", "grad_norm"}


def test_averaging():
    avg = dectool.solve(
        algorithms.Gossip(),
        problems.Averaging(np.eye(8)),
        topology=topology.ring(8),
        steps=10,
        backend="sim",
    )
    W = topology.ring(8).to_dense()
    np.testing.assert_allclose(avg.x, np.linalg.matrix_power(W, 10), atol=1e-15)


def test_running_a_program():
    def program(comm):
        comm.elapse(comm.rng("compute").exponential(1e-3))
        if comm.rank == 0:
            comm.isend(np.ones(4), dest=1, tag=7).wait()
        if comm.rank == 1:
            comm.recv(source=0, tag=7)
        return comm.neighbor_allreduce(np.full(3, float(comm.rank)))

    r = dectool.run(
        program,
        n=8,
        backend="sim",
        topology=topology.ring(8),
        network=dectool.sim.AlphaBeta(latency=1e-5, bandwidth=1.25e9),
        compute=dectool.sim.Exponential(mean=1e-3),
        seed=0,
    )
    np.testing.assert_allclose(r.values[3], [3.0, 3.0, 3.0])
    assert r.messages == 8 * 2 + 1
    assert r.bytes == 16 * 24 + 32
    assert r.time > 0.0


def windows(comm):
    x = np.full(3, float(comm.rank))
    with comm.window(x, name="params") as win:  # collective; one slot per in-neighbor
        win.put(x)
        request = win.iput(x)
        request.wait()
        win.accumulate(x, dst_weights={(comm.rank + 1) % 3: 0.5}, self_weight=0.5)
        win.get(src_weights={(comm.rank + 1) % 3: 1.0})
        win.fence()
        x = win.update()
        x = win.update(self_weight=0.5, src_weights={(comm.rank + 1) % 3: 0.5})
        count, stale = win.version((comm.rank + 1) % 3), win.staleness((comm.rank + 1) % 3)
    out = comm.topology.out_neighbors(comm.rank)
    assert out == comm.topology.in_neighbors(comm.rank)
    share = 1 / (len(out) + 1)
    shares = dict.fromkeys(out, share)
    with comm.window(x, name="p", push_sum=True) as win:
        win.accumulate(dst_weights=shares, self_weight=share)  # my value and weight, scaled
        win.collect()
        assert win.value.shape == win.debiased.shape == (3,)
        assert win.weight > 0.0
    return count, stale


def test_one_sided_windows():
    values = dectool.run(windows, topology=topology.ring(3), backend="sim").values
    # Two puts and a get; the accumulate goes to the other neighbor.
    assert values == [(3, 2)] * 3


def test_fusing():
    from dectool import compression, fusion

    def program(comm):
        weights = comm.per_rank(lambda rank: {"w": np.full((4, 3), float(rank)), "b": np.ones(3)})
        buckets = comm.buckets(weights, bucket_bytes="auto", order="reversed")
        assert buckets.views["w"].shape == np.shape(weights["w"])
        request = comm.iallreduce(buckets[0])
        mean = comm.allreduce(buckets)
        small = comm.neighbor_allreduce(buckets, compressor=compression.get("pertensor:topk:1"))
        request.wait()
        return mean.views, small.views

    result = dectool.run(
        program,
        backend="sim",
        topology=topology.ring(4),
        network=dectool.sim.AlphaBeta(latency=1e-5, bandwidth=1e9),
    )
    mean, _ = result.values[2]
    np.testing.assert_allclose(mean["w"], np.full((4, 3), 1.5))
    flat = fusion.Buckets([fusion.Spec((1000,)), fusion.Spec((10,), "bfloat16")])
    assert [bucket.nbytes for bucket in flat] == [4000, 20]


def test_names_of_the_algorithms():
    names = [
        "Gossip",
        "ChebyshevGossip",
        "ShiftRegisterGossip",
        "PushSum",
        "RobustPushSum",
        "DGD",
        "ATC",
        "CTA",
        "EXTRA",
        "PGEXTRA",
        "ExactDiffusion",
        "NIDS",
        "D2",
        "DIGing",
        "SemiATCGradientTracking",
        "ATCGradientTracking",
        "AB",
        "PushPull",
        "ATCPushPull",
        "PushDIGing",
        "ADDOPT",
        "SubgradientPush",
        "SGP",
        "NEARDGD",
        "DGDt",
        "DLM",
        "DecentralizedADMM",
        "SSDA",
        "MSDA",
        "Mudag",
        "OPAPC",
        "AllReduceGD",
        "DmSGD",
        "QuasiGlobalMomentum",
        "DecentLaM",
        "LocalSGD",
        "CooperativeSGD",
        "GossipPGA",
        "SlowMo",
        "ClippedGossip",
        "ClippedGossipSGD",
        "BRIDGE",
        "CHOCOGossip",
        "CHOCO",
        "DCD",
        "ECD",
        "LowPrecisionDecentralized",
        "DeepSqueeze",
        "Moniqua",
        "LEAD",
        "CEDAS",
        "BEER",
        "PowerGossip",
        "QSGD",
        "EFSGD",
        "EF21",
        "DGC",
        "ByteGrad",
        "OneBitAdam",
        "QAdam",
        "RelaySum",
        "RelaySGD",
        "AsynchronousPushSum",
        "AsynchronousGradientPush",
        "OSGP",
        "RandomizedGossip",
        "BroadcastGossip",
        "ADPSGD",
        "SwarmSGD",
        "BlockingSwarmSGD",
        "BoundedStaleness",
        "AsynchronousModelAverage",
        "NewestModelAverage",
        "AsynchronousRelaySum",
        "AsynchronousRelaySGD",
        "AsynchronousADMM",
    ]
    assert list(algorithms.ALGORITHMS) == names
    for name in names:
        kind = getattr(algorithms, name)
        steps = kind.uses_gradient and kind.oracle != "prox"
        assert ("lr" in kind.__dataclass_fields__) == steps


def test_stragglers():
    exponential = dectool.sim.Exponential(mean=1.0)
    assert theory.expected_maximum(exponential, n=4) == pytest.approx(25 / 12)
    assert theory.expected_order_statistic(exponential, n=4, k=3) == pytest.approx(13 / 12)
    assert theory.variance_of_maximum(exponential, n=4) == pytest.approx(205 / 144)
    assert theory.local_sgd_round_time(n=2, steps=2) == pytest.approx(2.75)
    ring = topology.ring(4)
    assert theory.exponential_cycle_time(ring, mean=1.0) == pytest.approx(47 / 24)
    assert theory.cycle_time(ring, [1.0, 3.0, 1.0, 1.0], delay=2.0) == 4.0
    assert theory.critical_circuit(ring, [1.0, 3.0, 1.0, 1.0]) == (1,)
    assert theory.synchronous_throughput([1.0, 1.0, 2.0]) == 1.5
    assert theory.asynchronous_throughput([1.0, 1.0, 2.0]) == 2.5
    assert theory.asynchronous_speedup(n=3, slowdown=2.0) == pytest.approx(2.5 / 1.5)
