"""One cluster of eight processes for all tests, so that their start is paid once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dectool


@pytest.fixture(scope="session")
def cluster() -> Iterator[dectool.Cluster]:
    pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")
    with dectool.Cluster(n=8, backend="mpi", env={"PYTHONWARNINGS": "ignore"}) as cluster:
        yield cluster
