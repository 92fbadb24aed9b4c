"""Gradient tracking on directed graphs by push-sum: one column-stochastic matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Curved, Gradient, State, StepSize
from dectool.algorithms._graph_weights import tracking_step
from dectool.algorithms._needs import Needs
from dectool.algorithms._push import push
from dectool.communicator import Communicator
from dectool.topology import Schedule, Topology


@dataclass(frozen=True)
class _PushTracking(Algorithm):
    """Gradient tracking whose models are the ratios of push-sum."""

    lr: StepSize

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` with the weight 1, and track from its gradient."""
        g = grad(x)
        return State(x=x, u=x, v=0.0 * x[..., :1] + 1.0, y=g, g=g)


@final
@dataclass(frozen=True)
class PushDIGing(_PushTracking):
    r"""Push-DIGing: gradient tracking whose models are ratios, as in push-sum.

    .. math:: u^{k+1} = C (u^k - \alpha y^k), \qquad v^{k+1} = C v^k, \qquad
       x^{k+1} = u^{k+1} / v^{k+1}, \qquad
       y^{k+1} = C y^k + \nabla f(x^{k+1}) - \nabla f(x^k)

    with :math:`u^0 = x^0`, :math:`v^0 = 1` and :math:`y^0 = \nabla f(x^0)`, where :math:`\alpha`
    is `lr`. Ranks need to know their out-degree alone, and graphs may change: it converges
    linearly to the optimum for small α. The sum of y over ranks is that of the gradients, and that
    of v is n, always. One message of 2d + 1 numbers per out-neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> graph = topology.random_digraph(3, 0.5, seed=0, weights="uniform_push")
        >>> h = dectool.solve(algorithms.PushDIGing(lr=0.05), q, topology=graph, steps=800)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        A. Nedić, A. Olshevsky & W. Shi, Achieving geometric convergence for distributed
        optimization over time-varying graphs, SIAM J. Optim. 27(4), 2017.
    """

    needs: ClassVar[Needs] = Needs("column stochastic")

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return a step size that is small enough for the graph."""
        return {"lr": tracking_step(problem, topology, 0.25)}

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along y, push all three, divide, and track."""
        u, v, Cy = push(comm, (s.u - self.lr * s.y, s.v, s.y))
        x = u / v
        g = grad(x)
        return State(x=x, u=u, v=v, y=Cy + g - s.g, g=g)


@final
@dataclass(frozen=True)
class ADDOPT(_PushTracking):
    r"""ADD-OPT: accelerated distributed directed optimization.

    .. math:: u^{k+1} = C u^k - \alpha y^k, \qquad v^{k+1} = C v^k, \qquad
       x^{k+1} = u^{k+1} / v^{k+1}, \qquad
       y^{k+1} = C y^k + \nabla f(x^{k+1}) - \nabla f(x^k)

    with :math:`u^0 = x^0`, :math:`v^0 = 1` and :math:`y^0 = \nabla f(x^0)`, where :math:`\alpha`
    is `lr`: :class:`PushDIGing` without adapt-then-combine. One message of 2d + 1 numbers per
    out-neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> graph = topology.random_digraph(3, 0.5, seed=0, weights="uniform_push")
        >>> h = dectool.solve(algorithms.ADDOPT(lr=0.05), q, topology=graph, steps=800)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        C. Xi, R. Xin & U. A. Khan, ADD-OPT: accelerated distributed directed optimization, IEEE
        TAC 63(5), 2018.
    """

    needs: ClassVar[Needs] = Needs("column stochastic", time_varying=False)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return a step size that is small enough for the graph."""
        return {"lr": tracking_step(problem, topology, 0.1)}

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Push all three, descend along y, divide, and track."""
        Cu, v, Cy = push(comm, (s.u, s.v, s.y))
        u = Cu - self.lr * s.y
        x = u / v
        g = grad(x)
        return State(x=x, u=u, v=v, y=Cy + g - s.g, g=g)
