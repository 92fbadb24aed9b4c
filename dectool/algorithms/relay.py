"""RelaySum: sums that travel along a tree, each value once, with a delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._edges import Edges
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator

TREE = Needs("any", time_varying=False, tree=True)


@final
@dataclass(frozen=True)
class RelaySum(Algorithm):
    r"""The exact average on a tree in as many steps as its diameter, by relayed sums.

    .. math:: m_{i \to j}^{k+1} = u_i + \sum_{l \ne j} m_{l \to i}^k, \qquad
       c_{i \to j}^{k+1} = 1 + \sum_{l \ne j} c_{l \to i}^k

    .. math:: x_i^{k+1} = \frac1n \Big( \big(n - \sum_j c_{j \to i}^{k+1}\big) u_i
       + \sum_j m_{j \to i}^{k+1} \Big)

    with :math:`u = x^0` here, and :math:`m = c = 0` at first. One's own value stands in for those
    that have not come yet. One message of d + 1 numbers per neighbour and step.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.RelaySum(), problems.Averaging(np.eye(5)),
        ...                   topology=topology.path(5), steps=4)
        >>> bool(np.allclose(h.x, 0.2, atol=1e-15, rtol=0))
        True

    References:
        T. Vogels, L. He, A. Koloskova, S. P. Karimireddy, T. Lin, S. U. Stich & M. Jaggi,
        RelaySum for decentralized deep learning on heterogeneous data, NeurIPS 2021, Algorithm 1.
    """

    needs: ClassVar[Needs] = TREE
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Average ``x``, of which nothing has come yet."""
        m, c = _nothing_heard(comm, x)
        return State(x=x, u=x, m=m, c=c)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Relay once."""
        x, m, c = _relay(comm, s.u, s.m, s.c)
        return State(x=x, u=s.u, m=m, c=c)


@final
@dataclass(frozen=True)
class RelaySGD(Algorithm):
    r"""Gradient descent whose averages are those of :class:`RelaySum`.

    .. math:: u_i^k = x_i^k - \alpha \nabla f_i(x_i^k), \qquad
       x_i^{k+1} = \frac1n \sum_j u_j^{k - \max(d_{ij} - 1,\, 0)}

    where :math:`\alpha` is `lr` and :math:`d_{ij}` the distance in the tree; the second equation
    holds from the diameter on. The optimum is the only fixed point, whatever the ranks' data. One
    message of d + 1 numbers per neighbour and step.

    Args:
        lr: Step size α, or a function of the step.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> h = dectool.solve(algorithms.RelaySGD(lr=0.2), q, topology=topology.star(3), steps=99)
        >>> h.last["gap"] < 1e-12
        True

    References:
        T. Vogels et al., RelaySum for decentralized deep learning on heterogeneous data,
        NeurIPS 2021, Algorithm 1.
    """

    lr: StepSize

    needs: ClassVar[Needs] = TREE

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``."""
        m, c = _nothing_heard(comm, x)
        return State(x=x, m=m, c=c)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, and relay what has become of x."""
        x, m, c = _relay(comm, s.x - self.lr * grad(s.x), s.m, s.c)
        return State(x=x, m=m, c=c)


class Relayed(NamedTuple):
    """An average, and the messages it was made of, which the next ones are made of.

    Attributes:
        x: The average.
        m: Sums, one row for each neighbour.
        c: Of how many values.
    """

    x: Any
    m: Any
    c: Any


def relay_average(size: int, u: Any, m: Any, c: Any) -> Any:
    """Return the average of one's own ``u`` and of what the messages hold."""
    return (u * (size - total(c)) + total(m)) / size


def total(rows: Any) -> Any:
    """Return the sum over edges, from left to right."""
    result = rows[..., 0, :]
    for e in range(1, rows.shape[-2]):
        result = result + rows[..., e, :]
    return result


def _nothing_heard(comm: Communicator, x: Any) -> tuple[Any, Any]:
    edges = Edges(comm)
    shape = (len(edges.owners), x.shape[-1])
    m, c = np.zeros(shape, x.dtype), np.zeros((shape[0], 1), x.dtype)
    return edges.by_rank(m), edges.by_rank(c)


def _relay(comm: Communicator, u: Any, m: Any, c: Any) -> Relayed:
    edges = Edges(comm)
    out_m = np.atleast_2d(u + total(m))[edges.owners] - edges.of_ranks(m)
    out_c = np.atleast_2d(1.0 + total(c))[edges.owners] - edges.of_ranks(c)
    new_m, new_c = map(edges.by_rank, comm.neighbor_alltoall((out_m, out_c)))
    return Relayed(relay_average(comm.size, u, new_m, new_c), new_m, new_c)
