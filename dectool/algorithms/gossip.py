"""Averaging: plain gossip and its accelerations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Gradient, State
from dectool.algorithms._needs import Needs
from dectool.algorithms._push import push
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, ArgumentTypeError


@final
@dataclass(frozen=True)
class Gossip(Algorithm):
    r"""Synchronous gossip: every rank takes the weighted average of its neighbourhood.

    .. math:: x^{k+1} = W x^k

    The distance to the average shrinks by :math:`\rho = \|W - J\|_2` per step or faster.
    One message of d numbers per neighbour and step.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.Gossip(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.complete(4), steps=1)
        >>> bool(np.allclose(h.x, 0.25))
        True

    References:
        L. Xiao & S. Boyd, Systems & Control Letters 53(1), 2004.
    """

    needs: ClassVar[Needs] = Needs("doubly stochastic", contracts=True)
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average once."""
        return State(x=comm.neighbor_allreduce(s.x))


@final
@dataclass(frozen=True)
class ChebyshevGossip(Algorithm):
    r"""Gossip accelerated by Chebyshev polynomials.

    .. math:: x^{k+1} = \omega_{k+1} W x^k + (1 - \omega_{k+1}) x^{k-1}, \qquad
       \omega_1 = 1,\ \omega_2 = \frac{2}{2 - \rho^2},\
       \omega_{k+1} = \frac{1}{1 - \rho^2 \omega_k / 4}

    The error on an eigenvector of eigenvalue λ after k steps is
    :math:`T_k(\lambda/\rho) / T_k(1/\rho)` times the first, with :math:`T_k` the Chebyshev
    polynomial.

    Args:
        interval: Where the eigenvalues of W other than 1 lie: "symmetric" for [-ρ, ρ] with ρ of
            the topology, "tight" for [λ_n, λ_2], or a pair of numbers. W is mapped affinely to
            make the interval symmetric, which is faster where the spectrum is lopsided.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> start, ring = problems.Averaging(np.eye(8)), topology.ring(8)
        >>> runs = (dectool.solve(one, start, topology=ring, steps=15)
        ...         for one in (algorithms.Gossip(), algorithms.ChebyshevGossip()))
        >>> plain, fast = (h.last["consensus_error"] for h in runs)
        >>> bool(fast < plain / 10)
        True

    References:
        M. Arioli & J. Scott, Numerical Algorithms 66, 2014; K. Scaman et al., ICML 2017.
    """

    interval: str | tuple[float, float] = "symmetric"

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )
    uses_gradient: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the interval."""
        super().__post_init__()
        if isinstance(self.interval, str):
            if self.interval not in ("symmetric", "tight"):
                raise ArgumentError(
                    f"ChebyshevGossip: interval={self.interval!r} must be 'symmetric', 'tight' "
                    "or a pair (lowest, highest)"
                )
            return
        try:
            low, high = map(float, self.interval)
        except (TypeError, ValueError):
            raise ArgumentTypeError(
                f"ChebyshevGossip: interval is {self.interval!r}; give 'symmetric', 'tight' or a "
                "pair (lowest, highest)"
            ) from None
        if not -1.0 <= low < high < 1.0:
            raise ArgumentError(
                f"ChebyshevGossip: interval={self.interval} must lie in [-1, 1), lowest first"
            )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x, x_prev=x, omega=1.0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average once and extrapolate."""
        low, high = self._bounds(comm)
        center, rho = (low + high) / (2 - low - high), (high - low) / (2 - low - high)
        Wx = comm.neighbor_allreduce(s.x)
        if center:
            Wx = (1 + center) * Wx - center * s.x
        x = s.omega * Wx + (1 - s.omega) * s.x_prev
        omega = 2 / (2 - rho**2) if s.omega == 1.0 else 1 / (1 - rho**2 * s.omega / 4)
        return State(x=x, x_prev=s.x, omega=omega)

    def _bounds(self, comm: Communicator) -> tuple[float, float]:
        if self.interval == "symmetric":
            return -comm.topology.rho, comm.topology.rho
        if self.interval == "tight":
            return comm.topology.lambda_min, comm.topology.lambda_2
        return float(self.interval[0]), float(self.interval[1])


@final
@dataclass(frozen=True)
class ShiftRegisterGossip(Algorithm):
    r"""Gossip with a constant momentum, the limit of Chebyshev gossip ("FastMix").

    .. math:: x^{k+1} = \omega W x^k + (1 - \omega) x^{k-1}, \qquad x^1 = W x^0, \qquad
       \omega = \frac{2}{1 + \sqrt{1 - \rho^2}}

    The error shrinks by :math:`\sqrt{\omega - 1}` per step in the long run.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.ShiftRegisterGossip(), problems.Averaging(np.eye(8)),
        ...                   topology=topology.ring(8), steps=60)
        >>> bool(np.allclose(h.x, 0.125))
        True

    References:
        S. Muthukrishnan, B. Ghosh & M. Schultz, Theory of Computing Systems 31, 1998;
        J. Liu & A. S. Morse, Annual Reviews in Control 35(2), 2011.
    """

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; the first step is plain gossip."""
        return State(x=x, x_prev=x, omega=1.0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average once and extrapolate."""
        x = s.omega * comm.neighbor_allreduce(s.x) + (1 - s.omega) * s.x_prev
        # Where nothing averages, rho is 1 but for rounding.
        rho = min(1.0, comm.topology.rho)
        return State(x=x, x_prev=s.x, omega=2 / (1 + math.sqrt(1 - rho**2)))


@final
@dataclass(frozen=True)
class PushSum(Algorithm):
    r"""Averaging on directed graphs by column-stochastic weights.

    .. math:: s^{k+1} = C s^k, \qquad w^{k+1} = C w^k,\ w^0 = 1, \qquad x^k = s^k / w^k

    One message of d + 1 numbers per out-neighbour and step. The sums of s and w over ranks are
    kept.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> graph = topology.random_digraph(4, 0.5, seed=0, weights="uniform_push")
        >>> h = dectool.solve(algorithms.PushSum(), problems.Averaging(np.eye(4)), topology=graph,
        ...                   steps=100)
        >>> bool(np.allclose(h.x, 0.25))
        True

    References:
        D. Kempe, A. Dobra & J. Gehrke, FOCS 2003.
    """

    needs: ClassVar[Needs] = Needs("column stochastic")
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1."""
        return State(x=x, s=x, w=0.0 * x[..., :1] + 1.0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Mix values and weights, and divide."""
        Cs, Cw = push(comm, (s.s, s.w))
        return State(x=Cs / Cw, s=Cs, w=Cw)
