"""Exact diffusion and its relatives: one recursion, three matrices and starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class ExactDiffusion(Algorithm):
    r"""Exact diffusion: adapt, correct, combine.

    .. math:: \psi^{k+1} = x^k - \alpha \nabla f(x^k), \qquad
       \phi^{k+1} = \psi^{k+1} + x^k - \psi^k, \qquad x^{k+1} = \tilde W \phi^{k+1}

    where :math:`\alpha` is `lr`, :math:`\tilde W = (I + W)/2` and :math:`\psi^0 = x^0`. It
    converges to the optimum with a step that does not depend on the network. One message of d
    numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.ExactDiffusion(lr=0.3), q, topology=topology.path(3),
        ...                   steps=200)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        K. Yuan, B. Ying, X. Zhao & A. H. Sayed, IEEE TSP 67(3), 2019.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0, time_varying=False
    )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x, psi=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Adapt, correct, combine."""
        psi = s.x - self.lr * grad(s.x)
        phi = psi + s.x - s.psi
        return State(x=(phi + comm.neighbor_allreduce(phi)) / 2, psi=psi)


@final
@dataclass(frozen=True)
class NIDS(Algorithm):
    r"""NIDS: network-independent step sizes.

    .. math:: z^{k+2} = z^{k+1} - x^{k+1} + \tilde W \big(2 x^{k+1} - x^k
       - \alpha (\nabla f(x^{k+1}) - \nabla f(x^k))\big), \qquad
       x^k = \mathrm{prox}_{\alpha r}(z^k), \qquad z^1 = x^0 - \alpha \nabla f(x^0)

    where :math:`\alpha` is `lr` < 2/L, :math:`\tilde W = (I + W)/2` and r the common term of the
    problem (:class:`dectool.problems.Composite`). Without one, z is x, and it is exact diffusion
    but for the first step, which is not averaged. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.NIDS(lr=0.3), q, topology=topology.path(3), steps=200)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        Z. Li, W. Shi & M. Yan, IEEE TSP 67(17), 2019.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0, time_varying=False
    )
    composite: ClassVar[bool] = True

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; the share of averaging is 0 for the first step and 1 from then on."""
        return State(x=x, psi=x, kept=0.0 * x, share=0.0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Adapt, correct, combine, and regularise."""
        psi = s.x - self.lr * grad(s.x)
        phi = psi + s.x - s.psi
        z = s.kept + phi + s.share * (comm.neighbor_allreduce(phi) - phi) / 2
        x = grad.prox_regularizer(z, self.lr)
        return State(x=x, psi=psi, kept=z - x, share=1.0)


@final
@dataclass(frozen=True)
class D2(Algorithm):
    r"""D²: decentralized training over decentralized data.

    .. math:: x^{k+2} = W \big(2 x^{k+1} - x^k
       - \alpha (\nabla f(x^{k+1}) - \nabla f(x^k))\big), \qquad
       x^1 = W (x^0 - \alpha \nabla f(x^0))

    where :math:`\alpha` is `lr`: exact diffusion with W itself in place of W̃, which needs
    λ_min(W) > -1/3. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.D2(lr=0.3), q, topology=topology.path(3).lazy(), steps=200)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        H. Tang, X. Lian, M. Yan, C. Zhang & J. Liu, ICML 2018.
    """

    lr: StepSize

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0 / 3.0, time_varying=False
    )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x, psi=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Adapt, correct, combine."""
        psi = s.x - self.lr * grad(s.x)
        return State(x=comm.neighbor_allreduce(psi + s.x - s.psi), psi=psi)
