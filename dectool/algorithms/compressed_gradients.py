"""Centralized descent on compressed gradients, with and without a memory of what was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_below_one
from dectool.algorithms._compressed import CompressedAlgorithm, Compression, mean_over_ranks
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class QSGD(CompressedAlgorithm):
    r"""QSGD: descent along the mean of quantised gradients.

    .. math:: x^{k+1} = x^k - \frac{\alpha}{n} \sum_i C(\nabla f_i(x^k))

    where :math:`\alpha` is `lr` and C is unbiased. Where the ranks' gradients vanish at the
    optimum it converges to it, elsewhere to a distance O(√α) in expectation. Every rank sends its
    payload to every other, and none is compressed twice; the topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.QSGD(lr=0.05), q, topology=topology.ring(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        D. Alistarh, D. Grubic, J. Li, R. Tomioka & M. Vojnovic, QSGD, NeurIPS 2017, Algorithm 1.
    """

    lr: StepSize
    compressor: Compression = "qsgd:4"

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; ranks that start apart stay apart."""
        return State(x=x, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along the mean of what was sent."""
        c = self._send(comm, grad(s.x), s.draws)
        return State(x=s.x - self.lr * mean_over_ranks(comm, c.payload), draws=c.draws)


@final
@dataclass(frozen=True)
class EFSGD(CompressedAlgorithm):
    r"""EF-SGD: what a message lacks is added to the next gradient step.

    .. math:: p_i^k = \alpha \nabla f_i(x^k) + e_i^k, \qquad \Delta_i^k = C(p_i^k), \qquad
       e_i^{k+1} = p_i^k - \Delta_i^k, \qquad x^{k+1} = x^k - \frac1n \sum_i \Delta_i^k

    where :math:`\alpha` is `lr` and :math:`e^0 = 0`. :math:`x - \frac1n \sum_i e_i` moves as x does
    in gradient descent, so C may be biased. With a constant step it tends to a distance O(α) from
    the optimum. Every rank sends its payload to every other; the topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.EFSGD(lr=0.05), q, topology=topology.ring(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        S. P. Karimireddy, Q. Rebjock, S. Stich & M. Jaggi, Error feedback fixes SignSGD, ICML 2019,
        Algorithm 2, for several workers.
    """

    lr: StepSize
    compressor: Compression = "sign"

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; ranks that start apart stay apart."""
        return State(x=x, error=0.0 * x, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Compress the step and the last error, and go the mean of all."""
        p = self.lr * grad(s.x) + s.error
        c = self._send(comm, p, s.draws)
        x = s.x - mean_over_ranks(comm, c.payload)
        return State(x=x, error=p - c.value, draws=c.draws)


@final
@dataclass(frozen=True)
class EF21(CompressedAlgorithm):
    r"""EF21: estimates of the gradients that move by compressed differences.

    .. math:: x^{k+1} = x^k - \frac{\alpha}{n} \sum_i g_i^k, \qquad
       g_i^{k+1} = g_i^k + C(\nabla f_i(x^{k+1}) - g_i^k)

    where :math:`\alpha` is `lr` and :math:`g_i^0 = C(\nabla f_i(x^0))`. With a biased C of
    contraction δ it converges at the rates of gradient descent for
    :math:`\alpha \le 1 / (L + \tilde L \sqrt{\beta / \theta})`, θ = 1 - √(1 - δ),
    β = (1 - δ)/θ, L of f and :math:`\tilde L^2` the mean of the :math:`L_i^2`. Every rank sends its
    payload to every other; the topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.EF21(lr=0.2, compressor="topk:1")
        >>> h = dectool.solve(method, q, topology=topology.ring(3), steps=200)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        P. Richtárik, I. Sokolov & I. Fatkhullin, EF21: A new, simpler, theoretically better, and
        practically faster error feedback, NeurIPS 2021, Algorithm 2 and Theorem 1.
    """

    lr: StepSize
    compressor: Compression = "topk:0.1"

    needs: ClassVar[Needs] = Needs("any")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and send the first estimate; ranks that start apart stay apart."""
        c = self._send(comm, grad(x), 0)
        return State(x=x, g=c.value, mean=mean_over_ranks(comm, c.payload), draws=c.draws)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along the mean estimate, and move the estimates."""
        x = s.x - self.lr * s.mean
        c = self._send(comm, grad(x) - s.g, s.draws)
        mean = s.mean + mean_over_ranks(comm, c.payload)
        return State(x=x, g=s.g + c.value, mean=mean, draws=c.draws)


@final
@dataclass(frozen=True)
class DGC(CompressedAlgorithm):
    r"""Deep gradient compression: top-k with momentum correction and factor masking.

    .. math:: u_i \leftarrow m\,u_i + \nabla f_i(x), \qquad v_i \leftarrow v_i + u_i, \qquad
       c_i = C(v_i), \qquad x \leftarrow x - \frac{\alpha}{n} \sum_i c_i

    and then u and v become zero where something was sent: what is kept back is a velocity, with the
    momentum that it would have had. :math:`\alpha` is `lr`. With C the identity the masking leaves
    no momentum, and it is gradient descent. With a constant step it tends to a point near the
    optimum. The paper begins with denser messages over some epochs: give a function of the step as
    the compressor. Clipping, by which the paper bounds the gradients of recurrent networks, is left
    to the gradient. Every rank sends its payload to every other; the topology is not used.

    Args:
        lr: Step size α, or a function of the step.
        momentum: m, from 0 to below 1.
        compressor: C, which keeps some of the numbers, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.DGC(lr=0.05, compressor="topk:1")
        >>> h = dectool.solve(method, q, topology=topology.ring(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        Y. Lin, S. Han, H. Mao, Y. Wang & W. Dally, Deep gradient compression, ICLR 2018,
        Algorithm 4 with vanilla momentum.
    """

    lr: StepSize
    momentum: float = 0.9
    compressor: Compression = "topk:0.1"

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_below_one("DGC", "momentum", self.momentum)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; ranks that start apart stay apart."""
        return State(x=x, u=0.0 * x, v=0.0 * x, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Accumulate, send the largest, and forget what was sent."""
        u = self.momentum * s.u + grad(s.x)
        v = s.v + u
        c = self._send(comm, v, s.draws)
        x = s.x - self.lr * mean_over_ranks(comm, c.payload)
        kept = c.value == 0
        return State(x=x, u=u * kept, v=v * kept, draws=c.draws)


@final
@dataclass(frozen=True)
class ByteGrad(CompressedAlgorithm):
    r"""BAGUA's ByteGrad: gradient descent with an all-reduce in 8 bits.

    .. math:: x^{k+1} = x^k - \alpha\, g, \qquad
       g_{[r]} = C\Big(\frac1n \sum_i C(\nabla f_i(x^k)_{[r]})\Big)

    where :math:`\alpha` is `lr`, [r] is block r of n equal ones, the last filled up with zeros:
    ranks send each block to its rank, which averages and sends the mean to all. All use what was
    decompressed, so that x stays the same on all ranks. Quantised twice, without a memory of the
    error; it tends to a point near the optimum. The topology is not used. 2 (n - 1)(32 + d/n) bytes
    per rank and step.

    Hierarchical, gradients are averaged as they are within each node, and only the first ranks of
    the nodes do the rest and hand the result on. That needs a backend with groups, so not
    "stacked", unless each node has one rank, as in simulations by default.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.
        hierarchical: Whether only one rank of each node compresses, as in BAGUA.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.ByteGrad(lr=0.1), q, topology=topology.ring(3), steps=300)
        >>> h.last["gap"] < 1e-2
        True

    References:
        S. Gan et al., BAGUA: Scaling up distributed learning with system relaxations, PVLDB
        15(4), 2021; the operations of its repository at version 0.9.2.
    """

    lr: StepSize
    compressor: Compression = "minmax8"
    hierarchical: bool = True

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; ranks that start apart stay apart."""
        return State(x=x, t=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend along the mean gradient, as far as 8 bits tell it."""
        mean = byte_mean(comm, grad(s.x), self.compressor, self.hierarchical, s.t)
        return State(x=s.x - self.lr * mean, t=s.t + 1)


def byte_mean(comm: Communicator, v: Any, compressor: Any, hierarchical: bool, number: int) -> Any:
    """Return the mean over ranks, compressed before and after it is taken, as BAGUA does.

    Random numbers are those of ``number``, so that a run that is resumed draws what it would have
    drawn.
    """
    if not hierarchical or comm.local_size == 1:
        return _blockwise(comm, v, compressor, number)
    node = comm.node
    mean = node.allreduce(v)
    if comm.local_rank == 0:
        mean = _blockwise(comm.peers_across_nodes, mean, compressor, number)
    return node.broadcast(mean)


def _blockwise(comm: Communicator, v: Any, compressor: Any, number: int) -> Any:
    d = v.shape[-1]
    filled = np.zeros((*v.shape[:-1], -(-d // comm.size) * comm.size), v.dtype)
    filled[..., :d] = v
    return comm.allreduce(filled, compressor=compressor, number=number)[..., :d]
