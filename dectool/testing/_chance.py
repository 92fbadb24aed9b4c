"""Checks of time, chance, and values that differ between ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.testing._check import SIZES, check
from dectool.testing._compare import assert_same_bits
from dectool.testing._runner import Runner


@check()
def clocks_go_forward_by_what_elapses(runner: Runner) -> None:
    """Each rank has its own clock; a computation without a model takes no negative time."""
    for n in SIZES:
        waits = [0.002 * (rank + 1) for rank in range(n)]

        def program(comm: Any, waits: Any = waits) -> Any:
            start = comm.now()
            comm.elapse(comm.per_rank(waits.__getitem__))
            own = comm.now()
            comm.elapse(0.001)
            with comm.computing():
                pass
            return {"own": own - start, "end": comm.now() - own}

        for rank, value in enumerate(runner(program, n)):
            assert float(value["own"]) >= waits[rank] * (1 - 1e-9), f"elapse on rank {rank} of {n}"
            assert float(value["end"]) >= 0.001 * (1 - 1e-9), f"elapse on rank {rank} of {n}"


@check()
def a_value_is_not_received_before_it_is_sent(runner: Runner) -> None:
    """Whoever depends on a late rank has a clock after that rank's sending."""

    def program(comm: Any) -> Any:
        comm.elapse(comm.per_rank(lambda rank: 0.01 if rank == 2 else 0.0))
        sent = comm.now()
        comm.allreduce(comm.per_rank(lambda rank: np.array([1.0])))
        return {"sent": sent, "done": comm.now()}

    got = runner(program, 5)
    for rank, value in enumerate(got):
        assert float(value["done"]) >= float(got[2]["sent"]), f"rank {rank} was early"


@check()
def chance_follows_from_seed_rank_and_purpose(runner: Runner) -> None:
    """The draws of dectool's generators, as every backend must make them."""
    for n in (1, 3):
        for seed in (0, 12345):

            def program(comm: Any) -> Any:
                return {
                    "a": comm.rng("a").normal(size=2),
                    "b": comm.rng("b").integers(1000, size=3),
                    "more": comm.rng("a").random(),
                }

            got, again = runner(program, n, seed=seed), runner(program, n, seed=seed)
            for rank in range(n):
                mine, other = reference(seed, rank, "a"), reference(seed, rank, "b")
                first = mine.normal(size=2)
                expected = {"a": first, "b": other.integers(1000, size=3), "more": mine.random()}
                assert_same_bits(got[rank], expected, f"rng, seed {seed}, rank {rank}")
                assert_same_bits(again[rank], expected, f"rng again, seed {seed}, rank {rank}")


def reference(seed: int, rank: int, purpose: str) -> np.random.Generator:
    """Return the generator that ``comm.rng(purpose)`` is defined to be.

    That is NumPy's default one, seeded with ``SeedSequence(seed)`` whose spawn key is the rank and
    the first two little-endian 32-bit words of the SHA-256 of the purpose.
    """
    import hashlib
    import struct

    words = struct.unpack("<II", hashlib.sha256(purpose.encode()).digest()[:8])
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(rank, *words)))


@check()
def per_rank_makes_values_that_differ(runner: Runner) -> None:
    """Arrays, numbers and containers of them."""

    def make(rank: int) -> Any:
        return {
            "x": np.full(2, float(rank)),
            "pair": (np.float32(rank), [np.arange(rank, rank + 3)]),
        }

    got = runner(lambda comm: comm.per_rank(make), 4)
    for rank in range(4):
        assert_same_bits(got[rank], make(rank), f"per_rank on rank {rank}")
