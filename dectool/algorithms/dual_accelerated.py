"""Accelerated ascent of the dual function: SSDA, and MSDA with several rounds of gossip."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from dectool.algorithms._algorithm import Algorithm, Curved, Gradient, State, StepSize
from dectool.algorithms._checks import check_below_one
from dectool.algorithms._needs import Needs
from dectool.algorithms._rounds import chebyshev_spectrum, check_rounds, gossiped
from dectool.algorithms.gossip import ChebyshevGossip
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, TopologyError
from dectool.topology import Schedule, Topology, as_schedule

DUAL = Needs("symmetric doubly stochastic", time_varying=False)
"""Then I - W is a gossip matrix: symmetric, positive semidefinite, of kernel 1 if connected."""


@dataclass(frozen=True)
class _DualAscent(Algorithm):
    """Nesterov's method on the dual, whose gradient is by how much the ranks disagree."""

    lr: StepSize
    momentum: float = 0.0

    needs: ClassVar[Needs] = DUAL
    oracle: ClassVar[Literal["conjugate"]] = "conjugate"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_below_one(self.name, "momentum", self.momentum)

    @abstractmethod
    def _disagreement(self, comm: Communicator, x: Any) -> Any:
        """Return what averaging takes away from x."""

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Report ``x`` once, and start from dual variables 0."""
        return State(x=x, y=0.0 * x, y_prev=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Extrapolate, find the primal point, and ascend by how much the ranks disagree."""
        z = (1 + self.momentum) * s.y - self.momentum * s.y_prev
        x = grad.conjugate(z, start=s.x)
        y = z - self.lr * self._disagreement(comm, x)
        return State(x=x, y=y, y_prev=s.y)


@final
@dataclass(frozen=True)
class SSDA(_DualAscent):
    r"""Single-step dual accelerated method: Nesterov's on the dual problem.

    .. math:: z^k = (1 + \theta) y^k - \theta y^{k-1}, \qquad x_i^{k+1} = \nabla f_i^*(z_i^k),
       \qquad y^{k+1} = z^k - \eta (I - W) x^{k+1}, \qquad y^0 = y^{-1} = 0

    where :math:`\eta` is `lr` and :math:`\theta` is `momentum`. To have the gradient of the
    conjugate is to solve :math:`\nabla f_i(x) = z`, so the local functions must be strongly
    convex. With the parameters of :meth:`for_problem` the error shrinks by a factor of
    :math:`1 - \sqrt{\gamma / \kappa}` per step or faster, where :math:`\gamma` is the ratio of
    the smallest eigenvalue of I - W but 0 to the largest, and :math:`\kappa` that of the largest
    smoothness of a local function to the smallest strong convexity. The dual variables start at
    0, so where x starts does not matter. One message of d numbers per neighbour and step.

    Args:
        lr: Step size η of the dual.
        momentum: θ, at least 0 and below 1; with 0 it is the method of Uzawa.

    Raises:
        ArgumentError: A parameter is out of its range.
        ArgumentTypeError: The momentum is no number.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> ssda = algorithms.SSDA.for_problem(q, topology.path(3))
        >>> h = dectool.solve(ssda, q, topology=topology.path(3), steps=100)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, Optimal algorithms for smooth and
        strongly convex distributed optimization in networks, ICML 2017, Algorithm 1.
    """

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        r"""Return the paper's :math:`\eta = \mu / \lambda_{\max}` and its momentum.

        .. math:: \theta = \frac{\sqrt\kappa - \sqrt\gamma}{\sqrt\kappa + \sqrt\gamma}
        """
        W = _connected(cls.__name__, topology)
        smallest, largest = (1.0 - W.lambda_2, 1.0 - W.lambda_min) if W.size > 1 else (1.0, 1.0)
        return _accelerated(cls.__name__, problem, smallest, largest)

    def _disagreement(self, comm: Communicator, x: Any) -> Any:
        return x - comm.neighbor_allreduce(x)


@final
@dataclass(frozen=True)
class MSDA(_DualAscent):
    r"""Multi-step dual accelerated method: SSDA with accelerated gossip in each step.

    .. math:: z^k = (1 + \theta) y^k - \theta y^{k-1}, \qquad x_i^{k+1} = \nabla f_i^*(z_i^k),
       \qquad y^{k+1} = z^k - \eta\, P_K(I - W)\, x^{k+1}, \qquad y^0 = y^{-1} = 0

    where :math:`\eta` is `lr`, :math:`\theta` is `momentum`, K is `rounds`, and
    :math:`P_K(I - W) x` is what K rounds of Chebyshev gossip on the interval of the eigenvalues
    of W take away from x. With the parameters of :meth:`for_problem`, :math:`K = \lfloor
    1 / \sqrt\gamma \rfloor`, it needs :math:`O(\sqrt\kappa \log 1/\epsilon)` steps and
    :math:`O(\sqrt{\kappa / \gamma} \log 1/\epsilon)` rounds of communication (γ and κ as for
    :class:`SSDA`), and no method of gradients and gossip needs fewer but for a factor. Where x
    starts does not matter. K messages of d numbers per neighbour and step.

    Args:
        lr: Step size η of the dual.
        momentum: θ, at least 0 and below 1.
        rounds: K, at least 1.

    Raises:
        ArgumentError: A parameter is out of its range.
        ArgumentTypeError: The momentum is no number.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q, ring = problems.Quadratic.random(16, 2, seed=1), topology.ring(16)
        >>> msda = algorithms.MSDA.for_problem(q, ring)
        >>> h = dectool.solve(msda, q, topology=ring, steps=100, stop={"gap": 1e-9})
        >>> msda.rounds, h.status
        (5, 'stopped')

    References:
        K. Scaman, F. Bach, S. Bubeck, Y. T. Lee & L. Massoulié, Optimal algorithms for smooth and
        strongly convex distributed optimization in networks, ICML 2017, Algorithm 2.
    """

    rounds: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_rounds(self.name, self.rounds)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        r"""Return the paper's rounds K, and :math:`\eta = \mu / \lambda_{\max}(P_K)` and momentum.

        .. math:: \eta = \mu \frac{1 + c^{2K}}{(1 + c^K)^2}, \qquad
           c = \frac{1 - \sqrt\gamma}{1 + \sqrt\gamma}
        """
        rounds, smallest, largest = chebyshev_spectrum(_connected(cls.__name__, topology))
        found = _accelerated(cls.__name__, problem, smallest, largest)
        return {**found, "rounds": rounds}

    def _disagreement(self, comm: Communicator, x: Any) -> Any:
        return x - gossiped(comm, x, ChebyshevGossip("tight"), self.rounds)


def _connected(name: str, topology: Topology | Schedule) -> Topology:
    """Return the first topology, on which I - W has one eigenvalue 0 alone."""
    W = as_schedule(topology).at(0)
    if W.size > 1 and W.lambda_2 > 1.0 - 1e-12:
        raise TopologyError(
            f"{name} has no parameters on {W.name}: its ranks do not all hear of each other "
            f"(lambda_2 is {W.lambda_2:.6g}); use a connected graph"
        )
    return W


def _accelerated(name: str, problem: Curved, smallest: float, largest: float) -> dict[str, Any]:
    """Return Nesterov's parameters for a gossip matrix with these eigenvalues but for 0."""
    mu, kappa = problem.mu_min, problem.L_max / problem.mu_min if problem.mu_min > 0 else math.inf
    if not kappa < math.inf:
        raise ArgumentError(
            f"{name} has no parameters for {problem!r}: the smallest strong convexity of a local "
            f"function is {mu:g}, and it must be above 0 (l2 > 0, or h > 0)"
        )
    root = math.sqrt(kappa * largest / smallest)
    return {"lr": mu / largest, "momentum": (root - 1.0) / (root + 1.0)}
