"""Descent in rounds: ranks average seldom, or exactly only now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State
from dectool.algorithms._checks import check_below_one, check_number
from dectool.algorithms._needs import Needs
from dectool.algorithms._periodic import PeriodicAlgorithm
from dectool.communicator import Communicator
from dectool.errors import ArgumentError

_INNER = ("local", "gossip")


@final
@dataclass(frozen=True)
class LocalSGD(PeriodicAlgorithm):
    r"""Local SGD: H steps of gradient descent on every rank, then the exact mean.

    .. math:: x_i^{k+\frac12} = x_i^k - \alpha \nabla f_i(x_i^k), \qquad
       x_i^{k+1} = \begin{cases} \frac1n \sum_j x_j^{k+\frac12} & H \text{ divides } k + 1 \\
       x_i^{k+\frac12} & \text{else} \end{cases}

    where :math:`\alpha` is `lr` and H is `period`. With H = 1 it is gradient descent on the mean;
    with more it favours ranks of small curvature: on quadratics it ends at
    :math:`(\sum_i A_i)^{-1} \sum_i A_i x_i^*` with :math:`A_i = I - (I - \alpha H_i)^H`. Nothing is
    sent but the all-reduce at the end of a round; the topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        period: Steps H of a round.
        phase: Steps of the first round that are taken to be done: step k ends a round where
            phase + k + 1 is a multiple of the period.
        algorithm: How to all-reduce; see :meth:`dectool.Communicator.allreduce`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0]], b=[[0.0], [3.0]])
        >>> h = dectool.solve(algorithms.LocalSGD(lr=0.25, period=2), q,
        ...                   topology=topology.ring(2), steps=60)
        >>> x = (1 - 0.25**2) / ((1 - 0.75**2) + (1 - 0.25**2))  # optimum: 0.75
        >>> abs(float(h.x[0, 0]) - x) < 1e-12
        True

    References:
        S. U. Stich, Local SGD converges fast and communicates little, ICLR 2019.
    """

    algorithm: str = "auto"

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend; at the end of a round, average over all ranks."""
        x = s.x - self.lr * grad(s.x)
        return State(x=comm.allreduce(x, algorithm=self.algorithm) if self.ends_round else x)


@final
@dataclass(frozen=True)
class CooperativeSGD(PeriodicAlgorithm):
    r"""Cooperative SGD: local steps, and an average over neighbours at the end of each round.

    .. math:: x^{k+1} = \begin{cases} W (x^k - \alpha \nabla f(x^k)) & H \text{ divides } k + 1 \\
       x^k - \alpha \nabla f(x^k) & \text{else} \end{cases}

    where :math:`\alpha` is `lr` and H is `period`. With H = 1 it is :class:`ATC`, on the complete
    graph :class:`LocalSGD`. One message of d numbers per neighbour and round. On a schedule of
    topologies, those of the last steps of rounds are used.

    Args:
        lr: Step size α, or a function of the step.
        period: Steps H of a round.
        phase: Steps of the first round that are taken to be done, as for :class:`LocalSGD`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.CooperativeSGD(lr=0.02, period=2)
        >>> h = dectool.solve(method, q, topology=topology.path(3), steps=1000)
        >>> h.last["gap"] < 1e-2
        True

    References:
        J. Wang & G. Joshi, Cooperative SGD: a unified framework for the design and analysis of
        local-update SGD algorithms, JMLR 22, 2021.
    """

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend; at the end of a round, average over neighbours."""
        x = s.x - self.lr * grad(s.x)
        return State(x=comm.neighbor_allreduce(x) if self.ends_round else x)


@final
@dataclass(frozen=True)
class GossipPGA(PeriodicAlgorithm):
    r"""Gossip SGD with periodic global averaging: every H-th average is exact.

    .. math:: x^{k+1} = \begin{cases} J (x^k - \alpha \nabla f(x^k)) & H \text{ divides } k + 1 \\
       W (x^k - \alpha \nabla f(x^k)) & \text{else} \end{cases}

    where :math:`\alpha` is `lr`, H is `period`, and J x the mean over ranks. The ranks disagree by
    at most :math:`(1 - \rho^H) / (1 - \rho)` times what a step adds, so exact averages help where
    H is less than about :math:`1 / (1 - \rho)`. One message of d numbers per
    neighbour and step; in the last step of a round an all-reduce in their place.

    Args:
        lr: Step size α, or a function of the step.
        period: Steps H of a round.
        phase: Steps of the first round that are taken to be done, as for :class:`LocalSGD`.
        algorithm: How to all-reduce; see :meth:`dectool.Communicator.allreduce`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.GossipPGA(lr=0.05, period=4), q, topology=topology.path(3),
        ...                   steps=400)
        >>> h.last["gap"] < 1e-3
        True

    References:
        Y. Chen, K. Yuan, Y. Zhang, P. Pan, Y. Xu & W. Yin, Accelerating gossip SGD with periodic
        global averaging, ICML 2021.
    """

    algorithm: str = "auto"

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend and average: over neighbours, or at the end of a round over all ranks."""
        x = s.x - self.lr * grad(s.x)
        if self.ends_round:
            return State(x=comm.allreduce(x, algorithm=self.algorithm))
        return State(x=comm.neighbor_allreduce(x))


@final
@dataclass(frozen=True)
class SlowMo(PeriodicAlgorithm):
    r"""SlowMo: a momentum of whole rounds on top of descent with periodic exact means.

    From the start :math:`x^{t,0}` of round t, H steps of an inner method of step α lead to
    :math:`x^{t,H}`, the exact mean over ranks. Then

    .. math:: u^{t+1} = \beta u^t + \frac{x^{t,0} - x^{t,H}}{\alpha}, \qquad
       x^{t+1,0} = x^{t,0} - a \alpha u^{t+1}

    where :math:`\alpha` is `lr`, H is `period`, :math:`\beta` is `beta`, a is `slow_lr` and
    :math:`u^0 = 0`. With β = 0 and a = 1 it is :class:`LocalSGD`, or with gossip inside
    :class:`GossipPGA`. Where α is a function of the step, that of the last one of a round counts.
    Ranks start at the same point, or their momenta keep them apart at first.

    Args:
        lr: Step size α, or a function of the step.
        period: Steps H of a round.
        phase: Steps of the first round that are taken to be done, as for :class:`LocalSGD`.
        beta: Slow momentum β, at least 0 and below 1.
        slow_lr: Slow step size a, above 0.
        inner: "local" for steps of gradient descent, or "gossip" for steps of :class:`ATC`, which
            send d numbers to each neighbour.
        algorithm: How to all-reduce; see :meth:`dectool.Communicator.allreduce`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.SlowMo(lr=0.05, period=4, beta=0.5)
        >>> h = dectool.solve(method, q, topology=topology.path(3), steps=400)
        >>> h.last["gap"] < 1e-2
        True

    References:
        J. Wang, V. Tantia, N. Ballas & M. Rabbat, SlowMo: improving communication-efficient
        distributed SGD with slow momentum, ICLR 2020, Algorithm 1; their
        code in fairscale has the same recursion.
    """

    beta: float = 0.5
    slow_lr: float = 1.0
    inner: str = "local"
    algorithm: str = "auto"

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_below_one(self.name, "beta", self.beta)
        check_number(self.name, "slow_lr", self.slow_lr)
        if self.inner not in _INNER:
            raise ArgumentError(
                f"{self.name}: inner={self.inner!r} is not known; give {' or '.join(_INNER)}"
            )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start a round at ``x``, at rest."""
        return State(x=x, start=x, u=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take an inner step; at the end of a round, average and go along the slow momentum."""
        x = s.x - self.lr * grad(s.x)
        if not self.ends_round:
            return s.replace(x=comm.neighbor_allreduce(x) if self.inner == "gossip" else x)
        mean = comm.allreduce(x, algorithm=self.algorithm)
        u = self.beta * s.u + (s.start - mean) / self.lr
        x = s.start - self.lr * (self.slow_lr * u)
        return State(x=x, start=x, u=u)
