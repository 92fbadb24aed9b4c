"""Buckets: where arrays lie, what shares memory with what, and what is refused."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import compression, fusion, topology
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError
from dectool.sim import AlphaBeta

SHAPES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5), max_size=3).map(tuple),
        st.sampled_from(["float64", "float32", "float16", "int64", "uint8", "complex128"]),
    ),
    min_size=1,
    max_size=12,
)


def arrays(specs, seed=0):
    rng = np.random.default_rng(seed)
    return [(100 * rng.random(shape)).astype(dtype) for shape, dtype in specs]


@given(
    SHAPES,
    st.one_of(st.none(), st.integers(1, 400)),
    st.sampled_from(["given", "reversed"]),
    st.sampled_from([1, 2, 16, 64]),
)
@settings(max_examples=200, deadline=None)
def test_every_array_lies_in_one_place(specs, limit, order, align):
    xs = arrays(specs)
    buckets = fusion.Buckets(xs, limit, order=order, align=align)
    places = [index for bucket in buckets for index in bucket.indices]
    assert sorted(places) == list(range(len(xs)))
    turn = list(range(len(xs)))[:: 1 if order == "given" else -1]
    ready = [max(turn.index(index) for index in bucket.indices) for bucket in buckets]
    assert ready == sorted(ready)
    for bucket in buckets:
        assert {str(xs[index].dtype) for index in bucket.indices} == {bucket.dtype}
        steps = [turn.index(index) for index in bucket.indices]
        assert steps == sorted(steps)
        assert bucket.flat.nbytes == bucket.nbytes
        assert bucket.flat.ctypes.data % align == 0 or not bucket.nbytes
        end = 0
        for index, start, view in zip(bucket.indices, bucket.starts, bucket.views, strict=True):
            offset = start * view.itemsize
            assert offset % align == 0 or view.itemsize > align
            assert 0 <= offset - end * view.itemsize < max(align, view.itemsize)
            assert np.shares_memory(view, bucket.flat) or not view.size
            end = start + view.size
            assert (view.shape, view.tobytes()) == (xs[index].shape, xs[index].tobytes())
        assert end == bucket.flat.size
        if limit is not None and bucket.nbytes > limit:
            assert sum(1 for view in bucket.views if view.size) == 1


@given(SHAPES, st.integers(1, 300))
def test_no_bucket_could_take_the_first_array_of_the_next(specs, limit):
    buckets = fusion.Buckets(arrays(specs), limit, align=1)
    for dtype in {bucket.dtype for bucket in buckets}:
        mine = [bucket for bucket in buckets if bucket.dtype == dtype]
        for one, other in pairwise(mine):
            assert one.nbytes + other.views[0].nbytes > limit


def test_views_are_the_container_that_was_given():
    tree = {"w": [np.ones((2, 3)), np.zeros(2)], "b": (np.arange(3.0), 7.0)}
    views = fusion.Buckets(tree).views
    assert list(views) == ["w", "b"]
    assert isinstance(views["b"], tuple)
    assert views["b"][1].shape == ()
    assert float(views["b"][1]) == 7.0


def test_parameters_of_a_model_may_be_the_views():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 4)
    buckets = fusion.Buckets(list(model.parameters()))
    for parameter, view in zip(model.parameters(), buckets.views, strict=True):
        parameter.data = view
    (bucket,) = buckets
    assert isinstance(bucket.flat, torch.Tensor)
    assert bucket.flat.data_ptr() % 64 == 0
    with torch.no_grad():
        model.weight.fill_(2.0)
    assert bucket.flat[:12].eq(2.0).all()
    assert model(torch.ones(1, 3)).shape == (1, 4)


def test_bfloat16_tensors_share_their_bits():
    torch = pytest.importorskip("torch")
    spec = fusion.Spec((2,), "bfloat16", "torch")
    (bucket,) = fusion.Buckets([torch.ones(3, dtype=torch.bfloat16), spec])
    bucket.views[1].fill_(3.0)
    assert bucket.flat.dtype == torch.bfloat16
    assert bucket.flat[32:].tolist() == [3.0, 3.0]


def test_specs_are_zeros_and_meta_tensors_have_a_size():
    torch = pytest.importorskip("torch")
    buckets = fusion.Buckets([fusion.Spec((4, 2)), fusion.Spec((3,), "float32", "meta")])
    assert [bucket.nbytes for bucket in buckets] == [32, 12]
    assert not buckets.views[0].any()
    assert buckets.views[1].device.type == "meta"
    assert isinstance(buckets[1].flat, torch.Tensor)


def test_values_are_copied_from_arrays_and_from_buckets():
    buckets = fusion.Buckets([fusion.Spec((3,)), fusion.Spec((2, 2))])
    buckets.copy_from([np.arange(3, dtype="f4"), np.ones((2, 2), "f4")])
    assert buckets[0].flat[:3].tolist() == [0, 1, 2]
    other = fusion.Buckets([fusion.Spec((3,)), fusion.Spec((2, 2))])
    other.copy_from(buckets)
    assert other[0].flat.tobytes() == buckets[0].flat.tobytes()
    with pytest.raises(ContractError, match=r"got float64\[3\] for float32\[3\]"):
        buckets.copy_from([np.arange(3.0), np.ones((2, 2))])
    with pytest.raises(ContractError, match="1 arrays for 2"):
        buckets.copy_from([np.arange(3.0)])


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_a_bucket_goes_in_without_a_copy(backend):
    """What is given to the communicator is the memory of the bucket itself."""

    def program(comm):
        buckets = comm.buckets(comm.per_rank(lambda rank: [np.ones(4), np.ones(5)]))
        (buffer,), _ = comm._pack(buckets[0])
        return bool(np.shares_memory(buffer, buckets[0].flat))

    assert all(np.ravel(dectool.run(program, n=2, backend=backend).values))


def test_each_bucket_is_one_message():
    def program(comm, operation):
        x = comm.per_rank(lambda rank: [np.full(8, float(rank)) for _ in range(6)])
        getattr(comm, operation)(comm.buckets(x, 128))

    for operation, messages in (("neighbor_allreduce", 2), ("neighbor_allgather", 2)):
        result = dectool.run(program, topology=topology.ring(4), backend="sim", args=(operation,))
        assert (result.messages, result.bytes) == (4 * messages * 3, 4 * messages * 6 * 64)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_neighbors_get_all_buckets_before_the_first_is_waited_for(backend):
    """Three messages of 1 ms each leave one after the other; latency is paid once."""

    def program(comm):
        x = comm.per_rank(lambda rank: [np.ones(125)] * 3)
        comm.neighbor_allreduce(comm.buckets(x, 1000))

    network = AlphaBeta(latency=0.5, bandwidth=1e6)
    result = dectool.run(program, topology=topology.complete(2), backend=backend, network=network)
    assert result.time == pytest.approx(0.503, rel=1e-12)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_other_operations_take_buckets_too(backend):
    def program(comm):
        n, rank = comm.size, comm.rank
        x = comm.per_rank(lambda r: [np.arange(3.0) + r, np.full((2, 2), r, np.float32)])
        b = comm.buckets(x, 16)
        rows = comm.buckets(comm.per_rank(lambda r: [np.full((4, 3), float(r))] * 2), rows=1)
        peer = comm.per_rank([1, 0, 3, 2].__getitem__)
        return (
            comm.sendrecv(b, (rank + 1) % n, (rank - 1) % n).views,
            comm.pair_gossip(b, peer).views,
            comm.hierarchical_neighbor_allreduce(b, topology.complete(2)).views,
            comm.reduce_scatter(rows, "sum").views,
            comm.alltoall(rows).views,
            comm.iallreduce(b, "max").wait().views,
        )

    values = dectool.run(program, n=4, backend=backend, ranks_per_node=2).values
    for rank, (shifted, pair, nodes, scattered, traded, most) in enumerate(values):
        assert shifted[0].tolist() == (np.arange(3.0) + (rank - 1) % 4).tolist()
        assert pair[1].tolist() == np.full((2, 2), rank // 2 * 2 + 0.5).tolist()
        assert nodes[0].tolist() == (np.arange(3.0) + 1.5).tolist()
        assert scattered[1].tolist() == [6.0] * 3
        assert traded[0][:, 0].tolist() == [0, 1, 2, 3]
        assert most[0].tolist() == [3, 4, 5]


def test_messages_of_one_bucket_may_be_received_as_one():
    def program(comm):
        buckets = comm.buckets([np.arange(3.0), np.ones(2)], 24)
        if comm.rank == 0:
            for bucket in buckets:
                comm.send(bucket, 1)
            return None
        return [comm.recv(0).views[0].tolist() for _ in buckets]

    assert dectool.run(program, n=2, backend="sim").values[1] == [[0, 1, 2], [1, 1]]


def test_a_container_travels_without_gaps():
    def program(comm):
        comm.neighbor_allreduce([np.ones(3), np.ones(5)])
        return comm.bytes_sent

    result = dectool.run(program, topology=topology.complete(2), backend="sim")
    assert result.values == [64, 64]


def test_ranks_with_other_buckets_are_told_so():
    def program(comm):
        x = [np.ones(3), np.ones(4)] if comm.rank else [np.ones(4), np.ones(3)]
        return comm.neighbor_allreduce(comm.buckets(x))

    with pytest.raises(ContractError, match=r"bucket \(align=64\) of float64\[4\], float64\[3\]"):
        dectool.run(program, topology=topology.complete(2), backend="sim")


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"bucket_bytes": 0}, ArgumentError, "bucket_bytes=0 must be at least 1 byte"),
        ({"bucket_bytes": 1.5}, ArgumentTypeError, "bucket_bytes=1.5 must be a number of bytes"),
        ({"bucket_bytes": True}, ArgumentTypeError, "bucket_bytes=True"),
        ({"bucket_bytes": "auto"}, ArgumentError, "pass network="),
        ({"order": "backwards"}, ArgumentError, "'given' or 'reversed'"),
        ({"align": 48}, ArgumentError, "align=48 must be a power of two"),
        ({"align": 0}, ArgumentError, "align=0"),
    ],
)
def test_what_is_refused(given, error, text):
    with pytest.raises(error, match=text):
        fusion.Buckets([np.ones(3)], **given)


def test_what_is_no_array_is_refused():
    with pytest.raises(ArgumentTypeError, match="no array"):
        fusion.Buckets([np.ones(3), "weights"])
    with pytest.raises(ArgumentError, match="give at least one"):
        fusion.Buckets([])
    with pytest.raises(ContractError, match="leading axes"):
        fusion.Buckets([np.ones((2, 3)), np.ones((3, 3))], lead=1)
    with pytest.raises(ArgumentError, match="origin='jax'"):
        fusion.Spec((3,), origin="jax")
    with pytest.raises(ArgumentError, match="dtype='real'"):
        fusion.Spec((3,), "real")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda comm, b: comm.send(b, 0), "for bucket in buckets"),
        (lambda comm, b: comm.neighbor_allreduce([b[0]], topology.complete(2)), "views"),
        (lambda comm, b: comm.neighbor_alltoall(b, topology.complete(2)), "rows=1"),
    ],
)
def test_operations_that_need_something_else_say_what(call, text):
    def program(comm):
        call(comm, comm.buckets([np.ones(3)]))

    with pytest.raises((ArgumentTypeError, ContractError), match=text):
        dectool.run(program, n=2, backend="sim")


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_compressed_buckets_have_the_bits_of_compressed_arrays(backend):
    """A bucket is one vector, its gaps left out; per tensor, each array is."""
    c = compression.ScaledSign()

    def program(comm):
        x = comm.per_rank(lambda r: [np.arange(5.0) - r, np.ones((3, 3)) * r])
        graph = topology.ring(4)
        return (
            comm.neighbor_allreduce(x, graph, compressor=c),
            comm.neighbor_allreduce(comm.buckets(x), graph, compressor=c).views,
            comm.neighbor_allreduce(x, graph, compressor=compression.PerTensor(c)),
            [comm.neighbor_allreduce(a, graph, compressor=c) for a in x],
        )

    for whole, bucket, each, alone in dectool.run(program, n=4, backend=backend).values:
        for one, other in ((whole, bucket), (each, alone)):
            assert all(math.prod(a.shape) == b.size for a, b in zip(one, other, strict=True))
            assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_buckets_may_be_pickled():
    """As values of programs on processes are."""
    buckets = fusion.Buckets({"a": np.arange(3.0), "b": np.ones(2, "f4")})
    back = pickle.loads(pickle.dumps(buckets))
    back.views["a"][0] = 5.0
    assert back[0].flat[0] == 5.0
    assert buckets[0].flat[0] == 0.0
