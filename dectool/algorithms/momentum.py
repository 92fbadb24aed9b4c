"""Gradient descent with momentum and local mixing, and what the mixing does to the momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._checks import check_below_one
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _Momentum(Algorithm):
    """Descent along a momentum that begins at zero."""

    lr: StepSize
    beta: float = 0.9

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_below_one(self.name, "beta", self.beta)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, at rest."""
        return State(x=x, m=0.0 * x)


@final
@dataclass(frozen=True)
class DmSGD(_Momentum):
    r"""Decentralized momentum SGD: adapt then combine, along a momentum on every rank.

    .. math:: m^{k+1} = \beta m^k + \nabla f(x^k), \qquad x^{k+1} = W (x^k - \alpha m^{k+1})

    where :math:`\alpha` is `lr` and :math:`\beta` is `beta`. It ends where :class:`ATC` ends with
    the larger step :math:`\alpha / (1 - \beta)`, so momentum enlarges the bias. One message of d
    numbers per neighbour and step. With `mix_momentum` the momentum is averaged too,

    .. math:: m^{k+1} = W (\beta m^k + \nabla f(x^k)), \qquad x^{k+1} = W (x^k - \alpha m^k)

    in one message of 2d numbers.

    Args:
        lr: Step size α, or a function of the step.
        beta: Momentum β, at least 0 and below 1.
        mix_momentum: Whether neighbours average their momenta, too.

    Example:
        >>> from dectool import algorithms, problems, theory, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> ring = topology.ring(3, weights="metropolis_hastings").lazy()
        >>> end = theory.fixed_point(algorithms.DmSGD(lr=0.02, beta=0.9), q, ring)
        >>> plain = theory.fixed_point(algorithms.ATC(lr=0.2), q, ring)
        >>> abs(end.bias - plain.bias) < 1e-12
        True

    References:
        K. Yuan, Y. Chen, X. Huang, Y. Zhang, P. Pan, Y. Xu & W. Yin, DecentLaM, ICCV 2021, on the
        bias; B. Ying, K. Yuan, Y. Chen, H. Hu, P. Pan & W. Yin, Exponential graph is provably
        efficient for decentralized deep training, NeurIPS 2021, for momenta that are averaged
        (its code averages models alone).
    """

    mix_momentum: bool = False

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Gather momentum, descend, and average."""
        m = self.beta * s.m + grad(s.x)
        if self.mix_momentum:
            x, m = comm.neighbor_allreduce((s.x - self.lr * s.m, m))
            return State(x=x, m=m)
        return State(x=comm.neighbor_allreduce(s.x - self.lr * m), m=m)


@final
@dataclass(frozen=True)
class QuasiGlobalMomentum(_Momentum):
    r"""Quasi-global momentum (QG-DSGDm): of the way that the iterates went, mixing included.

    .. math:: x^{k+1} = W (x^k - \alpha (\beta m^k + \nabla f(x^k))), \qquad
       m^{k+1} = \beta m^k + (1 - \beta) \frac{x^k - x^{k+1}}{\alpha}

    where :math:`\alpha` is `lr` and :math:`\beta` is `beta`. It ends where :class:`ATC` ends with
    the same step. Without neighbours m decays by :math:`1 - (1 - \beta)^2` per step, so β = 0.9 is
    a momentum of 0.99. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        beta: Momentum β, at least 0 and below 1.

    Example:
        >>> from dectool import algorithms, problems, theory, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> end = theory.fixed_point(algorithms.QuasiGlobalMomentum(lr=0.1), q, topology.path(3))
        >>> plain = theory.fixed_point(algorithms.ATC(lr=0.1), q, topology.path(3))
        >>> abs(end.bias - plain.bias) < 1e-12
        True

    References:
        T. Lin, S. P. Karimireddy, S. U. Stich & M. Jaggi, Quasi-global momentum: accelerating
        decentralized deep learning on heterogeneous data, ICML 2021, with one number for the two
        that its code has: `momentum` is β, and `factor` 1 - β.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along momentum and gradient, average, and see how far that went."""
        x = comm.neighbor_allreduce(s.x - self.lr * (self.beta * s.m + grad(s.x)))
        return State(x=x, m=self.beta * s.m + (1.0 - self.beta) * (s.x - x) / self.lr)


@final
@dataclass(frozen=True)
class DecentLaM(_Momentum):
    r"""DecentLaM: momentum of gradients that have the mixing in them.

    .. math:: \tilde g^k = \frac{x^k - W (x^k - \alpha \nabla f(x^k))}{\alpha}, \qquad
       m^{k+1} = \beta m^k + \tilde g^k, \qquad x^{k+1} = x^k - \alpha m^{k+1}

    where :math:`\alpha` is `lr` and :math:`\beta` is `beta`: heavy-ball descent on the function
    of which :class:`ATC` takes gradient steps, so it ends where ATC ends with the same step. One
    message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        beta: Momentum β, at least 0 and below 1.

    Example:
        >>> from dectool import algorithms, problems, theory, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> end = theory.fixed_point(algorithms.DecentLaM(lr=0.1), q, topology.path(3))
        >>> plain = theory.fixed_point(algorithms.ATC(lr=0.1), q, topology.path(3))
        >>> abs(end.bias - plain.bias) < 1e-12
        True

    References:
        K. Yuan, Y. Chen, X. Huang, Y. Zhang, P. Pan, Y. Xu & W. Yin, DecentLaM: decentralized
        momentum SGD for large-batch deep training, ICCV 2021.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take the step of adapt-then-combine for a gradient, and descend along its momentum."""
        mixed = comm.neighbor_allreduce(s.x - self.lr * grad(s.x))
        m = self.beta * s.m + (s.x - mixed) / self.lr
        return State(x=s.x - self.lr * m, m=m)
