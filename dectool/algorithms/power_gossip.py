"""PowerGossip: neighbours average the part of their difference that a power iteration finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from dectool.algorithms._algorithm import Algorithm, Gradient, State, StepSize
from dectool.algorithms._edges import Edges
from dectool.algorithms._needs import Needs
from dectool.communicator import Communicator
from dectool.compression import LowRank
from dectool.compression._lowrank import orthonormal


@final
@dataclass(frozen=True)
class PowerGossip(Algorithm):
    r"""PowerGossip: D-PSGD with low-rank gossip, and no step size for it.

    After a gradient step, each pair of neighbours i > j takes half a power iteration on the
    difference of their models, read as matrices. In even steps

    .. math:: \hat p = \mathrm{orth}(p_{ij}), \qquad
       q_{ij} = X_i^T \hat p - X_j^T \hat p, \qquad
       X_i \leftarrow X_i - W_{ij}\, \hat p\, q_{ij}^T, \qquad
       X_j \leftarrow X_j + W_{ij}\, \hat p\, q_{ij}^T

    for all pairs at once, and in odd ones the same with p and q, rows and columns exchanged. Each
    sends the other one product, r numbers for each row or column, and both know the rest; the
    vectors of a step are where the next begins. The mean of x moves as in gradient descent. With a
    constant step it tends to a point at distance O(α) from the optimum.

    Args:
        lr: Step size α, or a function of the step; with 0 it only averages.
        rank: Rank r of what is averaged.
        shape: (rows, columns) of the matrix; as nearly square as can be unless given.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import algorithms, problems, topology
        >>> h = dectool.solve(algorithms.PowerGossip(lr=0), problems.Averaging(np.eye(4)),
        ...                   topology=topology.ring(4), steps=100)
        >>> bool(np.allclose(h.x, 0.25))
        True

    References:
        T. Vogels, S. P. Karimireddy & M. Jaggi, Practical low-rank communication compression in
        decentralized deep learning, NeurIPS 2020, Algorithms 1 and 2, and its code.
    """

    lr: StepSize
    rank: int = 1
    shape: tuple[int, int] | None = None

    needs: ClassVar[Needs] = Needs(
        "symmetric doubly stochastic", contracts=True, time_varying=False
    )
    exact: ClassVar[bool] = False
    may_rest: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        LowRank(self.rank, self.shape)

    def init(self, comm: Communicator, x: Any, grad: Gradient) -> State:
        """Start at ``x``; the first vectors of a pair are the sum of what both draw, sent once."""
        low = LowRank(self.rank, self.shape)
        d = x.shape[-1]
        numbers = low.matrix_shape(d)[0] * low.rank_of(d)
        drawn = np.asarray(comm.rng("power gossip", 0).standard_normal(numbers)).astype(x.dtype)
        edges = Edges(comm)
        p = comm.neighbor_allgather(drawn) + drawn.reshape(-1, numbers)[edges.owners]
        numbers = low.matrix_shape(d)[1] * low.rank_of(d)
        q = np.zeros((len(p), numbers), x.dtype)
        return State(x=x, p=edges.by_rank(p), q=edges.by_rank(q), odd=0)

    def step(self, comm: Communicator, s: State, grad: Gradient) -> State:
        """Descend, then average what half a power iteration finds."""
        x = s.x if self.lr == 0 else s.x - self.lr * grad(s.x)
        low = LowRank(self.rank, self.shape)
        d = x.shape[-1]
        rank = low.rank_of(d)
        edges = Edges(comm)
        X = low.matrices(x.reshape(-1, d))[edges.owners]
        p, q = edges.of_ranks(s.p), edges.of_ranks(s.q)
        known, other = (q, p) if s.odd else (p, q)
        directions = [orthonormal(v.reshape(-1, rank)) for v in known]
        mine = np.empty_like(other)
        for index, (M, v) in enumerate(zip(X, directions, strict=True)):
            mine[index] = ((M if s.odd else M.T) @ v).reshape(-1)
        # Own product minus the neighbour's; both count it from the greater rank's side.
        sign = edges.signs.astype(x.dtype)
        found = sign * (mine - comm.neighbor_alltoall(mine))
        change = np.empty((len(X), d), x.dtype)
        for index, (f, v) in enumerate(zip(found, directions, strict=True)):
            known[index] = v.reshape(-1)
            other_side = f.reshape(-1, rank)
            product = other_side @ v.T if s.odd else v @ other_side.T
            change[index] = product.reshape(-1)[:d]
        x = x - comm.mix(sign * change)
        p, q = (found, known) if s.odd else (known, found)
        return State(x=x, p=edges.by_rank(p), q=edges.by_rank(q), odd=1 - s.odd)
