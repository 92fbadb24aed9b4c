"""Checks of what goes in and comes out: containers, shapes, memory orders, ownership."""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from dectool import topology
from dectool.testing._check import check
from dectool.testing._compare import assert_same_bits, to_numpy
from dectool.testing._kinds import averageable, numpy_kind, torch_kind, values
from dectool.testing._runner import Runner, apply

N = 4
RING = topology.ring(N)
Pair = namedtuple("Pair", "first second")
FLOAT64 = numpy_kind("float64")


def _partner(comm: Any) -> Any:
    return comm.rank ^ 1 if comm.size > 1 else comm.rank + 0


def _to_itself(comm: Any, x: Any, i: str) -> Any:
    return getattr(comm, i + "sendrecv")(x, comm.rank + 0, comm.rank + 0)


OPERATIONS: dict[str, Callable[[Any, Any, str], Any]] = {
    "neighbor_allreduce": lambda comm, x, i: getattr(comm, i + "neighbor_allreduce")(x),
    "pair_gossip": lambda comm, x, i: getattr(comm, i + "pair_gossip")(x, _partner(comm)),
    "idle pair_gossip": lambda comm, x, i: getattr(comm, i + "pair_gossip")(x, comm.rank + 0),
    "hierarchical": lambda comm, x, i: getattr(comm, i + "hierarchical_neighbor_allreduce")(
        x, topology.complete(comm.num_nodes)
    ),
    "sendrecv": _to_itself,
    "allreduce": lambda comm, x, i: getattr(comm, i + "allreduce")(x),
    "broadcast": lambda comm, x, i: getattr(comm, i + "broadcast")(x, 0),
}
"""Operations whose result is like ``x``; ``i`` is "i" for the non-blocking form."""

BY_ROWS: dict[str, Callable[[Any, Any, str], Any]] = {
    "neighbor_allgather": lambda comm, x, i: getattr(comm, i + "neighbor_allgather")(x),
    "reduce_scatter": lambda comm, x, i: getattr(comm, i + "reduce_scatter")(x, "sum"),
    "allgather": lambda comm, x, i: getattr(comm, i + "allgather")(x),
    "alltoall": lambda comm, x, i: getattr(comm, i + "alltoall")(x),
}
"""Operations that add or take away a leading axis; ``x`` has one of n."""


def containers(x: Any, y: Any) -> list[Any]:
    """Return containers of two arrays, nested and mixed."""
    nested = {"deep": [x, {"z": (y, x)}], "b": y, "a": Pair(x, [y])}
    return [[x, y], (x, y), [x], {"w": x, "b": y}, Pair(x, y), nested, {2: x, 1: y}]


def _all_operations(comm: Any, x: Any) -> Any:
    return {name: operation(comm, x, "") for name, operation in OPERATIONS.items()}


@check()
def containers_come_out_as_they_went_in(runner: Runner) -> None:
    """Lists, tuples, dicts (in their order), named tuples, nested, of several dtypes."""
    xs = values(FLOAT64, N, (2, 3), 101)
    ys = values(numpy_kind("float32"), N, (4,), 103)
    for number in range(len(containers(xs[0], ys[0]))):
        trees = [containers(x, y)[number] for x, y in zip(xs, ys, strict=True)]
        got = apply(runner, _all_operations, trees, topology=RING)
        for name, operation in OPERATIONS.items():
            alone = [apply(runner, operation, zs, "", topology=RING) for zs in (xs, ys)]
            for rank in range(N):
                expected = containers(alone[0][rank], alone[1][rank])[number]
                assert_same_bits(got[rank][name], expected, f"{name} of container {number}")


@check()
def ranks_may_fill_a_dict_in_any_order(runner: Runner) -> None:
    """Entries meet by key."""
    xs = values(FLOAT64, 2, (3,), 107)
    got = runner(
        lambda comm: comm.allreduce(
            comm.per_rank(
                lambda rank: {"a": xs[0], "b": xs[1]} if rank else {"b": xs[1], "a": xs[0]}
            )
        ),
        2,
    )
    for rank in range(2):
        assert_same_bits(got[rank]["a"], (xs[0] + xs[0]) / 2, "entry a")
        assert_same_bits(got[rank]["b"], (xs[1] + xs[1]) / 2, "entry b")


@check()
def any_shape_and_memory_order_will_do(runner: Runner) -> None:
    """0-d, empty, transposed, strided, reversed, broadcast and byte-swapped arrays."""
    for kind in averageable():
        whole = values(kind, N, (4, 6), 109)
        views: dict[str, Callable[[Any], Any]] = {
            "0-d": lambda x: x[0, 0],
            "empty": lambda x: x[:0],
            "no columns": lambda x: x[:, :0],
            "transposed": lambda x: x.T,
            "strided": lambda x: x[::2, 1::2],
            "one column": lambda x: x[:, 1],
        }
        if not kind.name.startswith("torch"):
            views["reversed"] = lambda x: x[::-1, ::-1]
            views["broadcast"] = lambda x: np.broadcast_to(x[0], (3, 6))
        for name, view in views.items():
            _check_view(runner, [view(x) for x in whole], f"{name} {kind.name}")
    swapped = [x.astype(">f8") for x in values(FLOAT64, N, (3,), 113)]
    plain = [x.astype("f8") for x in swapped]
    got = apply(runner, "neighbor_allreduce", swapped, topology=RING)
    expected = apply(runner, "neighbor_allreduce", plain, topology=RING)
    for rank in range(N):
        assert_same_bits(got[rank], expected[rank], "byte-swapped")


def _check_view(runner: Runner, xs: list[Any], what: str) -> None:
    tidy = [copy.deepcopy(x) for x in xs]
    if hasattr(tidy[0], "contiguous"):
        tidy = [x.contiguous() for x in tidy]
    else:
        tidy = [np.array(x, order="C") for x in tidy]

    def program(comm: Any, arrays: list[Any], stacked_view: bool) -> Any:
        x = comm.per_rank(arrays.__getitem__)
        if stacked_view and np.ndim(comm.rank) and x.ndim > 2:
            # The rank axis of a stacked array may lie anywhere in memory, too.
            x = x.swapaxes(1, 2).clone() if hasattr(x, "clone") else x.swapaxes(1, 2).copy()
            x = x.swapaxes(1, 2)
        return _all_operations(comm, x)

    got = runner(lambda comm: program(comm, xs, True), N, topology=RING, ranks_per_node=2)
    expected = runner(lambda comm: program(comm, tidy, False), N, topology=RING, ranks_per_node=2)
    for rank in range(N):
        assert_same_bits(got[rank], expected[rank], f"{what} on rank {rank}")


@check()
def inputs_are_neither_changed_nor_kept(runner: Runner) -> None:
    """What happens to ``x`` after a call, or to the result, does not reach the other."""
    for n in (1, N):
        graph = topology.ring(n)
        makers = [FLOAT64, numpy_kind("float32"), numpy_kind("complex128"), torch_kind("float32")]
        for kind in [maker for maker in makers if maker.name in _installed()]:
            xs = values(kind, n, (n, 2), 127)
            for name, operation in {**OPERATIONS, **BY_ROWS}.items():
                _check_ownership(runner, n, graph, xs, f"{name} of {kind.name}", operation)


def _installed() -> list[str]:
    return [kind.name for kind in averageable()]


def _check_ownership(
    runner: Runner, n: int, graph: Any, xs: list[Any], where: str, operation: Any
) -> None:
    def program(comm: Any) -> Any:
        kept = comm.per_rank(xs.__getitem__)
        x = kept + 0
        clean = operation(comm, x, "")
        assert_same_bits(x, kept, f"{where} changed its input")
        tidy = clean + 0
        clean -= 3.0
        assert_same_bits(x, kept, f"the result of {where} shares memory with its input")
        request = operation(comm, x, "i")
        x *= 0.0
        late = request.wait()
        assert_same_bits(late, tidy, f"{where}: a later change of the input reached the result")
        return None

    runner(program, n, topology=graph)


@check()
def meta_tensors_carry_shape_and_dtype(runner: Runner) -> None:
    """Without data; alone and in containers with real tensors."""
    if "torch float32" not in _installed():
        return
    import torch

    real = values(torch_kind("float32"), N, (N, 3), 131)

    def program(comm: Any) -> Any:
        ghost = comm.per_rank(lambda rank: torch.empty((N, 3), dtype=torch.bfloat16, device="meta"))
        x = comm.per_rank(real.__getitem__)
        same = comm.per_rank(lambda rank: torch.empty((2,), device="meta"))
        return {
            name: operation(comm, {"ghost": ghost, "x": x, "same": same}, "")
            for name, operation in OPERATIONS.items()
        } | {"rows": {name: BY_ROWS[name](comm, ghost, "") for name in ("allgather", "alltoall")}}

    got = runner(program, N, topology=RING)
    expected = apply(runner, _all_operations, real, topology=RING)
    for rank in range(N):
        for name in OPERATIONS:
            value = got[rank][name]
            assert_same_bits(value["x"], expected[rank][name], f"{name} beside a meta tensor")
            for key, shape in (("ghost", (N, 3)), ("same", (2,))):
                assert value[key].device.type == "meta", f"{name} of a meta tensor"
                assert tuple(value[key].shape) == shape, f"{name} of a meta tensor"
            assert value["ghost"].dtype == torch.bfloat16, f"{name} of a meta tensor"
        assert tuple(got[rank]["rows"]["allgather"].shape) == (N, N, 3)
        assert tuple(got[rank]["rows"]["alltoall"].shape) == (N, 3)


@check()
def libraries_may_differ_between_ranks(runner: Runner) -> None:
    """Dtypes must agree; what comes out is of the kind that the rank put in."""
    if "torch float32" not in _installed():
        return
    xs = values(numpy_kind("float32"), 2, (3,), 137)

    def program(comm: Any) -> Any:
        if np.ndim(comm.rank):
            return comm.allreduce(np.stack(xs))
        return comm.allreduce(xs[0] if comm.rank == 0 else torch_kind("float32").make(xs[1]))

    got = runner(program, 2)
    for rank in range(2):
        mean = ((xs[0] + xs[1]) / np.float32(2)).astype(np.float32)
        assert_same_bits(to_numpy(got[rank]), mean, f"rank {rank}")
