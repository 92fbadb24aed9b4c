"""Checks of the non-blocking forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dectool import topology
from dectool.testing._check import check
from dectool.testing._compare import assert_same_bits
from dectool.testing._kinds import numpy_kind, values
from dectool.testing._portable import cut, random_topology, rows
from dectool.testing._runner import Runner, apply

N = 6
GRAPH = random_topology(N, 31)
NODES = topology.ring(3)

OPERATIONS: dict[str, Callable[[Any, Any, str], Any]] = {
    "neighbor_allreduce": lambda comm, x, i: getattr(comm, i + "neighbor_allreduce")(x),
    "neighbor_allgather": lambda comm, x, i: getattr(comm, i + "neighbor_allgather")(x),
    "neighbor_alltoall": lambda comm, x, i: getattr(comm, i + "neighbor_alltoall")(_to_all(comm)),
    "pair_gossip": lambda comm, x, i: getattr(comm, i + "pair_gossip")(x, comm.rank ^ 1),
    "hierarchical": lambda comm, x, i: getattr(comm, i + "hierarchical_neighbor_allreduce")(
        x, NODES
    ),
    "sendrecv": lambda comm, x, i: getattr(comm, i + "sendrecv")(
        x, (comm.rank + 1) % N, (comm.rank - 1) % N
    ),
    "allreduce": lambda comm, x, i: getattr(comm, i + "allreduce")(x, "sum"),
    "reduce_scatter": lambda comm, x, i: getattr(comm, i + "reduce_scatter")(x),
    "allgather": lambda comm, x, i: getattr(comm, i + "allgather")(x),
    "alltoall": lambda comm, x, i: getattr(comm, i + "alltoall")(x),
    "broadcast": lambda comm, x, i: getattr(comm, i + "broadcast")(x, 2),
    "barrier": lambda comm, x, i: getattr(comm, i + "barrier")(),
}


def _to_all(comm: Any) -> Any:
    return rows(comm, [np.arange(GRAPH.out_degree(j)) + 10.0 * j for j in range(N)])


def _shown(comm: Any, name: str, value: Any) -> Any:
    return cut(comm, value, GRAPH) if name in ("neighbor_allgather", "neighbor_alltoall") else value


@check()
def non_blocking_forms_return_what_the_blocking_ones_do(runner: Runner) -> None:
    """The result is there after wait(), any number of times; test() is true from then on."""
    xs = values(numpy_kind("float64"), N, (N, 2), 37)
    for name in OPERATIONS:
        got = apply(runner, _started, xs, name, topology=GRAPH, ranks_per_node=2)
        expected = apply(runner, _blocking, xs, name, topology=GRAPH, ranks_per_node=2)
        for rank in range(N):
            assert_same_bits(got[rank], expected[rank], f"i{name} on rank {rank}")


def _started(comm: Any, x: Any, name: str) -> Any:
    request = OPERATIONS[name](comm, x, "i")
    comm.elapse(1e-3)
    waited = request.wait()
    assert request.test(), f"i{name}: test() is false after wait()"
    assert request.wait() is waited, f"i{name}: the second wait() differs"
    assert request.result is waited, f"i{name}: result differs from wait()"
    return _shown(comm, name, waited)


def _blocking(comm: Any, x: Any, name: str) -> Any:
    return _shown(comm, name, OPERATIONS[name](comm, x, ""))


@check()
def requests_may_be_waited_for_in_any_order(runner: Runner) -> None:
    """Several operations under way do not mix up their messages."""
    xs = values(numpy_kind("float64"), N, (3,), 41)

    straight = apply(runner, _three, xs, (0, 1, 2), topology=GRAPH)
    for order in ((2, 0, 1), (2, 1, 0)):
        got = apply(runner, _three, xs, order, topology=GRAPH)
        for rank in range(N):
            assert_same_bits(got[rank], straight[rank], f"order {order} on rank {rank}")


def _three(comm: Any, x: Any, order: tuple[int, ...]) -> Any:
    requests = [comm.ineighbor_allreduce(x * (k + 1)) for k in range(3)]
    results = {k: requests[k].wait() for k in order}
    return {k: results[k] for k in range(3)}


@check()
def a_program_may_poll_until_a_request_is_complete(runner: Runner) -> None:
    """test() becomes true when time passes between the calls."""
    xs = values(numpy_kind("float64"), N, (3,), 43)

    got = apply(runner, _polled, xs, topology=GRAPH)
    expected = apply(runner, "neighbor_allreduce", xs, topology=GRAPH)
    for rank in range(N):
        assert_same_bits(got[rank], expected[rank], f"polled on rank {rank}")


def _polled(comm: Any, x: Any) -> Any:
    request = comm.ineighbor_allreduce(x)
    for _ in range(1000):
        if request.test():
            return request.result
        comm.elapse(1e-3)
    raise AssertionError("test() was never true")
