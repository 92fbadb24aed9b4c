"""Compressed operations of the Communicator: bytes, times, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import compression, topology
from dectool.communicator import generator
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError
from dectool.sim import AlphaBeta, Codec

RING = topology.ring(4)
FIXED = [
    "identity",
    "cast:float16",
    "minmax8",
    "qsgd:4",
    "natural",
    "sign",
    "topk:0.1",
    "randomk:0.1",
]


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("name", FIXED)
def test_payload_bytes_are_counted_and_timed(name: str, backend: str) -> None:
    """On a ring of 4 each rank sends first to 0 or 1, and to 2 or 3 when that is through."""
    compressor = compression.get(name)

    def program(comm: Any) -> None:
        x = comm.per_rank(lambda rank: np.arange(50.0, dtype=np.float32) - 9.0 * rank)
        comm.neighbor_allreduce(x, compressor=compressor)

    network = AlphaBeta(latency=1e-3, bandwidth=1e6)
    result = dectool.run(program, backend=backend, topology=RING, network=network)
    size = compressor.wire_bytes(50)
    assert result.messages == 8
    assert result.bytes == 8 * size
    once, twice = 1e-3 + size / 1e6, 1e-3 + 2 * size / 1e6
    assert result.times == pytest.approx([once, once, twice, twice], rel=1e-12)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_sizes_that_depend_on_data_are_each_ranks_own(backend: str) -> None:
    """Rank r keeps r of its numbers: 1 byte for how many, 1 for each place, 4 for each value."""

    def program(comm: Any) -> None:
        x = comm.per_rank(lambda rank: (np.arange(10) < rank).astype(np.float32))
        comm.neighbor_allreduce(x, compressor=compression.Threshold(0.5))

    assert dectool.run(program, backend=backend, topology=RING).bytes == 2 * (4 + 5 * 6)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_a_compressed_allreduce_sends_two_nths_from_each(backend: str) -> None:
    """n - 1 blocks out, n - 1 averages out: 2 (n - 1) messages of m / n numbers from each."""

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: np.full(64, 1.0 + rank))
        return comm.allreduce(x, compressor=compression.Cast("float16"))

    result = dectool.run(program, n=4, backend=backend)
    assert (result.messages, result.bytes) == (24, 24 * 16 * 2)
    assert all(np.array_equal(value, np.full(64, 2.5)) for value in result.values)


@pytest.mark.parametrize("backend", ["stacked", "sim"])
@pytest.mark.parametrize("name", ["qsgd:4", "randomk:0.3", "natural"])
def test_random_rows_have_the_bits_of_sim(name: str, backend: str) -> None:
    """Each rank draws for its rows, one after the other, whoever they go to."""
    graph = topology.star(4)
    c = compression.get(name)
    rows = [
        np.random.default_rng(rank).normal(size=(len(graph.out_neighbors(rank)), 12))
        for rank in range(4)
    ]

    def program(comm: Any) -> Any:
        x = np.concatenate(rows) if comm.backend == "stacked" else rows[comm.rank]
        edges = comm.neighbor_alltoall(x, graph, compressor=c)
        if comm.backend == "stacked":
            ends = np.cumsum(graph.in_degrees)
            return [{"edges": part} for part in np.split(edges, ends[:-1])]
        return {"edges": edges}

    for rank, value in enumerate(dectool.run(program, n=4, backend=backend, seed=5).values):
        senders = graph.in_neighbors(rank)
        for edge, sender in zip(value["edges"], senders, strict=True):
            rng = generator(5, sender, "compression")
            theirs = c.decompress(c.compress(rows[sender], rng))
            assert edge.tobytes() == theirs[graph.out_neighbors(sender).index(rank)].tobytes()


def test_the_number_of_an_allreduce_is_not_that_of_its_messages() -> None:
    """Ranks may give one number again and again, and messages still find each other."""

    def program(comm: Any) -> Any:
        c = compression.QSGD(2)
        x = np.arange(20.0) * (1 + comm.rank)
        requests = [comm.iallreduce(x, compressor=c, number=0) for _ in range(3)]
        comm.allreduce(x, compressor=c)
        return [request.wait().tobytes() for request in requests]

    values = dectool.run(program, n=3, backend="sim").values
    assert len({one for value in values for one in value}) == 1


def test_an_average_with_the_identity_has_the_bits_of_one_without() -> None:
    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: np.random.default_rng(rank).normal(size=(3, 4)))
        plain = comm.neighbor_allreduce(x)
        peer = (comm.rank + 2) % 4
        same = comm.neighbor_allreduce(x, compressor=compression.Identity())
        payload = comm.neighbor_allreduce(comm.compress(x, compression.Identity()))
        pairs = (
            comm.pair_gossip(x, peer),
            comm.pair_gossip(x, peer, compressor=compression.Identity()),
        )
        return plain, same, payload, *pairs

    for backend in ("stacked", "sim"):
        for value in dectool.run(program, backend=backend, topology=RING).values:
            plain, same, payload, pair, coded = value
            assert plain.tobytes() == same.tobytes() == payload.tobytes()
            assert pair.tobytes() == coded.tobytes()


def test_moniqua_reads_payloads_beside_ones_own_vector() -> None:
    """The receiver's own x is the reference, so near vectors come through."""

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: 100.0 + 0.01 * rank + np.zeros(6))
        c = compression.Moniqua(theta=1.0, bits=8)
        return comm.neighbor_allreduce(x, compressor=c)

    values = [
        dectool.run(program, backend=backend, topology=RING).values
        for backend in ("stacked", "sim")
    ]
    for one, other in zip(*values, strict=True):
        assert one.tobytes() == other.tobytes()
        assert one == pytest.approx(np.full(6, 100.015), abs=0.05)


def test_torch_and_half_precision_come_back_as_they_went() -> None:
    torch = pytest.importorskip("torch")

    def program(comm: Any) -> Any:
        x = torch.full((2, 3), 1.0 + comm.rank, dtype=torch.bfloat16)
        return comm.neighbor_allreduce(x, compressor=compression.TopK(6))

    for value in dectool.run(program, backend="sim", topology=topology.complete(2)).values:
        assert value.dtype == torch.bfloat16
        assert torch.equal(value, torch.full((2, 3), 1.5, dtype=torch.bfloat16))


def test_meta_tensors_are_timed_by_their_payloads() -> None:
    torch = pytest.importorskip("torch")

    def program(comm: Any) -> Any:
        x = torch.empty(1000, device="meta")
        return comm.neighbor_allreduce(x, compressor=compression.TopK(0.01)).device.type

    result = dectool.run(program, backend="sim", topology=RING)
    assert result.values == ["meta"] * 4
    assert result.bytes == 8 * compression.TopK(0.01).wire_bytes(1000)


def test_ranks_that_compress_differently_are_told_so() -> None:
    def program(comm: Any) -> Any:
        c = compression.TopK(2) if comm.rank else compression.TopK(3)
        return comm.neighbor_allreduce(np.zeros(9), compressor=c)

    with pytest.raises(ContractError, match=r"topk:2 of float64\[9\] and topk:3"):
        dectool.run(program, backend="sim", topology=topology.complete(2))

    def shapes(comm: Any) -> Any:
        return comm.neighbor_allreduce(np.zeros(9 + comm.rank), compressor=compression.TopK(2))

    with pytest.raises(ContractError, match="hold different arrays"):
        dectool.run(shapes, backend="sim", topology=topology.complete(2))

    def one_compresses(comm: Any) -> Any:
        c = compression.TopK(2) if comm.rank else None
        return comm.neighbor_allreduce(np.zeros(9), compressor=c)

    with pytest.raises(ContractError, match="hold different arrays"):
        dectool.run(one_compresses, backend="sim", topology=topology.complete(2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda comm, x: comm.neighbor_allreduce(x, compressor="topk"),
            ArgumentTypeError,
            "compression.get",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(
                x, compressor=compression.ErrorFeedback(compression.TopK(1))
            ),
            ArgumentTypeError,
            "has a memory",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(
                comm.compress(x, compression.TopK(1)), compressor=compression.TopK(1)
            ),
            ArgumentError,
            "pass one of them",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(
                x, dst_weights={1 - comm.rank: 0.5}, compressor=compression.TopK(1)
            ),
            ArgumentError,
            "scale x before",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(x.astype(int), compressor=compression.TopK(1)),
            ArgumentTypeError,
            "cast first",
        ),
        (
            lambda comm, x: comm.allreduce(x, "max", compressor=compression.TopK(1)),
            ArgumentError,
            "'mean' or 'sum'",
        ),
        (
            lambda comm, x: comm.neighbor_alltoall(
                x[None], compressor=compression.Moniqua(theta=1.0)
            ),
            ArgumentError,
            "the receiver has none",
        ),
        (
            lambda comm, x: comm.neighbor_alltoall(x[None], compressor="topk:1"),
            ArgumentTypeError,
            "compression.get",
        ),
        (
            lambda comm, x: comm.neighbor_alltoall(
                x[None].astype(int), compressor=compression.TopK(1)
            ),
            ArgumentTypeError,
            "cast first",
        ),
        (
            lambda comm, x: comm.neighbor_alltoall(x[:, None], compressor=compression.TopK(1)),
            ContractError,
            "leading axis 4",
        ),
        (
            lambda comm, x: comm.hierarchical_neighbor_allreduce(
                x, topology.complete(2), compressor="topk"
            ),
            ArgumentTypeError,
            "compression.get",
        ),
        (
            lambda comm, x: comm.broadcast(x, compressor=compression.Threshold(1.0)),
            ArgumentError,
            "fixed size",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(
                compression.TopK(1).compress(x.reshape(2, 2)), topology.complete(2)
            ),
            ContractError,
            "comm.compress",
        ),
        (
            lambda comm, x: comm.neighbor_allreduce(
                comm.compress(x, compression.Moniqua(theta=1.0, bits=8))
            ),
            ArgumentError,
            "near vector",
        ),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dectool.run(
            lambda comm: call(comm, np.arange(4.0)), backend="sim", topology=topology.complete(2)
        )


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_compressing_takes_the_time_of_the_codec(backend: str) -> None:
    """400 bytes are compressed once, and what two neighbours sent is decompressed."""
    network = AlphaBeta(codec=Codec(compress=4e5, decompress=8e5))

    def program(comm: Any) -> None:
        comm.neighbor_allreduce(
            comm.per_rank(lambda rank: np.ones(50)), compressor=compression.TopK(3)
        )

    result = dectool.run(program, backend=backend, topology=RING, network=network)
    assert result.times == pytest.approx([1e-3 + 2 * 0.5e-3] * 4, rel=1e-12)


def test_times_with_a_codec_are_the_same_on_both_backends() -> None:
    network = AlphaBeta(1e-5, 1e8, codec=Codec(3e8, 7e8))
    graph = topology.star(5)

    def program(comm: Any, compressor: Any) -> None:
        x = comm.per_rank(lambda rank: np.random.default_rng(rank).normal(size=43))
        comm.elapse(comm.per_rank(lambda rank: 1e-6 * rank))
        comm.neighbor_allreduce(x, compressor=compressor)
        comm.neighbor_allgather(comm.compress(x, compressor))
        comm.pair_gossip(x, comm.per_rank([1, 0, -1, 4, 3].__getitem__), compressor=compressor)
        comm.allreduce(x, compressor=compressor)
        comm.hierarchical_neighbor_allreduce(x, topology.ring(5), compressor=compressor)
        edges = [[(r, k) for k in graph.out_neighbors(r)] for r in range(5)]
        rows = [
            np.random.default_rng(9).normal(size=(len(mine), 17)) * (1 + r)
            for r, mine in enumerate(edges)
        ]
        mine = np.concatenate(rows) if comm.backend == "stacked" else rows[comm.rank]
        comm.neighbor_alltoall(mine, compressor=compressor)
        if compressor.fixed_size:
            comm.broadcast(x, 3, compressor=compressor)

    for name in (*FIXED, "threshold:0.5"):
        args = (compression.get(name),)
        runs = [
            dectool.run(program, backend=backend, topology=graph, network=network, args=args)
            for backend in ("stacked", "sim")
        ]
        assert list(runs[0].times) == list(runs[1].times), name


def test_speeds_of_a_codec_are_positive() -> None:
    with pytest.raises(ArgumentError, match="decompress=0"):
        Codec(decompress=0)
