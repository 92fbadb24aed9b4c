"""Gradient tracking on directed graphs by two matrices: models are pulled, gradients pushed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Any, ClassVar, Self, final

import networkx as nx

from dectool.algorithms._algorithm import Algorithm, Curved, Gradient, State, StepSize
from dectool.algorithms._graph_weights import column_stochastic, row_stochastic, tracking_step
from dectool.algorithms._needs import Needs
from dectool.algorithms._push import ipush, push
from dectool.communicator import Communicator
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import Schedule, Topology


@dataclass(frozen=True)
class TwoMatrices(Algorithm):
    """Gradient tracking with a row-stochastic matrix R and a column-stochastic one C.

    Attributes:
        lr: Step size α.
        pull: The topology of R, or a schedule; ``None`` for that of the run.
        push: The topology of C, or a schedule; ``None`` for that of the run.
        largest: The step size that is suggested for L = 1 on good graphs.
    """

    lr: StepSize
    pull: Topology | Schedule | None = None
    push: Topology | Schedule | None = None

    needs: ClassVar[Needs] = Needs("any")
    largest: ClassVar[float] = 0.25

    def __post_init__(self) -> None:
        """Check the step size and the matrices."""
        super().__post_init__()
        for one in self._each("pull"):
            if not one.is_row_stochastic:
                raise TopologyError(
                    f"{self.name}: pull={one.name} must be row stochastic (each rank averages "
                    "what it hears), but its rows do not sum to 1; build it with "
                    "weights='uniform'"
                )
        for one in self._each("push"):
            if not one.is_column_stochastic:
                raise TopologyError(
                    f"{self.name}: push={one.name} must be column stochastic (each rank splits "
                    "what it sends), but its columns do not sum to 1; build it with "
                    "weights='uniform_push'"
                )
        if isinstance(self.pull, Topology) and isinstance(self.push, Topology):
            self._check_roots(self.pull, self.push)

    @classmethod
    def suggested(cls, problem: Curved, topology: Topology | Schedule) -> dict[str, Any]:
        """Return a step size that is small enough for the graph."""
        return {"lr": tracking_step(problem, topology, cls.largest)}

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x`` and track from its gradient."""
        g = grad(x)
        return State(x=x, y=g, g=g)

    def at(self, k: int) -> Self:
        """Return the algorithm with the step size and the matrices of step ``k``."""
        now = super().at(k)
        steps: dict[str, Any] = {
            name: value.at(k)
            for name in ("pull", "push")
            if isinstance(value := getattr(now, name), Schedule)
        }
        return replace(now, **steps) if steps else now

    @property
    def period(self) -> int:
        """Steps after which both matrices repeat.

        Raises:
            ArgumentError: One of them never does.
        """
        periods = [super().period]
        for name in ("pull", "push"):
            given = getattr(self, name)
            if isinstance(given, Schedule):
                if given.period is None:
                    raise ArgumentError(f"{self.name}: {name}={given.name} has no period")
                periods.append(given.period)
        return lcm(*periods)

    def parameters(self) -> dict[str, Any]:
        """Return the hyper-parameters by name; topologies as text."""
        shown = super().parameters()
        return shown | {
            name: repr(value)
            for name in ("pull", "push")
            if (value := getattr(self, name)) is not None
        }

    def _each(self, name: str) -> list[Topology]:
        given = getattr(self, name)
        if given is None:
            return []
        if isinstance(given, Topology):
            return [given]
        if isinstance(given, Schedule):
            return [given.at(k) for k in range(given.period or 1)]
        raise ArgumentTypeError(
            f"{self.name}: {name} is a {type(given).__name__}; give a dectool.topology.Topology "
            "or Schedule, or None for that of the run"
        )

    def _check_roots(self, pull: Topology, push: Topology) -> None:
        if pull.size != push.size:
            raise TopologyError(
                f"{self.name}: pull={pull.name} has {pull.size} ranks, and push={push.name} "
                f"{push.size}; build both for the same ranks"
            )
        if not _sources(pull) & _sinks(push):
            raise TopologyError(
                f"{self.name}: no rank is heard by all along pull={pull.name} and hears all along "
                f"push={push.name}, so no rank learns the gradient of all and passes the model "
                "on; use strongly connected graphs, or give both a root in common"
            )

    def _matrices(self, comm: Communicator) -> tuple[Topology, Topology]:
        pull, push = self.pull, self.push
        assert not isinstance(pull, Schedule)
        assert not isinstance(push, Schedule)
        return (
            row_stochastic(comm.topology) if pull is None else pull,
            column_stochastic(comm.topology) if push is None else push,
        )


@final
@dataclass(frozen=True)
class AB(TwoMatrices):
    r"""The AB algorithm: gradient tracking on directed graphs, without any division.

    .. math:: x^{k+1} = R x^k - \alpha y^k, \qquad
       y^{k+1} = C y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`, the rows of R sum to 1, and the columns of C do. It converges
    linearly to the optimum for small α, also on changing graphs. The sum of y over ranks is that
    of the gradients, always. Two messages of d numbers per out-neighbour and step; with R = C
    doubly stochastic it is :class:`DIGing`.

    Args:
        lr: Step size α.
        pull: Topology or schedule of R. Default: that of the run, with its own weights if their
            rows sum to 1, else with equal ones ("uniform").
        push: Topology or schedule of C. Default: that of the run, with its own weights if their
            columns sum to 1, else with equal shares ("uniform_push").

    Raises:
        TopologyError: The rows of ``pull`` or the columns of ``push`` do not sum to 1, or no rank
            is heard by all along ``pull`` and hears all along ``push``.
        ArgumentTypeError: One is neither a topology nor a schedule.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> ring = topology.directed_ring(3, weights="uniform")
        >>> h = dectool.solve(algorithms.AB(lr=0.05), q, topology=ring, steps=800)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        R. Xin & U. A. Khan, A linear algorithm for optimization over directed graphs with
        geometric convergence, IEEE L-CSS 2(3), 2018; F. Saadatniaki, R. Xin & U. A. Khan,
        Decentralized optimization over time-varying directed graphs with row and
        column-stochastic matrices, IEEE TAC 65(11), 2020.
    """

    largest: ClassVar[float] = 0.1

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Pull models and push what tracks, descend, and track."""
        R, C = self._matrices(comm)
        Rx = comm.ineighbor_allreduce(s.x, R)
        Cy = ipush(comm, s.y, C)
        x = Rx.wait() - self.lr * s.y
        g = grad(x)
        return State(x=x, y=Cy.wait() + g - s.g, g=g)


@final
@dataclass(frozen=True)
class PushPull(TwoMatrices):
    r"""The push-pull gradient method: gradient tracking on two directed graphs.

    .. math:: x^{k+1} = R (x^k - \alpha y^k), \qquad
       y^{k+1} = C y^k + \nabla f(x^{k+1}) - \nabla f(x^k), \qquad y^0 = \nabla f(x^0)

    where :math:`\alpha` is `lr`, the rows of R sum to 1, and the columns of C do. It converges
    linearly to the optimum for small α where a rank is heard by all along the graph of R and hears
    all along that of C: peers on one graph, or a leader with followers. The sum of y over ranks is
    that of the gradients, always. Two messages of d numbers per out-neighbour and step; with
    R = C doubly stochastic it is :class:`SemiATCGradientTracking`.

    Args:
        lr: Step size α.
        pull: As for :class:`AB`.
        push: As for :class:`AB`.

    Raises:
        TopologyError: As for :class:`AB`.
        ArgumentTypeError: As for :class:`AB`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> ring = topology.directed_ring(3, weights="uniform")
        >>> h = dectool.solve(algorithms.PushPull(lr=0.05), q, topology=ring, steps=800)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        S. Pu, W. Shi, J. Xu & A. Nedić, Push-pull gradient methods for distributed optimization
        in networks, IEEE TAC 66(1), 2021.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend and pull, push what tracks, and track."""
        R, C = self._matrices(comm)
        Cy = ipush(comm, s.y, C)
        x = comm.neighbor_allreduce(s.x - self.lr * s.y, R)
        g = grad(x)
        return State(x=x, y=Cy.wait() + g - s.g, g=g)


@final
@dataclass(frozen=True)
class ATCPushPull(TwoMatrices):
    r"""The push-pull gradient method, adapt-then-combine in the gradients too.

    .. math:: x^{k+1} = R (x^k - \alpha y^k), \qquad
       y^{k+1} = C (y^k + \nabla f(x^{k+1}) - \nabla f(x^k)), \qquad y^0 = \nabla f(x^0)

    with everything as in :class:`PushPull`, of which this is a variant. With R = C doubly
    stochastic it is :class:`ATCGradientTracking`.

    Args:
        lr: Step size α.
        pull: As for :class:`AB`.
        push: As for :class:`AB`.

    Raises:
        TopologyError: As for :class:`AB`.
        ArgumentTypeError: As for :class:`AB`.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> ring = topology.directed_ring(3, weights="uniform")
        >>> h = dectool.solve(algorithms.ATCPushPull(lr=0.05), q, topology=ring, steps=800)
        >>> round(float(h.x[0, 0]), 9)
        0.5

    References:
        S. Pu, W. Shi, J. Xu & A. Nedić, Push-pull gradient methods for distributed optimization
        in networks, IEEE TAC 66(1), 2021.
    """

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend and pull; then track and push."""
        R, C = self._matrices(comm)
        x = comm.neighbor_allreduce(s.x - self.lr * s.y, R)
        g = grad(x)
        return State(x=x, y=push(comm, s.y + g - s.g, C), g=g)


@lru_cache(maxsize=64)
def _sources(topology: Topology) -> frozenset[int]:
    """Return the ranks from which a path leads to every rank."""
    return _ends(topology, incoming=True)


@lru_cache(maxsize=64)
def _sinks(topology: Topology) -> frozenset[int]:
    """Return the ranks to which a path leads from every rank."""
    return _ends(topology, incoming=False)


def _ends(topology: Topology, *, incoming: bool) -> frozenset[int]:
    parts = nx.condensation(nx.DiGraph(topology.graph))
    degrees = parts.in_degree if incoming else parts.out_degree
    ends = [part for part in parts if degrees[part] == 0]
    return frozenset(parts.nodes[ends[0]]["members"]) if len(ends) == 1 else frozenset()
