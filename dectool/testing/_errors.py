"""Checks of what wrong calls say: the argument, its value, and what would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dectool import topology
from dectool.errors import (
    ArgumentError,
    ArgumentTypeError,
    ContractError,
    DectoolError,
    UnsupportedOperation,
)
from dectool.testing._check import check
from dectool.testing._runner import Runner

N = 4
RING = topology.ring(N)
Call = Callable[[Any, Any], Any]


def refused(
    runner: Runner,
    call: Call,
    kind: type[DectoolError],
    *words: str,
    graph: Any = RING,
    ranks_per_node: int = 1,
) -> None:
    """Require that ``call(comm, x)`` fails with ``kind`` and all the words."""

    def program(comm: Any) -> Any:
        x = comm.per_rank(lambda rank: np.arange(3.0) + rank)
        return call(comm, x)

    error: DectoolError | None = None
    try:
        runner(program, N, topology=graph, ranks_per_node=ranks_per_node)
    except DectoolError as raised:
        if isinstance(raised, UnsupportedOperation) and not issubclass(kind, UnsupportedOperation):
            raise
        error = raised
    assert error is not None, f"no {kind.__name__} with {words}"
    message = " ".join([str(error), *getattr(error, "__notes__", [])])
    assert isinstance(error, kind), f"{type(error).__name__}, not {kind.__name__}: {message}"
    for word in words:
        assert word in message, f"the message lacks {word!r}: {message}"


@check()
def averages_of_integers_and_bools_are_refused(runner: Runner) -> None:
    """With the dtype, and that a cast helps."""
    operations: list[tuple[str, Call]] = [
        ("neighbor_allreduce", lambda comm, x: comm.neighbor_allreduce(x)),
        ("pair_gossip", lambda comm, x: comm.pair_gossip(x, comm.rank ^ 1)),
        ("op='mean'", lambda comm, x: comm.allreduce(x)),
        ("mix", lambda comm, x: comm.mix(comm.neighbor_allgather(x))),
        (
            "hierarchical_neighbor_allreduce",
            lambda comm, x: comm.hierarchical_neighbor_allreduce(x, RING),
        ),
    ]
    for name, call in operations:
        for dtype in ("int64", "uint8", "bool"):

            def cast(comm: Any, x: Any, call: Call = call, dtype: str = dtype) -> Any:
                return call(comm, x.astype(dtype))

            refused(runner, cast, ArgumentTypeError, name, dtype, "cast first")


@check()
def what_is_no_array_is_refused(runner: Runner) -> None:
    """With its type, and what may be passed."""
    refused(runner, lambda c, x: c.allreduce("text"), ArgumentTypeError, "str", "NumPy array")
    refused(runner, lambda c, x: c.neighbor_allreduce([x, None]), ArgumentTypeError, "NoneType")
    names = [np.array(["a", "b"])] * N
    refused(
        runner,
        lambda c, x: c.broadcast(c.per_rank(names.__getitem__)),
        ArgumentTypeError,
        "<U1",
        "float64",
    )


@check()
def unknown_names_offer_the_nearest(runner: Runner) -> None:
    """Of operators and algorithms."""
    refused(runner, lambda c, x: c.allreduce(x, "summ"), ArgumentError, "op='summ'", "'sum'")
    refused(runner, lambda c, x: c.allreduce(x, None), ArgumentError, "op=None")
    refused(
        runner,
        lambda c, x: c.allreduce(x, "sum", "rings"),
        ArgumentError,
        "algorithm='rings'",
        "'ring'",
    )


@check()
def reductions_without_a_meaning_are_refused(runner: Runner) -> None:
    """The largest complex number, the sum of bools."""
    for op in ("max", "min"):
        refused(
            runner,
            lambda c, x, op=op: c.allreduce(x + 1j, op),  # type: ignore[misc]
            ArgumentTypeError,
            f"op='{op}'",
            "complex128",
            "no order",
        )
    for op in ("sum", "prod"):
        refused(
            runner,
            lambda c, x, op=op: c.allreduce(x > 1, op),  # type: ignore[misc]
            ArgumentTypeError,
            f"op='{op}' of bool",
            "'max' (any)",
        )


@check()
def ranks_out_of_range_are_named(runner: Runner) -> None:
    """With the ranks that there are."""
    refused(runner, lambda c, x: c.broadcast(x, 4), ArgumentError, "root is 4", "0 to 3")
    refused(runner, lambda c, x: c.broadcast(x, -1), ArgumentError, "root is -1", "0 to 3")
    refused(runner, lambda c, x: c.broadcast(x, "a"), ArgumentTypeError, "root is 'a'")
    refused(runner, lambda c, x: c.broadcast(x, True), ArgumentTypeError, "root is True")
    refused(
        runner,
        lambda c, x: c.pair_gossip(x, c.per_rank(lambda r: 9)),
        ArgumentError,
        "peer is 9",
        "0 to 3",
    )
    refused(
        runner,
        lambda c, x: c.sendrecv(x, c.per_rank(lambda r: 7), c.per_rank(lambda r: r)),
        ArgumentError,
        "dest is 7",
        "0 to 3",
    )


def _given(**weights: Callable[[int], Any]) -> Call:
    def call(comm: Any, x: Any) -> Any:
        each = {name: comm.per_rank(make) for name, make in weights.items()}
        return comm.neighbor_allreduce(x, **each)

    return call


@check()
def wrong_weights_are_named(runner: Runner) -> None:
    """Half a sum, a rank that names itself, weights that are no finite numbers."""
    refused(runner, _given(self_weight=lambda r: 0.5), ArgumentError, "src_weights=None", "both")
    refused(
        runner, _given(src_weights=lambda r: {(r + 1) % N: 0.5}), ArgumentError, "self_weight=None"
    )
    for bad, kind, word in (
        (float("nan"), ArgumentError, "nan"),
        (float("inf"), ArgumentError, "inf"),
        ("x", ArgumentTypeError, "'x'"),
    ):

        def sources(rank: int, bad: Any = bad) -> Any:
            return {(rank + 1) % N: bad}

        call = _given(self_weight=lambda r: 0.5, src_weights=sources)
        refused(runner, call, kind, "src_weights[", word)
    own = _given(self_weight=lambda r: 0.5, src_weights=lambda r: {r: 0.5})
    refused(runner, own, ArgumentError, "src_weights", "self_weight")
    absent = _given(self_weight=lambda r: 0.5, src_weights=lambda r: {r + 9: 0.5})
    refused(runner, absent, ArgumentError, "src_weights is", "0 to 3")
    twice = _given(dst_weights=lambda r: [(r + 1) % N, (r + 1) % N])
    refused(runner, twice, ArgumentError, "dst_weights", "twice")
    refused(
        runner,
        lambda c, x: c.pair_gossip(x, c.rank ^ 1, self_weight=float("nan")),
        ArgumentError,
        "self_weight is nan",
    )


@check()
def sends_that_nobody_expects_are_an_error(runner: Runner) -> None:
    """And receipts that nobody sends: the ranks are named."""

    def sends_more(comm: Any, x: Any) -> Any:
        return comm.neighbor_allreduce(
            x,
            self_weight=comm.per_rank(lambda r: 1.0),
            src_weights=comm.per_rank(lambda r: {}),
            dst_weights=comm.per_rank(lambda r: {2: 1.0} if r == 0 else {}),
        )

    def expects_more(comm: Any, x: Any) -> Any:
        return comm.neighbor_allreduce(
            x,
            self_weight=comm.per_rank(lambda r: 1.0),
            src_weights=comm.per_rank(lambda r: {0: 1.0} if r == 2 else {}),
            dst_weights=comm.per_rank(lambda r: {}),
        )

    refused(runner, sends_more, ContractError, "rank 0", "rank 2")
    refused(runner, expects_more, DectoolError, "rank 0", "rank 2")


@check()
def wrong_topologies_are_refused(runner: Runner) -> None:
    """None at all, one of another size, a schedule, something else."""

    def assign(comm: Any, graph: Any) -> None:
        comm.topology = graph

    refused(runner, lambda c, x: c.neighbor_allreduce(x), ArgumentError, "no topology", graph=None)
    refused(runner, lambda c, x: c.schedule, ArgumentError, "a topology, not a schedule")
    small, steps = topology.ring(3), topology.one_peer_exponential(N)
    for call in (
        lambda c, x: c.neighbor_allreduce(x, small),
        lambda c, x: c.neighbor_allgather(x, small),
        lambda c, x: assign(c, small),
    ):
        refused(runner, call, ArgumentError, "ring of 3", "has 4")
    for call in (lambda c, x: c.neighbor_allreduce(x, steps), lambda c, x: assign(c, steps)):
        refused(runner, call, ArgumentTypeError, "schedule.at(k)")
    refused(runner, lambda c, x: c.neighbor_allreduce(x, 5), ArgumentTypeError, "int", "Topology")
    refused(
        runner,
        lambda c, x: c.hierarchical_neighbor_allreduce(x, RING),
        ArgumentError,
        "2 nodes",
        ranks_per_node=2,
    )
    refused(
        runner,
        lambda c, x: c.hierarchical_neighbor_allreduce(x, small),
        UnsupportedOperation,
        "nodes of 3",
        ranks_per_node=3,
    )


@check()
def wrong_numbers_of_rows_are_refused(runner: Runner) -> None:
    """One for each rank, in-neighbour or out-neighbour, and a leading axis at all."""
    for name in ("alltoall", "reduce_scatter"):

        def call(comm: Any, x: Any, name: str = name) -> Any:
            return getattr(comm, name)(x)

        def flat(comm: Any, x: Any, name: str = name) -> Any:
            return getattr(comm, name)(comm.per_rank(lambda rank: np.array(1.0)))

        refused(runner, call, ContractError, name, "4", "3")
        refused(runner, flat, ContractError, "axis")
    for short in ("neighbor_alltoall", "mix"):

        def few(comm: Any, x: Any, name: str = short) -> Any:
            return getattr(comm, name)(comm.per_rank(lambda rank: np.zeros((1, 2))))

        def none(comm: Any, x: Any, name: str = short) -> Any:
            return getattr(comm, name)(np.array(1.0))

        refused(runner, few, ContractError, "leading axis")
        refused(runner, none, ContractError, "axis")
    refused(
        runner,
        lambda c, x: c.mix(c.neighbor_allgather(x), own=c.per_rank(lambda r: np.zeros(2))),
        ContractError,
        "own",
        "float64[3]",
        "float64[2]",
    )


@check()
def wrong_times_and_purposes_are_refused(runner: Runner) -> None:
    """Negative or endless seconds, a purpose that is no name."""
    for bad in (-1.0, float("nan"), float("inf")):
        refused(runner, lambda c, x, bad=bad: c.elapse(bad), ArgumentError, f"seconds={bad}")  # type: ignore[misc]
    refused(runner, lambda c, x: c.elapse("1"), ArgumentTypeError, "seconds='1'")
    refused(runner, lambda c, x: c.elapse(None), ArgumentTypeError, "seconds=None")
    refused(runner, lambda c, x: c.rng(7).random(), ArgumentTypeError, "purpose=7")


@check("isend", "irecv")
def wrong_messages_are_refused(runner: Runner) -> None:
    """A rank that is none, as destination and as source."""
    refused(runner, lambda c, x: c.isend(x, 4), ArgumentError, "dest is 4", "0 to 3")
    refused(runner, lambda c, x: c.recv(-1), ArgumentError, "source is -1", "0 to 3")
    refused(runner, lambda c, x: c.send(object(), 0), ArgumentTypeError, "object")


@check("exchange")
def wrong_exchanges_are_refused(runner: Runner) -> None:
    """Sources named twice, ranks that are none."""
    refused(runner, lambda c, x: c.exchange({}, [1, 1]), ArgumentError, "[1, 1]", "twice")
    refused(runner, lambda c, x: c.exchange({9: x}, []), ArgumentError, "sends is 9")


@check("split")
def wrong_splits_are_refused(runner: Runner) -> None:
    """Colors and keys are integers."""
    refused(runner, lambda c, x: c.split(-2), ArgumentError, "color is -2")
    refused(runner, lambda c, x: c.split("a"), ArgumentTypeError, "color is 'a'")
    refused(runner, lambda c, x: c.split(0, key=1.5), ArgumentTypeError, "key is 1.5")


@check("isend")
def ranks_that_disagree_are_told_so(runner: Runner) -> None:
    """Other shapes, dtypes, structures; another number of calls; another operator."""

    def unlike(comm: Any, x: Any, make: Callable[[int, Any], Any], name: str) -> Any:
        return getattr(comm, name)(make(comm.rank, x))

    shapes: list[tuple[Callable[[int, Any], Any], tuple[str, str]]] = [
        (lambda rank, x: x[: 2 if rank == 1 else 3], ("float64[2]", "float64[3]")),
        (lambda rank, x: x.astype("f4") if rank == 1 else x, ("float32[3]", "float64[3]")),
        (lambda rank, x: [x] if rank == 1 else (x,), ("list", "tuple")),
        (lambda rank, x: {"a" if rank == 1 else "b": x}, ("'a'", "'b'")),
    ]
    for name in ("neighbor_allreduce", "neighbor_allgather", "allreduce", "allgather", "broadcast"):
        for make, words in shapes:

            def call(comm: Any, x: Any, make: Any = make, name: str = name) -> Any:
                return unlike(comm, x, make, name)

            refused(runner, call, ContractError, *words, "same shapes and dtypes")

    def once_more(comm: Any, x: Any) -> Any:
        if comm.rank == 0:
            comm.ineighbor_allreduce(x)
        return comm.neighbor_allreduce(x)

    refused(runner, once_more, DectoolError, "neighbor_allreduce", "rank 0")

    def other_operator(comm: Any, x: Any) -> Any:
        return comm.allreduce(x, "max" if comm.rank == 2 else "sum")

    refused(runner, other_operator, DectoolError, "max", "sum")
