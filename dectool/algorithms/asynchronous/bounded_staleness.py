"""Decentralized descent in which nobody is more than some steps ahead of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided, check_steps
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class BoundedStaleness(OneSided):
    r"""Stale-synchronous decentralized gradient descent.

    .. math:: x_i^{k+1} = W_{ii} x_i^k + \sum_j W_{ij} x_j^{t_{ij}} - \alpha \nabla f_i(x_i^k),
       \qquad t_{ij} \ge k - \tau

    where :math:`\alpha` is `lr`, :math:`\tau` is `bound`, and :math:`x_j^{t_{ij}}` the newest that
    has come from j. A rank waits only where a neighbour is more than τ steps behind; so it hides
    slow steps, but in the long run the slowest rank sets the pace. With ranks in step it is
    :class:`DGD`, and its limit is that of DGD whatever the delays: a value that no longer changes
    is not stale. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        bound: Steps τ that a neighbour's value may be behind.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> q = problems.Quadratic(h=[[1.0]] * 4, b=[[2.0]] * 4)
        >>> h = dectool.solve(algorithms.BoundedStaleness(lr=0.1, bound=2), q, steps=400,
        ...                   topology=topology.ring(4), backend="sim",
        ...                   compute=sim.Exponential(1.0))
        >>> h.last["gap"] < 1e-12
        True

    References:
        Q. Ho et al., More effective distributed ML via a stale synchronous parallel parameter
        server, NeurIPS 2013, with neighbours in place of the server.
    """

    lr: StepSize
    bound: int = 1

    needs: ClassVar[Needs] = Needs("doubly stochastic", time_varying=False)
    exact: ClassVar[bool] = False
    waits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_steps(self.name, bound=self.bound)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        comm.window(x, self.name)
        return State(x=x, k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Put x, compute a gradient, wait for neighbours that are too far behind, and average."""
        window = self._window(comm)
        window.iput(s.x)
        g = grad(s.x)
        for source in window.topology.in_neighbors(comm.rank):
            window.wait(source, s.k + 1 - self.bound)
        return State(x=window.update() - self.lr * g, k=s.k + 1)
