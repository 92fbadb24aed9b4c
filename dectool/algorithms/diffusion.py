"""Gradient descent and averaging in one step: consensus and diffusion strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _Diffusion(Algorithm):
    """One average and one gradient step, with nothing to remember."""

    lr: StepSize

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)


@final
@dataclass(frozen=True)
class DGD(_Diffusion):
    r"""Decentralized gradient descent, also called adapt-while-communicate.

    .. math:: x^{k+1} = W x^k - \alpha \nabla f(x^k)

    where :math:`\alpha` is `lr`. The gradient is computed while the messages travel. With a
    constant step it tends to a point at distance O(α) from the optimum; α < (1 + λ_n(W)) / L.
    One message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.DGD(lr=0.05), q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-3
        True

    References:
        A. Nedić & A. Ozdaglar, IEEE TAC 54(1), 2009; K. Yuan, Q. Ling & W. Yin, SIAM J. Optim.
        26(3), 2016.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average and descend at once."""
        Wx = comm.ineighbor_allreduce(s.x)
        g = grad(s.x)
        return State(x=Wx.wait() - self.lr * g)


@final
@dataclass(frozen=True)
class ATC(_Diffusion):
    r"""Diffusion, adapt then combine.

    .. math:: x^{k+1} = W (x^k - \alpha \nabla f(x^k))

    where :math:`\alpha` is `lr` < 2/L. With a constant step it tends to a point at distance O(α)
    from the optimum. One message of d numbers per neighbour and step.

    On a schedule W is that of the step. So with :func:`dectool.topology.matcha` this is MATCHA-SGD,
    with :func:`dectool.topology.equidyn` D-SGD on EquiDyn graphs, and with
    :func:`dectool.topology.one_peer_exponential` D-SGD on one-peer exponential graphs.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.ATC(lr=0.05), q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-3
        True

    References:
        A. H. Sayed, Foundations and Trends in Machine Learning 7(4-5), 2014; with stochastic
        gradients: X. Lian et al., Can decentralized algorithms outperform centralized algorithms?,
        NeurIPS 2017 (which is :class:`DGD`); on random matchings: J. Wang, A. K. Sahu, Z. Yang,
        G. Joshi & S. Kar, MATCHA, arXiv:1905.09435, 2019.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, then average."""
        return State(x=comm.neighbor_allreduce(s.x - self.lr * grad(s.x)))


@final
@dataclass(frozen=True)
class CTA(_Diffusion):
    r"""Diffusion, combine then adapt.

    .. math:: \phi^k = W x^k, \qquad x^{k+1} = \phi^k - \alpha \nabla f(\phi^k)

    where :math:`\alpha` is `lr` < 2/L. With a constant step it tends to a point at distance O(α)
    from the optimum. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.CTA(lr=0.05), q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-3
        True

    References:
        A. H. Sayed, Foundations and Trends in Machine Learning 7(4-5), 2014.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average, then descend."""
        phi = comm.neighbor_allreduce(s.x)
        return State(x=phi - self.lr * grad(phi))
