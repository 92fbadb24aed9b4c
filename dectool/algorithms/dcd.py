"""Compressed D-PSGD: differences (DCD), extrapolations (ECD), and BAGUA's 8-bit form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._compressed import CompressedAlgorithm, Compression, pull
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator
from dectool.topology import Topology, from_matrix, ring


@final
@dataclass(frozen=True)
class DCD(CompressedAlgorithm):
    r"""DCD-PSGD: difference compression.

    .. math:: z_i^k = \sum_j W_{ij} \hat x_j^k - \alpha \nabla f_i(x_i^k) - x_i^k, \qquad
       x_i^{k+1} = x_i^k + C(z_i^k), \qquad \hat x_j^{k+1} = \hat x_j^k + C(z_j^k)

    where :math:`\alpha` is `lr`. A rank's own x takes the compressed step too, so the replicas are
    the neighbours' x themselves, and with C the identity it is DGD. It converges to the limit of
    DGD where C is accurate: an unbiased C of variance ω < (1 - ρ)²/(4 ‖I - W‖²), ρ = ‖W - J‖. One
    payload per neighbour and step; at the start x⁰ is sent as it is.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.DCD(lr=0.05), q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-3
        True

    References:
        H. Tang, S. Gan, C. Zhang, T. Zhang & J. Liu, Communication compression for decentralized
        training, NeurIPS 2018, Algorithm 1.
    """

    lr: StepSize
    compressor: Compression = "minmax8"

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, which the neighbours get."""
        return _known_to_neighbors(comm, x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Take the compressed step."""
        c = self._send(comm, s.pull - self.lr * grad(s.x), s.draws)
        return State(x=s.x + c.value, pull=s.pull + pull(comm, c), draws=c.draws)


@final
@dataclass(frozen=True)
class ECD(CompressedAlgorithm):
    r"""ECD-PSGD: extrapolation compression.

    .. math:: x_i^{t+1} &= \sum_j W_{ij} \tilde x_j^t - \alpha \nabla f_i(x_i^t) \\
       z_i^{t+1} &= (1 - t/2)\, x_i^t + (t/2)\, x_i^{t+1} \\
       \tilde x_j^{t+1} &= (1 - 2/t)\, \tilde x_j^t + (2/t)\, C(z_j^{t+1})

    for t = 1, 2, ..., where :math:`\alpha` is `lr` and :math:`\tilde x^1 = x^1` is the start. With
    C the identity, :math:`\tilde x = x` and it is DGD. The theory asks for an unbiased C whose
    error is bounded however large z is, which grows with t; then the error of x̃ falls as 1/t. With
    an error in proportion to z, as most compressors have, it is stable only where that is small.
    One payload per neighbour and step; at the start x¹ is sent as it is.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.ECD(lr=0.05), q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        H. Tang, S. Gan, C. Zhang, T. Zhang & J. Liu, Communication compression for decentralized
        training, NeurIPS 2018, Algorithm 2.
    """

    lr: StepSize
    compressor: Compression = "minmax8"

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, which the neighbours get."""
        return State(x=x, Wx_tilde=comm.neighbor_allreduce(x), t=1, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend from the neighbours' estimates, and send the extrapolation."""
        t = s.t
        x = s.Wx_tilde - self.lr * grad(s.x)
        c = self._send(comm, (1 - t / 2) * s.x + t / 2 * x, s.draws)
        # All estimates move by the same linear rule, so their weighted sum does too.
        Wx_tilde = (1 - 2 / t) * s.Wx_tilde + 2 / t * comm.neighbor_allreduce(c.payload)
        return State(x=x, Wx_tilde=Wx_tilde, t=t + 1, draws=c.draws)


@final
@dataclass(frozen=True)
class LowPrecisionDecentralized(CompressedAlgorithm):
    r"""BAGUA's low-precision decentralized algorithm: DCD-PSGD in 8 bits on a ring.

    .. math:: z = x - \alpha \nabla f(x) + \tfrac13 l + \tfrac13 r - \tfrac53 x, \qquad
       x^+ = x + C(z), \quad l^+ = l + C(z_l), \quad r^+ = r + C(z_r)

    where :math:`\alpha` is `lr`, l and r are replicas of the neighbours in the ring of all ranks,
    whatever the topology of the run is, and C is BAGUA's min-max quantisation of the whole vector
    in one chunk. With two ranks both neighbours are the other one, of weight 2/3 in all, and it is
    sent once here and twice by BAGUA. BAGUA starts all ranks at the same x; here the replicas start
    as the neighbours' x, sent as they are. Its hierarchical form, in which the first rank of each
    node does this with the node's mean, is not here. 2 (32 + d) bytes per rank and step, d rounded
    up to a multiple of 32.

    Args:
        lr: Step size α, or a function of the step.
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.LowPrecisionDecentralized(lr=0.05)
        >>> h = dectool.solve(method, q, topology=topology.path(3), steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        S. Gan et al., BAGUA: Scaling up distributed learning with system relaxations, PVLDB
        15(4), 2021; the operations of its repository at version 0.9.2.
    """

    lr: StepSize
    compressor: Compression = "minmax8"

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, which the neighbours get."""
        return _known_to_neighbors(comm, x, _thirds(comm.size))

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, then send what the mean with the neighbours differs from x by."""
        # x + l/3 + r/3 - 5x/3 is (l - x)/3 + (r - x)/3, which is kept, as in DCD.
        c = self._send(comm, s.pull - self.lr * grad(s.x), s.draws)
        moved = s.pull + pull(comm, c, _thirds(comm.size))
        return State(x=s.x + c.value, pull=moved, draws=c.draws)


def _known_to_neighbors(comm: Communicator, x: Any, topology: Topology | None = None) -> State:
    """Send x as it is, so that all replicas are exact; return x and what it is pulled by."""
    return State(x=x, pull=comm.neighbor_allreduce(x, topology) - x, draws=0)


@lru_cache(maxsize=8)
def _thirds(size: int) -> Topology:
    if size == 2:
        return from_matrix(np.array([[1.0, 2.0], [2.0, 1.0]]) / 3.0)
    return ring(size)
