"""How a mistake is put in the place of what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Mutation:
    """Return the mutation that puts ``make(original)`` in the place of an attribute."""

    def plant(patch: Patch) -> None:
        patch.setattr(owner, name, make(getattr(owner, name)), raising=False)

    return plant


def instead(owner: Any, name: str, value: Any) -> Mutation:
    return replace(owner, name, lambda original: value)


def last_first(original: Any) -> Any:
    return lambda rows, like: original(rows[::-1], like)
