"""Checks of the operations of all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.testing import _oracle as oracle
from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits, to_numpy
from dectool.testing._kinds import (
    Kind,
    averageable,
    numpy_kind,
    small_whole_numbers,
    values,
    whole,
)
from dectool.testing._neighborhood import like
from dectool.testing._runner import Runner, apply

ALGORITHMS = ("auto", "ring", "recursive_doubling", "rabenseifner", "tree")


def _operators(kind: Kind) -> list[str]:
    ordered = [] if kind.is_complex else ["max", "min"]
    mean = ["mean"] if kind in averageable() or "int" not in kind.name else []
    return ["sum", "prod", *ordered, *mean]


def _by_all_algorithms(comm: Any, x: Any, op: str) -> Any:
    return {algorithm: comm.allreduce(x, op, algorithm) for algorithm in ALGORITHMS}


def _exact(kind: Kind, n: int, shape: tuple[int, ...], op: str) -> list[Any]:
    xs = small_whole_numbers(kind, n, shape, 53)
    if op != "prod":
        return xs
    ones = xs[0] * 0 + 1
    return [x - x + (2 if rank == 1 else 1) * ones for rank, x in enumerate(xs)]


@check()
def allreduce_reduces_over_all_ranks(runner: Runner) -> None:
    """Each operator by each algorithm, on numbers whose sums are exact in any order."""
    for n in SIZES:
        for kind in [*averageable(), *whole()]:
            for op in _operators(kind):
                xs = _exact(kind, n, (5, 2), op)
                got = apply(runner, _by_all_algorithms, xs, op)
                expected = like(kind, oracle.reduced(op, xs))
                for rank in range(n):
                    for algorithm in ALGORITHMS:
                        where = f"allreduce({op}, {algorithm}) of {kind.name}, rank {rank} of {n}"
                        assert_same_bits(got[rank][algorithm], expected, where)


@check()
def allreduce_gives_every_rank_the_same_bits(runner: Runner) -> None:
    """Also where the order of a sum shows, and of -0.0 and 0.0; near the exact mean."""
    for n in SIZES:
        xs = values(numpy_kind("float64"), n, (7,), 59)
        zeros = [np.array([-0.0 if rank % 2 else 0.0, rank or np.nan]) for rank in range(n)]
        mean = np.mean([to_numpy(x) for x in xs], axis=0)
        for algorithm in ALGORITHMS:
            got = apply(runner, "allreduce", xs, "mean", algorithm)
            top = apply(runner, "allreduce", zeros, "max", algorithm)
            np.testing.assert_allclose(got[0], mean, rtol=1e-13, atol=1e-15)
            for rank in range(1, n):
                where = f"allreduce({algorithm}), rank {rank} of {n}"
                assert_same_bits(got[rank], got[0], where)
                assert_same_bits(top[rank], top[0], where)


@check()
def bools_are_reduced_by_max_and_min(runner: Runner) -> None:
    """That is any and all."""
    flags = [np.array([rank == 1, True, False, rank != 1]) for rank in range(3)]
    got = runner(
        lambda comm: {
            op: comm.allreduce(comm.per_rank(flags.__getitem__), op) for op in ("max", "min")
        },
        3,
    )
    for value in got:
        assert_same_bits(value["max"], np.array([True, True, False, True]), "any")
        assert_same_bits(value["min"], np.array([False, True, False, False]), "all")


@check()
def reduce_scatter_reduces_row_i_into_rank_i(runner: Runner) -> None:
    """In ascending rank order, so that even inexact sums are defined."""
    for n in SIZES:
        for kind in [*averageable(), *whole()]:
            for op in _operators(kind):
                xs = _exact(kind, n, (n, 2), op)
                got = apply(runner, "reduce_scatter", xs, op)
                for rank in range(n):
                    expected = like(kind, oracle.reduced(op, [x[rank] for x in xs]))
                    where = f"reduce_scatter({op}) of {kind.name}, rank {rank} of {n}"
                    assert_same_bits(got[rank], expected, where)
        inexact = values(numpy_kind("float64"), n, (n, 3), 61)
        got = apply(runner, "reduce_scatter", inexact, "sum")
        for rank in range(n):
            expected = oracle.reduced("sum", [x[rank] for x in inexact])
            assert_same_bits(got[rank], expected, f"order of reduce_scatter, rank {rank} of {n}")


@check()
def allgather_and_alltoall_move_rows(runner: Runner) -> None:
    """Row j is what rank j holds, or what it sent here."""
    for n in SIZES:
        for kind in [*averageable(), *whole(), numpy_kind("bool")]:
            xs = values(kind, n, (n, 2), 67)
            gathered = apply(runner, "allgather", xs)
            sent = apply(runner, "alltoall", xs)
            for rank in range(n):
                where = f"{kind.name} on rank {rank} of {n}"
                for source in range(n):
                    assert_same_bits(gathered[rank][source], xs[source], where)
                    assert_same_bits(sent[rank][source], xs[source][rank], where)


@check()
def broadcast_hands_out_what_the_root_holds(runner: Runner) -> None:
    """From every root."""
    for n in SIZES:
        for kind in [*averageable(), *whole(), numpy_kind("bool")]:
            xs = values(kind, n, (3,), 71, special=kind.name == "numpy float64")
            for root in range(n):
                got = apply(runner, "broadcast", xs, root)
                for rank in range(n):
                    where = f"broadcast of {kind.name} from {root} to rank {rank} of {n}"
                    assert_same_bits(got[rank], xs[root], where)


@check()
def barrier_lets_nobody_pass_before_all_have_come(runner: Runner) -> None:
    """After it, no clock is before the latest arrival."""
    for n in SIZES:
        waits = [0.01 * ((rank * 3) % n) for rank in range(n)]

        def program(comm: Any, waits: Any = waits) -> Any:
            comm.elapse(comm.per_rank(waits.__getitem__))
            before = comm.now()
            comm.barrier()
            return {"before": before, "after": comm.now()}

        got = runner(program, n)
        latest = max(float(value["before"]) for value in got)
        for rank in range(n):
            assert float(got[rank]["after"]) >= latest, f"rank {rank} of {n} passed a barrier early"
