"""Push-sum without waiting, and gradient descent on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_at_least
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided
from dectool.communicator import Communicator, Window

ANY = Needs("any", time_varying=False)


@final
@dataclass(frozen=True)
class AsynchronousPushSum(OneSided):
    r"""Averaging on directed graphs, each rank at its own pace.

    A step lasts one computation of the compute model. Then a rank takes in the shares that have
    come, and if there were any, sends on equal shares of what it holds now:

    .. math:: s_i \leftarrow s_i + \sum_j s_{ij}, \quad w_i \leftarrow w_i + \sum_j w_{ij}, \qquad
       x_i = s_i / w_i

    .. math:: (s_{li}, w_{li}) \mathrel{+}= \frac{(s_i, w_i)}{d_i + 1}, \qquad
       (s_i, w_i) \leftarrow \frac{(s_i, w_i)}{d_i + 1}

    where :math:`d_i` is the out-degree. A rank that has heard nothing sends nothing: it would
    halve what it holds in every step until its slow in-neighbours are done, and underflow. Nothing
    stops for that, since every share that arrives is sent on. Mass is kept whatever the delays, so
    x tends to the average of the first values. Where all steps last equally long and messages
    arrive within one, the iterates are those of :class:`PushSum`. The weights of the topology are
    not used. One message of d + 1 numbers per out-neighbour and step.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> h = dectool.solve(algorithms.AsynchronousPushSum(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.exponential(4), steps=200, backend="sim",
        ...                   compute=sim.PerRank({0: 5.0}, sim.Exponential(1.0)))
        >>> bool(np.allclose(h.x, 0.25, atol=1e-10, rtol=0))
        True

    References:
        D. Kempe, A. Dobra & J. Gehrke, FOCS 2003; C. N. Hadjicostis & T. Charalambous, Average
        consensus in the presence of delays in directed graph topologies, IEEE TAC 59(3), 2014.
    """

    needs: ClassVar[Needs] = ANY
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1, and send shares of them."""
        window = comm.window(x, self.name, push_sum=True)
        window.iaccumulate()
        return State(x=x, s=x, w=np.ones(1))

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take in what has come, and send on shares if there is anything new."""
        with comm.computing():
            window = self._window(comm)
        new = _anything_new(comm, window)
        value, weight = window.collect(), window.weight
        if new:
            window.iaccumulate()
        return State(x=value / weight, s=value, w=np.array([weight]))


@final
@dataclass(frozen=True)
class AsynchronousGradientPush(OneSided):
    r"""Stochastic gradient push, each rank at its own pace.

    .. math:: s_i \leftarrow s_i + \sum_j s_{ij}, \quad w_i \leftarrow w_i + \sum_j w_{ij}, \qquad
       s_i \leftarrow s_i - \alpha \min(1, w_i / \omega) \nabla f_i(x_i), \qquad
       x_i \leftarrow s_i / w_i

    where :math:`\alpha` is `lr`, :math:`\omega` is `floor`, and the gradient is at the x from
    before; shares are sent on as in :class:`AsynchronousPushSum` while the next one is computed.
    Published is ω = 0. But :math:`x_i` moves by :math:`\alpha / w_i`, which has no bound where
    shares are late, or lost to ranks that have done their last step; with ω it is at most α/ω,
    which should be below 2/L.

    With ranks in step this is :math:`s^+ = C s - \alpha \nabla f(x)`, :math:`w^+ = C w`. A step
    size that decreases like 1/k leads to the optimum if all ranks' steps last alike; ranks that
    are faster weigh more. A constant one leads to within O(α). One message of d + 1 numbers per
    out-neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        floor: Weight ω below which a rank descends by less, at least 0.

    Example:
        >>> from dectool import algorithms
        >>> algorithms.AsynchronousGradientPush(lr=0.1)
        AsynchronousGradientPush(lr=0.1, floor=0.1)

    References:
        A. Nedić & A. Olshevsky, Distributed optimization over time-varying directed graphs, IEEE
        TAC 60(3), 2015; M. Assran & M. Rabbat, Asynchronous gradient-push, IEEE TAC 66(1), 2021.
    """

    lr: StepSize
    floor: float = 0.1

    needs: ClassVar[Needs] = ANY
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_at_least(self.name, "floor", self.floor, 0.0)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1, and send shares of them."""
        window = comm.window(x, self.name, push_sum=True)
        window.iaccumulate()
        return State(x=x, w=np.ones(1))

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend from what has come during the gradient, and send on shares."""
        window = self._window(comm)
        g = grad(s.x)
        new = _anything_new(comm, window)
        Cs, weight = window.collect(), window.weight
        scale = min(1.0, weight / self.floor) if self.floor else 1.0
        value = Cs - self.lr * (scale * g)
        window.set(value)
        if new:
            window.iaccumulate()
        return State(x=value / weight, w=np.array([weight]))


def _anything_new(comm: Communicator, window: Window) -> bool:
    """Tell whether a share has come since the last time."""
    sources = window.topology.in_neighbors(comm.rank)
    return any(window.staleness(source) == 0 and window.version(source) for source in sources)
