"""Each array of a container compressed by itself: bytes, bits and matrices."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import dectool
from dectool import compression, topology
from dectool.errors import ArgumentTypeError, ContractError
from dectool.sim import AlphaBeta

GRAPH = topology.ring(4)
BACKENDS = ("stacked", "sim")
NAMES = ["topk:2", "sign", "minmax8", "qsgd:4", "randomk:0.4", "lowrank:1", "threshold:0.5"]


def container(comm):
    def make(rank):
        rng = np.random.default_rng(rank)
        return {
            "w": rng.normal(size=(4, 6)),
            "b": [rng.normal(size=4).astype("f4"), rng.normal(size=6)],
        }

    return comm.per_rank(make)


def flat(tree):
    return [tree["b"][0], tree["b"][1], tree["w"]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_container_has_the_bits_of_its_arrays(name, backend):
    """One generator draws for one array after the other, by the order of their keys."""
    c = compression.PerTensor(compression.get(name))

    def program(comm):
        x = container(comm)
        before = comm.bytes_sent
        whole = comm.neighbor_allreduce(comm.compress(x, c, number=3), GRAPH)
        spent = comm.bytes_sent - before
        rng = comm.rng("compression", 3)
        lead = 1 if backend == "stacked" else 0
        # Arrays of one dtype lie together: b[0] is float32, then b[1] and w.
        payloads = [c.compress(one, rng, lead=lead) for one in flat(x)]
        alone = [comm.neighbor_allreduce(payload, GRAPH) for payload in payloads]
        return tuple(flat(whole)), tuple(alone), spent, comm.bytes_sent - before - spent

    for whole, alone, spent, again in dectool.run(program, n=4, backend=backend).values:
        assert [a.tobytes() for a in whole] == [b.tobytes() for b in alone]
        assert int(spent) == int(again) > 0


@pytest.mark.parametrize("name", NAMES)
def test_stacked_is_sim(name):
    c = compression.PerTensor(compression.get(name))

    def program(comm):
        x = container(comm)
        return (
            comm.neighbor_allreduce(x, GRAPH, compressor=c),
            comm.allreduce(x, compressor=c, number=1),
            comm.hierarchical_neighbor_allreduce(x, topology.complete(2), compressor=c),
            comm.neighbor_allgather(comm.compress(x, c), topology.complete(4))["w"].sum(),
            comm.pair_gossip(x, comm.per_rank([1, 0, 3, 2].__getitem__), compressor=c),
        )

    runs = [
        dectool.run(program, n=4, backend=backend, ranks_per_node=2, network=AlphaBeta(1e-5, 1e8))
        for backend in BACKENDS
    ]
    assert runs[0].bytes == runs[1].bytes
    assert list(runs[0].times) == list(runs[1].times)
    for one, other in zip(runs[0].values, runs[1].values, strict=True):
        for place in (0, 1, 2, 4):
            for a, b in zip(flat(one[place]), flat(other[place]), strict=True):
                assert a.tobytes() == b.tobytes()


def test_a_tensor_is_the_matrix_of_its_rows():
    """Of rank 1, which one factor holds exactly; as one vector it would be lost."""
    matrix = np.outer(np.arange(1.0, 6), np.arange(1.0, 10)).reshape(5, 3, 3)
    x = {"w": matrix, "v": np.ones((7, 2))}

    def program(comm):
        c = compression.PerTensor(compression.LowRank(1))
        before = comm.bytes_sent
        got = comm.broadcast(x, compressor=c)
        return got, comm.bytes_sent - before

    (root, sent), (got, _) = dectool.run(program, n=2, backend="sim").values
    assert sent == 8 * (5 + 9 + 7 + 2)
    for name, array in x.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-12)
        assert got[name].tobytes() == root[name].tobytes()


def test_meta_tensors_have_the_bytes_of_each():
    torch = pytest.importorskip("torch")

    def program(comm):
        x = [torch.empty((20, 30), device="meta"), torch.empty(100, device="meta")]
        c = compression.PerTensor(compression.LowRank(2))
        comm.neighbor_allreduce(x, topology.complete(2), compressor=c)
        return comm.bytes_sent

    expected = 4 * (2 * (20 + 30) + 2 * (10 + 10))
    assert dectool.run(program, n=2, backend="sim").values == [expected] * 2


def test_the_receiver_of_moniqua_reads_each_beside_its_own():
    c = compression.PerTensor(compression.Moniqua(theta=1.0))

    def program(comm):
        x = comm.per_rank(lambda rank: [100.0 + 0.01 * rank + np.zeros(3), np.zeros((2, 2))])
        return comm.neighbor_allreduce(x, GRAPH, compressor=c)

    for backend in BACKENDS:
        for first, second in dectool.run(program, n=4, backend=backend).values:
            np.testing.assert_allclose(first, 100.015, atol=0.02)
            np.testing.assert_allclose(second, 0.0, atol=0.02)


def test_one_array_is_the_inner_compressor():
    x = np.random.default_rng(0).normal(size=50)
    for name in NAMES:
        inner = compression.get(name)
        c = compression.PerTensor(inner)
        mine = c.compress(x, np.random.default_rng(1))
        theirs = inner.compress(x, np.random.default_rng(1))
        assert mine.to_bytes() == theirs.to_bytes()
        assert c.decompress(mine).tobytes() == inner.decompress(theirs).tobytes()
        assert (c.unbiased, c.fixed_size) == (inner.unbiased, inner.fixed_size)
        with pytest.raises(ContractError, match="made by"):
            c.decompress(theirs)


def test_error_feedback_goes_around_it():
    c = compression.ErrorFeedback(compression.PerTensor(compression.TopK(1)))
    x = np.array([3.0, 2.0])
    payload, memory = c.compress(x, None, c.init(x))
    assert memory["error"].tolist() == [0.0, 2.0]
    assert payload.nbytes == 9
    with pytest.raises(ArgumentTypeError, match="ErrorFeedback"):
        compression.PerTensor(compression.ErrorFeedback(compression.TopK(1)))


VECTORS = arrays(
    np.float64, st.integers(1, 20), elements=st.floats(-1e3, 1e3).map(lambda v: v + 0.0)
)


@pytest.mark.parametrize("name", ["topk:1", "sign", "minmax8:5", "cast:float16"])
@given(xs=st.lists(VECTORS, min_size=1, max_size=5))
def test_a_container_contracts_like_the_worst_of_its_arrays(name, xs):
    c = compression.PerTensor(compression.get(name))
    xs = [np.where(np.abs(x) < 1e-3, 0.0, x) for x in xs]

    def program(comm):
        return comm.compress(xs, c).unpacked()

    got = dectool.run(program, n=1, backend="sim").values[0]
    error = sum(float(np.sum((a - b) ** 2)) for a, b in zip(got, xs, strict=True))
    square = sum(float(np.sum(x**2)) for x in xs)
    deltas = [c.contraction(x.size) or 0.0 for x in xs]
    assert error <= (1.0 - min(deltas)) * square * (1 + 1e-12)
