"""The shipped suite, on each of our backends."""

from __future__ import annotations

import unittest

import pytest

from dectool import sim
from dectool.errors import UnsupportedOperation
from dectool.testing import CHECKS, SIM, STACKED, BackendRunner, Check

SLOW = sim.AlphaBeta(latency=1e-4, bandwidth=1e6)
QUEUED = sim.LogGP(L=1e-4, o=1e-6, g=1e-6, G=1e-7)


def by_name(check: Check) -> str:
    return check.name


@pytest.mark.parametrize("check", CHECKS, ids=by_name)
@pytest.mark.parametrize("runner", [SIM, STACKED], ids=["sim", "stacked"])
def test_backend_conforms(check: Check, runner: BackendRunner) -> None:
    check(runner)


@pytest.mark.parametrize("network", [SLOW, QUEUED], ids=["AlphaBeta", "LogGP"])
@pytest.mark.parametrize("check", [c for c in CHECKS if "all_ranks" not in c.name], ids=by_name)
def test_values_do_not_depend_on_the_network(check: Check, network: sim.NetworkModel) -> None:
    check(BackendRunner("sim", network=network))


@pytest.mark.parametrize("check", [c for c in CHECKS if "all_ranks" not in c.name], ids=by_name)
def test_stacked_conforms_with_delays(check: Check) -> None:
    check(BackendRunner("stacked", STACKED.unsupported, network=SLOW))


def test_names_are_told_apart() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) > 35
    assert all(check.__doc__ for check in CHECKS)


def test_what_is_unsupported_must_be_refused() -> None:
    split = next(check for check in CHECKS if check.name.startswith("split"))
    with pytest.raises(unittest.SkipTest, match="split: the program branches"):
        split(STACKED)
    with pytest.raises(AssertionError, match="take the names off the list"):
        split(BackendRunner("sim", unsupported=["split"]))
    with pytest.raises(UnsupportedOperation):
        split(BackendRunner("stacked"))
