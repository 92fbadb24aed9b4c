"""SwarmSGD: local steps between averages of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._checks import check_steps
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous import _clocks
from dectool.algorithms.asynchronous._one_sided import (
    OneSided,
    average_pair,
    random_neighbor,
)
from dectool.algorithms.asynchronous.gossip import PAIRS
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class SwarmSGD(OneSided):
    r"""SwarmSGD, non-blocking: H local steps, then an average with a random neighbour's model.

    .. math:: y^{h+1} = y^h - \alpha \nabla f_i(y^h), \quad y^0 = x_i, \qquad
       x_i \leftarrow x_i + (y^H - y^0), \qquad x_i, x_j \leftarrow \tfrac12 (x_i + x_j)

    where :math:`\alpha` is `lr` and H is `local_steps`. The neighbour is not waited for: what
    counts is its model without the local steps that it is in the middle of, whose sum it adds
    later. So the sum of the models moves by the local steps alone. With H = 1 it is
    :class:`ADPSGD` that descends before it averages. One message of d numbers each way per step.

    Args:
        lr: Step size α, or a function of the step.
        local_steps: Local steps H, or their mean.
        geometric: Draw H from the geometric distribution of that mean, as between the ticks of
            Poisson clocks.

    Example:
        >>> from dectool import algorithms
        >>> algorithms.SwarmSGD(lr=0.1, local_steps=3)
        SwarmSGD(lr=0.1, local_steps=3, geometric=False)

    References:
        G. Nadiradze, A. Sabour, P. Davies, S. Li & D. Alistarh, Asynchronous decentralized SGD
        with quantized and local updates, NeurIPS 2021, Algorithm 2.
    """

    lr: StepSize
    local_steps: int = 2
    geometric: bool = False

    needs: ClassVar[Needs] = PAIRS
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_steps(self.name, at_least=1, local_steps=self.local_steps)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        comm.window(x, self.name)
        return State(x=x, k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend H times, and average."""
        window = self._window(comm)
        y = start = window.value
        for _ in range(_drawn_steps(self, comm, s.k)):
            y = y - self.lr * grad(y)
        window.add(y - start, [comm.rank])
        average_pair(comm, window, random_neighbor(comm, window, "SwarmSGD", s.k))
        return State(x=window.value, k=s.k + 1)


@final
@dataclass(frozen=True)
class BlockingSwarmSGD(Algorithm):
    r"""SwarmSGD, blocking: two ranks meet when both have done their local steps.

    .. math:: y_i^{h+1} = y_i^h - \alpha \nabla f_i(y_i^h), \quad y_i^0 = x_i, \qquad
       x_i, x_j \leftarrow \tfrac12 (y_i^H + y_j^H)

    where :math:`\alpha` is `lr` and H is `local_steps`. Poisson clocks, of which each rank's ticks
    once per step on average, say who meets whom in which order; how long it takes is up to the
    local steps. A rank waits for its partner, so the slowest sets the pace of all. A rank
    without neighbours takes its local steps once per step.

    Args:
        lr: Step size α, or a function of the step.
        local_steps: Local steps H before each meeting.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0]] * 4, b=[[2.0]] * 4)
        >>> h = dectool.solve(algorithms.BlockingSwarmSGD(lr=0.1), q, topology=topology.ring(4),
        ...                   steps=200, backend="sim")
        >>> h.last["gap"] < 1e-12
        True

    References:
        G. Nadiradze et al., Asynchronous decentralized SGD with quantized and local updates,
        NeurIPS 2021, Algorithm 1.
    """

    lr: StepSize
    local_steps: int = 2

    needs: ClassVar[Needs] = PAIRS
    exact: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_steps(self.name, at_least=1, local_steps=self.local_steps)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and agree on the clocks."""
        return State(x=x, seed=_clocks.common_seed(comm), k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Hold all meetings of one unit of the clocks, each after H local steps."""
        x = s.x
        for peer in _clocks.partners(comm, s.seed, s.k):
            for _ in range(self.local_steps):
                x = x - self.lr * grad(x)
            x = x if peer is None else comm.pair_gossip(x, peer)
        return s.replace(x=x, k=s.k + 1)


def _drawn_steps(algorithm: SwarmSGD, comm: Communicator, k: int) -> int:
    mean = algorithm.local_steps
    return int(comm.rng("local steps", k).geometric(1.0 / mean)) if algorithm.geometric else mean
