"""What algorithms on one-sided windows share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dectool.algorithms._algorithm import Algorithm
from dectool.communicator import Communicator, Window
from dectool.errors import WindowError


@dataclass(frozen=True)
class OneSided(Algorithm):
    """An algorithm whose ranks write to each other through windows, and wait for nobody.

    ``init`` opens the window, under the algorithm's name; ``step`` finds it by that. It stays
    open, since others may write to a rank that has done its last step.
    """

    asynchronous: ClassVar[bool] = True
    waits: ClassVar[bool] = False
    resumable: ClassVar[bool] = False

    def _window(self, comm: Communicator, suffix: str = "") -> Window:
        name = self.name + suffix
        try:
            return comm.windows[name]
        except KeyError:
            raise WindowError(
                f"{self.name}: rank {comm.rank} has no open window {name!r}; begin with init, on "
                "every rank"
            ) from None


def random_neighbor(comm: Communicator, window: Window, purpose: str, k: int) -> int | None:
    """Return a neighbour drawn uniformly for step k, or ``None`` where there is none."""
    near = window.topology.out_neighbors(comm.rank)
    return near[int(comm.rng(purpose, k).integers(len(near)))] if near else None


def average_pair(comm: Communicator, window: Window, peer: int | None) -> None:
    r"""Let this rank and a peer have the average of their values, whose sum is kept.

    .. math:: \delta = \tfrac12 (x_j - x_i), \qquad x_i \leftarrow x_i + \delta, \qquad
       x_j \leftarrow x_j - \delta

    Both mutexes are held, taken in ascending order, so no two averages touch one rank at a time
    and none blocks another. The peer does nothing for it. What it adds to its own value meanwhile
    is kept, because differences are added, and values not overwritten. A peer that does not answer
    is left out: what its slot has kept is old.
    """
    if peer is None:
        return
    with window.lock([comm.rank, peer]):
        before = window.version(peer)
        window.get(src_weights=[peer])
        if window.version(peer) == before:
            return
        delta: Any = 0.5 * (window.slot(peer) - window.value)
        window.add(delta, {comm.rank: 1.0, peer: -1.0})
