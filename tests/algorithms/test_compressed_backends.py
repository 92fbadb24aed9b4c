"""Compressed algorithms give the same bits, and send the same bytes, on every backend."""

import dataclasses

import numpy as np
import pytest

import dectool
from dectool import algorithms, compression, problems, topology
from tests.solving import same_bits

PROBLEM = problems.Quadratic.random(5, 9, kappa=4.0, heterogeneity=1.0, seed=0)
GRAPH = topology.erdos_renyi(5, 0.6, seed=3)
NAMES = [
    name
    for name, kind in algorithms.ALGORITHMS.items()
    if "compressor" in kind.__dataclass_fields__
]
RANDOM = ["qsgd:4", "randomk:0.5"]


def made(name, compressor):
    kind = algorithms.ALGORITHMS[name]
    given = {"lr": 0.02} if "lr" in kind.__dataclass_fields__ else {}
    fields = [field.name for field in dataclasses.fields(kind)]
    given |= {"warmup": 4} if "warmup" in fields else {}
    return kind(**given, compressor=compressor)


def run(algorithm, backend, steps=12, **options):
    options = {"topology": GRAPH, "seed": 7, "steps": steps, **options}
    return dectool.solve(algorithm, PROBLEM, backend=backend, **options)


def same(one, other):
    same_bits(one, other)
    for column in ("bytes", "messages", "gap"):
        assert one[column].tolist() == other[column].tolist()


@pytest.mark.parametrize("compressor", [*RANDOM, "topk:0.3"])
@pytest.mark.parametrize("name", NAMES)
def test_stacked_is_sim(name, compressor):
    algorithm = made(name, compressor)
    same(run(algorithm, "stacked"), run(algorithm, "sim"))


@pytest.mark.parametrize(
    "algorithm",
    [algorithms.Moniqua(lr=0.02, theta=30.0), algorithms.PowerGossip(lr=0.02, rank=2)],
    ids=lambda algorithm: algorithm.name,
)
def test_stacked_is_sim_without_a_compressor(algorithm):
    same(run(algorithm, "stacked"), run(algorithm, "sim"))


@pytest.mark.parametrize("backends", [("stacked", "sim"), ("sim", "stacked")])
@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_run_draws_what_it_would_have_drawn(name, backends):
    algorithm = made(name, "qsgd:4")
    half = run(algorithm, backends[0], steps=5)
    same_bits(run(algorithm, backends[1], resume=half), run(algorithm, backends[1]))


@pytest.mark.parametrize("name", ["CHOCO", "DeepSqueeze", "CEDAS"])
def test_what_is_sent_is_one_payload_for_each_edge(name):
    compressor = compression.TopK(2) | compression.Cast("float16")
    history = run(made(name, compressor), "sim", steps=10)
    edges = GRAPH.W.nnz - GRAPH.size
    assert history.last["messages"] == 10 * edges
    assert history.last["bytes"] == 10 * edges * compressor.wire_bytes(9, "float64")


def test_float32_stays_float32():
    x0 = np.zeros(9, np.float32)
    for name in NAMES:
        state = run(made(name, "topk:0.3"), "stacked", x0=x0).state
        arrays = {k: v.dtype for k, v in state.items() if isinstance(v, np.ndarray)}
        gradient = PROBLEM.grad(np.zeros((5, 9), np.float32), np.arange(5)).dtype
        assert set(arrays.values()) == {gradient}, (name, arrays)


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")
    with dectool.Cluster(n=5, backend="mpi", env={"PYTHONWARNINGS": "ignore"}) as cluster:
        yield cluster


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "compressor"),
    [
        ("CHOCO", "randomk:0.5"),
        ("LEAD", "qsgd:4"),
        ("BEER", "topk:0.3"),
        ("EF21", "topk:0.3"),
        ("OneBitAdam", "sign"),
    ],
)
def test_mpi_is_sim(name, compressor, cluster):
    algorithm = made(name, compressor)
    one, other = run(algorithm, "sim"), run(algorithm, cluster)
    if name == "OneBitAdam":
        # Its warm-up is an exact all-reduce, which backends agree on to rounding.
        np.testing.assert_allclose(one.x, other.x, rtol=0, atol=1e-12)
    else:
        same(one, other)


@pytest.mark.processes
def test_mpi_is_sim_for_vectors_of_each_edge(cluster):
    algorithm = algorithms.PowerGossip(lr=0.02, rank=2)
    same(run(algorithm, "sim"), run(algorithm, cluster))


@pytest.mark.parametrize("name", ["ByteGrad", "QAdam"])
def test_only_the_first_rank_of_a_node_compresses(name):
    problem = problems.Quadratic.random(6, 9, kappa=4.0, heterogeneity=1.0, seed=0)
    algorithm = algorithms.get(name, lr=0.02, compressor="minmax8")
    options = {"topology": topology.ring(6), "steps": 8, "backend": "sim"}
    flat = dectool.solve(algorithm, problem, **options)
    nodes = dectool.solve(algorithm, problem, ranks_per_node=3, **options)
    assert np.ptp(nodes.x, axis=0).max() == 0.0
    np.testing.assert_allclose(nodes.x, flat.x, atol=0.05)
    whole = dataclasses.replace(algorithm, hierarchical=False)
    same_bits(dectool.solve(whole, problem, ranks_per_node=3, **options), flat)
