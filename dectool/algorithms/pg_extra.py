"""PG-EXTRA: EXTRA for smooth local functions plus a common term with corners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class PGEXTRA(Algorithm):
    r"""PG-EXTRA, EXTRA with proximal points of a common term r.

    .. math:: z^{k+2} = W x^{k+1} + z^{k+1} - \tilde W x^k
       - \alpha (\nabla f(x^{k+1}) - \nabla f(x^k)), \qquad x^k = \mathrm{prox}_{\alpha r}(z^k),
       \qquad z^1 = W x^0 - \alpha \nabla f(x^0)

    where :math:`\alpha` is `lr`, :math:`\tilde W = (I + W)/2` and r the `regularizer` of the
    problem (:class:`dectool.problems.Composite`); without one it is :class:`EXTRA`. It converges
    for α < 2 λ_min(W̃)/L. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> p = problems.Composite(problems.Averaging([[1.0], [2.0], [0.0]]), problems.L1(0.4))
        >>> h = dectool.solve(algorithms.PGEXTRA(lr=0.5), p, topology=topology.ring(3), steps=80)
        >>> round(float(h.x[0, 0]), 9)
        0.6

    References:
        W. Shi, Q. Ling, G. Wu & W. Yin, A proximal gradient algorithm for decentralized composite
        optimization, IEEE TSP 63(22), 2015.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0, time_varying=False
    )
    composite: ClassVar[bool] = True

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; with this past, the first step gives the paper's first z."""
        return State(x=x, z=x, x_prev=x, Wx_prev=x, g_prev=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average, descend, take back half of what the last step averaged, and regularise."""
        request = comm.ineighbor_allreduce(s.x)
        g = grad(s.x)
        Wx = request.wait()
        z = s.z + Wx - (s.x_prev + s.Wx_prev) / 2 - self.lr * (g - s.g_prev)
        x = grad.prox_regularizer(z, self.lr)
        return State(x=x, z=z, x_prev=s.x, Wx_prev=Wx, g_prev=g)
