"""Overlap SGP: gradient push whose messages may be some steps late, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_steps
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided
from dectool.algorithms.asynchronous.push_sum import ANY
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class OSGP(OneSided):
    r"""Overlap stochastic gradient push.

    .. math:: u_i^k = s_i^k - \alpha \nabla f_i(x_i^k), \qquad
       s_i^{k+1} = \frac{u_i^k}{d_i + 1} + \sum_j \sum_{t \in A_{ij}^k} \frac{u_j^t}{d_j + 1},
       \qquad x_i^{k+1} = \frac{s_i^{k+1}}{w_i^{k+1}}

    and likewise for the weights w, where :math:`\alpha` is `lr`, :math:`d_j` the out-degree, and
    :math:`A_{ij}^k` the steps of j whose messages have come since the last step of i. A rank waits
    in step k only for messages of step :math:`k - \tau` and before, where :math:`\tau` is `delay`.
    In a simulation with faults, nobody waits for a rank that has crashed, or gives it a share;
    messages must not be lost at random, since they are counted. The weights of the topology are not
    used; those of push-sum correct what the delays do. With τ = 0, and ranks in step, it is
    stochastic gradient push. With a constant step it tends to within O(α) of the optimum, or in the
    limit of small steps to it. One message of d + 1 numbers per out-neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        delay: Steps τ that a message may be late.

    Example:
        >>> from dectool import algorithms
        >>> algorithms.OSGP(lr=0.1, delay=2)
        OSGP(lr=0.1, delay=2)

    References:
        M. Assran, N. Loizou, N. Ballas & M. Rabbat, Stochastic gradient push for distributed deep
        learning, ICML 2019, Algorithm 2.
    """

    lr: StepSize
    delay: int = 1

    needs: ClassVar[Needs] = ANY
    exact: ClassVar[bool] = False
    waits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_steps(self.name, delay=self.delay)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1."""
        comm.window(x, self.name, push_sum=True)
        return State(x=x, s=x, w=np.ones(1), k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, send shares, and take in what has come; wait for what is overdue."""
        window = self._window(comm)
        u = s.s - self.lr * grad(s.x)
        window.iaccumulate(u)
        for source in window.topology.in_neighbors(comm.rank):
            window.wait(source, s.k + 1 - self.delay)
        value, weight = window.collect(), window.weight
        return State(x=value / weight, s=value, w=np.array([weight]), k=s.k + 1)
