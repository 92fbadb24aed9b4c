"""Checks of buckets: arrays that are views of flat buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dectool import topology
from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import Kind, numpy_kind, torch_kind, values
from dectool.testing._portable import random_topology
from dectool.testing._runner import Runner

SHAPES = ((3, 2), (5,), (), (2, 2, 2), (0,), (17,))


def kinds() -> list[Kind]:
    """Return the kinds of arrays that share one set of buckets."""
    found = [numpy_kind("float64"), numpy_kind("float32"), numpy_kind("float32")]
    try:
        import torch  # noqa: F401
    except ImportError:
        return [*found, numpy_kind("float16")]
    return [*found, torch_kind("float32"), torch_kind("bfloat16")]


def arrays(n: int, seed: int) -> list[dict[str, Any]]:
    """Return a container for each rank, of arrays of several kinds and shapes."""
    columns = {
        f"{place} {kind.name}": values(kind, n, shape, seed + place)
        for place, shape in enumerate(SHAPES)
        for kind in kinds()
    }
    return [{name: xs[rank] for name, xs in columns.items()} for rank in range(n)]


def one_by_one(operation: Callable[[Any], Any], x: dict[str, Any]) -> dict[str, Any]:
    """Return what an operation makes of each array by itself."""
    return {name: operation(array) for name, array in x.items()}


@check()
def buckets_give_the_bits_of_single_arrays(runner: Runner) -> None:
    """Whatever the size, the order and the alignment; inputs stay as they were."""
    for n in SIZES:
        graph = random_topology(n, 37)
        xs = arrays(n, n)
        limits: tuple[tuple[Any, ...], ...] = (
            (None, "given", 64), (64, "reversed", 64), (100, "given", 1), (1, "given", 16),
        )  # fmt: skip
        for limit, order, align in limits:

            def program(
                comm: Any,
                limit: Any = limit,
                order: str = order,
                align: int = align,
                graph: Any = graph,
                xs: Any = xs,
            ) -> Any:
                x = comm.per_rank(xs.__getitem__)
                buckets = comm.buckets(x, limit, order=order, align=align)
                averages = one_by_one(lambda a: comm.neighbor_allreduce(a, graph), x)
                last = comm.size - 1
                return {
                    "kept": (buckets.views, x),
                    "blocking": (comm.neighbor_allreduce(buckets, graph).views, averages),
                    "started": (comm.ineighbor_allreduce(buckets, graph).wait().views, averages),
                    "gathered": (comm.allgather(buckets).views, one_by_one(comm.allgather, x)),
                    "handed out": (
                        comm.broadcast(buckets, last).views,
                        one_by_one(lambda a: comm.broadcast(a, last), x),
                    ),
                }

            for rank, value in enumerate(runner(program, n)):
                for name, (got, expected) in value.items():
                    where = f"{name}: buckets of {limit}, {order}, on rank {rank} of {n}"
                    assert_same_bits(got, as_arrays(expected), where)


def as_arrays(tree: Any) -> Any:
    """Return a container with the numbers in it as arrays, which views are."""
    if isinstance(tree, dict):
        return {key: as_arrays(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(as_arrays(value) for value in tree)
    return np.asarray(tree) if isinstance(tree, (np.generic, float)) else tree


@check()
def a_bucket_is_one_message_with_its_gaps(runner: Runner) -> None:
    """Out-degree times what the bucket says, of every operation on neighbours."""
    graph = random_topology(5, 4)
    W = graph.to_dense()

    def program(comm: Any) -> Any:
        sizes = ((3, "f8"), (2, "f8"), (9, "f8"), (4, "f4"))
        x = comm.per_rank(lambda rank: [np.full(size, rank, dtype) for size, dtype in sizes])
        buckets = comm.buckets(x, 100)
        counts = [comm.bytes_sent]
        comm.neighbor_allreduce(buckets)
        counts.append(comm.bytes_sent)
        for bucket in buckets:
            comm.ineighbor_allgather(bucket).wait()
            counts.append(comm.bytes_sent)
        return counts, [bucket.nbytes for bucket in buckets]

    for rank, (counts, sizes) in enumerate(runner(program, 5, topology=graph)):
        assert sizes == [80, 72, 16], sizes
        degree = len(oracle.out_neighbors(W, rank))
        got = np.diff([int(count) for count in counts]).tolist()
        assert got == [degree * size for size in (sum(sizes), *sizes)], got


@check()
def what_is_between_arrays_is_not_compressed(runner: Runner) -> None:
    """A bucket with gaps gives what its arrays side by side give."""
    from dectool import compression

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: [np.array([5.0, 7.0]) + rank, np.array([6.0, 9.0, 8.0])])
        c, graph = compression.MinMax8(), topology.ring(4)
        (gaps,), (none,) = comm.buckets(x), comm.buckets(x, align=1)
        return (
            tuple(comm.neighbor_allreduce(b, graph, compressor=c).views for b in (gaps, none)),
            tuple(comm.allreduce(b, compressor=c).views for b in (gaps, none)),
            tuple(comm.broadcast(b, compressor=c).views for b in (gaps, none)),
        )

    for rank, pairs in enumerate(runner(program, 4)):
        for got, expected in pairs:
            assert_same_bits(got, expected, f"compressed bucket on rank {rank}")
