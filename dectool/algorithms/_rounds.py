"""Several rounds of gossip within one step of an algorithm."""

from __future__ import annotations

import math
from typing import Any

from dectool.algorithms._algorithm import Algorithm
from dectool.algorithms._checks import check_at_least, check_steps
from dectool.communicator import Communicator
from dectool.topology import Topology


def gossiped(comm: Communicator, x: Any, gossip: Algorithm, rounds: Any) -> Any:
    """Return what some steps of an averaging algorithm make of ``x``, begun anew each time."""
    nothing: Any = _no_gradient
    s = gossip.init(comm, x, nothing)
    for _ in range(rounds):
        s = gossip.step(comm, s, nothing)
    return s.x


def chebyshev_spectrum(W: Topology, rounds: int | None = None) -> tuple[int, float, float]:
    r"""Return rounds K of tight Chebyshev gossip, and what they take away.

    The eigenvalues of I minus K rounds, but for 0, lie within :math:`1 \pm \delta`, whose ends are
    the second and the third number returned.

    .. math:: \delta = \frac{2 c^K}{1 + c^{2K}}, \qquad c = \frac{\sqrt\chi - 1}{\sqrt\chi + 1},
       \qquad \chi = \frac{1 - \lambda_n}{1 - \lambda_2}

    Args:
        W: Symmetric.
        rounds: K; default: :math:`\lfloor \sqrt\chi \rfloor`.
    """
    root = math.sqrt((1 - W.lambda_min) / (1 - W.lambda_2)) if W.size > 1 else 1.0
    # A root that is a whole number but for rounding counts as that.
    rounds = math.floor(root + 1e-9) if rounds is None else rounds
    power = ((root - 1) / (root + 1)) ** rounds
    delta = 2 * power / (1 + power**2)
    return rounds, 1 - delta, 1 + delta


def check_rounds(name: str, rounds: Any) -> None:
    """Refuse what is neither a whole number of rounds, at least 1, nor a function of the step.

    Raises:
        ArgumentError: Names the algorithm, the value and the rule.
    """
    if not callable(rounds):
        check_steps(name, at_least=1, rounds=rounds)


def check_condition(name: str, condition: Any) -> None:
    """Refuse what is no condition number.

    Raises:
        ArgumentTypeError: It is no number.
        ArgumentError: Names the algorithm, the value and the rule.
    """
    check_at_least(name, "condition", condition, 1.0, ": L / mu, or more")


def _no_gradient(x: Any) -> Any:
    raise AssertionError("averaging takes no gradient")
