"""Compute models: the largest of n draws has the mean that theory gives; wrong ones are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim
from dectool.errors import ArgumentError, ArgumentTypeError

STEPS = 12_000

LARGEST = {
    "exponential of 4": (sim.Exponential(1.0), 4, 2.083333333333),
    "exponential of 16": (sim.Exponential(1.0), 16, 3.380728993229),
    "log-normal 0.25 of 8": (sim.LogNormal(1.0, 0.25), 8, 1.444529189801),
    "log-normal 0.5 of 4": (sim.LogNormal(1.0, 0.5), 4, 1.782750020598),
    "log-normal 0.5 of 16": (sim.LogNormal(1.0, 0.5), 16, 2.513189751752),
    "Pareto 3 of 8": (sim.Pareto(1.0, 3.0), 8, 2.745826551965),
    "Pareto 3 of 4": (sim.Pareto(2.0, 3.0), 4, 2 * 2.209090909091),
    "shifted of 8": (sim.ShiftedExponential(0.7, 0.5), 8, 0.7 + 0.5 * 2.717857142857),
    "slow rank of 4": (sim.PerRank({1: 3.0}, sim.Constant(0.5)), 4, 1.5),
}


@pytest.mark.parametrize("name", LARGEST)
def test_a_barrier_waits_for_the_largest(name: str) -> None:
    model, n, mean = LARGEST[name]

    # Heavy tails need more steps for the same accuracy.
    steps = 3 * STEPS if "Pareto" in name else STEPS

    def program(comm: Any) -> None:
        for _ in range(steps):
            with comm.computing():
                pass
            comm.barrier()

    result = dectool.run(program, n, backend="stacked", compute=model, seed=3)
    assert result.time / steps == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("backend", ["sim", "stacked"])
def test_work_takes_flops_over_rate(backend: str) -> None:
    def program(comm: Any) -> Any:
        with comm.computing(flops=5e8):
            pass
        return comm.now()

    rated = sim.PerRank([1.0, 2.0], sim.FlopRate(1e9))
    result = dectool.run(program, 2, backend=backend, compute=rated)
    assert [float(value) for value in result.values] == pytest.approx([0.5, 1.0])


def test_a_computation_that_fails_takes_no_time() -> None:
    def program(comm: Any) -> float:
        with pytest.raises(KeyError), comm.computing():
            raise KeyError
        return comm.now()

    assert dectool.run(program, 1, compute=sim.Constant(1.0)).values == [0.0]


WRONG = {
    "Constant: seconds=-1": lambda: sim.Constant(-1),
    "Constant: seconds=nan": lambda: sim.Constant(float("nan")),
    "Exponential: mean=inf": lambda: sim.Exponential(float("inf")),
    "ShiftedExponential: shift=-0.5": lambda: sim.ShiftedExponential(-0.5, 1),
    "ShiftedExponential: mean=-2": lambda: sim.ShiftedExponential(0, -2),
    "LogNormal: median=0": lambda: sim.LogNormal(0, 1),
    "LogNormal: sigma=-1": lambda: sim.LogNormal(1, -1),
    "Pareto: minimum=0": lambda: sim.Pareto(0, 2),
    "Pareto: shape=1 must be above 1, else the mean is infinite": lambda: sim.Pareto(1, 1),
    "FlopRate: rate=0": lambda: sim.FlopRate(0),
    r"PerRank: factors\[1\]=-3": lambda: sim.PerRank([1, -3]),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_parameters_are_named(message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        WRONG[message]()


NO_NUMBERS = {
    "Constant: seconds='1' must be a number": lambda: sim.Constant("1"),
    "Exponential: mean=None must be a number": lambda: sim.Exponential(None),
    "LogNormal: median=": lambda: sim.LogNormal(np.ones(2), 1.0),
    "Pareto: shape=True": lambda: sim.Pareto(1.0, True),
    "FlopRate: rate=1j": lambda: sim.FlopRate(1j),
    "PerRank: factors is 5; give one factor per rank": lambda: sim.PerRank(5),
    r"PerRank: factors is \{1\.5: 2\.0\}; give": lambda: sim.PerRank({1.5: 2.0}),
    r"PerRank: factors\[1\]='slow' must be a number": lambda: sim.PerRank([1.0, "slow"]),
}


@pytest.mark.parametrize("message", NO_NUMBERS)
def test_what_is_no_number_is_named(message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        NO_NUMBERS[message]()


def test_factors_must_fit_the_ranks() -> None:
    def program(comm: Any) -> None:
        with comm.computing():
            pass

    for factors in ([1.0, 2.0], {5: 2.0}):
        with pytest.raises(ArgumentError, match="do not fit 3 ranks; give one factor per rank"):
            dectool.run(program, 3, compute=sim.PerRank(factors))
    with pytest.raises(ArgumentError, match=r"comm.computing\(flops=...\)"):
        dectool.run(program, 3, compute=sim.FlopRate(1.0))


class Drawn(sim.ComputeModel):
    """Draws what it is told."""

    def __init__(self, times: Any) -> None:
        self.times = times

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        return np.asarray(self.times)


@pytest.mark.parametrize("backend", ["sim", "stacked"])
@pytest.mark.parametrize(
    ("model", "flops", "message"),
    [
        (Drawn([1.0, np.nan]), None, r"drew times from nan to nan s; each must be finite"),
        (Drawn([1.0, -1.0]), None, r"drew times from -1.0 to 1.0 s"),
        (Drawn([1.0, 1.0, 1.0]), None, r"drew times of shape \(3,\); .* each of the 2 ranks"),
        (sim.FlopRate(1e-320), 1.0, r"FlopRate\(.*\) drew times from inf to inf s"),
        (sim.FlopRate(1e9), np.nan, r"computing: flops=nan must be finite and at least 0"),
        (sim.FlopRate(1e9), -1.0, r"computing: flops=-1.0 must be finite and at least 0"),
    ],
)
def test_times_that_are_none(backend: str, model: Any, flops: Any, message: str) -> None:
    """A clock that is NaN, or that goes back, would say nothing of it."""

    def program(comm: Any) -> None:
        with comm.computing(flops=flops):
            pass

    with pytest.raises(ArgumentError, match=message):
        dectool.run(program, 2, backend=backend, compute=model)


def test_draws_do_not_depend_on_the_order_of_ranks() -> None:
    """Rank 1 computes twice before rank 0 computes once."""

    def program(comm: Any) -> list[float]:
        spent = []
        for _ in range(3):
            if comm.rank == 0:
                comm.recv(1)
            before = comm.now()
            with comm.computing():
                pass
            spent.append(comm.now() - before)
            if comm.rank == 1:
                comm.send(np.zeros(1), 0)
        return spent

    def plain(comm: Any) -> Any:
        spent = []
        for _ in range(3):
            before = comm.now()
            with comm.computing():
                pass
            spent.append(comm.now() - before)
        return tuple(spent)

    model = sim.Exponential(1.0)
    uneven = dectool.run(program, 2, compute=model, seed=4).values
    even = dectool.run(plain, 2, backend="stacked", compute=model, seed=4).values
    for rank in range(2):
        np.testing.assert_allclose(uneven[rank], [float(s) for s in even[rank]], rtol=1e-12)
