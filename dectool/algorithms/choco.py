"""CHOCO: gossip on compressed differences to replicas that the neighbours hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._compressed import CompressedAlgorithm, Compression, pull
from dectool.algorithms._needs import Needs, broken
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, TopologyError
from dectool.topology import Topology
from dectool.topology._guards import need_topology


@dataclass(frozen=True)
class _Choco(CompressedAlgorithm):
    """Gossip on differences. The replicas begin at zero, which all ranks know."""

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number(self.name, "gamma", getattr(self, "gamma", None), most=1.0)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, with replicas at zero."""
        return State(x=x, x_hat=0.0 * x, pull=0.0 * x, draws=0)

    def _gossip(self, comm: Communicator, s: State, x: Any, gamma: Any) -> State:
        """Send what x differs from its replica by, and move towards the neighbours' replicas."""
        q = self._send(comm, x - s.x_hat, s.draws)
        moved = s.pull + pull(comm, q)
        return State(x=x + gamma * moved, x_hat=s.x_hat + q.value, pull=moved, draws=q.draws)


@final
@dataclass(frozen=True)
class CHOCOGossip(_Choco):
    r"""CHOCO-Gossip: averaging with compressed messages that still converges linearly.

    .. math:: q_i^k = Q(x_i^k - \hat x_i^k), \qquad \hat x_i^{k+1} = \hat x_i^k + q_i^k, \qquad
       x_i^{k+1} = x_i^k + \gamma \sum_j W_{ij} (\hat x_j^{k+1} - \hat x_i^{k+1})

    with :math:`\hat x^0 = 0`. Any Q with contraction δ > 0 will do, top-k included. The mean of x
    is kept. :func:`choco_gamma` is a γ that is proved to be small enough; much greater ones mostly
    work. With Q the identity and γ = 1 it is plain gossip. One payload per neighbour and step.

    Args:
        gamma: Step size γ of the gossip, in (0, 1].
        compressor: Q, or its name.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.CHOCOGossip(gamma=0.3, compressor="topk:1"),
        ...                   problems.Averaging(np.eye(4)), topology=topology.ring(4), steps=200)
        >>> bool(np.allclose(h.x, 0.25))
        True

    References:
        A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic optimization and gossip
        algorithms with compressed communication, ICML 2019, Algorithm 1, with a sum in place of
        the replicas as in its memory-efficient form.
    """

    gamma: float = 0.2
    compressor: Compression = "topk:0.1"

    uses_gradient: ClassVar[bool] = False

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Gossip once."""
        return self._gossip(comm, s, s.x, self.gamma)


@final
@dataclass(frozen=True)
class CHOCO(_Choco):
    r"""CHOCO-SGD: a gradient step, then a step of CHOCO-Gossip.

    .. math:: x_i^{k+1/2} = x_i^k - \alpha \nabla f_i(x_i^k), \qquad
       q_i^k = Q(x_i^{k+1/2} - \hat x_i^k), \qquad \hat x_i^{k+1} = \hat x_i^k + q_i^k

    .. math:: x_i^{k+1} = x_i^{k+1/2}
       + \gamma \sum_j W_{ij} (\hat x_j^{k+1} - \hat x_i^{k+1})

    where :math:`\alpha` is `lr`. With a constant step it tends to a point at distance O(α) from
    the optimum; the mean of x moves as in DGD. With Q the identity and γ = 1 it is ATC diffusion.
    One payload per neighbour and step.

    Args:
        lr: Step size α, or a function of the step. With 0 it is :class:`CHOCOGossip`.
        gamma: Step size γ of the gossip, in (0, 1].
        compressor: Q, or its name.

    Example:
        >>> from dectool import algorithms, compression
        >>> algorithms.CHOCO(lr=0.02, gamma=0.3, compressor="topk:2")
        CHOCO(lr=0.02, gamma=0.3, compressor=TopK(k=2))

    References:
        A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic optimization and gossip
        algorithms with compressed communication, ICML 2019, Algorithm 2, with a sum in place of
        the replicas as in its memory-efficient form.
    """

    lr: StepSize
    gamma: float = 0.2
    compressor: Compression = "topk:0.1"

    exact: ClassVar[bool] = False
    may_rest: ClassVar[bool] = True

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, then gossip."""
        half = s.x if self.lr == 0 else s.x - self.lr * grad(s.x)
        return self._gossip(comm, s, half, self.gamma)


def choco_gamma(topology: Topology, contraction: float) -> float:
    r"""Return the γ for which CHOCO-Gossip is proved to converge.

    .. math:: \gamma = \frac{\rho \delta}
       {16 \rho + \rho^2 + 4 \beta^2 + 2 \rho \beta^2 - 8 \rho \delta}

    where :math:`\rho = 1 - \|W - J\|` is the spectral gap, :math:`\beta = \|I - W\|_2` and δ the
    contraction (which the paper calls ω, and the gap δ). With it the error
    :math:`E \sum_i \|x_i - \bar x\|^2 + \|x_i - \hat x_i\|^2` shrinks by
    :math:`1 - \rho^2 \delta / 82` per step or faster. With ρ² for ρ in the numerator, as
    it is found too, that rate is out of reach where the gap is small: without compression the
    slowest mode shrinks by :math:`(1 - \gamma \rho)^2`.

    Args:
        topology: With symmetric, doubly stochastic W.
        contraction: δ, such as ``compressor.contraction(d)``.

    Raises:
        ArgumentError: ``contraction`` is not in (0, 1].
        ArgumentTypeError: ``topology`` is no Topology.
        TopologyError: W is not symmetric and doubly stochastic, or does not average.

    Example:
        >>> from dectool import compression, topology
        >>> round(choco_gamma(topology.ring(8), compression.TopK(2).contraction(6)), 6)
        0.00623

    References:
        A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic optimization and gossip
        algorithms with compressed communication, ICML 2019, Theorem 2.
    """
    need_topology("choco_gamma", topology)
    if not 0.0 < contraction <= 1.0:
        raise ArgumentError(
            f"choco_gamma: contraction={contraction} must be above 0 and at most 1; "
            "an unbiased compressor of variance w has 1 / (1 + w) when divided by 1 + w"
        )
    for reason in broken(_Choco.needs, topology):
        raise TopologyError(f"choco_gamma of {topology.name}: {reason}")
    gap, beta = 1.0 - topology.rho, 1.0 - topology.lambda_min
    below = 16 * gap + gap**2 + 4 * beta**2 + 2 * gap * beta**2 - 8 * gap * contraction
    return gap * contraction / below
