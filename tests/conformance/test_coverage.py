"""Every public operation of the Communicator is called by some check of the suite."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from dectool import Communicator
from dectool.sim._communicator import SimCommunicator
from dectool.testing import CHECKS, SIM

PUBLIC = sorted(
    name for name in dir(Communicator) if not name.startswith("_") and name != "backend"
)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    names: set[str] = set()

    def spied(self: Any, name: str) -> Any:
        # What a program asks for, not what the operations ask each other for.
        if "dectool.testing" in inspect.currentframe().f_back.f_globals["__name__"]:  # type: ignore[union-attr]
            names.add(name)
        return object.__getattribute__(self, name)

    monkeypatch.setattr(SimCommunicator, "__getattribute__", spied)
    return names


def test_every_operation_is_checked(used: set[str]) -> None:
    for check in CHECKS:
        if "all_ranks" not in check.name:
            check(SIM)
    missing = sorted(set(PUBLIC) - used)
    assert not missing, missing
    assert len(PUBLIC) > 45
