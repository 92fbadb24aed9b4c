"""Who waits for whom in a neighborhood average, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dectool.errors import ArgumentError, TopologyError
from dectool.topology import Schedule, Topology, as_schedule

Ints = np.ndarray[Any, np.dtype[np.int64]]


def waits(topology: Topology | Schedule, staleness: int) -> list[tuple[Ints, Ints]]:
    """Return for each step of a period who waits and for whom: receivers and senders.

    Raises:
        ArgumentError: The schedule has no period, or has one above 1 with a staleness.
        TopologyError: Over a period, some rank never depends on some other.
    """
    schedule = as_schedule(topology)
    if schedule.period is None:
        raise ArgumentError(
            f"{schedule.name} has no period, so no one cycle time; measure it with dectool.run"
        )
    if staleness and schedule.period > 1:
        raise ArgumentError(
            f"staleness={staleness} needs one topology, got {schedule.name} of period "
            f"{schedule.period}: what its ranks wait for is not defined"
        )
    steps = []
    for k in range(schedule.period):
        edges = schedule.at(k).edges
        steps.append((edges.receivers, edges.senders))
    receivers, senders = (np.concatenate(part) for part in zip(*steps, strict=True))
    graph = sparse.csr_array((np.ones(len(senders)), (senders, receivers)), (schedule.size,) * 2)
    if csgraph.connected_components(graph, connection="strong")[0] > 1:
        raise TopologyError(
            f"{schedule.name} is not strongly connected: ranks that never wait for each other "
            "have no common cycle time; ask for each component by itself"
        )
    return steps
