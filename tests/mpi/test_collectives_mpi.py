"""Collectives in shared memory: the bits and counts of the simulator, and what goes by message."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dectool
from dectool.backends.mpi._order import segments
from dectool.communicator import _rounds
from dectool.errors import ContractError, DeadlockError

pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")

DTYPES = ("f8", "f4", "f2", "c16", "c8", "i4", "i8", "u1", "bool")
ALGORITHMS = ("auto", "ring", "recursive_doubling", "rabenseifner", "tree")


def special(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return numbers, among them zeros of both signs, infinities and NaN."""
    kind = np.dtype(dtype)
    if kind.kind in "iub":
        return rng.integers(0, 2 if kind.kind == "b" else 5, shape).astype(kind)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
        x = np.where(rng.random(shape) < 0.04, value, x)
    if kind.kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(kind)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    return [value]


def digests(value: Any) -> list[tuple[str, tuple[int, ...], str]]:
    """Return dtype, shape and a digest of the bits of every array, which travel in no time."""
    arrays = [np.asarray(leaf) for leaf in leaves(value)]
    return [(x.dtype.str, x.shape, hashlib.md5(x.tobytes()).hexdigest()) for x in arrays]


def assert_as_in_sim(
    cluster: dectool.Cluster, program: Callable[..., Any], n: int, *args: Any, **options: Any
) -> None:
    """Compare values, payload bytes and messages with the simulator's."""

    def counted(comm: Any, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            return digests(program(comm, *args)), comm.bytes_sent

    real = cluster.run(counted, n, args=args, timeout=20.0, **options)
    simulated = dectool.run(counted, n, backend="sim", args=args)
    assert list(real.values) == list(simulated.values)
    assert (real.messages, real.bytes) == (simulated.messages, simulated.bytes)


def many(comm: Any, seed: int) -> list[Any]:
    """Return the results of random collectives, which are the same on every rank but for data."""
    shared, own = np.random.default_rng(seed), np.random.default_rng([seed, comm.rank])
    results = []
    for _ in range(40):
        dtype = DTYPES[shared.integers(len(DTYPES))]
        kind = np.dtype(dtype).kind
        shape = tuple(shared.integers(0, 120 if shared.random() < 0.3 else 7, shared.integers(3)))
        x = special(own, shape, dtype)
        rows = special(own, (comm.size, *shape), dtype)
        if shape and shared.random() < 0.3:
            x = np.repeat(x, 2, axis=-1)[..., ::2]
        if shared.random() < 0.2:
            x = {"a": x, "b": [special(own, (3,), "f4"), x]}
        ops = ["max", "min"] if kind != "c" else []
        ops += ["sum", "prod"] if kind != "b" and not isinstance(x, dict) else []
        ops += ["mean"] if kind in "fc" else []
        op = ops[shared.integers(len(ops))] if ops else "sum"
        which = shared.integers(6)
        if which == 0:
            results.append(comm.allreduce(x, op, ALGORITHMS[shared.integers(5)]))
        elif which == 1:
            results.append(comm.reduce_scatter(rows, op if ops else "sum"))
        elif which == 2:
            results.append(comm.allgather(x))
        elif which == 3:
            results.append(comm.alltoall(rows))
        elif which == 4:
            results.append(comm.broadcast(x, int(shared.integers(comm.size))))
        else:
            comm.barrier()
    return results


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_random_collectives_have_the_bits_of_sim(
    n: int, seed: int, cluster: dectool.Cluster
) -> None:
    assert_as_in_sim(cluster, many, n, seed)


@pytest.mark.parametrize("n", [2, 3])
def test_large_arrays_go_in_steps(n: int, cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> Any:
        x = np.random.default_rng(comm.rank).normal(size=2_500_001).astype("f4")
        both = {"x": x, "y": np.arange(700_001.0) * comm.rank}
        return [
            comm.allreduce(x),
            comm.allreduce(both, "sum", "ring"),
            comm.allgather(x),
            comm.alltoall(np.stack([both["y"]] * comm.size)),
            comm.broadcast(x, comm.size - 1),
            comm.reduce_scatter(np.stack([x] * comm.size)),
        ]

    assert_as_in_sim(cluster, program, n)


def test_nothing_goes_by_message(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        def post(*args: Any) -> None:
            raise AssertionError("a message was sent")

        group = comm.split(comm.rank % 2)
        comm.barrier()
        comm._engine.post = post
        for each in (comm, group):
            x = np.ones((each.size, 3))
            each.allreduce([x, x[0].astype("f4")])
            each.reduce_scatter(x)
            each.allgather(x)
            each.alltoall(x)
            each.broadcast(x, 1)
            each.barrier()
        del comm._engine.post

    cluster.run(program, 4)


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("name", _rounds.ALLREDUCE)
def test_the_order_of_a_reduction_has_every_rank_once(name: str, n: int) -> None:
    def ranks(tree: Any) -> list[int]:
        return [tree] if isinstance(tree, int) else [r for branch in tree for r in ranks(branch)]

    cuts = _rounds.blocks(37, n)
    steps = [[(step,) for step in _rounds.ALLREDUCE[name](rank, n, cuts)] for rank in range(n)]
    found = segments(steps, [37], True)
    assert found is not None
    assert sum(segment.stop - segment.start for segment in found) == 37
    for segment in found:
        assert len(set(segment.trees)) == 1
        assert sorted(ranks(segment.trees[0])) == list(range(n))


def ahead(comm: Any, group: Any) -> Any:
    """Broadcast many times to a rank that first waits for a message."""
    root = group.rank == 0
    if comm.rank == 1:
        comm.recv(0)
    got = [group.broadcast(np.full(2, 10.0 * k * root)) for k in range(12)]
    if comm.rank == 0:
        comm.send(np.ones(1), 1)
    return got


def late(comm: Any) -> Any:
    """Let a rank look at what the others did first when they have gone on for long."""
    if comm.rank == 1:
        comm.recv(0)
    if comm.rank == 2:
        comm.elapse(0.2)
    got = []
    for k in range(12):
        got.append(comm.broadcast(np.full(2, 10.0 * k * (comm.rank == 0))))
        if comm.rank == 0 and k == 3:
            comm.send(np.ones(1), 1)
    return got


def in_a_group(comm: Any) -> Any:
    group = comm.split(0 if comm.rank < 2 else 1)
    return ahead(comm, group) if comm.rank < 2 else group.allgather(np.ones(1))


def in_another_order(comm: Any) -> Any:
    x = np.arange(3.0) + comm.rank
    if comm.rank == 0:
        first = comm.allreduce(x)
        return [first, comm.broadcast(x, 1)]
    second = comm.broadcast(x, 1)
    return [comm.allreduce(x), second]


def with_background(comm: Any) -> Any:
    x = np.arange(5000.0) + comm.rank
    request, gathering = comm.iallreduce(x), comm.iallgather(x)
    near = comm.ineighbor_allreduce(x, dectool.topology.ring(comm.size))
    results = [comm.broadcast(x, 1), comm.allreduce(x, "max")]
    results += [near.wait(), comm.alltoall(np.stack([x] * comm.size))]
    return [*results, request.wait(), gathering.wait()]


def asking(comm: Any) -> Any:
    """Ask for a message that is sent after a broadcast, in which the asker takes part later."""
    if comm.rank == 1:
        request = comm.irecv(0)
        while not request.test():
            comm.elapse(1e-3)
        return [request.wait(), comm.broadcast(np.zeros(2))]
    got = comm.broadcast(np.ones(2))
    if comm.rank == 0:
        comm.send(got, 1)
    return [got]


def two_groups(comm: Any) -> Any:
    """Groups that overlap, used in another order where a broadcast lets its root go first."""
    row, column = comm.split(comm.rank // 2), comm.split(comm.rank % 2)
    x = np.full(3, float(comm.rank))
    results = []
    for k in range(6):
        results += [row.allreduce(x + k), column.allgather(x), comm.allreduce(x)]
    if comm.rank == 0:
        return [*results, row.broadcast(x), column.broadcast(x)]
    first = column.broadcast(x) if comm.rank == 2 else row.broadcast(x)
    return [*results, first, row.broadcast(x) if comm.rank == 2 else column.broadcast(x)]


@pytest.mark.parametrize(
    ("program", "n"),
    [
        (lambda comm: ahead(comm, comm), 2),
        (late, 3),
        (in_a_group, 3),
        (in_another_order, 2),
        (in_another_order, 3),
        (with_background, 3),
        (asking, 3),
        (two_groups, 4),
    ],
    ids=["ahead", "late", "group", "order 2", "order 3", "background", "asking", "groups"],
)
def test_ranks_may_do_things_in_another_order_as_in_sim(
    program: Callable[[Any], Any], n: int, cluster: dectool.Cluster
) -> None:
    def twice(comm: Any) -> Any:
        before = comm.allreduce(np.arange(2.0))
        return [before, program(comm), comm.allreduce(np.arange(3.0) * comm.rank)]

    assert_as_in_sim(cluster, twice, n)


@pytest.mark.parametrize("elements", [3, 3_000_000])
@pytest.mark.parametrize("operation", ["allreduce", "allgather", "alltoall", "broadcast"])
def test_arrays_that_do_not_match_are_an_error(
    operation: str, elements: int, cluster: dectool.Cluster
) -> None:
    def program(comm: Any) -> None:
        comm.barrier()
        shape = (elements + (comm.rank == 1),)
        x = np.zeros((comm.size, *shape) if operation == "alltoall" else shape)
        getattr(comm, operation)(x)

    with pytest.raises(ContractError, match="hold different arrays") as caught:
        cluster.run(program, 3, timeout=5.0)
    assert f"float64[{elements}]" in str(caught.value)
    assert f"float64[{elements + 1}]" in str(caught.value)


MISMATCHES: dict[str, Callable[[Any, bool], Any]] = {
    "operator": lambda comm, odd: comm.allreduce(np.ones(3), "sum" if odd else "max"),
    "algorithm": lambda comm, odd: comm.allreduce(np.ones(3), "sum", "ring" if odd else "tree"),
    "operation": lambda comm, odd: (comm.allgather if odd else comm.allreduce)(np.ones(3)),
    "background": lambda comm, odd: (
        comm.iallreduce(np.ones(3)).wait() if odd else comm.allreduce(np.ones(3))
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_ranks_that_do_different_things_are_reported(name: str, cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        MISMATCHES[name](comm, comm.rank == 1)

    with pytest.raises(DeadlockError, match="waits in all") as caught:
        cluster.run(program, 3, timeout=1.0, stall_timeout=0.5)
    assert __file__ in str(caught.value)


def test_roots_that_differ_are_found(cluster: dectool.Cluster) -> None:
    with pytest.raises((DeadlockError, ContractError)):
        cluster.run(lambda comm: comm.broadcast(np.ones(3), comm.rank % 2), 4, timeout=1.0)


def test_a_rank_that_never_comes_is_reported(
    cluster: dectool.Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    def program(comm: Any) -> None:
        comm.barrier()
        if comm.rank == 2:
            time.sleep(60)
        comm.allreduce(np.ones(10))

    with pytest.raises(DeadlockError) as caught:
        cluster.run(program, 3, stall_timeout=0.5, timeout=1.0)
    for rank in (0, 1):
        assert f"rank {rank} waits in allreduce(mean, recursive_doubling) for rank" in str(
            caught.value
        )
    assert "comm.allreduce(np.ones(10))" in str(caught.value)
    assert "rank 2 does not wait: it is at" in str(caught.value)
    assert "rank 0 waits in allreduce(mean, recursive_doubling)" in capfd.readouterr().err


def test_a_rank_that_has_returned_is_found_at_once(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> None:
        comm.barrier()
        if comm.rank:
            comm.allreduce(np.ones(10))

    cluster.run(lambda comm: None, 3)  # starts processes where a test before has ended them
    began = time.monotonic()
    with pytest.raises(DeadlockError, match="of these, 0 returned"):
        cluster.run(program, 3)
    assert time.monotonic() - began < 3.0


def test_a_broadcast_to_a_rank_that_has_returned_is_an_unreceived_message(
    cluster: dectool.Cluster,
) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.broadcast(np.ones(3))

    with pytest.raises(ContractError, match="1 message sent but never received"):
        cluster.run(program, 2)


def test_more_groups_than_there_is_room_for(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> Any:
        groups = [comm.split(0) for _ in range(300)]
        return [float(group.allreduce(np.ones(1), "sum")[0]) for group in groups * 2]

    assert set(cluster.run(program, 2, timeout=20.0).values[0]) == {2.0}


def test_results_are_arrays_of_their_own(cluster: dectool.Cluster) -> None:
    def program(comm: Any) -> Any:
        x = np.full(4, float(comm.rank))
        results = [
            comm.broadcast(x),
            comm.allgather(x),
            comm.allreduce(x, "max"),
            comm.alltoall(np.stack([x] * comm.size)),
        ]
        before = [result.copy() for result in results]
        for k in range(4):
            comm.allgather(np.full(4, 99.0 + k))
            comm.allreduce(np.full(4, 99.0 + k))
        comm.barrier()
        x[:] = -1.0
        return all(np.array_equal(a, b) for a, b in zip(before, results, strict=True))

    assert all(cluster.run(program, 2).values)
