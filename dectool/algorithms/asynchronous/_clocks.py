"""Poisson clocks that ranks draw alike, so that they know when they meet without asking."""

from __future__ import annotations

import numpy as np

from dectool.communicator import Communicator
from dectool.errors import UnsupportedOperation
from dectool.topology import Topology

Events = list[tuple[float, int]]
"""Times within a step, in units of the mean time between ticks of one rank, and ranks."""


def common_seed(comm: Communicator) -> int:
    """Return a number that all ranks agree on, drawn by rank 0.

    Raises:
        UnsupportedOperation: The communicator runs all ranks at once.
    """
    if np.ndim(comm.rank):
        raise UnsupportedOperation(
            f"ranks meet when their clocks tick, and backend {comm.backend!r} moves them in step; "
            "use backend='sim' or 'mpi'"
        )
    drawn = comm.rng("clocks").integers(2**32, size=1)
    return int(comm.broadcast(drawn)[0])


def meetings(rank: int, topology: Topology, seed: int, k: int, duration: float) -> Events:
    r"""Return when a rank meets whom in step k, in the order of time.

    The clock of every rank ticks at rate 1, and whose clock ticks picks a neighbour uniformly;
    thus the edge between i and j has a Poisson clock of rate :math:`1/d_i + 1/d_j`. Both draw it
    from (seed, k, edge), and process their meetings in the order of time, which is the same for
    all: of all meetings that have not been held, the first can be.

    Example:
        >>> from dectool import topology
        >>> pair = topology.complete(2)
        >>> a, b = (meetings(rank, pair, 0, 0, 3.0) for rank in range(2))
        >>> [time for time, _ in a] == [time for time, _ in b]
        True
    """
    events = []
    mine = topology.out_degree(rank)
    for peer in topology.out_neighbors(rank):
        rate = 1.0 / mine + 1.0 / topology.out_degree(peer)
        key = (k, min(rank, peer), max(rank, peer))
        events += [(at, key, peer) for at in _ticks(seed, key, rate, duration)]
    return [(at, peer) for at, _, peer in sorted(events)]


def partners(comm: Communicator, seed: int, k: int) -> list[int] | list[None]:
    """Return whom a rank meets in step k, in order, where clocks tick once per step on average.

    A rank without neighbours ticks once, and meets nobody: ``[None]``.
    """
    if not comm.topology.out_neighbors(comm.rank):
        return [None]
    return [peer for _, peer in meetings(comm.rank, comm.topology, seed, k, 1.0)]


def broadcasts(rank: int, topology: Topology, seed: int, k: int, duration: float) -> Events:
    """Return who of a rank and its in-neighbours broadcasts when in step k, in order of time."""
    speakers = (rank, *topology.in_neighbors(rank))
    return sorted(
        (at, speaker) for speaker in speakers for at in _ticks(seed, (k, speaker), 1.0, duration)
    )


def wait_until(comm: Communicator, time: float) -> None:
    """Let time pass until ``time`` seconds, unless it has."""
    comm.elapse(max(0.0, time - comm.now()))


def _ticks(seed: int, key: tuple[int, ...], rate: float, duration: float) -> list[float]:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    return [float(at) for at in duration * rng.random(rng.poisson(rate * duration))]
