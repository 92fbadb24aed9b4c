"""Gossip on Poisson clocks: in pairs, and by broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State
from dectool.algorithms._checks import check_number
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous import _clocks
from dectool.communicator import Communicator
from dectool.errors import ArgumentError

PAIRS = Needs("any", time_varying=False, undirected=True)


@final
@dataclass(frozen=True)
class RandomizedGossip(Algorithm):
    r"""Randomized gossip: whose Poisson clock ticks averages with a random neighbour.

    .. math:: x_i, x_j \leftarrow \tfrac12 (x_i + x_j)

    Every rank's clock ticks `rate` times a second, and it picks one of its d neighbours with
    probability :math:`P_{ij} = 1/d_i`. So n · rate ticks a second each contract
    :math:`E\|x - \bar x\|^2` by :math:`\lambda_2(\bar W)` or more, where
    :math:`\bar W = I - D/(2n) + (P + P^T)/(2n)` and :math:`D_{ii} = \sum_j (P_{ij} + P_{ji})`; on
    a complete graph by exactly :math:`1 - 1/(n-1)`. The average is kept.

    A step lasts `interval` seconds, with all ticks that fall into it. Both ends of an edge draw
    its clock, so they know when they meet. One message of d numbers each way per tick.

    Args:
        rate: Ticks of each rank's clock per second.
        interval: Seconds that a step lasts (real ones with backend "mpi").

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.RandomizedGossip(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.ring(4), steps=60, backend="sim")
        >>> bool(np.allclose(h.x, 0.25, atol=1e-6)), h.last["time"]
        (True, 60.0)

    References:
        S. Boyd, A. Ghosh, B. Prabhakar & D. Shah, Randomized gossip algorithms, IEEE TIT 52(6),
        2006.
    """

    rate: float = 1.0
    interval: float = 1.0

    needs: ClassVar[Needs] = PAIRS
    uses_gradient: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        _check_clocks(self)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and agree on the clocks."""
        return State(x=x, seed=_clocks.common_seed(comm), k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Hold all meetings of one interval."""
        x, start = s.x, comm.now()
        ticks = self.rate * self.interval
        for at, peer in _clocks.meetings(comm.rank, comm.topology, s.seed, s.k, ticks):
            _clocks.wait_until(comm, start + at / self.rate)
            x = comm.pair_gossip(x, peer)
        _clocks.wait_until(comm, start + self.interval)
        return s.replace(x=x, k=s.k + 1)


@final
@dataclass(frozen=True)
class BroadcastGossip(Algorithm):
    r"""Broadcast gossip: whose Poisson clock ticks sends its value to all its neighbours.

    .. math:: x_j \leftarrow \gamma x_j + (1 - \gamma) x_i \qquad (j \in N_i)

    where :math:`\gamma` is `gamma`. Nobody answers, so the average is kept only in expectation:
    the ranks agree on a random c with :math:`E c = \bar x`. One message of d numbers per
    neighbour and tick.

    Args:
        gamma: What a rank keeps of its own value, in (0, 1).
        rate: Ticks of each rank's clock per second.
        interval: Seconds that a step lasts (real ones with backend "mpi").

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.BroadcastGossip(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.ring(4), steps=60, backend="sim")
        >>> bool(np.ptp(h.x, axis=0).max() < 1e-6)
        True

    References:
        T. C. Aysal, M. E. Yildiz, A. D. Sarwate & A. Scaglione, Broadcast gossip algorithms for
        consensus, IEEE TSP 57(7), 2009.
    """

    gamma: float = 0.5
    rate: float = 1.0
    interval: float = 1.0

    needs: ClassVar[Needs] = PAIRS
    uses_gradient: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        _check_clocks(self)
        check_number(self.name, "gamma", self.gamma, advice="such as 0.5")
        if not self.gamma < 1.0:
            raise ArgumentError(f"{self.name}: gamma={self.gamma} must lie between 0 and 1")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and agree on the clocks."""
        return State(x=x, seed=_clocks.common_seed(comm), k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Send and take in all broadcasts of one interval."""
        x, start = s.x, comm.now()
        ticks = self.rate * self.interval
        for at, speaker in _clocks.broadcasts(comm.rank, comm.topology, s.seed, s.k, ticks):
            _clocks.wait_until(comm, start + at / self.rate)
            if speaker == comm.rank:
                for listener in comm.topology.out_neighbors(comm.rank):
                    comm.isend(x, listener)
            else:
                x = self.gamma * x + (1.0 - self.gamma) * comm.recv(speaker)
        _clocks.wait_until(comm, start + self.interval)
        return s.replace(x=x, k=s.k + 1)


def _check_clocks(algorithm: RandomizedGossip | BroadcastGossip) -> None:
    for name in ("rate", "interval"):
        check_number(algorithm.name, name, getattr(algorithm, name), advice="such as 1.0")
