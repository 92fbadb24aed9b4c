"""One-sided windows while messages are lost and ranks crash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import sim, topology
from dectool.errors import MessageLostError

NETWORK = sim.AlphaBeta(latency=1e-3, bandwidth=1e6)
PAIR = topology.complete(2)


def run(program, faults, graph=PAIR, **options):
    return dectool.run(
        program, topology=graph, backend="sim", network=NETWORK, faults=faults, **options
    )


def settled(comm, x, **options):
    win = comm.window(x, name="w", **options)
    comm.elapse(1.0 - comm.now())
    return win


def test_a_lost_put_leaves_the_slot_and_is_an_error_of_who_waits_for_it():
    down = sim.LinkDown(0, 1, start=1.0, stop=1.5)

    def program(comm):
        win = settled(comm, np.zeros(1))
        noticed = None
        if comm.rank == 0:
            request = win.iput(np.ones(1))
            with pytest.raises(
                MessageLostError, match=r"window 'w' gets nothing from rank 1, as the"
            ):
                request.wait()
            noticed = comm.now()
        comm.elapse(2.0 - comm.now())
        seen = float(win.slot(1 - comm.rank)[0])
        win.put(np.ones(1))
        win.fence()
        return noticed, seen, float(win.slot(1 - comm.rank)[0])

    result = run(program, [down])
    (noticed, _, first), (_, seen, later) = result.values
    assert noticed == pytest.approx(1.0 + 8 / 1e6 + 1e-3 + 0.01)
    assert (seen, later, first) == (0.0, 1.0, 1.0)
    assert sum(lost.messages for lost in result.faults.lost) == 1


def test_with_a_policy_losses_are_passed_over():
    def program(comm):
        win = settled(comm, np.zeros(1))
        win.put(np.ones(1))
        win.get()
        win.fence()
        return float(win.slot(1 - comm.rank)[0])

    down = sim.LinkDown(0, 1, start=1.0, stop=1.005, both=False)
    # The put of rank 0 is lost, and so is its question; rank 1 gets an answer later.
    first, second = run(program, [down], missing="self").values
    assert (first, second) == (1.0, 0.0)


WAITS = {
    "get": lambda win: win.get(),
    "lock": lambda win: win.lock().__enter__(),
    "wait": lambda win: win.wait(1, 1),
    "fence": lambda win: win.fence(),
}


@pytest.mark.parametrize("what", WAITS)
def test_who_waits_for_a_dead_rank_is_told(what):
    def program(comm):
        win = settled(comm, np.zeros(1))
        if comm.rank == 1:
            comm.elapse(10.0)
        else:
            comm.elapse(1.0 if what != "wait" else 0.0)
            with pytest.raises(MessageLostError, match=r"rank 0: .*window 'w'.* from rank 1"):
                WAITS[what](win)
        return comm.now()

    result = run(program, [sim.Crash(1, at=1.5)])
    assert result.values[1] is None
    assert result.values[0] < 2.2


def test_a_mutex_that_a_dead_rank_holds_is_given_to_the_next():
    def program(comm):
        win = settled(comm, np.zeros(1))
        comm.elapse(0.1 * (comm.rank + 1) % 0.3)
        with win.lock([0]):
            start = comm.now()
            comm.elapse(1.0)
        return start

    result = run(program, [sim.Crash(2, at=1.5)], topology.complete(3), missing="self")
    first, second, dead = result.values
    assert dead is None
    assert first == pytest.approx(1.5 + 0.01 + 1e-3, abs=2e-3)
    assert second > first


def test_mass_that_is_lost_is_accounted():
    def program(comm):
        with comm.window(np.array([float(comm.rank)]), name="w", push_sum=True) as win:
            for _ in range(30):
                comm.elapse(0.1)
                win.iaccumulate()
                win.collect()
        return win.name

    faults = [sim.MessageLoss(0.2), sim.Crash(3, at=1.25)]
    result = run(program, faults, topology.exponential(8), missing="self")
    assert result.values[3] is None
    assert sum(lost.messages for lost in result.faults.lost) > 20


def push_sum(comm, until):
    rng = comm.rng("pause")
    win = comm.window(np.array([float(comm.rank)]), name="w", push_sum=True)
    while comm.now() < until:
        comm.elapse(float(rng.exponential(0.1)))
        win.iaccumulate()
        win.collect()
    return float(win.value[0]), win.weight


@settings(max_examples=15, deadline=None)
@given(
    loss=st.floats(0.0, 0.5),
    crash=st.floats(0.1, 3.0),
    rank=st.integers(0, 4),
    seed=st.integers(0, 100),
)
def test_any_faults_leave_accounts_in_order(loss, crash, rank, seed):
    """The simulator compares the accounts; the same seed gives the same bits."""
    faults = [sim.MessageLoss(loss), sim.Crash(rank, at=crash)]

    def once():
        return run(
            lambda comm: push_sum(comm, 3.0), faults, topology.ring(5), seed=seed, missing="self"
        ).values

    assert once() == once()


def test_accounts_notice_what_is_lost_behind_their_back(monkeypatch):
    monkeypatch.setattr("dectool.sim._mass.Mass.bury", lambda self, cells: None)
    with pytest.raises(dectool.DectoolError, match="mass was"):
        run(
            lambda comm: push_sum(comm, 3.0),
            [sim.Crash(1, at=1.0)],
            topology.ring(5),
            missing="self",
        )
