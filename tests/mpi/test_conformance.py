"""The shipped suite on real processes, and random programs, with the bits of the simulator."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dectool
from dectool.testing import CHECKS, SIM, Check, check_random_programs


@dataclasses.dataclass
class ClusterRunner:
    """Runs programs of the suite on the first processes of a cluster."""

    cluster: dectool.Cluster
    unsupported: frozenset[str] = frozenset()

    def __call__(self, program: Callable[[Any], Any], n: int, **options: Any) -> Any:
        def quiet(comm: Any) -> Any:
            with np.errstate(all="ignore"):
                return program(comm)

        options.setdefault("ranks_per_node", 1)
        return self.cluster.run(quiet, n, timeout=5.0, **options).values


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_backend_conforms(
    check: Check, cluster: dectool.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("dectool.testing.") and hasattr(module, "SIZES"):
            # Eight processes on a few cores wait for each other most of the time.
            monkeypatch.setattr(module, "SIZES", (1, 2, 3, 4))
    check(ClusterRunner(cluster))


def test_random_programs_have_the_bits_of_sim(cluster: dectool.Cluster) -> None:
    check_random_programs(ClusterRunner(cluster), SIM, examples=60)
