"""What all parts of a window need: its store, its plan, and checks of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dectool.communicator._cells import Cell, Store
from dectool.communicator._core import Pending
from dectool.communicator._missing import Missing
from dectool.communicator._parcel import Buffer
from dectool.communicator._plans import checked_weight, plan_of
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError, WindowError

if TYPE_CHECKING:
    from dectool.communicator._one_sided import OneSidedOperations
    from dectool.topology import Topology


class WindowBase:
    """The part of a window that the others rest on.

    Attributes:
        name: Tells open windows of a rank apart.
        topology: Who has slots where; kept whatever ``comm.topology`` becomes.
        push_sum: Whether weights travel along with values.
    """

    def __init__(
        self,
        comm: OneSidedOperations,
        name: str,
        store: Store,
        topology: Topology,
        *,
        push_sum: bool,
        compressor: Any,
    ) -> None:
        self._comm = comm
        self._store = store
        self._compressor = compressor
        self._plan = plan_of(topology, comm.rank)
        self._sent = dict.fromkeys(self._plan.destinations, 0)
        self._seen = dict.fromkeys(store.slots, 0)
        self._stale = dict.fromkeys(store.slots, 0)
        self._outstanding: list[Pending] = []
        self._channel = (*comm._context, "window", name)
        self._fences = 0
        self._open = True
        self.name = name
        self.topology = topology
        self.push_sum = push_sum

    def __repr__(self) -> str:
        state = "" if self._open else " (freed)"
        return f"<window {self.name!r} of {self._store.layout} on {self.topology.name}{state}>"

    def _present(self, contents: Sequence[Any]) -> list[bool]:
        """Tell what has come; what is lost is an error, unless ``comm.missing`` says otherwise.

        Raises:
            MessageLostError: Something was lost, or a rank is gone.
        """
        for content in contents:
            if isinstance(content, Missing) and self._comm.missing == "error":
                raise content.error()
        return [not isinstance(content, Missing) for content in contents]

    def _check_open(self) -> None:
        if not self._open:
            raise WindowError(
                f"window {self.name!r} was freed; make a new one with comm.window(x, name)"
            )

    def _buffers(self, x: Any) -> tuple[Buffer, ...]:
        buffers, layout = self._comm._pack(x)
        if layout.signature != self._store.layout.signature:
            raise ContractError(
                f"window {self.name!r} was made of {self._store.layout}, but x is {layout}; pass "
                "the same structure, shapes and dtypes"
            )
        return buffers

    def _factors(self, dst_weights: Any, default: float) -> dict[int, float]:
        known = self._plan.destinations
        return self._chosen(dst_weights, default, known, "dst_weights", "out-neighbors")

    def _chosen(
        self, weights: Any, default: float, known: Sequence[int], argument: str, whom: str
    ) -> dict[int, float]:
        """Return a factor for each neighbour that is named, or for all, in ascending order."""
        if weights is None:
            return dict.fromkeys(known, default)
        if not isinstance(weights, Mapping):
            try:
                weights = dict.fromkeys(weights, default)
            except TypeError:
                raise ArgumentTypeError(
                    f"{argument} is {weights!r}; pass a dict of rank: factor, or a sequence of "
                    "ranks"
                ) from None
        checked = self._comm._checked_weights(self._comm.rank, weights, argument)
        for rank in checked:
            if rank not in known:
                raise ArgumentError(self._no_edge(rank, whom, known))
        return dict(sorted(checked.items()))

    def _terms(
        self, self_weight: float | None, src_weights: Any
    ) -> tuple[Sequence[int], Sequence[float], int | None]:
        """Return what an update sums: sources, weights of all terms, this rank's place."""
        if (self_weight is None) != (src_weights is None):
            raise ArgumentError(
                f"self_weight={self_weight} and src_weights={src_weights}: give both or neither, "
                "since they share one sum"
            )
        if self_weight is None:
            plan = self._plan
            if not plan.weights:
                return (), (0.0,), 0
            return plan.sources, plan.weights, plan.place
        known = tuple(self._store.slots)
        factors = self._chosen(src_weights, 1.0, known, "src_weights", "in-neighbors")
        place = sum(source < self._comm.rank for source in factors)
        weights = list(factors.values())
        weights.insert(place, checked_weight(self_weight, "self_weight"))
        return tuple(factors), weights, place

    def _in_turn(self, factors: Mapping[int, float]) -> list[tuple[int, float]]:
        """Return destinations from this rank's successor on, so that not all begin with one."""
        me, size = self._comm.rank, self._comm.size
        return sorted(factors.items(), key=lambda item: (item[0] - me) % size)

    def _no_edge(self, rank: int, whom: str, known: Sequence[int]) -> str:
        names = ", ".join(map(str, known)) or "none"
        return (
            f"window {self.name!r}: rank {self._comm.rank} has no edge to {rank}; its {whom} are "
            f"{names} ({self.topology.name} of {self.topology.size})"
        )

    def _slot(self, source: int) -> Cell:
        self._check_open()
        cell = self._store.slots.get(source)
        if cell is None:
            raise ArgumentError(self._no_edge(source, "in-neighbors", tuple(self._store.slots)))
        self._store.settle()
        return cell
