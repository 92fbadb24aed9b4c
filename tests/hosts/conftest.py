"""Hosts that are network namespaces, two for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dectool
from dectool.testing._lab import Lab, why_no_lab


@pytest.fixture(scope="session")
def rights() -> None:
    """Skip where hosts cannot be built."""
    pytest.importorskip("mpi4py", reason="needs the extra mpi: pip install 'dectool[mpi]'")
    reason = why_no_lab()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def lab(rights: None) -> Iterator[Lab]:
    with Lab(2, rate=125e6) as lab:
        yield lab


@pytest.fixture(scope="session")
def cluster(lab: Lab) -> Iterator[dectool.Cluster]:
    """Two processes on each of two hosts."""
    hosts = [f"{address}:2" for address in lab.addresses]
    with dectool.Cluster(hosts=hosts, launcher=lab.launcher, env=lab.variables) as cluster:
        yield cluster
    assert lab.processes() == []
