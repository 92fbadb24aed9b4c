"""Checks of operations that compress what is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool import compression, topology
from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import numpy_kind, values
from dectool.testing._portable import random_topology
from dectool.testing._runner import Runner, apply

COMPRESSORS = (
    compression.TopK(2),
    compression.ScaledSign(),
    compression.MinMax8(),
    compression.Cast("float16"),
    compression.Threshold(0.5),
)
"""Without chance, so that each rank's payload is known beforehand."""


def sent(compressor: Any, xs: list[Any]) -> list[Any]:
    """Return what the payload of each array stands for."""
    return [compressor.decompress(compressor.compress(x, lead=0)) for x in xs]


@check()
def neighbors_receive_what_payloads_stand_for(runner: Runner) -> None:
    """x_i⁺ = W_ii x_i + Σ_j W_ij C(x_j), one's own term exact, to the last bit."""
    for n in SIZES:
        for number, compressor in enumerate(COMPRESSORS):
            graph = random_topology(n, number)
            W = graph.to_dense()
            xs = values(numpy_kind("float32"), n, (3, 2), number)
            theirs = sent(compressor, xs)
            got = apply(
                runner,
                lambda comm, x, c=compressor: comm.neighbor_allreduce(x, compressor=c),
                xs,
                topology=graph,
            )
            for rank in range(n):
                terms = [xs[j] if j == rank else theirs[j] for j in range(n)]
                expected = oracle.neighbor_average(W, terms, rank)
                assert_same_bits(got[rank], expected, f"{compressor} on rank {rank} of {n}")


@check()
def payloads_are_averaged_and_gathered(runner: Runner) -> None:
    """A payload in place of x: every term is what it stands for, one's own too."""
    graph = random_topology(5, 3)
    W = graph.to_dense()
    xs = values(numpy_kind("float64"), 5, (4,), 3)
    for compressor in COMPRESSORS:

        def program(comm: Any, x: Any, compressor: Any = compressor) -> Any:
            payload = comm.compress(x, compressor)
            edges = comm.neighbor_allgather(payload)
            started = comm.ineighbor_allreduce(payload)
            own = compressor.decompress(payload)
            return comm.neighbor_allreduce(payload), started.wait(), comm.mix(edges, own=own)

        theirs = sent(compressor, xs)
        for rank, three in enumerate(apply(runner, program, xs, topology=graph)):
            expected = oracle.neighbor_average(W, theirs, rank)
            for got in three:
                assert_same_bits(got, expected, f"payloads of {compressor} on rank {rank}")


@check()
def partners_trade_payloads(runner: Runner) -> None:
    """Pair gossip with a compressor: a x_i + b C(x_j); a rank alone keeps x."""
    xs = values(numpy_kind("float32"), 5, (4,), 1)
    peers = [3, 4, 2, 0, 1]
    for compressor in COMPRESSORS:
        theirs = sent(compressor, xs)
        got = apply(
            runner,
            lambda comm, x, c=compressor: comm.pair_gossip(
                x, comm.per_rank(peers.__getitem__), 0.25, 0.75, compressor=c
            ),
            xs,
        )
        for rank, peer in enumerate(peers):
            pair = sorted({rank, peer})
            terms = [xs[j] if j == rank else theirs[j] for j in pair]
            weights = [0.25 if j == rank else 0.75 for j in pair] if peer != rank else [1.0]
            expected = oracle.weighted_sum(weights, terms)
            assert_same_bits(got[rank], expected, f"pair gossip, {compressor}, rank {rank}")


@check()
def compressed_allreduce_averages_blocks_twice_compressed(runner: Runner) -> None:
    """C of the mean of C of each block, the same bits on every rank."""
    for n in SIZES:
        xs = values(numpy_kind("float64"), n, (11,), n)
        for compressor in COMPRESSORS:
            got = apply(runner, lambda comm, x, c=compressor: comm.allreduce(x, compressor=c), xs)
            for rank in range(1, n):
                assert_same_bits(got[rank], got[0], f"allreduce, {compressor}, rank {rank}")
        whole = apply(
            runner,
            lambda comm, x: comm.iallreduce(x, "sum", compressor=compression.Identity()).wait(),
            xs,
        )
        expected = oracle.weighted_sum([1.0] * n, xs)
        for rank in range(n):
            assert_same_bits(whole[rank], expected, f"uncompressed sum on rank {rank} of {n}")
        twice = _twice_compressed(compression.ScaledSign(), xs)
        signs = apply(
            runner, lambda comm, x: comm.allreduce(x, compressor=compression.ScaledSign()), xs
        )
        assert_same_bits(signs[0], twice, f"signs of {n} ranks")


def _twice_compressed(compressor: Any, xs: list[Any]) -> Any:
    n, blocks = len(xs), []
    for rank in range(n):
        columns = slice(rank * xs[0].size // n, (rank + 1) * xs[0].size // n)
        shares = sent(compressor, [x[columns] for x in xs])
        mean = oracle.weighted_sum([1.0] * n, shares) / n
        blocks += sent(compressor, [mean])
    return np.concatenate(blocks)


@check()
def compressed_broadcast_gives_what_the_root_sent(runner: Runner) -> None:
    """The root too gets what its payload stands for."""
    xs = values(numpy_kind("float32"), 5, (3, 4), 2)
    for compressor in COMPRESSORS[:-1]:
        (expected,) = sent(compressor, [xs[3]])
        for start in (False, True):

            def program(comm: Any, x: Any, c: Any = compressor, start: bool = start) -> Any:
                if start:
                    return comm.ibroadcast(x, 3, compressor=c).wait()
                return comm.broadcast(x, 3, compressor=c)

            for rank, got in enumerate(apply(runner, program, xs)):
                assert_same_bits(got, expected, f"broadcast of {compressor} on rank {rank}")


@check()
def containers_are_compressed_by_dtype(runner: Runner) -> None:
    """All arrays of one dtype are one vector: the two largest of them together are kept."""

    def program(comm: Any) -> Any:
        x = comm.per_rank(
            lambda rank: {
                "a": np.array([1.0, -9.0, 2.0]) + 0.0 * rank,
                "b": [np.array([[8.0, 3.0]]), np.array([5.0, 7.0, -6.0], np.float32)],
            }
        )
        return comm.neighbor_allreduce(x, topology.ring(4), compressor=compression.TopK(2))

    third = 1.0 / 3.0
    wide = np.array([1.0, -9.0, 2.0, 8.0, 3.0])
    single = np.array([5.0, 7.0, -6.0], np.float32)
    for got in runner(program, 4):
        both = np.concatenate([got["a"], got["b"][0].ravel()])
        kept = np.array([0.0, -9.0, 0.0, 8.0, 0.0])
        np.testing.assert_allclose(both, third * wide + 2 * third * kept, rtol=1e-12)
        kept = np.array([0.0, 7.0, -6.0])
        np.testing.assert_allclose(got["b"][1], third * single + 2 * third * kept, rtol=1e-6)


@check()
def bytes_sent_counts_payloads(runner: Runner) -> None:
    """Out-degree times the size of what is sent, of arrays and of payloads."""
    graph = random_topology(5, 4)
    W = graph.to_dense()
    xs = values(numpy_kind("float32"), 5, (3, 4), 4)

    def program(comm: Any, x: Any) -> Any:
        counts = [comm.bytes_sent]
        comm.neighbor_allreduce(x)
        counts.append(comm.bytes_sent)
        for compressor in COMPRESSORS:
            comm.neighbor_allreduce(x, compressor=compressor)
            counts.append(comm.bytes_sent)
        return counts

    for rank, counts in enumerate(apply(runner, program, xs, topology=graph)):
        degree = len(oracle.out_neighbors(W, rank))
        sizes = [48] + [c.compress(xs[rank], lead=0).nbytes for c in COMPRESSORS]
        got = np.diff([int(count) for count in counts]).tolist()
        assert got == [degree * size for size in sizes], f"bytes_sent of rank {rank}: {got}"
