"""A neighbour average that sums what has come while the rest is on its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.backends.mpi._engine import Engine, Receipt
from dectool.communicator import NeighborPlan, Parcel
from dectool.kernels import empty, weighted_sum

SMALLEST = 1 << 19
"""Bytes from which it is worth while."""

STEP = 1 << 18
"""Bytes that are summed at a time."""


class ArrivingAverage:
    """The average of one buffer with those of neighbours, on other nodes among them.

    Args:
        engine: That of this rank.
        mine: One's own parcel, of one buffer.
        receipts: Those of the sources' parcels, ascending.
        plan: How to sum.
        dtype: The logical dtype.
    """

    def __init__(
        self,
        engine: Engine,
        mine: Parcel,
        receipts: Sequence[Receipt],
        plan: NeighborPlan,
        dtype: str,
    ) -> None:
        self._engine = engine
        self._mine = mine
        self._own: Any = mine.buffers[0]
        self._receipts = receipts
        self._plan = plan
        self._dtype = dtype
        self.agree = True
        self.result: Any = empty(*_like(self._own))
        self._summed = 0

    def step(self) -> bool:
        """Sum what all sources have sent; tell whether all has come."""
        ready = self._own.size
        sources: list[Any] = []
        for receipt in self._receipts:
            if receipt.complete:
                parcel, there = receipt.content, self._own.size
            else:
                incoming = self._engine.arriving(receipt)
                if incoming is None:
                    return False
                parcel, there = incoming.parcel, incoming.bytes // self._own.itemsize
            self.agree = self.agree and self._agrees(parcel)
            sources.append(parcel.buffers[0])
            ready = min(ready, there)
        complete = all(receipt.complete for receipt in self._receipts)
        enough = STEP // self._own.itemsize
        if self.agree and (complete or ready - self._summed >= enough):
            self._sum(sources, self._own.size if complete else ready)
        return complete

    def _agrees(self, parcel: Parcel) -> bool:
        layout, mine = parcel.layout, self._mine.layout
        return (
            parcel.sequence == self._mine.sequence
            and layout is not None
            and mine is not None
            and layout.signature == mine.signature
            and isinstance(parcel.buffers[0], np.ndarray)
        )

    def _sum(self, sources: Sequence[Any], until: int) -> None:
        part = slice(self._summed, until)
        terms = [source[part] for source in sources]
        if self._plan.place is not None:
            terms.insert(self._plan.place, self._own[part])
        self.result[part] = weighted_sum(self._plan.weights, terms, self._dtype)
        self._summed = until

    def missing(self) -> list[Receipt]:
        """Return the receipts of what has not come."""
        return [receipt for receipt in self._receipts if not receipt.complete]


def _like(array: Any) -> tuple[tuple[int, ...], Any]:
    return array.shape, array.dtype
