"""Checks of what is compressed for each neighbour, each node, and each array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dectool import compression, topology
from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._compressed import COMPRESSORS, sent
from dectool.testing._kinds import numpy_kind, values
from dectool.testing._portable import cut, random_topology, rows
from dectool.testing._runner import Runner, apply


@check()
def neighbors_receive_what_their_row_stands_for(runner: Runner) -> None:
    """neighbor_alltoall: each row is a payload of its own, and counts with its bytes."""
    for n in SIZES:
        graph = random_topology(n, 41)
        W = graph.to_dense()
        degrees = [len(oracle.out_neighbors(W, rank)) for rank in range(n)]
        everyone = values(numpy_kind("float32"), max(1, sum(degrees)), (3, 2), n)
        ends = np.cumsum(degrees)
        mine = [
            np.array(everyone[stop - degree : stop]).reshape(degree, 3, 2)
            for degree, stop in zip(degrees, ends, strict=True)
        ]
        for compressor in COMPRESSORS:

            def program(
                comm: Any, graph: Any = graph, mine: Any = mine, c: Any = compressor
            ) -> Any:
                x, before = rows(comm, mine), comm.bytes_sent
                blocking = cut(comm, comm.neighbor_alltoall(x, graph, compressor=c), graph)
                spent = comm.bytes_sent - before
                started = comm.ineighbor_alltoall(x, graph, compressor=c)
                return blocking, cut(comm, started.wait(), graph), spent

            for rank, (blocking, started, spent) in enumerate(runner(program, n)):
                where = f"neighbor_alltoall, {compressor}, rank {rank} of {n}"
                sources = oracle.in_neighbors(W, rank)
                assert len(blocking["rows"]) == len(started["rows"]) == len(sources), where
                for one, other, source in zip(
                    blocking["rows"], started["rows"], sources, strict=True
                ):
                    place = oracle.out_neighbors(W, source).index(rank)
                    (expected,) = sent(compressor, [mine[source][place]])
                    assert_same_bits(one, expected, where)
                    assert_same_bits(other, expected, where)
                total = sum(compressor.compress(row, lead=0).nbytes for row in mine[rank])
                assert int(spent) == total, f"{where}: {spent} bytes, not {total}"


@check()
def nodes_receive_what_shards_stand_for(runner: Runner) -> None:
    """W_aa m_a + Σ_b W_ab C(m_b), shard by shard, the own mean exact; only that is compressed."""
    for nodes, group in ((1, 1), (3, 1), (2, 2), (3, 2)):
        n = nodes * group
        graph = random_topology(nodes, 43)
        xs = values(numpy_kind("float32"), n, (13,), n)
        cuts = [13 * rank // group for rank in range(group + 1)]
        means = [
            oracle.weighted_sum([1.0 / group] * group, xs[first : first + group])
            for first in range(0, n, group)
        ]
        for compressor in COMPRESSORS:

            def program(comm: Any, x: Any, graph: Any = graph, c: Any = compressor) -> Any:
                before = comm.bytes_sent
                blocking = comm.hierarchical_neighbor_allreduce(x, graph, compressor=c)
                spent = comm.bytes_sent - before
                started = comm.ihierarchical_neighbor_allreduce(x, graph, compressor=c)
                return blocking, started.wait(), spent

            got = apply(runner, program, xs, ranks_per_node=group)
            for rank, (blocking, started, spent) in enumerate(got):
                node, local = divmod(rank, group)
                where = f"hierarchical, {compressor}, rank {rank} of {nodes} x {group}"
                pieces = []
                for a, b in pairwise(cuts):
                    terms = sent(compressor, [mean[a:b] for mean in means])
                    terms[node] = means[node][a:b]
                    pieces.append(oracle.neighbor_average(graph.to_dense(), terms, node))
                assert_same_bits(blocking, np.concatenate(pieces), where)
                assert_same_bits(started, blocking, where)
                a, b = cuts[local : local + 2]
                within = 4 * (13 - (b - a)) + 4 * (b - a) * (group - 1)
                degree = len(oracle.out_neighbors(graph.to_dense(), node))
                across = degree * compressor.compress(means[node][a:b], lead=0).nbytes
                assert int(spent) == within + across, f"{where}: {spent} bytes"


@check()
def arrays_of_a_container_are_compressed_by_themselves(runner: Runner) -> None:
    """PerTensor: the largest of each is kept, and each takes its own bytes."""
    c = compression.PerTensor(compression.TopK(1))
    graph = topology.ring(4)
    wide, single = np.array([[1.0, -9.0], [2.0, 8.0]]), np.array([5.0, 7.0, -6.0], np.float32)
    lone = np.array([3.0, -4.0])

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: {"a": wide + 0.0 * rank, "b": [lone, single]})
        before = comm.bytes_sent
        averaged = comm.neighbor_allreduce(x, graph, compressor=c)
        spent = comm.bytes_sent - before
        fused = comm.neighbor_allreduce(comm.buckets(x), graph, compressor=c).views
        whole = comm.broadcast(x, 2, compressor=c)
        meant = comm.allreduce(x, compressor=compression.PerTensor(compression.Identity()))
        return averaged, fused, whole, meant, spent

    x = {"a": wide, "b": [lone, single]}
    third = np.float64(1.0 / 3.0)
    for averaged, fused, whole, meant, spent in runner(program, 4):
        kept = {"a": sent(c.inner, [wide])[0], "b": sent(c.inner, [lone, single])}
        assert_same_bits(whole, kept, "broadcast of a container, per tensor")
        np.testing.assert_allclose(averaged["a"], third * (wide + 2 * kept["a"]), rtol=1e-12)
        np.testing.assert_allclose(averaged["b"][1], third * (single + 2 * kept["b"][1]), 1e-6)
        assert_same_bits(fused, averaged, "buckets, per tensor")
        assert_same_bits(meant, x, "allreduce of equal containers, per tensor")
        assert int(spent) == 2 * (9 + 9 + 5), f"{spent} bytes of three payloads"


@check()
def an_allreduce_draws_by_its_number(runner: Runner) -> None:
    """Of one number the bits are the same, whatever was called before; of another they differ."""
    c = compression.QSGD(2)

    def program(comm: Any, x: Any, times: int) -> Any:
        for _ in range(times):
            comm.allreduce(x, compressor=c)
        started = comm.iallreduce(x, compressor=c, number=7)
        return (
            started.wait(),
            comm.allreduce(x, compressor=c, number=7),
            comm.allreduce(x, compressor=c, number=8),
        )

    xs = values(numpy_kind("float64"), 3, (40,), 3)
    fresh = apply(runner, lambda comm, x: program(comm, x, 0), xs)
    later = apply(runner, lambda comm, x: program(comm, x, 2), xs)
    for rank, (one, other) in enumerate(zip(fresh, later, strict=True)):
        assert_same_bits(other, one, f"allreduce of number 7 and 8 on rank {rank}")
        assert_same_bits(one[0], one[1], f"allreduce of number 7 on rank {rank}")
        assert not np.array_equal(one[1], one[2]), f"rank {rank} draws the same for 7 and 8"
