"""ADMM on the edges of a graph, of which one at a time is active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast, final

import numpy as np

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._checks import check_number
from dectool.algorithms._needs import Needs
from dectool.algorithms.asynchronous import _clocks
from dectool.algorithms.asynchronous.gossip import PAIRS
from dectool.algorithms.relay import total
from dectool.communicator import Communicator


@final
@dataclass(frozen=True)
class AsynchronousADMM(Algorithm):
    r"""Decentralized ADMM in which random edges are active, one after the other.

    Each edge e of rank i demands :math:`x_i = z_e`, with the multiplier :math:`\lambda_{ei}`. When
    the edge between i and j is active, both ends update, with f linearised:

    .. math:: x_i \leftarrow \arg\min_x\ \langle \nabla f_i(x_i) + \sum_{e \ni i} \lambda_{ei},
       x \rangle + \frac{1}{2\alpha} \|x - x_i\|^2 + \frac{\rho}{2} \sum_{e \ni i} \|x - z_e\|^2
       = \frac{x_i - \alpha \big( \nabla f_i(x_i)
       - \sum_{e \ni i} (\rho z_e - \lambda_{ei}) \big)}{1 + \alpha \rho d_i}

    .. math:: z_e \leftarrow \tfrac12 (x_i + x_j), \qquad
       \lambda_{ei} \leftarrow \lambda_{ei} + \rho (x_i - z_e)

    where :math:`\alpha` is `lr`, :math:`\rho` is `rho` and :math:`d_i` the degree. The multipliers
    of an edge sum to 0, so in a fixed point the ranks agree on the optimum itself. Poisson clocks
    say who meets whom in which order, of which each rank's ticks once per step on average. One
    message of d numbers each way per meeting. A rank without neighbours descends once per step.

    Args:
        lr: Step size α of the linearised objective.
        rho: Penalty ρ of disagreement.

    Example:
        >>> import dectool
        >>> from dectool import algorithms, problems, topology
        >>> q = problems.Quadratic(h=[[1.0], [3.0], [2.0]], b=[[2.0], [2.0], [2.0]])
        >>> h = dectool.solve(algorithms.AsynchronousADMM(lr=0.3), q, topology=topology.ring(3),
        ...                   steps=100, backend="sim")
        >>> h.last["gap"] < 1e-12
        True

    References:
        E. Wei & A. Ozdaglar, On the O(1/k) convergence of asynchronous distributed alternating
        direction method of multipliers, GlobalSIP 2013; Q. Ling, W. Shi, G. Wu & A. Ribeiro,
        DLM: decentralized linearized alternating direction method of multipliers, IEEE TSP
        63(15), 2015.
    """

    lr: StepSize
    rho: float = 1.0

    needs: ClassVar[Needs] = PAIRS
    asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_number(self.name, "rho", self.rho)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``, where each end of an edge has its own idea of z; agree on the clocks."""
        # One row for each edge, as many as the greatest degree asks for; the rest stay zero.
        rows = np.arange(max(1, comm.topology.max_degree)) < comm.topology.out_degree(comm.rank)
        z = rows[:, None] * x
        return State(x=x, z=z, multipliers=0.0 * z, seed=_clocks.common_seed(comm), k=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Hold all meetings of one unit of the clocks."""
        near, alpha = comm.topology.out_neighbors(comm.rank), cast(float, self.lr)
        x, z, multipliers = s.x, s.z.copy(), s.multipliers.copy()
        for peer in _clocks.partners(comm, s.seed, s.k):
            pull = total(self.rho * z - multipliers)
            x = (x - alpha * (grad(x) - pull)) / (1.0 + alpha * self.rho * len(near))
            if peer is None:
                continue
            e = near.index(peer)
            z[e] = 0.5 * (x + comm.sendrecv(x, peer, peer))
            multipliers[e] += self.rho * (x - z[e])
        return s.replace(x=x, z=z, multipliers=multipliers, k=s.k + 1)
