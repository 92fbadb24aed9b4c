"""The centralized baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class AllReduceGD(Algorithm):
    r"""Gradient descent on the mean gradient, by an exact all-reduce.

    .. math:: x^{k+1} = x^k - \frac{\alpha}{n} \sum_i \nabla f_i(x^k)

    where :math:`\alpha` is `lr` < 2/L. The topology is not used. 2(n-1)/n · d numbers sent per
    rank and step by a ring.

    Args:
        lr: Step size α, or a function of the step.
        algorithm: How to all-reduce; see :meth:`dectool.Communicator.allreduce`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.AllReduceGD(lr=0.3), q, topology=topology.ring(3),
        ...                   steps=100)
        >>> round(float(h.x[0, 0]), 9)
        0.5
    """

    lr: StepSize
    algorithm: str = "auto"

    needs: ClassVar[Needs] = Needs("any")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; ranks that start apart stay apart."""
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along the mean gradient."""
        return State(x=s.x - self.lr * comm.allreduce(grad(s.x), algorithm=self.algorithm))
