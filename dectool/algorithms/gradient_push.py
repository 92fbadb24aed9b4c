"""Gradient descent on directed graphs by push-sum, without tracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms._push import push
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _GradientPush(Algorithm):
    """Descent along the gradient at the ratio of push-sum."""

    lr: StepSize

    needs: ClassVar[Needs] = Needs("column stochastic")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1."""
        return State(x=x, s=x, w=0.0 * x[..., :1] + 1.0)


@final
@dataclass(frozen=True)
class SubgradientPush(_GradientPush):
    r"""Subgradient-push: push-sum, then descent from the ratio.

    .. math:: z^{k+1} = C s^k, \qquad w^{k+1} = C w^k, \qquad x^{k+1} = z^{k+1} / w^{k+1}, \qquad
       s^{k+1} = z^{k+1} - \alpha_k \nabla f(x^{k+1})

    with :math:`s^0 = x^0` and :math:`w^0 = 1`, where :math:`\alpha` is `lr`. Ranks need to know
    their out-degree alone, and graphs may change. For convex f, differentiable or not, it tends to
    the optimum with steps that do not increase, :math:`\sum \alpha_k = \infty` and
    :math:`\sum \alpha_k^2 < \infty`; with :math:`\alpha_k = 1 / \sqrt k` averages of the iterates
    do, like :math:`\ln k / \sqrt k`. With a constant step it ends within O(α). One message of d + 1
    numbers per out-neighbour and step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> graph = topology.random_digraph(3, 0.5, seed=0, weights="uniform_push")
        >>> push = algorithms.SubgradientPush(lr=lambda k: 1 / (k + 5))
        >>> h = dectool.solve(push, q, topology=graph, steps=2000)
        >>> h.last["distance"] < 1e-3
        True

    References:
        A. Nedić & A. Olshevsky, Distributed optimization over time-varying directed graphs, IEEE
        TAC 60(3), 2015.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Push both, divide, and descend."""
        z, w = push(comm, (s.s, s.w))
        x = z / w
        return State(x=x, s=z - self.lr * grad(x), w=w)


@final
@dataclass(frozen=True)
class SGP(_GradientPush):
    r"""Stochastic gradient push: descent from the ratio, then push-sum.

    .. math:: s^{k+1} = C (s^k - \alpha \nabla f(x^k)), \qquad w^{k+1} = C w^k, \qquad
       x^{k+1} = s^{k+1} / w^{k+1}

    with :math:`s^0 = x^0` and :math:`w^0 = 1`, where :math:`\alpha` is `lr`. Graphs may change.
    With a constant step it ends within O(α) of the optimum; where C is doubly stochastic it is
    :class:`ATC`. One message of d + 1 numbers per out-neighbour and step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> graph = topology.random_digraph(3, 0.5, seed=0, weights="uniform_push")
        >>> h = dectool.solve(algorithms.SGP(lr=1e-3), q, topology=graph, steps=8000)
        >>> h.last["distance"] < 1e-2
        True

    References:
        M. Assran, N. Loizou, N. Ballas & M. Rabbat, Stochastic gradient push for distributed deep
        learning, ICML 2019, Algorithm 1.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, push both, and divide."""
        Cs, w = push(comm, (s.s - self.lr * grad(s.x), s.w))
        return State(x=Cs / w, s=Cs, w=w)
