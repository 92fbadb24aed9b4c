"""One-sided windows in virtual time: when things are seen, in which order, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dectool
from dectool import sim, topology
from dectool.errors import DeadlockError, WindowError
from dectool.sim import _window

ALPHA, B = 1e-3, 1e6
NETWORK = sim.AlphaBeta(latency=ALPHA, bandwidth=B)
PAIR = topology.complete(2)


def run(program, graph=PAIR, network=NETWORK, **options):
    return dectool.run(program, topology=graph, backend="sim", network=network, **options)


def opened(comm, x, start=1.0, **options):
    """Open a window, and start from a time that all ranks share."""
    win = comm.window(x, name="w", **options)
    comm.elapse(start - comm.now())
    return win


@pytest.mark.parametrize(("before", "seen"), [(-1e-9, 0.0), (0.0, 1.0), (1e-9, 1.0)])
def test_a_put_is_seen_from_its_arrival_on(before, seen):
    size = 1000
    arrival = 1.0 + 8 * size / B + ALPHA

    def program(comm):
        win = opened(comm, np.zeros(size))
        if comm.rank == 0:
            win.put(np.ones(size))
            assert comm.now() == arrival, "a blocking put ends when it is there"
            return None
        comm.elapse(arrival + before - comm.now())
        assert comm.now() == arrival + before
        return float(win.slot(0)[7])

    assert run(program).values[1] == seen


def test_the_target_does_nothing_for_it():
    def program(comm):
        win = opened(comm, np.zeros(1))
        if comm.rank == 0:
            win.put(np.ones(1))
            return comm.now()
        comm.elapse(5.0)
        return comm.now()

    put, computed = run(program).values
    assert put == pytest.approx(1.0 + ALPHA + 8 / B)
    assert computed == pytest.approx(6.0)


def test_puts_of_a_rank_share_its_port():
    def program(comm):
        win = opened(comm, np.zeros(1000))
        if comm.rank == 0:
            win.put(np.ones(1000))
        return comm.now()

    for port, seconds in (("serial", 3 * 8000 / B), ("parallel", 8000 / B)):
        network = sim.AlphaBeta(ALPHA, B, port=port)
        end = run(program, topology.complete(4), network).values[0]
        assert end == pytest.approx(1.0 + ALPHA + seconds)


def test_what_is_written_to_one_slot_keeps_its_order():
    """A small put does not overtake a large accumulate, even where messages do not share a port."""
    network = sim.AlphaBeta(ALPHA, B, port="parallel")

    def program(comm):
        win = opened(comm, np.zeros(1000), zero_init=True)
        if comm.rank == 0:
            big = win.iaccumulate(np.ones(1000))
            small = win.iput(np.full(1000, 5.0))
            big.wait()
            small.wait()
        comm.elapse(1.0)
        return float(win.slot(0)[0]) if comm.rank else None

    assert run(program, network=network).values[1] == 5.0


def test_a_get_takes_a_round_trip_and_reads_the_value_of_its_time():
    size = 500
    asked = 1.0 + ALPHA

    def program(comm, change):
        win = opened(comm, np.zeros(size))
        if comm.rank == 0:
            comm.elapse(change - comm.now())
            win.set(np.ones(size))
            return None
        win.get()
        return comm.now(), float(win.slot(0)[3])

    for change, seen in ((asked - 1e-9, 1.0), (asked + 1e-9, 0.0)):
        end, value = run(lambda comm, c=change: program(comm, c)).values[1]
        assert end == pytest.approx(1.0 + 2 * ALPHA + 8 * size / B)
        assert value == seen


def test_waiting_ends_at_the_arrival_that_is_waited_for():
    def program(comm):
        win = opened(comm, np.zeros(1))
        if comm.rank == 0:
            for _ in range(3):
                comm.elapse(0.5)
                win.iput(np.ones(1))
            return None
        win.wait(0, 2)
        return comm.now(), win.version(0)

    end, version = run(program).values[1]
    assert end == pytest.approx(2.0 + ALPHA + 8 / B)
    assert version == 2


def test_a_mutex_is_granted_in_the_order_of_asking():
    def program(comm):
        win = opened(comm, np.zeros(1))
        comm.elapse(0.01 * ((comm.rank - 2) % 4))
        with win.lock([0]):
            start = comm.now()
            comm.elapse(1.0)
        return start

    starts = run(program, topology.complete(4)).values
    assert sorted(range(4), key=starts.__getitem__) == [2, 3, 0, 1]
    assert starts[2] == pytest.approx(1.0 + 2 * ALPHA)
    # The mutex comes back, and goes on: two latencies between one and the next.
    assert starts[3] - starts[2] == pytest.approx(1.0 + 2 * ALPHA)


def test_what_is_sent_under_a_mutex_is_there_before_it_is_given_back():
    network = sim.AlphaBeta(ALPHA, B, port="parallel")

    def program(comm):
        win = opened(comm, np.zeros(1000))
        if comm.rank == 0:
            with win.lock([1]):
                win.iput(np.ones(1000))
            return None
        comm.elapse(3 * ALPHA)
        with win.lock([1]):
            return float(win.slot(0)[0])

    assert run(program, network=network).values[1] == 1.0


def test_ages_are_in_the_trace():
    def program(comm):
        win = opened(comm, np.zeros(1))
        if comm.rank == 0:
            win.put(np.ones(1))
        else:
            comm.elapse(0.25)
            assert win.age(0) == pytest.approx(0.25)
            win.update()
        return None

    result = run(program, trace=True)
    (use,) = result.trace.uses
    assert (use.rank, use.source, use.window) == (1, 0, "w")
    assert use.age == pytest.approx(0.25)
    assert use.time == pytest.approx(1.25)
    assert any("window 'w'" in message.operation for message in result.trace.messages)


def test_receivers_port_queues_puts_of_several_ranks():
    """LogGP: k puts at once keep the target's port k times (incast)."""
    network = sim.LogGP(L=1e-3, o=0.0, g=0.0, G=1e-6)
    nbytes, n = 8000, 5

    def program(comm):
        win = opened(comm, np.zeros(1000))
        if comm.rank:
            win.put(dst_weights=[0])
        return comm.now()

    last = max(run(program, topology.star(n), network).values)
    assert last == pytest.approx(1.0 + 1e-3 + (n - 1) * (nbytes - 1) * 1e-6)


def test_the_same_seed_gives_the_same_bits():
    def program(comm):
        rng = comm.rng("delays")
        with comm.window(rng.normal(size=3), name="w", push_sum=True) as win:
            for _ in range(50):
                comm.elapse(float(rng.exponential()))
                win.iaccumulate()
                win.collect()
            return win.debiased.tobytes(), comm.now()

    def values(seed):
        return run(program, topology.exponential(8), seed=seed).values

    assert values(3) == values(3)
    assert all(one != other for one, other in zip(values(3), values(4), strict=True))


def test_10_000_interleavings_lose_nothing():
    """Integers in floats: whatever the delays, what was sent is collected, once."""

    def program(comm):
        rng = comm.rng("delays")
        sent = 0.0
        with comm.window(np.zeros(2), name="w", zero_init=True) as win:
            for _ in range(100):
                comm.elapse(float(rng.exponential()))
                value = float(rng.integers(1, 1000))
                mine = float(win.value[0])
                win.iaccumulate(np.full(2, value), self_weight=0.0)
                win.set(np.full(2, mine))
                sent += value * len(comm.topology.out_neighbors(comm.rank))
                both = win.collect()
                assert both[0] == both[1]
            win.fence()
            return sent, float(win.collect()[0])

    values = run(program, topology.random_regular(100, degree=4, seed=1)).values
    assert sum(sent for sent, _ in values) == sum(got for _, got in values)


def test_lost_mass_is_an_error(monkeypatch):
    def thief(own, slot, remote, buffers, dtypes):
        original(own, slot, remote, tuple(0.999 * b for b in buffers), dtypes)

    original = _window.apply

    def program(comm):
        with comm.window(np.ones(2), name="w", push_sum=True) as win:
            for _ in range(20):
                win.accumulate()
                win.collect()

    run(program)
    monkeypatch.setattr(_window, "apply", thief)
    with pytest.raises(WindowError, match=r"window 'w': the values of all ranks.*mass was"):
        run(program)


def test_what_a_program_puts_in_is_no_lost_mass():
    def program(comm):
        with comm.window(np.ones(2), name="w", push_sum=True) as win:
            for k in range(20):
                win.accumulate(win.value + k)
                win.collect()
                win.set(2 * win.value)
        return None

    run(program)


def test_a_wait_for_what_never_comes_is_a_deadlock():
    def program(comm):
        win = opened(comm, np.zeros(1))
        if comm.rank == 0:
            win.wait(1, 3)
        else:
            win.put()

    with pytest.raises(
        DeadlockError, match=r"rank 0 .* waits in .* window 'w' for rank 1, at .*wait"
    ):
        run(program)


def test_a_get_reads_what_was_added_before_it_asks():
    def program(comm, pause):
        win = opened(comm, np.zeros(1))
        if comm.rank == 0:
            win.add(np.ones(1), [1])
            comm.elapse(pause)
            win.get()
            return float(win.slot(1)[0])
        comm.elapse(5.0)
        return float(win.value[0])

    assert run(lambda comm: program(comm, 0.0)).values == [1.0, 1.0]


def test_meta_tensors_take_their_time():
    torch = pytest.importorskip("torch")

    def program(comm):
        x = torch.empty(1000, dtype=torch.float64, device="meta")
        win = opened(comm, x)
        win.put(x)
        end = comm.now()
        win.fence()
        assert win.update().device.type == "meta"
        return end

    for end in run(program).values:
        assert end == pytest.approx(1.0 + ALPHA + 8000 / B)


def test_staleness_grows_with_the_delay():
    """A constant delay of d steps is a staleness that the trace shows: the arrival's."""

    def program(comm):
        ages = []
        win = opened(comm, np.zeros(1), start=10.0)
        for _ in range(10):
            win.iput(np.ones(1))
            comm.elapse(1.0)
            ages.append(win.age(1 - comm.rank))
            win.update()
        return ages

    network = sim.AlphaBeta(latency=2.5, bandwidth=math.inf)
    for ages in run(program, network=network).values:
        # Updates at 2, 3, ... use what was sent 3 steps before: a put arrives after 2.5.
        assert ages[2:] == pytest.approx([3.0] * 8)
