"""Solving until a time: what is recorded when, and what does not go together."""

from __future__ import annotations

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.errors import ArgumentError, ArgumentTypeError, LivelockError, UnsupportedOperation

N, RING = 8, topology.ring(8)
PROBLEM = problems.Quadratic(h=np.arange(1.0, 9.0)[:, None], b=np.arange(8.0)[:, None])


def solve(algorithm=None, **options):
    options = {"duration": 20.0, "backend": "sim", "compute": sim.Constant(1.0), **options}
    algorithm = algorithms.NewestModelAverage(lr=0.02) if algorithm is None else algorithm
    return dectool.solve(algorithm, PROBLEM, topology=RING, **options)


def test_records_are_of_equal_times():
    history = solve(record_interval=4.0)
    assert history.records["time"].tolist() == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    assert history.records["step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert history.status == "completed"
    assert history.about["duration"] == 20.0
    assert len(solve().records["time"]) == 101


def test_slow_ranks_do_not_hold_up_the_others():
    """Each rank takes as many steps as it has time for; a record is of what it has by then."""
    ranks = sim.PerRank([1.0] * 7 + [4.0])
    history = solve(algorithms.ADPSGD(lr=0.02), compute=ranks, record_interval=10.0)
    assert history.state["k"].tolist() == [20] * 7 + [5]


def test_a_record_shows_the_last_step_that_is_done():
    """With steps of 1 s, the record of 2.5 s shows step 2, and that of 3 s shows step 3."""
    for interval, done in ((2.5, 2), (3.0, 3)):
        once = solve(duration=interval, record_interval=interval)
        counted = solve(duration=None, steps=done)
        np.testing.assert_array_equal(once.x, counted.x)


def test_it_approaches_the_optimum_in_time_not_in_steps():
    """Ranks of random pace: the gap shrinks with the seconds."""
    history = solve(
        algorithms.NewestModelAverage(lr=0.02), duration=200.0, compute=sim.Exponential(1.0)
    )
    gaps = history.records["gap"]
    assert gaps[-1] < 0.1 * gaps[10] < 0.1 * gaps[1]


def test_stop_holds_for_records():
    limit = solve(duration=100.0).records["gap"][50]
    history = solve(duration=100.0, stop={"gap": float(limit)})
    assert history.status == "stopped"
    assert history.records["time"][-1] == 50.0


def test_dead_ranks_do_not_hold_up_the_others():
    history = solve(faults=[sim.Crash(3, at=7.5)], missing="self", record_interval=5.0)
    assert history.records["alive"].tolist() == [8, 8, 7, 7, 7]
    assert np.isnan(history.x[3]).all()
    assert np.isfinite(np.delete(history.x, 3, axis=0)).all()


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"duration": None}, ArgumentError, "steps=None and duration=None: give one"),
        ({"steps": 5}, ArgumentError, "steps=5 and duration=20.0: give one"),
        ({"duration": -1.0}, ArgumentError, "duration=-1.0 must be finite and above 0"),
        ({"duration": "long"}, ArgumentTypeError, "duration is 'long'"),
        ({"record_interval": 0.0}, ArgumentError, "record_interval=0.0 must be"),
        ({"record_interval": 21.0}, ArgumentError, "longer than duration=20.0"),
        ({"record_every": 2}, ArgumentError, "record_every=2 counts steps"),
        ({"duration": None, "steps": 5, "record_interval": 1.0}, ArgumentError, "record_every="),
        ({"algorithm": algorithms.DGD(lr=0.1)}, ArgumentError, "DGD wait for each other.*steps="),
        ({"algorithm": algorithms.OSGP(lr=0.1)}, ArgumentError, "OSGP wait for each other.*steps="),
        ({"backend": "stacked", "compute": None}, UnsupportedOperation, "use backend='sim'"),
        ({"compute": None}, LivelockError, "steps take no time, and duration= is never over"),
    ],
)
def test_what_does_not_go_together_is_refused(options, kind, words):
    with pytest.raises(kind, match=words):
        solve(**options)


@pytest.mark.processes
def test_real_seconds():
    history = dectool.solve(
        algorithms.NewestModelAverage(lr=0.02),
        problems.Quadratic(h=np.ones((2, 1)), b=np.ones((2, 1))),
        topology=topology.complete(2),
        backend="mpi",
        duration=1.0,
        record_interval=0.25,
        compute=sim.Constant(0.01),
        timeout=30.0,
    )
    np.testing.assert_allclose(history.records["time"], [0, 0.25, 0.5, 0.75, 1.0])
    assert history.records["gap"][-1] < history.records["gap"][0]
