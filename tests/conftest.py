"""What holds for every test: random examples repeat, and those that start processes are marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

_FOLDERS = tuple(Path(__file__).parent / name for name in ("mpi", "hosts"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of the folders whose tests start processes, before any is selected."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _FOLDERS):
            item.add_marker(pytest.mark.processes)
