"""Where the two sides of a message meet: a parcel that was sent, a receipt that awaits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

from dectool.communicator import Channel, Pending

if TYPE_CHECKING:
    from dectool.sim._strand import Strand

MISSING: Any = object()
"""The content of a receipt that is not complete."""

Key = tuple[int, int, Channel]
"""Source, destination and channel: what a message is matched by."""


@final
class Receipt(Pending):
    """A message, made by whichever side comes first, or the result of a background operation.

    Attributes:
        key: Source, destination and channel; of a background operation, its rank and name.
        overhead: Seconds that taking it keeps the processor.
        content: What came, or ``MISSING``.
        arrival: When it came, in seconds.
        waiter: The strand that waits for it.
        after: The next message with the same key.
        last: The last one, known to the first only; ``None`` while that is alone.
    """

    __slots__ = ("after", "arrival", "content", "key", "last", "overhead", "waiter")

    def __init__(
        self, key: Key, overhead: float, content: Any = MISSING, arrival: float = 0.0
    ) -> None:
        self.key = key
        self.overhead = overhead
        self.content = content
        self.arrival = arrival
        self.waiter: Strand | None = None
        self.after: Receipt | None = None
        self.last: Receipt | None = None


@final
class Mailbox:
    """All messages that were sent but not expected yet, or expected but not sent yet.

    Those with the same key are linked in their order, and are all of the one sort or all of the
    other; a message that is both leaves. One table for all ranks: a table for each would be
    slower, since with thousands of ranks every look at another one misses the processor's cache.

    Args:
        overhead: Seconds that taking a message keeps the processor.
    """

    def __init__(self, overhead: float) -> None:
        self._overhead = overhead
        self._first: dict[Key, Receipt] = {}

    def put(self, key: Key, parcel: Any, arrival: float) -> Receipt | None:
        """Bring a parcel in; return the receipt that awaits it, if there is one."""
        first = self._first.get(key)
        if first is None:
            self._first[key] = Receipt(key, self._overhead, parcel, arrival)
            return None
        if first.content is MISSING:
            self._remove(first)
            return first
        self._append(first, Receipt(key, self._overhead, parcel, arrival))
        return None

    def take(self, keys: Sequence[Key]) -> list[Receipt]:
        """Return the next message with each of the keys, complete or not."""
        receipts = []
        for key in keys:
            receipt = self._first.get(key)
            if receipt is None:
                receipt = self._first[key] = Receipt(key, self._overhead)
            elif receipt.content is not MISSING:
                self._remove(receipt)
            else:
                first, receipt = receipt, Receipt(key, self._overhead)
                self._append(first, receipt)
            receipts.append(receipt)
        return receipts

    def unexpected(self) -> Iterator[Key]:
        """Yield the key of every message that was sent and never expected."""
        for key, first in self._first.items():
            receipt: Receipt | None = first
            while receipt is not None and receipt.content is not MISSING:
                yield key
                receipt = receipt.after

    def sweep(self, leaves: Callable[[Receipt], bool]) -> list[Receipt]:
        """Take out the receipts for which a function says so; return them in their order."""
        taken = []
        for key, first in list(self._first.items()):
            chain: list[Receipt] = []
            receipt: Receipt | None = first
            while receipt is not None:
                chain.append(receipt)
                receipt = receipt.after
            gone = [leaves(one) for one in chain]
            if not any(gone):
                continue
            del self._first[key]
            for one, leaving in zip(chain, gone, strict=True):
                one.after = one.last = None
                if leaving:
                    taken.append(one)
                elif key in self._first:
                    self._append(self._first[key], one)
                else:
                    self._first[key] = one
        return taken

    def waiting(self, key: Key) -> int:
        """Return how many receipts await messages with a key; below 0: messages there are."""
        count, receipt = 0, self._first.get(key)
        while receipt is not None:
            count += 1 if receipt.content is MISSING else -1
            receipt = receipt.after
        return count

    def _append(self, first: Receipt, receipt: Receipt) -> None:
        (first.last or first).after = receipt
        first.last = receipt

    def _remove(self, first: Receipt) -> None:
        after = first.after
        if after is None:
            del self._first[first.key]
            return
        self._first[first.key] = after
        after.last = None if first.last is after else first.last
        first.after = first.last = None
