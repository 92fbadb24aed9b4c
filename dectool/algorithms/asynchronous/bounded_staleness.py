"""Decentralized descent in which nobody is more than some steps ahead of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_steps
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided
from dectool.communicator import Communicator, Window


@final
@dataclass(frozen=True)
class BoundedStaleness(OneSided):
    r"""Stale-synchronous decentralized gradient descent.

    .. math:: x_i^{k+1} = W_{ii} x_i^k + \sum_j W_{ij} x_j^{t_{ij}} - \alpha \nabla f_i(x_i^k),
       \qquad t_{ij} \ge k - \tau

    where :math:`\alpha` is `lr`, :math:`\tau` is `bound`, and :math:`x_j^{t_{ij}}` the newest that
    has come from j. A rank waits only where a neighbour is more than τ steps behind; so it hides
    slow steps, but in the long run the slowest rank sets the pace. In a simulation with faults, a
    neighbour that has crashed is left out after τ steps, as ``missing`` says; values must not be
    lost at random, since they are counted. With ranks in step it is
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
        window, due = self._window(comm), s.k + 1 - self.bound
        window.iput(s.x)
        g = grad(s.x)
        near = window.topology.in_neighbors(comm.rank)
        for source in near:
            window.wait(source, due)
        # A wait ends before the value has come only for a rank that has crashed.
        gone = [j for j in near if window.version(j) < due]
        average = self._without(comm, window, gone) if gone else window.update()
        return State(x=average - self.lr * g, k=s.k + 1)

    def _without(self, comm: Communicator, window: Window, gone: list[int]) -> Any:
        """Average without some neighbours, whose weight goes where ``comm.missing`` says."""
        i, graph = comm.rank, window.topology
        weights = {j: graph.weight(i, j) for j in (i, *graph.in_neighbors(i))}
        lost = sum(weights.pop(j) for j in gone)
        if comm.missing == "renormalize" and lost < 1.0:
            weights = {j: weight / (1.0 - lost) for j, weight in weights.items()}
        else:
            weights[i] += lost
        return window.update(self_weight=weights.pop(i), src_weights=weights)
