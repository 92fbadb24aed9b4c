"""Each check of the suite is able to fail: it finds the mistakes that are planted here."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import pytest

import dectool
from dectool import sim
from dectool.communicator import _parcel
from dectool.kernels import _weighted_sum
from dectool.sim import stacked
from dectool.sim.stacked import _neighborhood as stacked_neighborhood, _plan
from dectool.testing import (
    CHECKS,
    SIM,
    STACKED,
    SeededDraw,
    check_random_programs,
    random_script,
    run_script,
)
from tests.conformance.mutations import MUTATIONS
from tests.conformance.planting import Mutation, replace
from tests.sim import test_collective_costs


@pytest.fixture(autouse=True)
def numpy_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the kernels in which mistakes are planted, not their twins in C."""
    monkeypatch.setattr(_weighted_sum, "_native", None)


@pytest.fixture(autouse=True)
def fresh_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a mutant made of a layout out of the caches that other tests use."""
    monkeypatch.setattr(_parcel, "_SINGLE", {})
    monkeypatch.setattr(_parcel, "_FAST", {})


PLANTED = [
    pytest.param(check, mutation, id=f"{check.name}-{number}")
    for check in CHECKS
    for number, mutation in enumerate(MUTATIONS[check.name])
]


def test_every_check_has_its_mutation() -> None:
    assert set(MUTATIONS) == {check.name for check in CHECKS}


@pytest.mark.parametrize(("check", "mutation"), PLANTED)
def test_check_finds_the_mistake(
    check: Any, mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Exception) as found:  # noqa: PT011 (a mutant may fail in any way)
        check(SIM)
    assert not isinstance(found.value, unittest.SkipTest)


def test_random_programs_find_nothing_in_ours() -> None:
    check_random_programs(STACKED, SIM, examples=20)


def reversed_rows(original: Any) -> Any:
    """Store each row's entries from right to left, so that sums run in another order."""

    def mutant(matrix: Any, stacked: Any, dtype: str) -> Any:
        backwards = matrix.copy()
        for row in range(matrix.shape[0]):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            backwards.indices[part] = matrix.indices[part][::-1]
            backwards.data[part] = matrix.data[part][::-1]
        return original(backwards, stacked, dtype)

    return mutant


def shifted_edges(original: Any) -> Any:
    return lambda self, edges, mine, dtype: original(self, edges[::-1], mine, dtype)


def with_factors_forgotten(original: Any) -> Any:
    def mutant(*args: Any) -> Any:
        plan = original(*args)
        plan.factors = None
        return plan

    return mutant


STACKED_MUTATIONS = {
    "order of summation": replace(_plan, "sparse_product", reversed_rows),
    "edges in another order": replace(_plan.StackedPlan, "mix", shifted_edges),
    "factors forgotten": replace(stacked_neighborhood, "given_plan", with_factors_forgotten),
}


@pytest.mark.parametrize("name", STACKED_MUTATIONS)
def test_random_programs_find_mistakes_of_stacked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    STACKED_MUTATIONS[name](monkeypatch)
    with pytest.raises(AssertionError, match="bit for bit"):
        check_random_programs(STACKED, SIM, examples=200)


def latency_twice(original: Any) -> Any:
    def mutant(self: Any, source: Any, dest: Any, nbytes: Any, start: Any) -> Any:
        released, arrival = original(self, source, dest, nbytes, start)
        return released, arrival + self.latency

    return mutant


def unlimited_port(original: Any) -> Any:
    return lambda self, source, dest, nbytes, start: (
        start,
        original(self, source, dest, nbytes, start)[1],
    )


@pytest.mark.parametrize("backend", ["sim", "stacked"])
def test_closed_forms_find_wrong_times(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for mutation in (latency_twice, unlimited_port):
        with monkeypatch.context() as patch:
            replace(sim.AlphaBeta, "transfer", mutation)(patch)
            with pytest.raises(AssertionError):
                test_collective_costs.test_neighbor_allreduce_shares_the_port("ring", backend)


def a_byte_more(original: Any) -> Any:
    return lambda buffers: original(buffers) + 1


def one_message_less(original: Any) -> Any:
    def mutant(self: Any, edges: Any, nbytes: Any) -> Any:
        times = original(self, edges, nbytes)
        self.messages -= bool(len(edges))
        return times

    return mutant


def port_forgotten(original: Any) -> Any:
    def mutant(self: Any, *args: Any) -> Any:
        self.port[:] = 0.0
        return original(self, *args)

    return mutant


def last_round_unfinished(original: Any) -> Any:
    """Compute a background operation's time from the wrong clock."""

    def mutant(self: Any, operation: Any) -> Any:
        done = original(self, operation)
        done.times = done.times + 1e-9
        return done

    return mutant


COSTS = {
    "bytes": replace(stacked_neighborhood, "row_bytes", a_byte_more),
    "messages": replace(stacked.Clocks, "exchange", one_message_less),
    "port": replace(stacked.Clocks, "_send", port_forgotten),
    "background": replace(stacked.StackedCommunicator, "_background", last_round_unfinished),
}


@pytest.mark.parametrize("name", COSTS)
def test_random_programs_find_wrong_costs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = costs_of("sim")
    assert costs_of("stacked") == reference
    COSTS[name](monkeypatch)
    assert costs_of("stacked") != reference


@np.errstate(all="ignore")
def costs_of(backend: str) -> list[Any]:
    """Return times, messages and bytes of some random programs."""
    found: list[Any] = []
    for number in range(30):
        script = random_script(SeededDraw(number))
        result = dectool.run(
            run_script,
            script.size,
            backend=backend,
            topology=script.graph,
            ranks_per_node=script.ranks_per_node,
            network=sim.AlphaBeta(latency=1e-5, bandwidth=1e6),
            compute=sim.Exponential(1e-3),
            args=(script,),
        )
        found.append((list(result.times), result.messages, result.bytes))
    return found
