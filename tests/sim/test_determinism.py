"""A run follows from its arguments: ten times the same, another seed another."""

from __future__ import annotations

from typing import Any

import numpy as np

import dectool
from dectool import sim, topology


def program(comm: Any) -> Any:
    x = comm.rng("start").normal(size=3)
    for _ in range(20):
        comm.elapse(comm.rng("work").exponential(1e-3))
        with comm.computing():
            pass
        request = comm.iallreduce(x, "sum", "ring")
        x = comm.neighbor_allreduce(x)
        x = x + 1e-3 * request.wait()
        if comm.size > 1:
            comm.isend(x, (comm.rank + 1) % comm.size, tag=1)
            comm.recv((comm.rank - 1) % comm.size, tag=1)
    return x.tobytes()


def outcome(network: Any, seed: int) -> Any:
    result = dectool.run(
        program,
        topology=topology.exponential(6),
        network=network,
        compute=sim.LogNormal(1e-3, 0.5),
        seed=seed,
        trace=True,
    )
    assert result.trace is not None
    return (
        list(result.values),
        list(result.times),
        result.messages,
        result.bytes,
        result.trace.spans,
        result.trace.messages,
    )


def test_ten_runs_are_equal_and_seeds_differ() -> None:
    for network in (
        sim.AlphaBeta(1e-4, 1e6),
        sim.AlphaBeta(1e-4, 1e6, port="parallel"),
        sim.LogGP(1e-4, 1e-6, 1e-6, 1e-7),
    ):
        first = outcome(network, 0)
        assert all(outcome(network, 0) == first for _ in range(9))
        other = outcome(network, 1)
        assert other[0] != first[0]
        assert other[1] != first[1]


def test_numpys_global_state_plays_no_part() -> None:
    legacy = np.random.RandomState(0)
    first = outcome(sim.AlphaBeta(), 0)
    np.random.seed(legacy.randint(1000))  # noqa: NPY002 (the state that must play no part)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert outcome(sim.AlphaBeta(), 0) == first
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
