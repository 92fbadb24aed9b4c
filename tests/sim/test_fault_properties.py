"""Whatever goes wrong: a run ends, is the same again, and every message is accounted for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import sim, topology
from dectool.errors import DeadlockError, MessageLostError
from dectool.sim.faults import _mortal
from dectool.sim.faults._account import Account

N = 5
RANKS = st.integers(0, N - 1)
TIMES = st.floats(0.0, 6.0)
LENGTHS = st.floats(0.01, 3.0)
MAYBE = st.one_of(st.none(), RANKS)


def links(make: Any) -> Any:
    """Return faults of links between two ranks that differ."""
    ends = st.tuples(RANKS, RANKS).filter(lambda pair: pair[0] != pair[1])
    return ends.flatmap(lambda pair: make(*pair))


FAULTS = st.one_of(
    st.builds(sim.MessageLoss, st.floats(0.0, 1.0), MAYBE),
    links(
        lambda a, b: st.builds(
            lambda start, length, both: sim.LinkDown(a, b, start, start + length, both),
            TIMES, LENGTHS, st.booleans(),
        )
    ),
    st.builds(sim.RandomLinkDown, LENGTHS, LENGTHS, MAYBE),
    st.builds(sim.SlowLink, st.floats(1.0, 5.0), MAYBE),
    st.builds(
        lambda rank, factor, start, length: sim.SlowPeriod(rank, factor, start, start + length),
        RANKS, st.floats(1.0, 5.0), TIMES, LENGTHS,
    ),
    st.builds(sim.RandomSlowPeriods, st.floats(1.0, 5.0), LENGTHS, LENGTHS, MAYBE),
    st.builds(sim.Crash, RANKS, TIMES, st.one_of(st.none(), LENGTHS)),
    st.builds(sim.RandomCrashes, LENGTHS, st.one_of(st.none(), LENGTHS), st.integers(1, 3), MAYBE),
    st.builds(sim.LateJoin, RANKS, LENGTHS),
)  # fmt: skip
PLANS = st.lists(FAULTS, max_size=5)
NETWORKS = st.sampled_from(
    [
        sim.AlphaBeta(),
        sim.AlphaBeta(latency=0.2, bandwidth=100.0),
        sim.AlphaBeta(latency=0.05, bandwidth=200.0, port="parallel"),
        sim.LogGP(L=0.1, o=0.01, g=0.02, G=0.002),
    ]
)


def program(comm: Any) -> Any:
    """Neighbours and pairs, in the background too, whoever is left."""
    x = comm.rng("x").normal(size=2)
    with comm.computing():
        pass
    x = comm.neighbor_allreduce(x)
    for _ in comm.steps(8):
        with comm.computing():
            pass
        request = comm.ineighbor_allreduce(x)
        x = comm.neighbor_allreduce(x, missing="renormalize") + request.wait()
        peer = comm.rank ^ 1
        x = comm.pair_gossip(x, peer if peer < comm.size else -1)
        edges = comm.neighbor_allgather(x)
        x = x / (1.0 + np.abs(edges).max())
    return x.tobytes(), comm.now(), comm.restarts


def messages(comm: Any) -> Any:
    """Single messages and collectives, as long as they go well."""
    told = 0
    for _ in range(4):
        try:
            comm.sendrecv(1.0, (comm.rank + 1) % N, (comm.rank - 1) % N)
            comm.iallreduce(np.ones(3)).wait()
            comm.barrier()
        except MessageLostError:
            told += 1
    return told, comm.now(), comm.restarts


def run(faults: Any, network: Any, seed: int, program: Any = program) -> Any:
    return dectool.run(
        program,
        backend="sim",
        topology=topology.ring(N),
        network=network,
        compute=sim.Exponential(0.3),
        seed=seed,
        faults=faults,
        missing="self",
        detection=0.05,
    )


@settings(max_examples=60)
@given(faults=PLANS, network=NETWORKS, seed=st.integers(0, 3))
def test_any_plan_ends_and_repeats(faults: Any, network: Any, seed: int) -> None:
    results = [run(faults, network, seed) for _ in range(2)]
    for name in ("values", "times", "messages", "faults"):
        assert getattr(results[0], name) == getattr(results[1], name)


@settings(max_examples=40)
@given(faults=PLANS, network=NETWORKS, seed=st.integers(0, 3))
def test_collectives_end_too(faults: Any, network: Any, seed: int) -> None:
    """Who gives one up may leave others waiting for it: that is told, and is the same again."""
    results = []
    for _ in range(2):
        try:
            results.append(run(faults, network, seed, messages).values)
        except DeadlockError as error:
            results.append(str(error))
    assert results[0] == results[1]


@settings(max_examples=60)
@given(faults=PLANS, network=NETWORKS, seed=st.integers(0, 3))
def test_messages_sent_are_received_lost_or_left(faults: Any, network: Any, seed: int) -> None:
    def neighbours_only(comm: Any) -> Any:
        x = np.ones(2)
        for _ in comm.steps(6):
            with comm.computing():
                pass
            x = comm.neighbor_allreduce(x)
            request = comm.ineighbor_allreduce(x)
            x = comm.pair_gossip(request.wait(), (comm.rank ^ 1) if comm.rank < N - 1 else -1)
        return x

    with pytest.MonkeyPatch.context() as patch:
        made: list[Account] = []
        patch.setattr(_mortal, "Account", lambda: made.append(Account()) or made[-1])
        result = dectool.run(
            neighbours_only, backend="sim", topology=topology.ring(N), network=network,
            compute=sim.Exponential(0.3), seed=seed, faults=[*faults, sim.MessageLoss(0.0)],
            missing="self", detection=0.05,
        )  # fmt: skip
    (account,) = made
    report = result.faults
    assert report.messages == result.messages
    assert report.messages == account.received + report.messages_lost
    assert report.bytes_lost == 16 * report.messages_lost
    assert report.bytes == 16 * report.messages
    # An average of ones is one, whatever is missing.
    for value in result.values:
        assert value is None or np.allclose(value, 1.0, atol=1e-12)


def test_the_fate_of_a_message_does_not_depend_on_what_others_do() -> None:
    """Ranks 2 to 4 send more, and at other times: the same messages of 0 to 1 are lost."""

    def lost(busy: bool) -> Any:
        def program(comm: Any) -> Any:
            if comm.rank > 1 and busy:
                comm.elapse(0.37)
                for _ in range(50):
                    comm.sendrecv(1.0, 2 + (comm.rank - 1) % 3, 2 + (comm.rank - 3) % 3, tag=1)
            if comm.rank == 0:
                for _ in range(200):
                    comm.send(1.0, 1)
            if comm.rank == 1:
                return [tolerant(comm) for _ in range(200)]
            return None

        loss = [sim.MessageLoss(0.3, source=0)]
        return dectool.run(program, N, backend="sim", faults=loss).values[1]

    def tolerant(comm: Any) -> bool:
        try:
            comm.recv(0)
        except MessageLostError:
            return False
        return True

    quiet = lost(False)
    assert quiet == lost(True)
    assert 0.2 < quiet.count(False) / 200 < 0.4


def test_seeds_differ() -> None:
    reports = {
        str(run([sim.MessageLoss(0.3)], sim.AlphaBeta(0.1), seed).faults) for seed in range(4)
    }
    assert len(reports) == 4
