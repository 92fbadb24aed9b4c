"""The interface as users first meet it: each line here is a promise."""

import numpy as np
import pytest
import scipy.sparse as sp

import dectool
from dectool import algorithms, problems, topology


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


def test_names_of_the_algorithms():
    names = [
        "Gossip",
        "ChebyshevGossip",
        "ShiftRegisterGossip",
        "PushSum",
        "DGD",
        "ATC",
        "CTA",
        "EXTRA",
        "ExactDiffusion",
        "NIDS",
        "D2",
        "DIGing",
        "SemiATCGradientTracking",
        "ATCGradientTracking",
        "AllReduceGD",
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
    ]
    assert list(algorithms.ALGORITHMS) == names
    for name in names:
        kind = getattr(algorithms, name)
        assert ("lr" in kind.__dataclass_fields__) == kind.uses_gradient
