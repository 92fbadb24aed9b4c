"""What goes between nodes comes in pieces, and is summed as it comes; here all ranks are far."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import topology
from dectool.backends.mpi._arriving import STEP, ArrivingAverage
from dectool.backends.mpi._engine import Receipt
from dectool.communicator import NeighborPlan, Parcel
from dectool.communicator._parcel import pack
from dectool.errors import ContractError
from dectool.testing import assert_same_bits
from tests.mpi.test_shared_memory import directed, rounds

UNEVEN = directed(
    [[0.5, 0.0, 0.0, 0.5], [0.7, 0.3, 0.0, 0.0], [0.0, 0.9, 0.1, 0.0], [0.0, 0.2, 0.8, 0.0]]
)


def apart(comm: Any) -> None:
    """Treat every other rank as one of another node."""
    if comm.backend == "mpi":
        comm._engine.boards.near = frozenset({comm.rank})
        comm._engine.boards.node = {}
    comm.barrier()


def far_rounds(comm: Any, seed: int) -> list[Any]:
    apart(comm)
    return rounds(comm, seed, 14, 300_001)


def large(comm: Any) -> list[Any]:
    apart(comm)
    kept = []
    for k, dtype in enumerate(("float64", "float32", "complex64", "float16", "int64")):
        x = np.random.default_rng([k, comm.rank]).normal(size=700_003 + k)
        x = (100 * x).astype(dtype)
        if dtype != "int64":
            kept.append(comm.neighbor_allreduce(x, UNEVEN))
        kept.append(comm.sendrecv(x, (comm.rank + 1) % 4, (comm.rank - 1) % 4)[::1000])
        kept.append(comm.broadcast(x)[::1000])
    return kept


@pytest.mark.parametrize(
    ("program", "args"), [(large, ()), *((far_rounds, (seed,)) for seed in range(4))]
)
def test_pieces_have_the_bits_of_sim(program: Any, args: Any, cluster: dectool.Cluster) -> None:
    expected = dectool.run(program, n=4, backend="sim", args=args)
    got = cluster.run(program, n=4, args=args, timeout=20.0)
    for rank in range(4):
        assert_same_bits(got.values[rank], expected.values[rank], f"rank {rank}")
    assert (got.messages, got.bytes) == (expected.messages, expected.bytes)


def test_what_has_come_is_summed_before_the_rest_comes() -> None:
    """Each step sums what both sources have by then, in whole steps, and the rest at the end."""
    mine, others = parcel_of(0), [parcel_of(1), parcel_of(2)]
    receipts = [Receipt(1, ("c",)), Receipt(2, ("c",))]
    there = {1: 0, 2: 0}

    class FakeEngine:
        def arriving(self, receipt: Receipt) -> Any:
            parcel = others[receipt.source - 1]
            return SimpleNamespace(parcel=parcel, bytes=there[receipt.source])

    plan = NeighborPlan((1, 2), (1, 2), (0.5, 0.25, 0.25), 0)
    average = ArrivingAverage(FakeEngine(), mine, receipts, plan, "float64")  # type: ignore[arg-type]
    expected = 0.5 * mine.buffers[0] + 0.25 * others[0].buffers[0] + 0.25 * others[1].buffers[0]
    for one, two, summed in ((STEP, 0, 0), (3 * STEP, STEP - 8, 0), (3 * STEP, 2 * STEP, 2 * STEP)):
        there.update({1: one, 2: two})
        average.result[:] = -1.0
        assert not average.step()
        done = summed // 8
        np.testing.assert_allclose(average.result[:done], expected[:done], rtol=1e-14)
        assert (average.result[done:] == -1.0).all()
    for receipt, parcel in zip(receipts, others, strict=True):
        receipt.content = parcel
    average.step()
    done = 2 * STEP // 8
    np.testing.assert_allclose(average.result[done:], expected[done:], rtol=1e-14)


def parcel_of(rank: int) -> Parcel:
    buffers, layout = pack(np.random.default_rng(rank).normal(size=5 * STEP // 8 + 3))
    return Parcel(buffers, layout, 7)


@pytest.mark.parametrize("other", ["shape", "dtype"])
def test_disagreement_is_an_error_on_both_ranks(cluster: dectool.Cluster, other: str) -> None:
    def program(comm: Any) -> tuple[str, float]:
        apart(comm)
        x = np.ones(200_000)
        wrong = {"shape": np.ones(150_000), "dtype": x.astype(np.float32)}[other]
        said = ""
        try:
            comm.neighbor_allreduce(wrong if comm.rank else x, topology.ring(2))
        except ContractError as error:
            said = str(error)
        return said, float(comm.neighbor_allreduce(np.full(99_999, 3.0), topology.ring(2)).max())

    for said, value in cluster.run(program, n=2, timeout=5.0).values:
        assert "hold different arrays" in said
        assert value == 3.0
