"""The steps of random programs: what holds on every backend, in terms of the ranks' values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dectool import compression
from dectool.testing._collectives import ALGORITHMS
from dectool.testing._portable import random_topology, rows

Step = Callable[[Any, Any, np.random.Generator], tuple[Any, Any]]
"""From communicator, value and choices to the new value and something more to compare."""


def _in_form(comm: Any, name: str, rng: np.random.Generator, *args: Any, **given: Any) -> Any:
    """Call an operation, or start it, let time pass, and wait."""
    if rng.random() < 0.5:
        return getattr(comm, name)(*args, **given)
    request = getattr(comm, "i" + name)(*args, **given)
    if rng.random() < 0.5:
        comm.elapse(float(rng.random()) * 1e-3)
    return request.wait()


def _neighbor_allreduce(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    return _in_form(comm, "neighbor_allreduce", rng, x), None


def _told_topology(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    graph = random_topology(comm.size, int(rng.integers(1000)), loops=bool(rng.integers(2)))
    return _in_form(comm, "neighbor_allreduce", rng, x, graph), None


def _per_call(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    n = comm.size
    W = np.where(rng.random((n, n)) < 0.5, rng.normal(size=(n, n)), 0.0)
    factors = rng.normal(size=(n, n))
    own = comm.per_rank(lambda i: float(W[i, i]))
    sources = comm.per_rank(lambda i: {j: float(W[i, j]) for j in range(n) if j != i and W[i, j]})
    if rng.random() < 0.3:
        dests = comm.per_rank(lambda j: [i for i in range(n) if i != j and W[i, j]])
    else:
        dests = comm.per_rank(
            lambda j: {i: float(factors[i, j]) for i in range(n) if i != j and W[i, j]}
        )
    weights = {"self_weight": own, "src_weights": sources, "dst_weights": dests}
    return _in_form(comm, "neighbor_allreduce", rng, x, **weights), None


def _edges(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    edges = _in_form(comm, "neighbor_allgather", rng, x)
    return comm.mix(edges, own=x), comm.mix(edges)


def _pair_gossip(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    order = rng.permutation(comm.size)
    peers = list(range(comm.size))
    for first, second in zip(order[0::2], order[1::2], strict=False):
        if rng.random() < 0.8:
            peers[first], peers[second] = int(second), int(first)
    mine, theirs = float(rng.normal()), float(rng.normal())
    named = comm.per_rank(peers.__getitem__)
    return _in_form(comm, "pair_gossip", rng, x, named, mine, theirs), None


def _hierarchical(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    graph = random_topology(comm.num_nodes, int(rng.integers(1000)))
    return _in_form(comm, "hierarchical_neighbor_allreduce", rng, x, graph), None


def _sendrecv(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    dest = rng.permutation(comm.size)
    source = np.argsort(dest)
    to, origin = (comm.per_rank(lambda r, p=p: int(p[r])) for p in (dest, source))
    return _in_form(comm, "sendrecv", rng, x, to, origin, tag=int(rng.integers(3))), None


def _allreduce(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    op = str(rng.choice(["mean", "sum", "prod"]))
    return _in_form(comm, "allreduce", rng, x, op, str(rng.choice(ALGORITHMS))), None


def _extremes(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    order = rng.normal(size=(comm.size, 5)).round(1)
    mine = comm.per_rank(lambda r: np.where(order[r] == 0.0, -0.0, order[r]).astype("f4"))
    op, algorithm = str(rng.choice(["max", "min"])), str(rng.choice(ALGORITHMS))
    return x, _in_form(comm, "allreduce", rng, mine, op, algorithm)


def _by_rows(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    table = rng.normal(size=(comm.size, comm.size, 3)).astype(rng.choice(["f8", "f4", "c16"]))
    mine = comm.per_rank(table.__getitem__)
    return x, {
        "to all": _in_form(comm, "alltoall", rng, mine),
        "scattered": _in_form(comm, "reduce_scatter", rng, mine, "sum"),
    }


def _allgather(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    return x, _in_form(comm, "allgather", rng, x)


def _broadcast(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    return _in_form(comm, "broadcast", rng, x, int(rng.integers(comm.size))), None


def _barrier(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    return x, _in_form(comm, "barrier", rng)


def _elapse(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    seconds = rng.exponential(1e-3, comm.size)
    comm.elapse(comm.per_rank(lambda r: float(seconds[r])))
    comm.elapse(float(rng.random()) * 1e-3)
    return x, None


def _computing(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    with comm.computing(flops=float(rng.integers(1, 1000))):
        pass
    return x, comm.rng("work").normal(size=2)


def _several(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    first = comm.ineighbor_allreduce(x)
    comm.elapse(float(rng.random()) * 1e-3)
    second = comm.ineighbor_allreduce(x)
    if rng.random() < 0.5:
        return second.wait(), first.wait()
    return first.wait(), second.wait()


def _fused(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    limit = [None, 1, 40, 200][int(rng.integers(4))]
    order = str(rng.choice(["given", "reversed"]))
    buckets = comm.buckets(x, limit, order=order, align=int(rng.choice([1, 64])))
    if rng.random() < 0.3:
        return comm.allreduce(buckets, algorithm=str(rng.choice(ALGORITHMS))).views, None
    return _in_form(comm, "neighbor_allreduce", rng, buckets).views, None


COMPRESSORS = (
    "topk:0.3", "qsgd:4", "minmax8", "randomk:0.3", "sign", "natural", "threshold:0.5",
    "pertensor:qsgd:4", "pertensor:lowrank:1",
)  # fmt: skip


def _compressed(comm: Any, x: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    compressor = compression.get(str(rng.choice(COMPRESSORS)))
    values = comm.per_rank(lambda rank: np.random.default_rng([7, rank]).normal(size=(4, 5)))
    if rng.random() < 0.5:
        values = [values, 2.0 * values[..., :2]]
    way = int(rng.integers(6))
    if way == 0:
        return x, _in_form(comm, "neighbor_allreduce", rng, values, compressor=compressor)
    if way == 1:
        given: dict[str, Any] = {"op": str(rng.choice(["mean", "sum"])), "compressor": compressor}
        if rng.random() < 0.5:
            given["number"] = int(rng.integers(3))
        return x, _in_form(comm, "allreduce", rng, values, **given)
    if way == 2:
        edges = _in_form(comm, "neighbor_allgather", rng, comm.compress(values, compressor))
        return x, comm.mix(edges)
    if way == 3:
        graph = random_topology(comm.num_nodes, int(rng.integers(1000)))
        name = "hierarchical_neighbor_allreduce"
        return x, _in_form(comm, name, rng, values, graph, compressor=compressor)
    if way == 4:
        graph = random_topology(comm.size, int(rng.integers(1000)))
        mine = rows(comm, [rng.normal(size=(graph.out_degree(r), 7)) for r in range(comm.size)])
        edges = _in_form(comm, "neighbor_alltoall", rng, mine, graph, compressor=compressor)
        return x, comm.mix(edges, graph)
    root = int(rng.integers(comm.size))
    if not compressor.fixed_size:
        return x, None
    return x, _in_form(comm, "broadcast", rng, values, root, compressor=compressor)


STEPS: dict[str, Step] = {
    "allgather": _allgather,
    "allreduce": _allreduce,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "by rows": _by_rows,
    "compressed": _compressed,
    "computing": _computing,
    "edges": _edges,
    "elapse": _elapse,
    "extremes": _extremes,
    "fused": _fused,
    "hierarchical": _hierarchical,
    "neighbor_allreduce": _neighbor_allreduce,
    "pair_gossip": _pair_gossip,
    "per call": _per_call,
    "sendrecv": _sendrecv,
    "several": _several,
    "told topology": _told_topology,
}
"""Every step that a random program may have."""
