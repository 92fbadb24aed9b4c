"""Gradient tracking: y follows the average of the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _Tracking(Algorithm):
    """Descent along y, which begins as the gradient."""

    lr: StepSize

    needs: ClassVar[Needs] = Needs("doubly stochastic")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` and track from its gradient."""
        g = grad(x)
        return State(x=x, y=g, g=g)


@final
@dataclass(frozen=True)
class DIGing(_Tracking):
    r"""DIGing: gradient tracking without adapt-then-combine.

    .. math:: x^{k+1} = W x^k - \alpha y^k, \qquad
       y^{k+1} = W y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. It converges linearly to the optimum for small α, also on
    changing topologies. One message of 2d numbers per neighbour and step; the sum of y over
    ranks is that of the gradients, always.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.DIGing(lr=0.1), q, topology=topology.path(3), steps=400)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        A. Nedić, A. Olshevsky & W. Shi, SIAM J. Optim. 27(4), 2017.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average both, descend along y, and track."""
        Wx, Wy = comm.neighbor_allreduce((s.x, s.y))
        x = Wx - self.lr * s.y
        g = grad(x)
        return State(x=x, y=Wy + g - s.g, g=g)


@final
@dataclass(frozen=True)
class SemiATCGradientTracking(_Tracking):
    r"""Gradient tracking, adapt-then-combine in x only (NEXT).

    .. math:: x^{k+1} = W (x^k - \alpha y^k), \qquad
       y^{k+1} = W y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. One message of 2d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.SemiATCGradientTracking(lr=0.1)
        >>> h = dectool.solve(method, q, topology=topology.path(3), steps=400)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        P. Di Lorenzo & G. Scutari, IEEE T-SIPN 2(2), 2016.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along y, average both, and track."""
        x, Wy = comm.neighbor_allreduce((s.x - self.lr * s.y, s.y))
        g = grad(x)
        return State(x=x, y=Wy + g - s.g, g=g)


@final
@dataclass(frozen=True)
class ATCGradientTracking(_Tracking):
    r"""Gradient tracking, adapt-then-combine form (Aug-DGM).

    .. math:: x^{k+1} = W (x^k - \alpha y^k), \qquad
       y^{k+1} = W (y^k + \nabla f(x^{k+1}) - \nabla f(x^k)), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`. Two messages of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.ATCGradientTracking(lr=0.1), q, topology=topology.path(3),
        ...                   steps=400)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        J. Xu, S. Zhu, Y. C. Soh & L. Xie, CDC 2015.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along y and average; then track and average."""
        x = comm.neighbor_allreduce(s.x - self.lr * s.y)
        g = grad(x)
        y = comm.neighbor_allreduce(s.y + g - s.g)
        return State(x=x, y=y, g=g)
