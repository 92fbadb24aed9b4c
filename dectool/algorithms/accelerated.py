"""Accelerated gradient descent with accelerated gossip: few gradients, and few messages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Curved, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms._rounds import (
    chebyshev_spectrum,
    check_condition,
    check_rounds,
    gossiped,
)
from dectool.algorithms.gossip import ChebyshevGossip, ShiftRegisterGossip
from dectool.communicator import Communicator
from dectool.topology import Schedule, Topology


@final
@dataclass(frozen=True)
class Mudag(Algorithm):
    r"""Multi-consensus decentralized accelerated gradient descent.

    .. math:: x^{k+1} = P_K\big(y^k + x^k - y^{k-1}
       - \alpha (\nabla f(y^k) - \nabla f(y^{k-1}))\big), \qquad
       y^{k+1} = x^{k+1} + \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1} (x^{k+1} - x^k)

    with :math:`y^{-1} = y^0 = x^0` and :math:`\nabla f(y^{-1})` replaced by 0, where
    :math:`\alpha` is `lr`, at best 1/L, κ is `condition`, and :math:`P_K` stands for K rounds of
    :class:`ShiftRegisterGossip`. On the mean over ranks it is Nesterov's method for f, whatever
    the condition of the local functions, which need not even be convex: about √κ log(1/ε)
    gradients, and √(κ/(1-ρ)) log(κ) log(1/ε) messages of d numbers per neighbour. With W = J it
    is Nesterov's method itself. Local functions that are much less smooth than f ask for more
    rounds.

    Args:
        lr: Step size α.
        condition: κ = 1/(μα), at least 1; for α = 1/L that is L/μ of f. More than that is only
            slower.
        rounds: Rounds of gossip K in each step; default: as many as shrink the disagreement by
            1 + κ, :math:`q^{-K} \ge 1 + \kappa` with :math:`q = \rho / (1 + \sqrt{1 - \rho^2})`.

    Raises:
        ArgumentError: The condition is below 1, or the rounds are no integer, or below 1.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic.random(6, 4, kappa=100.0, seed=0)
        >>> mudag, ring = algorithms.Mudag(lr=1 / q.L, condition=100.0), topology.ring(6)
        >>> h = dectool.solve(mudag, q, topology=ring, steps=300)
        >>> h.last["gap"] < 1e-12
        True

    References:
        H. Ye, L. Luo, Z. Zhou & T. Zhang, Multi-consensus decentralized accelerated gradient
        descent, JMLR 24(306), 2023.
    """

    lr: StepSize
    condition: float = 100.0
    rounds: int | None = None

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_condition(self.name, self.condition)
        if self.rounds is not None:
            check_rounds(self.name, self.rounds)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return α = 1/L and κ = L/μ of the mean of the local functions, if that is finite."""
        return _of_curvature(problem.L, problem.mu)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x, y=x, y_prev=x, g_prev=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend with what tracks, average some times, and extrapolate."""
        root = math.sqrt(self.condition)
        g = grad(s.y)
        moved = s.y + s.x - s.y_prev - self.lr * (g - s.g_prev)
        x = gossiped(comm, moved, ShiftRegisterGossip(), self._rounds(comm))
        return State(x=x, y=x + (root - 1) / (root + 1) * (x - s.x), y_prev=s.y, g_prev=g)

    def _rounds(self, comm: Communicator) -> int:
        if self.rounds is not None:
            return self.rounds
        rho = min(1.0, comm.topology.rho)
        q = rho / (1 + math.sqrt(1 - rho**2))
        # Where one round does it, as with W = J, rho is 0 but for rounding; where none does, 1.
        if q * (1 + self.condition) <= 1.0 or q >= 1.0:
            return 1
        return math.ceil(math.log1p(self.condition) / -math.log(q))


@final
@dataclass(frozen=True)
class OPAPC(Algorithm):
    r"""Optimal proximal alternating predictor-corrector: accelerated in both, without duals.

    .. math:: x_g^k = \tau x^k + (1 - \tau) x_f^k, \qquad
       x^{k+1/2} = \frac{x^k - \eta (\nabla f(x_g^k) - \mu x_g^k + y^k)}{1 + \eta \mu}

    .. math:: y^{k+1} = y^k + \theta P x^{k+1/2}, \qquad
       x^{k+1} = x^{k+1/2} - \frac{\eta}{1 + \eta \mu} (y^{k+1} - y^k), \qquad
       x_f^{k+1} = x_g^k + \frac{2 \tau}{2 - \tau} (x^{k+1} - x^k)

    with :math:`x_f^0 = x^0` and :math:`y^0 = 0`. Here P is I minus K rounds of
    :class:`ChebyshevGossip` on :math:`[\lambda_n, \lambda_2]`; its eigenvalues other than 0 lie
    within :math:`1 \pm \delta`, :math:`\delta = 2 c^K / (1 + c^{2K})`,
    :math:`c = (\sqrt\chi - 1) / (\sqrt\chi + 1)`,
    :math:`\chi = (1 - \lambda_n) / (1 - \lambda_2)`, and

    .. math:: \tau = \min\Big(1, \frac12 \sqrt{\frac{1 + \delta}{(1 - \delta) \kappa}}\Big),
       \qquad \eta = \frac{\alpha}{4 \tau}, \qquad \theta = \frac{1}{\eta (1 + \delta)}, \qquad
       \mu = \frac{1}{\kappa \alpha}

    where :math:`\alpha` is `lr`, at best 1/L of the local functions, and κ is `condition`. With K
    by default, √κ log(1/ε) gradients and √(κχ) log(1/ε) messages of d numbers per neighbour, but
    for a constant factor: no algorithm needs fewer of either.

    Args:
        lr: Step size α.
        condition: κ = 1/(μα), at least 1; for α = 1/L that is L/μ, largest L and smallest μ of
            all local functions.
        rounds: Rounds of gossip K in each step; default: ⌊√χ⌋.

    Raises:
        ArgumentError: The condition is below 1, or the rounds are no integer, or below 1.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> opapc = algorithms.OPAPC(lr=1 / 3, condition=3.0)
        >>> h = dectool.solve(opapc, q, topology=topology.path(3), steps=150)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        D. Kovalev, A. Salim & P. Richtárik, Optimal and practical algorithms for smooth and
        strongly convex decentralized optimization, NeurIPS 2020.
    """

    lr: StepSize
    condition: float = 100.0
    rounds: int | None = None

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", lambda_min=-1.0, contracts=True, time_varying=False
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_condition(self.name, self.condition)
        if self.rounds is not None:
            check_rounds(self.name, self.rounds)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return α = 1/L and κ = L/μ of all local functions together, if that is finite."""
        return _of_curvature(problem.L_max, problem.mu_min)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, where nothing is known of the others."""
        return State(x=x, x_f=x, y=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Predict, average some times, correct, and extrapolate."""
        rounds, low, high = chebyshev_spectrum(comm.topology, self.rounds)
        lr: Any = self.lr
        mu = 1 / (self.condition * lr)
        tau = min(1.0, math.sqrt(high / (low * self.condition)) / 2)
        eta = lr / (4 * tau)
        x_g = tau * s.x + (1 - tau) * s.x_f
        half = (s.x - eta * (grad(x_g) - mu * x_g + s.y)) / (1 + eta * mu)
        mixed = gossiped(comm, half, ChebyshevGossip(interval="tight"), rounds)
        change = (half - mixed) / (eta * high)
        x = half - eta / (1 + eta * mu) * change
        x_f = x_g + 2 * tau / (2 - tau) * (x - s.x)
        return State(x=x, x_f=x_f, y=s.y + change)


def _of_curvature(L: float, mu: float) -> dict[str, Any]:
    return {"lr": 1.0 / L, **({"condition": L / mu} if mu > 0.0 else {})}
