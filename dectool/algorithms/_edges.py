"""State that algorithms keep for each edge, in one row for each rank."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dectool.communicator import Communicator


@final
class Edges:
    """The in-edges of a rank, or with "stacked" of all ranks, by rank and then by neighbour.

    That is the order of what is received; where the topology is symmetric, of what is sent too.

    Args:
        comm: Whose topology has the edges.

    Attributes:
        owners: The row of x that each edge belongs to.
        signs: For each edge 1 if its rank is the greater of the two, else -1; shape (edges, 1).
    """

    def __init__(self, comm: Communicator) -> None:
        ranks = np.atleast_1d(np.asarray(comm.rank)).tolist()
        topology = comm.topology
        neighbors = [topology.in_neighbors(rank) for rank in ranks]
        degrees = [len(each) for each in neighbors]
        self.owners = np.repeat(np.arange(len(ranks)), degrees)
        self.signs = np.array(
            [1 if i > j else -1 for i, js in zip(ranks, neighbors, strict=True) for j in js]
        ).reshape(-1, 1)
        places = [np.arange(degree) for degree in degrees]
        self._places = np.concatenate(places)
        self._most = max(1, *(len(topology.in_neighbors(rank)) for rank in range(topology.size)))
        self._lead = (len(ranks),) if np.ndim(comm.rank) else ()

    def by_rank(self, edges: Any) -> Any:
        """Return an edge array as one row per rank, as long as the greatest degree needs."""
        rows = np.zeros((*(self._lead or (1,)), self._most, edges.shape[-1]), edges.dtype)
        rows[self.owners, self._places] = edges
        return rows.reshape(*self._lead, self._most, edges.shape[-1])

    def of_ranks(self, rows: Any) -> Any:
        """Undo :meth:`by_rank`."""
        return rows.reshape(-1, *rows.shape[-2:])[self.owners, self._places]
