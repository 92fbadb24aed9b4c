"""Gradient descent with several rounds of gossip for each gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms._rounds import check_rounds, gossiped
from dectool.algorithms.gossip import Gossip
from dectool.communicator import Communicator

Rounds = int | Callable[[int], int]
"""Rounds of gossip: a number, or a function of the step number k = 0, 1, ..."""


@dataclass(frozen=True)
class _SeveralRounds(Algorithm):
    """Descent with rounds of gossip for each gradient."""

    lr: StepSize
    rounds: Rounds = 2

    needs: ClassVar[Needs] = Needs("doubly stochastic")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_rounds(self.name, self.rounds)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)


@final
@dataclass(frozen=True)
class NEARDGD(_SeveralRounds):
    r"""Nested exact alternating recursion: a gradient step, then t rounds of gossip.

    .. math:: x^{k+1} = W^{t_k} (x^k - \alpha \nabla f(x^k))

    where :math:`\alpha` is `lr` and :math:`t_k` is `rounds`. With t = 1 it is :class:`ATC`; a
    constant t ends within :math:`O(\alpha \rho^t)` of the optimum, and rounds that grow, such as
    ``lambda k: k + 1`` (NEAR-DGD⁺), lead to the optimum itself, linearly where f is strongly
    convex. t messages of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        rounds: Rounds of gossip t after each gradient, at least 1, or a function of the step.

    Raises:
        ArgumentError: The rounds are no integer, or below 1.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> growing = algorithms.NEARDGD(lr=0.3, rounds=lambda k: k + 1)
        >>> h = dectool.solve(growing, q, topology=topology.path(3), steps=60)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        A. S. Berahas, R. Bollapragada, N. S. Keskar & E. Wei, Balancing communication and
        computation in distributed optimization, IEEE TAC 64(8), 2019.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, then average some times."""
        return State(x=gossiped(comm, s.x - self.lr * grad(s.x), Gossip(), self.rounds))


@final
@dataclass(frozen=True)
class DGDt(_SeveralRounds):
    r"""Decentralized gradient descent with t rounds of gossip for each gradient.

    .. math:: x^{k+1} = W^{t_k} x^k - \alpha \nabla f(x^k)

    where :math:`\alpha` is `lr` and :math:`t_k` is `rounds`. With t = 1 it is :class:`DGD`, and
    its bias does not vanish as t grows with a constant α, since the ranks descend apart. t
    messages of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        rounds: Rounds of gossip t for each gradient, at least 1, or a function of the step.

    Raises:
        ArgumentError: The rounds are no integer, or below 1.

    Example:
        >>> from dectool import algorithms
        >>> algorithms.DGDt(lr=0.1, rounds=3)
        DGDt(lr=0.1, rounds=3)

    References:
        A. S. Berahas, R. Bollapragada, N. S. Keskar & E. Wei, Balancing communication and
        computation in distributed optimization, IEEE TAC 64(8), 2019.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average some times, and descend from where the rank was."""
        return State(x=gossiped(comm, s.x, Gossip(), self.rounds) - self.lr * grad(s.x))
