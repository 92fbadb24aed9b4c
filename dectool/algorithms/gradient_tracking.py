"""Gradient tracking: y follows the average of the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


def _start(x: Any, grad: Gradient) -> State:
    g = grad(x)
    return State(x=x, y=g, g=g)


@final
@dataclass(frozen=True)
class DIGing(Algorithm):
    r"""DIGing: gradient tracking without adapt-then-combine.

    .. math:: x^{k+1} = W x^k - \alpha y^k, \qquad
       y^{k+1} = W y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. It converges linearly to the optimum for small α, also on
    changing topologies. One message of 2d numbers per neighbour and step; the sum of y over
    ranks is that of the gradients, always.

    Args:
        lr: Step size α.

    References:
        A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs("doubly stochastic")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` and track from its gradient."""
        return _start(x, grad)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average both, descend along y, and track."""
        Wx, Wy = comm.neighbor_allreduce((s.x, s.y))
        x = Wx - self.lr * s.y
        g = grad(x)
        return State(x=x, y=Wy + g - s.g, g=g)


@final
@dataclass(frozen=True)
class SemiATCGradientTracking(Algorithm):
    r"""Gradient tracking, adapt-then-combine in x only.

    .. math:: x^{k+1} = W (x^k - \alpha y^k), \qquad
       y^{k+1} = W y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. One message of 2d numbers per neighbour and step.

    Args:
        lr: Step size α.

    References:
        P. Di Lorenzo & G. Scutari, IEEE T-SIPN 2(2), 2016.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs("doubly stochastic")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` and track from its gradient."""
        return _start(x, grad)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along y, average both, and track."""
        x, Wy = comm.neighbor_allreduce((s.x - self.lr * s.y, s.y))
        g = grad(x)
        return State(x=x, y=Wy + g - s.g, g=g)


@final
@dataclass(frozen=True)
class ATCGradientTracking(Algorithm):
    r"""Gradient tracking, adapt-then-combine form (Aug-DGM, NEXT).

    .. math:: x^{k+1} = W (x^k - \alpha y^k), \qquad
       y^{k+1} = W (y^k + \nabla f(x^{k+1}) - \nabla f(x^k)), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. Two messages of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    References:
        J. Xu, S. Zhu, Y. C. Soh & L. Xie, CDC 2015.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs("doubly stochastic")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` and track from its gradient."""
        return _start(x, grad)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along y and average; then track and average."""
        x = comm.neighbor_allreduce(s.x - self.lr * s.y)
        g = grad(x)
        y = comm.neighbor_allreduce(s.y + g - s.g)
        return State(x=x, y=y, g=g)
