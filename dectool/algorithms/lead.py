"""LEAD and CEDAS: exact diffusion on compressed differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._compressed import CompressedAlgorithm, Compression, pull
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@dataclass(frozen=True)
class _Lead(CompressedAlgorithm):
    """Both send y through the same procedure, with the rate a of the replica h."""

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, lambda_min=-1.0, time_varying=False
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number(self.name, "gamma", getattr(self, "gamma", None))
        check_number(self.name, "rate", getattr(self, "rate", None), most=1.0)

    def _communicate(self, comm: Communicator, s: State, y: Any, a: float) -> tuple[Any, State]:
        """Return (W - I) y_hat, and the state with its replicas moved; COMM of both papers.

        h' = (1 - a) h + a (h + q) = h + a q, and likewise the sum of the neighbours' replicas.
        """
        q = self._send(comm, y - s.h, s.draws)
        moved = pull(comm, q)
        return s.pull + moved, s.replace(
            h=s.h + a * q.value, pull=s.pull + a * moved, draws=q.draws
        )


@final
@dataclass(frozen=True)
class LEAD(_Lead):
    r"""LEAD: linear convergence to the optimum with compressed messages.

    .. math:: y^k &= x^k - \alpha \nabla f(x^k) - \alpha d^k \\
       q^k &= Q(y^k - h^k), \quad \hat y^k = h^k + q^k, \quad h^{k+1} = (1 - a) h^k + a \hat y^k \\
       d^{k+1} &= d^k + \frac{\gamma}{2\alpha} (\hat y^k - W \hat y^k) \\
       x^{k+1} &= x^k - \alpha \nabla f(x^k) - \alpha d^{k+1}

    where :math:`\alpha` is `lr`, :math:`h^1 = d^1 = 0`, and the first step is
    :math:`x^1 = x^0 - \alpha \nabla f(x^0)`, without communication. The sum of d over ranks stays
    zero. The theory is for an unbiased Q of variance ω, with a ≤ 1/(1 + ω) and γ of order
    1/(1 + ω); with top-k and a small γ it works too, mostly. With Q the identity and γ = 1 it is
    NIDS. One payload per neighbour and step.

    Args:
        lr: Step size α < 2/(μ + L).
        gamma: Step size γ of the dual variable.
        rate: Rate a of the replica, in (0, 1].
        compressor: Q, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.LEAD(lr=0.2, compressor="qsgd:2"), q,
        ...                   topology=topology.ring(3), steps=300)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        X. Liu, Y. Li, R. Wang, J. Tang & M. Yan, Linear convergent decentralized optimization with
        compression, ICLR 2021, Algorithm 1.
    """

    lr: StepSize
    gamma: float = 0.3
    rate: float = 0.5
    compressor: Compression = "qsgd:4"

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; the first step descends only."""
        zero = 0.0 * x
        return State(x=x, d=zero, h=zero, pull=zero, started=0, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, communicate, and correct."""
        descended = s.x - self.lr * grad(s.x)
        if not s.started:
            return s.replace(x=descended, started=1)
        pulled, s = self._communicate(comm, s, descended - self.lr * s.d, self.rate)
        d = s.d - self.gamma / 2 * pulled / self.lr
        return s.replace(x=descended - self.lr * d, d=d)


@final
@dataclass(frozen=True)
class CEDAS(_Lead):
    r"""CEDAS: compressed exact diffusion with adaptive (decreasing) step sizes.

    .. math:: y^k &= x^k - \alpha_k \nabla f(x^k) - d^k \\
       q^k &= Q(y^k - h^k), \quad \hat y^k = h^k + q^k, \quad h^{k+1} = (1 - a) h^k + a \hat y^k \\
       d^{k+1} &= d^k + \frac{\gamma}{2} (\hat y^k - W \hat y^k) \\
       x^{k+1} &= x^k - \alpha_k \nabla f(x^k) - d^{k+1}

    where :math:`\alpha_k` is `lr`, :math:`d^0 = 0` and :math:`h^0 = 0`. Unlike LEAD's, the dual
    variable d has the step size in it, so that the step may shrink; stochastic gradients then
    converge as fast as centralized ones after O(n C³/(1 - λ₂)²) steps for strongly convex f. With
    a constant step and exact gradients it is exact. The theory is for an unbiased Q. With Q the
    identity and γ = 1 it is exact diffusion. One payload per neighbour and step.

    Args:
        lr: Step size, or a function of the step.
        gamma: Step size γ of the dual variable.
        rate: Rate a of the replica, in (0, 1].
        compressor: Q, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.CEDAS(lr=0.2, compressor="qsgd:2")
        >>> h = dectool.solve(method, q, topology=topology.ring(3), steps=400)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        K. Huang & S. Pu, CEDAS: A compressed decentralized stochastic gradient method with
        improved convergence, 2023, arXiv:2301.05872, Algorithm 1.
    """

    lr: StepSize
    gamma: float = 0.3
    rate: float = 0.5
    compressor: Compression = "qsgd:4"

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        zero = 0.0 * x
        return State(x=x, d=zero, h=zero, pull=zero, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, communicate, and correct."""
        descended = s.x - self.lr * grad(s.x)
        pulled, s = self._communicate(comm, s, descended - s.d, self.rate)
        d = s.d - self.gamma / 2 * pulled
        return s.replace(x=descended - d, d=d)
