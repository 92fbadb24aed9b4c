"""Averages that neighbours who send anything at all cannot move far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._checks import check_below_one, check_number, check_whole
from dectool.algorithms._edges import Edges
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator
from dectool.compression._norms import norm
from dectool.errors import ArgumentError

Radius = float | Callable[[int], float] | None
"""A clipping radius, a function of the step number that gives one, or None: by the neighbours."""

_SCREENINGS = ("median", "trimmed_mean")


@dataclass(frozen=True)
class _Clipped(Algorithm):
    """An algorithm with the parameters of clipping."""

    needs: ClassVar[Needs] = Needs("doubly stochastic")

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        radius = getattr(self, "radius", None)
        if radius is not None and not callable(radius):
            advice = "a function of the step, or None; infinity is plain gossip"
            check_number(self.name, "radius", radius, finite=False, advice=advice)
        check_whole(self.name, "farthest", getattr(self, "farthest", 1), 0)


@final
@dataclass(frozen=True)
class ClippedGossip(_Clipped):
    r"""ClippedGossip: averaging in which no neighbour pulls farther than a radius.

    .. math:: x_i^{k+1} = x_i^k + \sum_j W_{ij} \operatorname{clip}(x_j^k - x_i^k, \tau_i),
       \qquad \operatorname{clip}(v, \tau) = v \min(1, \tau / \|v\|)

    where :math:`\tau_i` is `radius`, or by default the distance of the neighbour that is farthest
    but for `farthest` others. Whatever a Byzantine neighbour sends, it moves x by at most
    :math:`W_{ij} \tau_i`; NaN and infinity move it by nothing. With τ infinite it is plain gossip,
    else the mean is not kept. One message of d numbers per neighbour and step.

    Args:
        radius: Clipping radius τ > 0, may be infinite; a function of the step; or None for one
            that each rank takes from its neighbours in each step.
        farthest: How many neighbours are clipped then: as many as may be Byzantine. A rank that
            has no more neighbours takes the distance of the nearest.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> start = problems.Averaging(np.array([[0.0], [1.0], [2.0], [1e9]]))
        >>> h = dectool.solve(algorithms.ClippedGossip(radius=1.0), start,
        ...                   topology=topology.complete(4), steps=1)
        >>> h.x[:3, 0]
        array([0.75, 1.25, 1.75])

    References:
        L. He, S. P. Karimireddy & M. Jaggi, Byzantine-robust decentralized learning via
        ClippedGossip, arXiv:2202.01545; the default radius is that of its authors' code.
    """

    radius: Radius = None
    farthest: int = 1

    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average once."""
        return State(x=_clipped_average(comm, s.x, self.radius, self.farthest))


@final
@dataclass(frozen=True)
class ClippedGossipSGD(_Clipped):
    r"""Descent along a momentum, then :class:`ClippedGossip`.

    .. math:: m_i^{k+1} = \beta m_i^k + (1 - \beta) \nabla f_i(x_i^k), \qquad
       x_i^{k+\frac12} = x_i^k - \alpha m_i^{k+1}, \qquad
       x_i^{k+1} = x_i^{k+\frac12}
       + \sum_j W_{ij} \operatorname{clip}(x_j^{k+\frac12} - x_i^{k+\frac12}, \tau_i)

    where :math:`\alpha` is `lr`, :math:`\beta` is `beta` and :math:`\tau_i` is `radius`. With
    β = 0 and τ infinite it is :class:`ATC`. Let Byzantine ranks have the weight δ at each other
    one, and :math:`\tau_i^2 = \frac1\delta \sum_j W_{ij} \|x_i - x_j\|^2` over those others. Then
    what the Byzantine ranks do to the gradient at the end is of the order of √δ times the
    heterogeneity of the others. Where honest neighbours are clipped, as by the default radius on
    sparse graphs, the bias is larger. One message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        radius: Clipping radius τ, as for :class:`ClippedGossip`.
        farthest: How many neighbours are clipped if `radius` is None.
        beta: Momentum β, at least 0 and below 1.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> method = algorithms.ClippedGossipSGD(lr=0.02, radius=1.0, beta=0.9)
        >>> h = dectool.solve(method, q, topology=topology.complete(3), steps=1000)
        >>> h.last["gap"] < 1e-3
        True

    References:
        L. He, S. P. Karimireddy & M. Jaggi, Byzantine-robust decentralized learning via
        ClippedGossip, arXiv:2202.01545.
    """

    lr: StepSize
    radius: Radius = None
    farthest: int = 1
    beta: float = 0.0

    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_below_one(self.name, "beta", self.beta)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, at rest."""
        return State(x=x, m=0.0 * x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Gather momentum, descend, and average."""
        m = self.beta * s.m + (1.0 - self.beta) * grad(s.x)
        x = _clipped_average(comm, s.x - self.lr * m, self.radius, self.farthest)
        return State(x=x, m=m)


@final
@dataclass(frozen=True)
class BRIDGE(Algorithm):
    r"""BRIDGE: descent from a median or trimmed mean of the neighbours, in each coordinate.

    .. math:: x_i^{k+1} = \operatorname{screen}(\{x_j^k : j \in N_i \cup \{i\}\})
       - \alpha \nabla f_i(x_i^k)

    where :math:`\alpha` is `lr`. The weights of the topology are not used. The trimmed mean leaves
    out the b largest and the b smallest values of the neighbours and averages the others and one's
    own; a rank needs at least 2b + 1 neighbours. NaN counts as infinity. Without Byzantine ranks
    too it ends at a distance from the optimum that grows with the heterogeneity of the ranks. One
    message of d numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.
        screening: "median" (BRIDGE-M) or "trimmed_mean" (BRIDGE-T).
        trim: How many neighbours may be Byzantine, b; for the trimmed mean.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [2.0], [3.0]], b=[[0.0], [1.0], [2.0]])
        >>> h = dectool.solve(algorithms.BRIDGE(lr=0.02), q, topology=topology.complete(3),
        ...                   steps=1000)
        >>> h.last["gap"] < 1e-2
        True

    References:
        C. Fang, Z. Yang & W. U. Bajwa, BRIDGE: Byzantine-resilient decentralized gradient descent,
        IEEE T-SIPN 8, 2022. Its authors' code differs: it trims one's own value with the
        others, and takes the gradient at the screened point.
    """

    lr: StepSize
    screening: str = "median"
    trim: int = 1

    needs: ClassVar[Needs] = Needs("any")
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_whole(self.name, "trim", self.trim, 0)
        if self.screening not in _SCREENINGS:
            raise ArgumentError(
                f"{self.name}: screening={self.screening!r} is not known; give "
                f"{' or '.join(_SCREENINGS)}"
            )

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Screen what the neighbours have, and descend."""
        screen = _median if self.screening == "median" else self._trimmed_mean
        rows = zip(np.atleast_2d(s.x), _received(comm, s.x), strict=True)
        screened = np.stack([screen(own, others) for own, others in rows]).reshape(s.x.shape)
        return State(x=screened - self.lr * grad(s.x))

    def _trimmed_mean(self, own: Any, others: Any) -> Any:
        if self.trim and len(others) <= 2 * self.trim:
            raise ArgumentError(
                f"{self.name}: trim={self.trim} needs {2 * self.trim + 1} neighbours or more, but "
                f"a rank has {len(others)}; use a denser topology, or screening='median'"
            )
        kept = np.sort(others, axis=0)[self.trim : len(others) - self.trim]
        return np.concatenate([own[None], kept]).sum(axis=0) / (len(kept) + 1)


def _median(own: Any, others: Any) -> Any:
    ordered = np.sort(np.concatenate([own[None], others]), axis=0)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def _received(comm: Communicator, x: Any) -> list[Any]:
    """Return what each rank has from its neighbours, one row each; NaN as infinity."""
    values = comm.neighbor_allgather(x)
    ends = np.cumsum(_degrees(Edges(comm), len(np.atleast_2d(x))))
    return np.split(np.where(np.isnan(values), np.inf, values), ends[:-1])


def _degrees(edges: Edges, ranks: int) -> Any:
    return np.bincount(edges.owners, minlength=ranks)


def _clipped_average(comm: Communicator, x: Any, radius: Any, farthest: int) -> Any:
    edges = Edges(comm)
    # Infinity minus infinity, and what overflows, is dropped below.
    with np.errstate(invalid="ignore", over="ignore"):
        away = comm.neighbor_allgather(x) - np.atleast_2d(x)[edges.owners]
    rows = np.ascontiguousarray(away.reshape(-1, away.shape[-1]))
    distance = norm(rows).reshape(*away.shape[:-1], 1)
    if radius is None:
        radius = _radii(distance, _degrees(edges, len(np.atleast_2d(x))), farthest)
    near = distance <= radius
    scale = np.where(near, 1.0, radius / np.where(near, 1.0, distance)).astype(away.dtype)
    return x + comm.mix(np.where(np.isnan(distance), 0.0, away * scale).astype(away.dtype))


def _radii(distance: Any, degrees: Any, farthest: int) -> Any:
    """Return for each edge the distance that its rank clips at."""
    radii = []
    for of_rank in np.split(
        np.where(np.isnan(distance), np.inf, distance), np.cumsum(degrees)[:-1]
    ):
        if len(of_rank):
            nearest_first = np.sort(of_rank, axis=0)
            at = len(of_rank) - 1 - min(farthest, len(of_rank) - 1)
            radii.append(np.broadcast_to(nearest_first[at], of_rank.shape))
    return np.concatenate(radii) if radii else distance
