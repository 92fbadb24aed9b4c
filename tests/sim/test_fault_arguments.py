"""What is wrong with a fault, or with where it is asked for, is told by name, value and remedy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.errors import ArgumentError, ArgumentTypeError, UnsupportedOperation

RING = topology.ring(4)
NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sim.MessageLoss(1.5), "probability=1.5 must be from 0 to 1"),
        (lambda: sim.MessageLoss(NAN), "probability=nan"),
        (lambda: sim.MessageLoss(0.1, source=-1), "source=-1 must be at least 0"),
        (lambda: sim.MessageLoss(0.1, source=2, dest=2), "a link joins two ranks"),
        (lambda: sim.LinkDown(0, 0), "a link joins two ranks"),
        (lambda: sim.LinkDown(0, 1, start=2.0, stop=2.0), "start=2.0 must be below stop=2.0"),
        (lambda: sim.LinkDown(0, 1, start=-1.0), "start=-1.0 must be at least 0 seconds"),
        (lambda: sim.RandomLinkDown(0.0, 1.0), "mean_up=0.0 must be finite and above 0"),
        (lambda: sim.RandomLinkDown(1.0, math.inf), "mean_down=inf must be finite and above 0"),
        (lambda: sim.SlowLink(0.5), "factor=0.5 must be finite and at least 1"),
        (lambda: sim.SlowPeriod(1, NAN), "factor is NaN"),
        (lambda: sim.SlowPeriod(-2, 2.0), "rank=-2 must be at least 0"),
        (lambda: sim.RandomSlowPeriods(2.0, 1.0, -1.0), "mean_length=-1.0"),
        (lambda: sim.Crash(1, at=-0.5), "at=-0.5 must be at least 0 seconds and finite"),
        (lambda: sim.Crash(1, at=math.inf), "at=inf"),
        (lambda: sim.Crash(1, at=1.0, restart_after=0.0), "restart_after=0.0"),
        (lambda: sim.RandomCrashes(1.0, most=0), "most=0 must be an integer, at least 1"),
        (lambda: sim.LateJoin(1, at=0.0), "at=0.0 must be finite and above 0"),
    ],
)
def test_a_value_that_breaks_a_rule(make: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sim.Crash("3", at=1.0), "rank='3' must be the number of a rank"),
        (lambda: sim.Crash(None, at=1.0), "rank=None must be the number of a rank"),
        (lambda: sim.Crash(True, at=1.0), "rank=True"),
        (lambda: sim.Crash(3, at="1"), "at='1' must be a number"),
        (lambda: sim.SlowLink(2.0, source=1.5), "or None for every one"),
    ],
)
def test_a_type_that_will_not_do(make: Any, words: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        make()
    assert words in str(caught.value)


def run(**options: Any) -> Any:
    program = options.pop("program", lambda comm: comm.neighbor_allreduce(np.ones(1)))
    return dectool.run(program, **{"backend": "sim", "topology": RING, **options})


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (sim.Crash(1, 1.0), "give a list: faults=[Crash(rank=1"),
        ("crash", "give a list of faults"),
        ([sim.Crash(1, 1.0), 3], "faults[1] is 3"),
    ],
)
def test_faults_are_a_list_of_faults(faults: Any, words: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        run(faults=faults)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "fault", [sim.Crash(4, 1.0), sim.LateJoin(9, 1.0), sim.LinkDown(0, 4), sim.MessageLoss(1, 5)]
)
def test_a_rank_that_there_is_not(fault: sim.Fault) -> None:
    with pytest.raises(ArgumentError, match="but the ranks are 0 to 3"):
        run(faults=[fault])


@pytest.mark.parametrize("backend", ["stacked", "mpi"])
def test_other_backends_have_no_faults(backend: str) -> None:
    with pytest.raises(UnsupportedOperation, match=r"faults= is for backend 'sim'.*use backend"):
        run(faults=[sim.Crash(1, 1.0)], backend=backend)
    with pytest.raises(UnsupportedOperation, match="backend='sim'"):
        dectool.compare(
            [algorithms.Gossip()], problems.Averaging(np.eye(4)), topologies=[RING], steps=1,
            faults=[sim.Crash(1, 1.0)], processes=1,
        )  # fmt: skip


def test_detection_and_missing_are_checked() -> None:
    with pytest.raises(ArgumentError, match="detection=-1 must be finite and at least 0"):
        run(detection=-1)
    with pytest.raises(ArgumentTypeError, match="detection is 'soon'"):
        run(detection="soon")
    with pytest.raises(ArgumentError, match=r"missing='selfish' is no policy; did you mean 'self'"):
        run(missing="selfish")
    with pytest.raises(ArgumentTypeError, match="missing is a int"):
        run(missing=3)


def test_resume_and_checkpoint_are_refused(tmp_path: Any) -> None:
    options: Any = {"topology": RING, "backend": "sim", "steps": 4, "missing": "self"}
    solve = (algorithms.Gossip(), problems.Averaging(np.eye(4)))
    history = dectool.solve(*solve, **options)
    faults = [sim.Crash(1, 1.0)]
    with pytest.raises(UnsupportedOperation, match="resume= with faults="):
        dectool.solve(*solve, **options, faults=faults, resume=history)
    with pytest.raises(UnsupportedOperation, match="checkpoint= with faults="):
        dectool.solve(
            *solve, **options, faults=faults, checkpoint=tmp_path / "c.npz", checkpoint_every=1
        )


def test_without_faults_there_is_no_report() -> None:
    assert run().faults is None
    assert run(faults=[]).faults is None
