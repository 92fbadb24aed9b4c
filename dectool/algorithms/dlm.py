"""DLM: decentralized ADMM with every local problem replaced by one gradient step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Algorithm, Curved, Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._graph_weights import degrees, laplacian
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator
from dectool.topology import Schedule, Topology


@final
@dataclass(frozen=True)
class DLM(Algorithm):
    r"""Decentralized linearized alternating direction method of multipliers.

    .. math:: x_i^{k+1} = x_i^k - \frac{\nabla f_i(x_i^k) + \phi_i^k
       + c \sum_j (x_i^k - x_j^k)}{2 c d_i + 1/\alpha}, \qquad
       \phi_i^{k+1} = \phi_i^k + c \sum_j (x_i^{k+1} - x_j^{k+1}), \qquad \phi^0 = 0

    where :math:`\alpha` is `lr`, c is `penalty`, :math:`d_i` the number of neighbours j of i, and
    :math:`1/\alpha` the paper's ρ, the weight of the proximal term of the linearized objective. It
    converges to the optimum for any c if α is small against 1/L, linearly where f is strongly
    convex. The graph alone counts, and not its weights; the sum of φ over ranks is 0, always. One
    message of d numbers per neighbour and step.

    Args:
        lr: Step size α of the linearized objective.
        penalty: Penalty c of disagreement, above 0; the size of the curvature, roughly.

    Raises:
        ArgumentError: The penalty is not finite and above 0.
        ArgumentTypeError: The penalty is no number.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.DLM(lr=0.3), q, topology=topology.path(3), steps=300)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        Q. Ling, W. Shi, G. Wu & A. Ribeiro, DLM: decentralized linearized alternating direction
        method of multipliers, IEEE TSP 63(15), 2015.
    """

    lr: StepSize
    penalty: float = 1.0

    needs: ClassVar[Needs] = Needs("any", time_varying=False, undirected=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number(self.name, "penalty", self.penalty)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        r"""Return :math:`\alpha = 1 / L_{\max}` and :math:`c = L_{\max} / 4 d_{\max}`.

        Measured on quadratics: near the best penalty on rings, grids, stars and complete graphs.
        """
        graph = topology.at(0) if isinstance(topology, Schedule) else topology
        L = problem.L_max
        return {"lr": 1.0 / L, "penalty": L / (4 * max(1, graph.max_degree))}

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and ask the neighbours for theirs."""
        return State(x=x, phi=0.0 * x, apart=laplacian(comm, x))

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, and add up by how much neighbours are apart."""
        c, d = self.penalty, degrees(comm, s.x)
        alpha: Any = self.lr
        x = s.x - (grad(s.x) + s.phi + c * s.apart) / (2 * c * d + 1 / alpha)
        apart = laplacian(comm, x)
        return State(x=x, phi=s.phi + c * apart, apart=apart)
