"""Averages of all models in the background, while each rank goes on with its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool import topology
from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._checks import check_number, check_steps
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided
from dectool.communicator import Communicator

EVERYBODY = Needs("any")


@final
@dataclass(frozen=True)
class AsynchronousModelAverage(OneSided):
    r"""Local steps, with an average of all models under way in the background.

    .. math:: x_i \leftarrow x_i - \alpha \nabla f_i(x_i), \qquad
       x_i \leftarrow x_i + \frac1n \sum_j c_j - c_i \quad \text{when all } c_j \text{ have come}

    where :math:`\alpha` is `lr` and :math:`c_i` is the model when the average was begun. What a
    rank has done since then stays, so the sum of all models is kept, and nobody waits. One average
    is under way at a time, and the next begins `period` steps later or more; the slowest rank sets
    how often there is one, but not how fast the others step. With ranks in step, period 1 and
    messages that arrive within a step it is :class:`DGD` with W = 11ᵀ/n. A rank that is gone stops
    the averages, not the steps: see :class:`NewestModelAverage`.

    Models go to all ranks directly, through two windows in turn, as a rank that is one average
    ahead must not overwrite what others have not looked at. The topology is not used. At most
    n - 1 messages of d numbers per rank and step.

    Args:
        lr: Step size α, or a function of the step.
        period: Steps from one average's beginning to the next one's, at least.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> q = problems.Quadratic(h=[[1.0]] * 4, b=[[2.0]] * 4)
        >>> h = dectool.solve(algorithms.AsynchronousModelAverage(lr=0.1), q, steps=400,
        ...                   topology=topology.ring(4), backend="sim",
        ...                   compute=sim.PerRank({0: 3.0}))
        >>> h.last["gap"] < 1e-12
        True

    References:
        S. Gan et al., BAGUA: scaling up distributed learning with system relaxations, PVLDB 15(4),
        2021 (asynchronous model average).
    """

    lr: StepSize
    period: int = 1

    needs: ClassVar[Needs] = EVERYBODY
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_steps(self.name, at_least=1, period=self.period)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, and begin the first average."""
        everybody = topology.complete(comm.size)
        windows = [comm.window(x, self.name + suffix, everybody) for suffix in _TURNS]
        windows[1].iput(x)
        return State(x=x, c=x, average=np.array(1), under_way=np.array(True), since=np.array(0))

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend; take in the average if it is there; begin the next if it is time."""
        x = s.x - self.lr * grad(s.x)
        average, under_way, since, c = int(s.average), bool(s.under_way), int(s.since) + 1, s.c
        if under_way:
            window = self._window(comm, _TURNS[average % 2])
            sources = window.topology.in_neighbors(comm.rank)
            if all(window.version(source) >= (average + 1) // 2 for source in sources):
                x, under_way = x + (window.update() - c), False
        if not under_way and since >= self.period:
            average, under_way, since, c = average + 1, True, 0, x
            self._window(comm, _TURNS[average % 2]).iput(c)
        return State(
            x=x,
            c=c,
            average=np.array(average),
            under_way=np.array(under_way),
            since=np.array(since),
        )


@final
@dataclass(frozen=True)
class NewestModelAverage(OneSided):
    r"""Local steps, and in each the average of the newest models that have come.

    .. math:: x_i^{k+1} = \frac{1}{1 + |A_i|} \Big( x_i^k + \sum_{j \in A_i} \hat x_j \Big)
       - \alpha \nabla f_i(x_i^k)

    where :math:`\alpha` is `lr`, :math:`\hat x_j` the newest model that has come from j, and
    :math:`A_i` the ranks whose newest was sent at most `horizon` seconds ago. Nobody is waited
    for, so a rank that is gone blocks nobody, and counts no more after `horizon`. The sum of the
    models is not kept; with a constant step the limit is that of :class:`DGD` with W = 11ᵀ/n,
    whatever the delays. The topology is not used. n - 1 messages of d numbers per rank and step.

    Args:
        lr: Step size α, or a function of the step.
        horizon: Seconds after which a model is too old; default: never.

    Example:
        >>> from dectool import algorithms
        >>> algorithms.NewestModelAverage(lr=0.1, horizon=5.0)
        NewestModelAverage(lr=0.1, horizon=5.0)

    References:
        S. Gan et al., BAGUA: scaling up distributed learning with system relaxations, PVLDB 15(4),
        2021, with the newest values in place of a common average.
    """

    lr: StepSize
    horizon: float = math.inf

    needs: ClassVar[Needs] = EVERYBODY
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number(self.name, "horizon", self.horizon, finite=False, advice="in seconds")

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        comm.window(x, self.name, topology.complete(comm.size))
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Put x, compute a gradient, and average what is new enough."""
        window = self._window(comm)
        window.iput(s.x)
        g = grad(s.x)
        sources = window.topology.in_neighbors(comm.rank)
        if self.horizon < math.inf:
            sources = tuple(
                j for j in sources if window.version(j) and window.age(j) <= self.horizon
            )
        share = 1.0 / (1 + len(sources))
        mean = window.update(self_weight=share, src_weights=dict.fromkeys(sources, share))
        return State(x=mean - self.lr * g)


_TURNS = (" even", " odd")
