"""What holds for every test: random examples repeat, and one test at a time starts processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

_FOLDERS = tuple(Path(__file__).parent / name for name in ("mpi", "hosts"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that start processes on one worker: side by side they would wait for cores."""
    for item in items:
        starts = any(item.path.is_relative_to(folder) for folder in _FOLDERS)
        if starts or item.get_closest_marker("processes") is not None:
            item.add_marker(pytest.mark.xdist_group("processes"))
