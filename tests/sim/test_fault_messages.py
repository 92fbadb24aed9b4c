"""Messages that are lost: who is told, when, and what an average makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.communicator._missing import Missing, without
from dectool.errors import DectoolError, MessageLostError, PeerLostError

LATENCY = 0.5
NET = sim.AlphaBeta(latency=LATENCY)
DOWN = [sim.LinkDown(0, 1, both=False)]


def run(program: Any, n: int = 3, **options: Any) -> Any:
    return dectool.run(program, n, **{"backend": "sim", "network": NET, **options})


def test_a_receiver_is_told_detection_after_the_arrival() -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.elapse(1.0)
            comm.send(np.ones(2), 1, tag=7)
        if comm.rank == 1:
            with pytest.raises(MessageLostError) as caught:
                comm.recv(0, tag=7)
            assert not isinstance(caught.value, PeerLostError)
            return comm.now(), str(caught.value)
        return None

    result = run(program, faults=DOWN, detection=0.25)
    time, text = result.values[1]
    assert time == 1.0 + LATENCY + 0.25
    assert text.startswith("rank 1: recv(tag=7) gets nothing from rank 0, as the link was down")
    assert "(sent at t = 1 s)" in text
    assert "(noticed at t = 1.75 s)" in text
    assert "catch MessageLostError" in text
    assert result.faults.lost == ((0, 1, "link down", 1, 16),)


def test_the_errors_are_those_of_dectool_and_of_connections() -> None:
    assert issubclass(PeerLostError, MessageLostError)
    assert issubclass(MessageLostError, DectoolError)
    assert issubclass(MessageLostError, ConnectionError)


def test_a_lost_message_keeps_its_place_in_the_order() -> None:
    """What is sent before and after it on the same channel is received as ever."""

    def program(comm: Any) -> Any:
        if comm.rank == 0:
            for k in range(3):
                comm.send(float(k), 1)
                comm.elapse(1.0)
            return None
        got = []
        for _ in range(3):
            try:
                got.append(comm.recv(0))
            except MessageLostError:
                got.append(None)
        return got

    down = sim.LinkDown(1, 0, start=1.0, stop=1.2)
    for late in (False, True):

        def late_program(comm: Any, late: bool = late) -> Any:
            if late and comm.rank == 1:
                comm.elapse(10.0)
            return program(comm)

        assert run(late_program, 2, faults=[down]).values[1] == [0.0, None, 2.0]


@pytest.mark.parametrize(
    ("start", "stop", "lost"),
    [(0.0, 1.0, False), (0.9, 1.1, True), (1.2, 1.3, True), (1.5, 2.0, True), (1.6, 2.0, False)],
)
def test_a_link_that_fails_takes_what_is_under_way(start: float, stop: float, lost: bool) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.elapse(1.0)
            comm.send(1.0, 1)
        elif comm.rank == 1:
            comm.recv(0)

    faults = [sim.LinkDown(0, 1, start, stop)]
    if lost:
        with pytest.raises(MessageLostError):
            run(program, faults=faults)
    else:
        run(program, faults=faults)


def test_a_slow_link_takes_its_factor_longer() -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.send(np.zeros(10), 1)
            comm.elapse(5.0)
            comm.send(np.zeros(10), 1)
            return None
        return [(comm.recv(0), comm.now())[1] for _ in range(2)]

    net = sim.AlphaBeta(latency=0.5, bandwidth=80.0)
    result = run(program, 2, network=net, faults=[sim.SlowLink(3.0, dest=1, stop=2.0)])
    assert result.values[1] == [4.5, 6.5]

    def twice(comm: Any) -> Any:
        if comm.rank == 0:
            return [comm.send(np.zeros(10), 1) for _ in range(2)]
        return [(comm.recv(0), comm.now())[1] for _ in range(2)]

    slow = [sim.SlowLink(3.0)]
    result = run(twice, 2, network=sim.AlphaBeta(bandwidth=80.0), faults=slow)
    assert result.values[1] == [3.0, 6.0]  # the second waits for the first to leave
    assert result.faults.messages_lost == 0


def average(missing: Any, **options: Any) -> Any:
    """Average 10, 20, 40 with weights 1/4, 1/2, 1/4 on rank 1 of a path."""
    W = np.array([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]])
    options = {"topology": topology.from_matrix(W), "faults": DOWN, **options}
    return run(
        lambda comm: float(comm.neighbor_allreduce(np.array([10.0, 20.0, 40.0])[[comm.rank]])[0]),
        missing=missing,
        **options,
    )


def test_renormalize_rescales_the_weights_of_those_present() -> None:
    values = average("renormalize").values
    assert values[0] == 12.5
    assert values[1] == pytest.approx((0.5 * 20 + 0.25 * 40) / 0.75, rel=1e-15)
    assert values[2] == 35.0


def test_self_gives_the_missing_weight_to_oneself() -> None:
    assert average("self").values == [12.5, 0.25 * 20 + 0.5 * 20 + 0.25 * 40, 35.0]


def test_error_says_what_to_do() -> None:
    with pytest.raises(MessageLostError) as caught:
        average("error")
    assert "rank 1: neighbor_allreduce gets nothing from rank 0" in str(caught.value)
    assert "pass missing='self' or 'renormalize'" in str(caught.value)
    assert "raised by rank 1 of 3 at t = 0.51 s" in caught.value.__notes__[0]


def test_all_neighbours_missing_leaves_ones_own_value() -> None:
    values = average("renormalize", faults=[sim.MessageLoss(1.0)]).values
    assert values == [10.0, 20.0, 40.0]


def test_nothing_to_rescale_is_an_error() -> None:
    swap = topology.from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(MessageLostError):
        run(
            lambda comm: comm.neighbor_allreduce(np.ones(1)), 2, topology=swap,
            faults=[sim.MessageLoss(1.0)], missing="renormalize",
        )  # fmt: skip


def test_a_call_may_choose_its_own_policy() -> None:
    def program(comm: Any) -> Any:
        x = np.array([float(comm.rank)])
        assert comm.missing == "renormalize"
        own = comm.neighbor_allreduce(x, missing="self")
        request = comm.ineighbor_allreduce(x, missing="self")
        comm.missing = "self"
        return own.tolist(), request.wait().tolist(), comm.neighbor_allreduce(x).tolist()

    loss = [sim.MessageLoss(1.0)]
    result = run(program, topology=topology.ring(3), faults=loss, missing="renormalize")
    assert result.values == [([float(r)],) * 3 for r in range(3)]


def test_allgather_takes_rows_from_elsewhere() -> None:
    def program(comm: Any) -> Any:
        x = np.array([10.0 * comm.rank])
        before = np.array([[-1.0], [-2.0]])
        last = comm.neighbor_allgather(x, missing=before)
        own = comm.neighbor_allgather(x, missing="self")
        both = comm.neighbor_allgather((x, 2 * x), missing=(before, 3 * before))
        # Row by row the same as an average that replaces what is missing by one's own.
        mixed = comm.mix(comm.neighbor_allgather(x, missing="self"), own=x)
        assert mixed.tobytes() == comm.neighbor_allreduce(x, missing="self").tobytes()
        return last.ravel().tolist(), own.ravel().tolist(), both[1].ravel().tolist()

    result = run(program, topology=topology.ring(3), faults=DOWN)
    assert result.values[0] == ([10.0, 20.0], [10.0, 20.0], [20.0, 40.0])
    assert result.values[1] == ([-1.0, 20.0], [10.0, 20.0], [-3.0, 40.0])


@pytest.mark.parametrize("policy", ["error", "renormalize"])
def test_allgather_without_rows_is_an_error(policy: str) -> None:
    def program(comm: Any) -> Any:
        return comm.neighbor_allgather(np.ones(1))

    with pytest.raises(MessageLostError, match="neighbor_allgather"):
        run(program, topology=topology.ring(3), faults=DOWN, missing=policy)


def test_alltoall_and_compressed_averages_are_always_errors() -> None:
    from dectool import compression

    ring = topology.ring(3)
    for call in (
        lambda comm: comm.neighbor_alltoall(np.ones((2, 1))),
        lambda comm: comm.neighbor_allreduce(np.ones(3), compressor=compression.get("topk:1")),
    ):
        with pytest.raises(MessageLostError):
            run(call, topology=ring, faults=DOWN, missing="self")


def test_pair_gossip_gives_x_back() -> None:
    def program(comm: Any) -> Any:
        x = np.array([float(comm.rank)])
        got = [comm.pair_gossip(x, 1 - comm.rank, 0.25, 0.5, missing="self").tolist()]
        comm.missing = "renormalize"
        got.append(comm.pair_gossip(x, 1 - comm.rank, 0.25, 0.5).tolist())
        return got

    assert run(program, 2, faults=DOWN).values == [[[0.5], [0.5]], [[1.0], [1.0]]]
    with pytest.raises(MessageLostError, match="pair_gossip"):
        run(lambda comm: comm.pair_gossip(np.ones(1), 1 - comm.rank), 2, faults=DOWN)


def test_collectives_need_everybody() -> None:
    with pytest.raises(MessageLostError, match="allreduce"):
        run(lambda comm: comm.allreduce(np.ones(4)), 4, faults=DOWN, missing="self")


def test_a_background_operation_hands_its_error_to_whoever_waits() -> None:
    def program(comm: Any) -> Any:
        request = comm.iallreduce(np.ones(4))
        try:
            request.wait()
        except MessageLostError:
            return comm.now()
        return None

    result = run(program, 2, faults=DOWN, detection=0.25)
    assert result.values == [None, LATENCY + 0.25]


def test_a_lost_message_can_be_polled_for() -> None:
    def program(comm: Any) -> Any:
        if comm.rank == 0:
            comm.send(1.0, 1)
            return None
        request = comm.irecv(0)
        polls = 0
        try:
            while not request.test():
                comm.elapse(0.1)
                polls += 1
        except MessageLostError:
            return polls
        return None

    assert run(program, 2, faults=DOWN, detection=0.25).values[1] == 8


@pytest.mark.parametrize("network", [NET, sim.LogGP(L=0.5, o=0.01, g=0.02, G=0.001)])
def test_faults_that_never_strike_change_nothing(network: Any) -> None:
    """Not a bit, and not a time."""
    graph = topology.erdos_renyi(6, 0.6, seed=1)

    def program(comm: Any) -> Any:
        x = comm.rng("x").normal(size=3)
        for k in range(10):
            comm.elapse(comm.rng("t").exponential())
            x = comm.neighbor_allreduce(x) + comm.ineighbor_allreduce(x).wait()
            x = comm.pair_gossip(x, (comm.rank ^ 1))
            if k % 4 == 0:
                request = comm.iallreduce(x)
                x = comm.neighbor_allreduce(x) + request.wait()
        return x.tobytes()

    never = [sim.Crash(0, at=1e9), sim.MessageLoss(0.0), sim.SlowPeriod(1, 2.0, 1e9, 2e9)]
    plain = run(program, topology=graph, n=None, network=network)
    faulty = run(program, topology=graph, n=None, network=network, faults=never, missing="self")
    assert list(plain.values) == list(faulty.values)
    assert list(plain.times) == list(faulty.times)
    assert (plain.messages, plain.bytes) == (faulty.messages, faulty.bytes)
    assert faulty.faults.messages_lost == 0


def test_weights_that_cancel_are_not_rescaled() -> None:
    """What is left of 0.1 + 0.2 - 0.3 is rounding, and a factor of 1e16 would not be a weight."""
    key = (0, 1, ("world", "neighbor_allreduce"))
    lost = Missing(key, "whose message was lost", 1.0, peer=False)
    with pytest.raises(MessageLostError, match="whose message was lost"):
        without((0.1 + 0.2, -0.3, 1.0), (True, True, False), [lost])
    assert sum(without((0.5, -0.3, 0.8), (True, True, False), [lost])) == pytest.approx(1.0)
