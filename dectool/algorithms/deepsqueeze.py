"""DeepSqueeze: the model itself is compressed, and the error goes into the next message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._compressed import CompressedAlgorithm, Compression
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class DeepSqueeze(CompressedAlgorithm):
    r"""DeepSqueeze: error-compensated compression of the model.

    .. math:: v_i^k = x_i^k - \alpha \nabla f_i(x_i^k) + e_i^k, \qquad c_i^k = C(v_i^k), \qquad
       e_i^{k+1} = v_i^k - c_i^k

    .. math:: x_i^{k+1} = c_i^k + \eta \sum_j (W_{ij} - I_{ij})\, c_j^k

    where :math:`\alpha` is `lr` and :math:`e^0 = 0`. The mean of x + e moves as x does in gradient
    descent. What is compressed does not shrink, so with a constant step the error stays in
    proportion to x: C should be accurate. No replicas are kept, so the topology may change. With C
    the identity and η = 1 it is ATC diffusion. One payload per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        eta: Averaging rate η, in (0, 1].
        compressor: C, or its name.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.DeepSqueeze(lr=0.05), q, topology=topology.path(3),
        ...                   steps=500)
        >>> h.last["gap"] < 1e-2
        True

    References:
        H. Tang, X. Lian, S. Qiu, L. Yuan, C. Zhang, T. Zhang & J. Liu, DeepSqueeze:
        Decentralization meets error-compensated compression, 2019, Algorithm 1.
    """

    lr: StepSize
    eta: float = 0.5
    compressor: Compression = "minmax8"

    needs: ClassVar[Needs] = Needs("symmetric doubly stochastic")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number("DeepSqueeze", "eta", self.eta, most=1.0)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, with no error."""
        return State(x=x, error=0.0 * x, draws=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, compress with the last error, and average."""
        v = s.x - self.lr * grad(s.x) + s.error
        c = self._send(comm, v, s.draws)
        x = c.value + self.eta * (comm.neighbor_allreduce(c.payload) - c.value)
        return State(x=x, error=v - c.value, draws=c.draws)
