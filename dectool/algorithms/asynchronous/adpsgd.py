"""AD-PSGD: gradients at stale models, and atomic averages of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided, average_pair, random_neighbor
from dectool.algorithms.asynchronous.gossip import PAIRS
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class ADPSGD(OneSided):
    r"""Asynchronous decentralized parallel SGD.

    Each rank i, at its own pace: read its model :math:`\hat x_i`, compute
    :math:`g = \nabla f_i(\hat x_i)`, average with a random neighbour j, and descend:

    .. math:: x_i, x_j \leftarrow \tfrac12 (x_i + x_j), \qquad x_i \leftarrow x_i - \alpha g

    where :math:`\alpha` is `lr`. Others average with rank i while it computes, so that g is stale
    by then. Averages are atomic, and keep the sum of the models to rounding: both mutexes are
    held, in ascending order, so ranks cannot block each other on any graph. With a constant step
    it tends to within O(α) of the optimum; ranks that are faster weigh more. One message of d
    numbers each way per step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> q = problems.Quadratic(h=[[1.0]] * 4, b=[[2.0]] * 4)
        >>> h = dectool.solve(algorithms.ADPSGD(lr=0.1), q, topology=topology.ring(4), steps=200,
        ...                   backend="sim", compute=sim.Exponential(1.0))
        >>> h.last["gap"] < 1e-12
        True

    References:
        X. Lian, W. Zhang, C. Zhang & J. Liu, Asynchronous decentralized parallel stochastic
        gradient descent, ICML 2018, Algorithm 1.
    """

    lr: StepSize

    needs: ClassVar[Needs] = PAIRS
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        comm.window(x, self.name)
        return State(x=x, k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Compute a gradient, average, descend."""
        window = self._window(comm)
        g = grad(window.value)
        average_pair(comm, window, random_neighbor(comm, window, "ADPSGD", s.k))
        window.add(-(self.lr * g), [comm.rank])
        return State(x=window.value, k=s.k + 1)
