"""What goes wrong in a program is told: who, where, at what time; nothing is left behind."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import greenlet
import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.errors import BackendError, ContractError, DeadlockError, LivelockError

HERE = Path(__file__).name
X = np.zeros(2)


def line_of(text: str) -> int:
    """Return the number of the one line of this file that ends with a comment."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return number


def test_a_deadlock_names_each_rank_its_operation_and_line() -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.elapse(1.25)
            comm.recv(1, tag=3)  # first
        elif comm.rank == 1:
            comm.neighbor_allreduce(X)  # second
        elif comm.rank == 2:
            comm.exchange({}, [0, 1], tag=4)  # third

    with pytest.raises(DeadlockError) as caught:
        dectool.run(program, topology=topology.ring(4))
    report = str(caught.value).splitlines()
    assert report[0] == "deadlock: 3 of 4 ranks wait for messages that can never come"
    assert "rank 0 at t = 1.25 s waits in recv(tag=3) for rank 1" in report[1]
    assert "rank 1 at t = 0 s waits in neighbor_allreduce for rank 0, 2" in report[2]
    assert "rank 2 at t = 0 s waits in exchange(tag=4) for rank 0, 1" in report[3]
    for line, name in zip(report[1:4], ("first", "second", "third"), strict=True):
        assert f"{HERE}:{line_of(name)} in program: " in line
        assert line.endswith(f"# {name}")
    assert report[4].startswith("Every receive needs a matching send: the same operation, tag")


def test_a_deadlock_of_many_ranks_stays_readable() -> None:
    with pytest.raises(DeadlockError) as caught:
        dectool.run(lambda comm: comm.recv(0), 100)
    report = str(caught.value).splitlines()
    assert len(report) == 1 + 32 + 2
    assert report[-2] == "  ... and 68 more"


def test_a_deadlock_in_a_background_operation_is_found() -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            comm.iallreduce(X).wait()

    with pytest.raises(DeadlockError, match=r"rank 0 \(background operation 0\) .* allreduce"):
        dectool.run(program, 2)


def test_polling_without_letting_time_pass_is_a_livelock() -> None:
    def program(comm: Any) -> None:
        request = comm.irecv(1)
        if comm.rank == 1:
            comm.elapse(1.0)
            comm.send(X, 0)
            comm.send(X, 1)
        while not request.test():
            pass

    with pytest.raises(LivelockError, match=r"rank 0 called test\(\) 10000 times at t = 0 s"):
        dectool.run(program, 2)


def test_patient_polling_is_no_livelock() -> None:
    """Polls between which time passes, by elapse or by waiting, do not add up."""

    def program(comm: Any) -> int:
        if comm.rank == 1:
            for _ in range(4000):
                comm.elapse(1.0)
                comm.send(X, 0)
            comm.elapse(1.0)
            comm.send(X, 0, tag=1)
            return 0
        late, polls = comm.irecv(1, tag=1), 0
        for _ in range(4000):
            polls += sum(not late.test() for _ in range(4))
            comm.recv(1)
        late.wait()
        return polls

    assert dectool.run(program, 2).values == [16_000, 0]


def test_an_exception_names_its_rank_and_lets_the_others_clean_up() -> None:
    cleaned = []

    def program(comm: Any) -> None:
        try:
            comm.elapse(0.5 * comm.rank)
            if comm.rank == 2:
                raise KeyError("lost")
            comm.recv(2)
        finally:
            cleaned.append(comm.rank)

    with pytest.raises(KeyError, match="lost") as caught:
        dectool.run(program, 4)
    assert caught.value.__notes__ == ["raised by rank 2 of 4 at t = 1 s of virtual time"]
    assert "program" in [entry.name for entry in caught.traceback]
    assert sorted(cleaned) == [0, 1, 2, 3]


def test_ranks_clean_up_in_their_order() -> None:
    """What they print then is the same each time."""
    order: list[int] = []

    def program(comm: Any) -> None:
        try:
            comm.recv((comm.rank + 1) % comm.size)
        finally:
            order.append(comm.rank)

    with pytest.raises(DeadlockError):
        dectool.run(program, 300)
    assert order == list(range(300))


def test_communication_while_cleaning_up_is_refused() -> None:
    errors = []

    def program(comm: Any) -> None:
        if comm.rank == 0:
            raise ValueError
        try:
            comm.recv(0)
        finally:
            try:
                comm.recv(0)
            except BackendError as error:
                errors.append(str(error))

    with pytest.raises(ValueError):  # noqa: PT011 (it is the program's own)
        dectool.run(program, 2)
    assert errors == ["the run is over: no communication is possible any more"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_leaves_nothing_behind(kind: type[BaseException]) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 1:
            comm.elapse(1.0)
            comm.recv(0, tag=1)
            raise kind
        comm.send(X, 1, tag=1)
        comm.recv(1)

    def living() -> int:
        gc.collect()
        return sum(type(x) is greenlet.greenlet and bool(x) for x in gc.get_objects())

    before = living()
    with pytest.raises(kind):
        dectool.run(program, 3)
    assert living() == before
    assert dectool.run(lambda comm: comm.allreduce(1.0), 3).values == [1.0] * 3


@pytest.mark.parametrize("network", [sim.AlphaBeta(1.0), sim.LogGP(1.0)], ids=repr)
def test_messages_that_nobody_receives_are_an_error(network: sim.NetworkModel) -> None:
    def program(comm: Any) -> None:
        if comm.rank == 0:
            for tag in range(6):
                comm.send(X, 2, tag=tag)

    with pytest.raises(ContractError) as caught:
        dectool.run(program, 3, network=network)
    message = str(caught.value)
    assert message.startswith("6 messages sent but never received: from rank 0 to rank 2 in recv(")
    assert re.search(r"tag=3\), \.\.\. \(6 in all\); every send needs a receive", message)


def test_a_request_that_nobody_waits_for_still_receives() -> None:
    def program(comm: Any) -> None:
        comm.irecv(1 - comm.rank)
        comm.send(X, 1 - comm.rank)

    for network in (sim.AlphaBeta(1.0), sim.LogGP(1.0)):
        assert dectool.run(program, 2, network=network).messages == 2
