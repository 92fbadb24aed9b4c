"""Moniqua: what is sent is taken modulo a range, and found again from one's own model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool import compression
from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class Moniqua(Algorithm):
    r"""Moniqua: D-PSGD with modulo quantisation and no memory.

    .. math:: q_i = Q\Big(\frac{x_i}{B} \bmod 1\Big), \qquad
       \hat x_j = \big((q_j B - x_i) \bmod B\big) + x_i, \qquad
       \hat x_i = q_i B - (x_i \bmod B) + x_i

    .. math:: x_i^+ = x_i + \sum_{j \ne i} W_{ij} (\hat x_j - \hat x_i) - \alpha \nabla f_i(x_i)

    where :math:`\alpha` is `lr`, :math:`B = 2\theta / (1 - 2\delta)`, δ = 2^(-bits - 1), Q rounds
    to the nearest of 2^bits levels, and mod B is taken into [-B/2, B/2). If neighbours differ by
    less than θ in every coordinate, then :math:`|\hat x_j - x_j| \le \delta B`, and the mean of x
    moves as in gradient descent, since a rank subtracts what its neighbours read of it. If they
    ever differ by more, a neighbour is read wrongly by a multiple of B, and nothing tells.
    It tends to a point at distance O(α + δB) from the optimum. bits · d bits per neighbour and
    step, without scales.

    Args:
        lr: Step size α, or a function of the step.
        theta: θ > 0, a bound on how far neighbours differ, or a function of the step.
        bits: Bits of a number, from 1 to 16.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=np.ones((4, 1)), b=[[1.0], [2.0], [3.0], [4.0]])
        >>> h = dectool.solve(algorithms.Moniqua(lr=0.05, theta=4.0), q, topology=topology.ring(4),
        ...                   steps=300)
        >>> round(float(h.x.mean()), 6)
        2.5

    References:
        Y. Lu & C. De Sa, Moniqua: Modulo quantized communication in decentralized SGD, ICML 2020,
        Algorithm 1.
    """

    lr: StepSize
    theta: StepSize = 1.0
    bits: int = 8

    needs: ClassVar[Needs] = Needs("symmetric doubly stochastic")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if not callable(self.theta):
            compression.Moniqua(self.theta, self.bits)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average with what is read of the neighbours, and descend."""
        assert not callable(self.theta), "a function of the step is replaced by at(k)"
        quantiser = compression.Moniqua(self.theta, self.bits)
        # W_ii x_i + sum of W_ij x_hat_j over the neighbours, each unwrapped around x_i.
        request = comm.ineighbor_allreduce(s.x, compressor=quantiser)
        x_hat = quantiser.decompress(quantiser.compress(s.x), reference=s.x)
        g = grad(s.x)
        topology = comm.topology
        others = comm.per_rank(lambda rank: np.array([1.0 - topology.self_weight(rank)]))
        averaged = request.wait() + others.astype(s.x.dtype) * (s.x - x_hat)
        return State(x=averaged - self.lr * g)
