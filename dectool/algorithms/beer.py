"""BEER: gradient tracking on compressed differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._compressed import CompressedAlgorithm, Compression, pull
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class BEER(CompressedAlgorithm):
    r"""BEER: compressed gradient tracking, for any difference between the ranks' functions.

    .. math:: x^{k+1} &= x^k + \gamma (W - I) h^k - \alpha v^k \\
       h^{k+1} &= h^k + Q(x^{k+1} - h^k) \\
       v^{k+1} &= v^k + \gamma (W - I) g^k + \nabla f(x^{k+1}) - \nabla f(x^k) \\
       g^{k+1} &= g^k + Q(v^{k+1} - g^k)

    where :math:`\alpha` is `lr`, :math:`v^0 = \nabla f(x^0)` and :math:`h^0 = g^0 = 0`. Any Q with
    contraction δ > 0 will do. The sum of v over ranks is that of the gradients, always. It
    converges at rate O(1/k) for functions that are not convex, and linearly where the gradient
    dominates. With Q the identity and γ = 1 the first step is :math:`x^1 = x^0 - \alpha v^0`, and
    from there on it is DIGing. Two payloads per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        gamma: Step size γ of the gossip, in (0, 1].
        compressor: Q, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.BEER(lr=0.05, gamma=0.5, compressor="sign"), q,
        ...                   topology=topology.ring(3), steps=500)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        H. Zhao, B. Li, Z. Li, P. Richtárik & Y. Chi, BEER: Fast O(1/T) rate for decentralized
        nonconvex optimization with communication compression, NeurIPS 2022, Algorithm 1.
    """

    lr: StepSize
    gamma: float = 0.4
    compressor: Compression = "topk:0.25"

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number("BEER", "gamma", self.gamma, most=1.0)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, tracking from its gradient, with replicas at zero."""
        gradient, zero = grad(x), 0.0 * x
        return State(
            x=x, h=zero, pull_h=zero, v=gradient, g=zero, pull_g=zero, gradient=gradient, draws=0
        )  # fmt: skip

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Mix replicas, descend along v and track; send what the replicas lack."""
        x = s.x + self.gamma * s.pull_h - self.lr * s.v
        q = self._send(comm, x - s.h, s.draws)
        mixed = comm.ineighbor_allreduce(q.payload)
        gradient = grad(x)
        pull_h = s.pull_h + (mixed.wait() - q.value)
        v = s.v + self.gamma * s.pull_g + gradient - s.gradient
        r = self._send(comm, v - s.g, q.draws)
        pull_g = s.pull_g + pull(comm, r)
        return State(
            x=x, h=s.h + q.value, pull_h=pull_h, v=v, g=s.g + r.value, pull_g=pull_g,
            gradient=gradient, draws=r.draws,
        )  # fmt: skip
