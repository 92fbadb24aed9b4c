"""EXTRA: gradient descent with a correction that removes the bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class EXTRA(Algorithm):
    r"""EXTRA, an exact first-order algorithm.

    .. math:: x^{k+2} = (I + W) x^{k+1} - \tilde W x^k
       - \alpha (\nabla f(x^{k+1}) - \nabla f(x^k)), \qquad x^1 = W x^0 - \alpha \nabla f(x^0)

    where :math:`\alpha` is `lr` and :math:`\tilde W = (I + W)/2`. It converges to the optimum
    for α < 2 λ_min(W̃)/L, linearly where f is strongly convex; then up to α < (5 + 3 λ_n(W))/(4L).
    One message of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.EXTRA(lr=0.2), q, topology=topology.ring(3), steps=200)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        W. Shi, Q. Ling, G. Wu & W. Yin, SIAM J. Optim. 25(2), 2015; Y. Li & M. Yan, J. Optim.
        Theory Appl. 189, 2021 (the larger step).
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0, time_varying=False
    )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; with this past, the first step gives the paper's first iterate."""
        return State(x=x, x_prev=x, Wx_prev=x, g_prev=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average, descend, and take back half of what the last step averaged."""
        request = comm.ineighbor_allreduce(s.x)
        g = grad(s.x)
        Wx = request.wait()
        x = s.x + Wx - (s.x_prev + s.Wx_prev) / 2 - self.lr * (g - s.g_prev)
        return State(x=x, x_prev=s.x, Wx_prev=Wx, g_prev=g)
