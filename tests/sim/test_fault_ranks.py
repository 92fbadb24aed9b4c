"""Ranks that crash, come back, come late or slow down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.errors import DeadlockError, MessageLostError, PeerLostError

LATENCY = 0.5
NET = sim.AlphaBeta(latency=LATENCY)
LOGGP = sim.LogGP(L=LATENCY)


def run(program: Any, n: int | None = 3, **options: Any) -> Any:
    return dectool.run(program, n, **{"backend": "sim", "network": NET, **options})


@pytest.mark.parametrize("network", [NET, LOGGP])
def test_what_was_sent_before_a_crash_arrives_and_nothing_else(network: Any) -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            for k in range(10):
                comm.send(float(k), 1)
                comm.elapse(1.0)
            return "never"
        got: list[float] = []
        try:
            while True:
                got += [comm.recv(0)]
        except PeerLostError as error:
            return got, comm.now(), str(error)

    crash = sim.Crash(0, at=3.2)
    result = run(program, 2, network=network, faults=[crash], detection=0.25)
    got, now, text = result.values[1]
    assert got == [0.0, 1.0, 2.0, 3.0]
    assert now == 3.5  # the last message came after what the detector needs
    assert "gets nothing from rank 0, which crashed at t = 3.2 s" in text
    assert result.values[0] is None
    assert result.times[0] == 3.2
    assert result.faults.events == ((0, "crash", 3.2),)
    assert result.faults.crashed == (0,)


def test_a_message_that_has_not_left_when_its_sender_crashes_is_lost() -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.send(np.zeros(100), 1)  # 1 s on the wire
            comm.send(np.zeros(100), 1)
            comm.elapse(9.0)
            return None
        got = 0
        try:
            while True:
                comm.recv(0)
                got += 1
        except PeerLostError:
            return got

    net = sim.AlphaBeta(bandwidth=800.0)
    result = run(program, 2, network=net, faults=[sim.Crash(0, at=1.5)])
    assert result.values == [None, 1]
    assert result.faults.lost == ((0, 1, "sender crashed", 1, 800),)


def test_a_receiver_that_is_ahead_does_not_give_up_what_is_still_to_be_sent() -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.recv(2)
            comm.send(3.0, 1)
            comm.elapse(9.0)
        elif comm.rank == 1:
            comm.elapse(10.0)
            return comm.recv(0)
        else:
            comm.elapse(3.4)
            comm.send(1.0, 0)
        return None

    assert run(program, faults=[sim.Crash(0, at=4.0)]).values == [None, 3.0, None]


def test_a_clock_that_runs_ahead_stops_at_the_crash() -> None:
    """A rank that only computes never waits, and yet does nothing after its crash."""
    seen = []

    def program(comm: Any) -> None:
        for k in range(10):
            comm.elapse(1.0)
            if comm.rank == 1:
                seen.append((k, comm.now()))

    result = run(program, 2, faults=[sim.Crash(1, at=4.0)])
    assert seen == [(k, k + 1.0) for k in range(3)]
    assert result.times == [10.0, 4.0]


def test_a_waiting_rank_crashes_too_and_its_finally_blocks_run() -> None:
    ends = []

    def program(comm: Any) -> None:
        if comm.rank == 0:
            try:
                comm.recv(1)
            finally:
                ends.append(comm.now())
                comm.send(1.0, 1)  # a dead rank sends nothing
        else:
            comm.elapse(5.0)

    result = run(program, 2, faults=[sim.Crash(0, at=2.0)])
    assert ends == [2.0]
    assert result.messages == 0


def test_background_strands_die_with_their_rank() -> None:
    def program(comm: Any) -> Any:
        request = comm.iallreduce(np.ones(4), algorithm="ring")
        comm.elapse(0.75)
        try:
            request.wait()
        except MessageLostError as error:
            return type(error).__name__, comm.now()
        return None

    result = run(program, 2, faults=[sim.Crash(1, at=0.6)], detection=0.25)
    assert result.values[1] is None
    # The first round arrives at 0.5 s; the second was sent then, and is under way at the crash.
    assert result.values[0] is None
    result = run(program, 2, faults=[sim.Crash(1, at=0.25)], detection=0.25)
    assert result.values[0] == ("PeerLostError", 0.75)


def test_a_receiver_that_is_dead_receives_nothing() -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.send(1.0, 1)
            comm.elapse(1.0)
            comm.send(2.0, 1)
        else:
            comm.elapse(3.0)

    result = run(program, 2, faults=[sim.Crash(1, at=1.0)])
    lost = {(link.reason, link.messages) for link in result.faults.lost}
    assert lost == {("receiver crashed", 2)}


def test_a_message_that_was_coming_in_at_the_crash_is_lost() -> None:
    """Its first byte came before, its last while nobody was there."""

    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.send(np.zeros(125), 1)
            comm.elapse(20.0)
            return None
        try:
            return comm.recv(0)
        except PeerLostError:
            return comm.now()

    network = sim.LogGP(L=0.5, G=0.002)
    crash = sim.Crash(1, at=1.0, restart_after=8.0)
    result = run(program, 2, network=network, faults=[crash], detection=0.25)
    assert result.values == [None, 20.25]
    assert result.faults.lost == ((0, 1, "receiver crashed", 1, 1000),)


def test_a_rank_comes_back_without_its_memory() -> None:
    def program(comm: Any) -> Any:
        start = comm.now()
        if comm.rank == 0:
            comm.elapse(3.0)
            return comm.restarts, start
        got = []
        for _ in range(2):
            try:
                got.append(comm.recv(0, tag=comm.rank))
            except PeerLostError:
                got.append("gone")
        return got

    def sender(comm: Any) -> Any:
        if comm.rank == 0 and comm.restarts:
            comm.send(7.0, 1, tag=1)
        return program(comm)

    result = run(sender, 2, faults=[sim.Crash(0, at=1.0, restart_after=2.0)], detection=0.25)
    assert result.values == [(1, 3.0), ["gone", "gone"]]  # told at 1.25 s, and at once again
    assert result.faults.events == ((0, "crash", 1.0), (0, "restart", 3.0))
    assert result.faults.crashed == ()

    def patient(comm: Any) -> Any:
        if comm.rank == 1:
            comm.elapse(3.0)
        return sender(comm)

    result = run(patient, 2, faults=[sim.Crash(0, at=1.0, restart_after=2.0)], detection=0.25)
    assert result.values[1] == [7.0, "gone"]  # then its program has returned


@pytest.mark.parametrize("receiving", [False, True])
def test_a_new_life_has_nothing_of_the_former(receiving: bool) -> None:
    """Neither messages that nobody had taken, nor receipts that nobody had filled."""

    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.send(1.0, 1)
            comm.elapse(5.0)
            comm.send(2.0, 1)
            return None
        if not comm.restarts and receiving:
            assert comm.recv(0) == 1.0
        elif not comm.restarts:
            comm.elapse(9.0)
        return comm.recv(0)

    crash = sim.Crash(1, at=1.0, restart_after=1.0)
    assert run(program, 2, faults=[crash]).values == [None, 2.0]


def test_a_program_that_has_returned_keeps_its_value() -> None:
    def program(comm: Any) -> Any:
        comm.elapse(1.0 + comm.rank)
        if comm.rank == 1:
            comm.elapse(5.0)
            comm.send(1.0, 2)
        elif comm.rank == 2:
            comm.recv(1)
        return comm.restarts

    result = run(program, 3, faults=[sim.Crash(0, at=1.5, restart_after=0.25)])
    assert result.values == [0, 0, 0]


def test_a_rank_that_comes_back_takes_part_where_nobody_has_begun() -> None:
    """Its neighbours' averages of the same number meet its own, from its first one on."""
    faults: list[sim.Fault] = [sim.Crash(1, at=3.3, restart_after=4.0)]

    def program(comm: Any) -> Any:
        met = []
        for _ in range(12):
            comm.elapse(0.5)
            who = np.array([float(comm.rank + 10 * comm.restarts)])
            met.append(comm.neighbor_allgather(who, missing=np.full((2, 1), -1.0)).ravel().tolist())
        return met

    result = run(program, 4, topology=topology.ring(4), faults=faults)
    # Operation k begins at k + 0.5 s. At 7.3 s everybody has computed ahead to number 7.
    heard = [row[0] for row in result.values[0]]
    assert heard == [1.0] * 3 + [-1.0] * 5 + [11.0] * 4
    back = result.values[1]
    # It meets its neighbours in their last 4 operations; then they have returned.
    assert back[:4] == [[0.0, 2.0]] * 4
    assert back[4:] == [[-1.0, -1.0]] * 8


def test_a_late_rank_is_missing_until_it_comes() -> None:
    def program(comm: Any) -> Any:
        heard = []
        for _ in range(6):
            comm.elapse(1.0)
            x = np.array([1.0 + comm.rank])
            heard.append(float(comm.neighbor_allgather(x, missing=np.zeros((1, 1)))[0, 0]))
        return heard

    late = sim.LateJoin(1, at=2.6)
    result = run(program, 2, topology=topology.complete(2), faults=[late], detection=0.1)
    assert result.values[0] == [0.0, 0.0, 0.0, 2.0, 2.0, 2.0]
    assert result.values[1] == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert result.faults.events == ((1, "join", 2.6),)


def test_a_crash_from_the_start() -> None:
    def program(comm: Any) -> Any:
        return comm.neighbor_allreduce(np.ones(1)).tolist()

    result = run(
        program, None, topology=topology.ring(3), faults=[sim.Crash(2, at=0.0)], missing="self"
    )
    assert result.values == [[1.0], [1.0], None]


def test_crashes_may_follow_each_other_and_overlap() -> None:
    crashes = [sim.Crash(0, at=1.0, restart_after=1.0), sim.Crash(0, at=2.0, restart_after=1.0)]
    within = sim.Crash(0, at=2.5, restart_after=9.0)
    for faults in (crashes, [*crashes, within], [within, *crashes[::-1]]):
        result = run(lambda comm: (comm.restarts, comm.now()), faults=faults)
        assert result.values[1:] == [(0, 0.0), (0, 0.0)]
        result = run(lambda comm: (comm.elapse(1.5), comm.restarts, comm.now())[1:], faults=faults)
        assert result.values[0] == (2, 4.5)
        assert [event.time for event in result.faults.events] == [1.0, 2.0, 2.0, 3.0]


def test_all_ranks_may_crash() -> None:
    faults = [sim.Crash(rank, at=1.0 + rank) for rank in range(3)]
    result = run(lambda comm: comm.elapse(9.0), faults=faults)
    assert result.values == [None, None, None]
    assert result.times == [1.0, 2.0, 3.0]


def test_a_real_deadlock_stays_one() -> None:
    def program(comm: Any) -> None:
        if comm.rank < 2:
            comm.recv(1 - comm.rank)

    faults = [sim.Crash(2, at=5.0), sim.MessageLoss(0.5)]
    with pytest.raises(DeadlockError, match="2 of 3 ranks wait"):
        run(program, faults=faults)


def test_a_peer_that_has_returned_is_told_of() -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.recv(1)
        comm.elapse(1.0)

    with pytest.raises(PeerLostError, match=r"rank 1, whose program returned at t = 1 s"):
        run(program, 2, faults=[sim.MessageLoss(0.0)])


def test_a_slow_period_stretches_what_lies_in_it() -> None:
    """Half a second of work before it, four times slower in it, and the rest after it."""
    slow = [sim.SlowPeriod(0, 4.0, start=1.0, stop=3.0)]

    def program(comm: Any) -> Any:
        times = []
        for seconds in (0.5, 1.0, 0.25, 1.0):
            with comm.computing():
                pass
            comm.elapse(seconds)
            times.append(comm.now())
        return times

    result = run(program, 2, faults=slow)
    assert result.values[0] == [0.5, 3.0, 3.25, 4.25]
    assert result.values[1] == [0.5, 1.5, 1.75, 2.75]
    assert result.faults.slow == ((0, 1.5, 1),)
    both = [*slow, sim.SlowPeriod(0, 2.0, start=2.0, stop=2.5)]
    assert run(program, 2, faults=both).values[0] == [0.5, 3.0625, 3.3125, 4.3125]


def test_random_slow_periods_take_their_share_of_time() -> None:
    """In the long run a share p of the work time is slow: the clock runs 1/(1-p+p/f)... slower."""
    slow = [sim.RandomSlowPeriods(4.0, mean_between=3.0, mean_length=1.0)]
    result = run(lambda comm: (comm.elapse(40_000.0), comm.now())[1], 2, faults=slow)
    # A quarter of the time on the clock does a quarter of the work.
    assert result.values == pytest.approx([40_000.0 / (0.75 + 0.25 / 4)] * 2, rel=0.03)
    assert result.values[0] != result.values[1]


def test_random_crashes_have_their_mean() -> None:
    faults = [sim.RandomCrashes(2.0)]
    result = run(lambda comm: comm.elapse(1e6), 400, faults=faults)
    assert np.mean(result.times) == pytest.approx(2.0, rel=0.15)
    assert len(result.faults.events) == 400


def test_random_crashes_stop_after_the_most() -> None:
    faults = [sim.RandomCrashes(1.0, restart_after=0.5, most=3, rank=1)]
    result = run(lambda comm: (comm.elapse(20.0), comm.restarts)[1], 2, faults=faults)
    assert result.values == [0, 3]


def test_random_links_are_down_for_their_share() -> None:
    def program(comm: Any) -> Any:
        lost = 0
        for _ in range(4000):
            comm.elapse(0.5)
            try:
                comm.sendrecv(1.0, 1 - comm.rank, 1 - comm.rank)
            except MessageLostError:
                lost += 1
        return lost

    down = [sim.RandomLinkDown(mean_up=15.0, mean_down=5.0)]
    result = run(program, 2, network=sim.AlphaBeta(), faults=down, detection=0.0)
    assert result.values[0] == result.values[1]  # both directions fail together
    assert result.values[0] / 4000 == pytest.approx(0.25, abs=0.05)
