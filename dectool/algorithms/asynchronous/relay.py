"""RelaySum without waiting: each rank uses the newest message of each neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Gradient, State, StepSize
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous._one_sided import OneSided
from dectool.algorithms.relay import TREE, relay_average, total
from dectool.communicator import Communicator, Window


@final
@dataclass(frozen=True)
class AsynchronousRelaySum(OneSided):
    r"""The exact average on a tree, each rank at its own pace.

    .. math:: x_i = \frac1n \Big( \big(n - \sum_j \hat c_j\big) u_i + \sum_j \hat m_j \Big),
       \qquad m_{i \to j} = u_i + \sum_{l \ne j} \hat m_l, \qquad
       c_{i \to j} = 1 + \sum_{l \ne j} \hat c_l

    where :math:`(\hat m_j, \hat c_j)` is the newest message from j, zero at first, and u is the
    first x. A step lasts one computation of the compute model. Once everything has come along
    the longest path of the tree, x is the average, to rounding, and stays. One message of d + 1
    numbers per neighbour and step.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> h = dectool.solve(algorithms.AsynchronousRelaySum(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.star(4), steps=20, backend="sim",
        ...                   compute=sim.PerRank({3: 4.0}))
        >>> bool(np.allclose(h.x, 0.25, atol=1e-15, rtol=0))
        True

    References:
        T. Vogels et al., RelaySum for decentralized deep learning on heterogeneous data,
        NeurIPS 2021, with the newest message of each neighbour in place of that of the step.
    """

    needs: ClassVar[Needs] = TREE
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Average ``x``; tell the neighbours."""
        _tell(comm, _open(comm, self.name, x), x)
        return State(x=x, u=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Average what has come, and relay it."""
        with comm.computing():
            window = self._window(comm)
        return s.replace(x=_tell(comm, window, s.u))


@final
@dataclass(frozen=True)
class AsynchronousRelaySGD(OneSided):
    r"""Gradient descent whose averages are those of :class:`AsynchronousRelaySum`.

    .. math:: u_i = x_i - \alpha \nabla f_i(x_i), \qquad
       x_i = \frac1n \Big( \big(n - \sum_j \hat c_j\big) u_i + \sum_j \hat m_j \Big)

    where :math:`\alpha` is `lr`. With ranks in step, and messages that arrive during the next
    gradient, :math:`x_i^{k+1} = \frac1n \sum_j u_j^{k - d_{ij}}` with :math:`d_{ij}` the distance
    in the tree: one step later than in :class:`RelaySGD`, which waits for them. The optimum is the
    only fixed point, whatever the delays. One message of d + 1 numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step; the longer the delays, the smaller.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> h = dectool.solve(algorithms.AsynchronousRelaySGD(lr=0.1), q, steps=600,
        ...                   topology=topology.star(3), backend="sim",
        ...                   compute=sim.Exponential(1.0))
        >>> h.last["gap"] < 1e-12
        True

    References:
        T. Vogels et al., RelaySum for decentralized deep learning on heterogeneous data,
        NeurIPS 2021, with the newest message of each neighbour in place of that of the step.
    """

    lr: StepSize

    needs: ClassVar[Needs] = TREE

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        _open(comm, self.name, x)
        return State(x=x)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, average what has come, and relay it."""
        u = s.x - self.lr * grad(s.x)
        return State(x=_tell(comm, self._window(comm), u))


def _open(comm: Communicator, name: str, x: Any) -> Window:
    return comm.window((x, np.zeros(1, x.dtype)), name, zero_init=True)


def _tell(comm: Communicator, window: Window, u: Any) -> Any:
    """Return the average with ``u`` in it, and send each neighbour what it lacks."""
    near = window.topology.in_neighbors(comm.rank)
    heard = [window.slot(j) for j in near]
    if not heard:
        return u
    m, c = (np.stack(each) for each in zip(*heard, strict=True))
    for e, j in enumerate(near):
        window.iput((u + total(m) - m[e], 1.0 + total(c) - c[e]), dst_weights=[j])
    return relay_average(comm.size, u, m, c)
