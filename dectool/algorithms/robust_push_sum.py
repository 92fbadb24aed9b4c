"""Push-sum that survives lost messages: every rank sends the sum of all it has sent so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Algorithm, Gradient, State
from dectool.algorithms._edges import Edges
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class RobustPushSum(Algorithm):
    r"""Averaging on directed graphs where messages are lost, by running sums.

    Each rank i sends the sum of its values so far; rank j takes what that has grown by since it
    last heard from i, so what was lost comes with the next message that arrives:

    .. math:: \sigma_i^{k+1} = \sigma_i^k + s_i^k, \qquad
       s_j^{k+1} = C_{jj} s_j^k + \sum_{i \ne j} C_{ji} (\rho_{ji}^{k+1} - \rho_{ji}^k), \qquad
       \rho_{ji}^{k+1} = \begin{cases} \sigma_i^{k+1} & \text{if it arrives} \\
       \rho_{ji}^k & \text{if not} \end{cases}

    and likewise for the weights w, with :math:`w^0 = 1` and :math:`x = s / w`. The mass
    :math:`\sum_i s_i + \sum_{ji} C_{ji} (\sigma_i - \rho_{ji})` is kept, whatever is lost, so x
    tends to the average of the first values. Without losses the iterates are those of
    :class:`PushSum`, to rounding. The share of a rank that is not there waits for it, so where one
    never comes back, the weights of its in-neighbours tend to 0. One message of d + 1 numbers per
    out-neighbour and step.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, sim, topology
        >>> h = dectool.solve(algorithms.RobustPushSum(), problems.Averaging(np.eye(4)),
        ...                   topology=topology.exponential(4, weights="uniform_push"), steps=100,
        ...                   backend="sim", faults=[sim.MessageLoss(0.2)])
        >>> bool(np.allclose(h.x, 0.25, atol=1e-10, rtol=0))
        True

    References:
        C. N. Hadjicostis, N. H. Vaidya & A. D. Dominguez-Garcia, Robust distributed average
        consensus via exchange of running sums, IEEE TAC 61(6), 2016.
    """

    needs: ClassVar[Needs] = Needs("column stochastic", time_varying=False)
    uses_gradient: ClassVar[bool] = False

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start with the value ``x`` and the weight 1, with nothing sent and nothing heard."""
        w = 0.0 * x[..., :1] + 1.0
        edges = Edges(comm)
        heard = [edges.by_rank(np.zeros((len(edges.owners), v.shape[-1]), v.dtype)) for v in (x, w)]
        return State(x=x, s=x, w=w, sigma=0.0 * x, sigma_w=0.0 * w, rho=heard[0], rho_w=heard[1])

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Send the sums, take in what those received have grown by, and divide."""
        edges = Edges(comm)
        sigma = (s.sigma + s.s, s.sigma_w + s.w)
        before = (edges.of_ranks(s.rho), edges.of_ranks(s.rho_w))
        # A row that does not arrive stays as it was heard last.
        heard = comm.neighbor_allgather(sigma, missing=before)
        grown = tuple(now - old for now, old in zip(heard, before, strict=True))
        Cs, Cw = comm.mix(grown, own=(s.s, s.w))
        return State(
            x=Cs / Cw,
            s=Cs,
            w=Cw,
            sigma=sigma[0],
            sigma_w=sigma[1],
            rho=edges.by_rank(heard[0]),
            rho_w=edges.by_rank(heard[1]),
        )
