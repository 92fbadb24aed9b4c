"""The clocks of all ranks at once, by max-plus recursion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from dectool.communicator._rounds import Round
from dectool.errors import UnsupportedOperation
from dectool.sim.network import NetworkModel

_Int = np.ndarray[Any, np.dtype[np.int64]]
Times = np.ndarray[Any, np.dtype[np.float64]]


class Edges:
    """Messages of one exchange: who sends to whom, each sender in ascending order of receivers.

    Args:
        sources: Sender of each message, shape (E,).
        targets: Receiver of each message, shape (E,).
    """

    def __init__(self, sources: Any, targets: Any) -> None:
        self.sources: _Int = np.asarray(sources, np.int64)
        self.targets: _Int = np.asarray(targets, np.int64)
        self._out_degrees: _Int | None = None

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def by_source(self) -> _Int:
        """The messages in the order of senders, then receivers."""
        return np.lexsort((self.targets, self.sources))

    def out_degrees(self, size: int) -> _Int:
        """Return how many messages each of ``size`` ranks sends."""
        if self._out_degrees is None:
            self._out_degrees = np.bincount(self.sources, minlength=size)
        return self._out_degrees

    @cached_property
    def slots(self) -> list[_Int]:
        """The messages that are each sender's first, each sender's second, and so on."""
        ordered = self.sources[self.by_source]
        if not len(ordered):
            return []
        first = np.r_[True, ordered[1:] != ordered[:-1]]
        starts = np.flatnonzero(first)
        position = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
        return [self.by_source[position == slot] for slot in range(int(position.max()) + 1)]

    @cached_property
    def by_target(self) -> tuple[_Int, _Int, _Int]:
        """An order by receivers, where each receiver's messages start in it, and the receivers."""
        order = np.argsort(self.targets, kind="stable")
        ordered = self.targets[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else order
        return order, starts, ordered[starts]


class Sent:
    """Counts payload bytes by sender; those of the same edges again and again by one number.

    Args:
        size: Number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._by_rank: _Int = np.zeros(size, np.int64)
        self._edges: Edges | None = None
        self._on_each = 0

    def count(self, edges: Edges, nbytes: int) -> None:
        """Count so many bytes on each edge."""
        if edges is not self._edges:
            self._settle()
            self._edges = edges
        self._on_each += nbytes

    @property
    def by_rank(self) -> _Int:
        """Bytes that each rank has sent, shape (n,), to be changed in place."""
        self._settle()
        return self._by_rank

    def _settle(self) -> None:
        if self._edges is not None and self._on_each:
            self._by_rank += self._edges.out_degrees(len(self._by_rank)) * self._on_each
            self._on_each = 0


class Clocks:
    """Time, ports and counters of all ranks.

    Args:
        size: Number of ranks.
        network: Must not queue at receivers: their order would not follow from a recursion.

    Attributes:
        time: Each rank's clock in seconds, shape (n,).
        port: When each rank's network interface is free to send, in seconds, shape (n,).
        messages: Messages sent by all.
        sent: Payload bytes.
    """

    def __init__(self, size: int, network: NetworkModel) -> None:
        if network.serial_receive:
            raise UnsupportedOperation(
                f"backend 'stacked' cannot time {network!r}: messages queue at the receivers, in "
                "an order that no max-plus recursion gives. Use backend='sim', or AlphaBeta"
            )
        self.network = network
        self.time: Times = np.zeros(size)
        self.port: Times = np.zeros(size)
        self.messages = 0
        # Shared by copies for background operations.
        self.sent: Final = Sent(size)
        self.in_background = 0
        self._equal = True

    @property
    def bytes(self) -> int:
        """Payload bytes sent by all."""
        return int(self.sent.by_rank.sum())

    @property
    def _trivial(self) -> bool:
        """Whether all clocks are equal and messages take no time: nothing to compute."""
        return self._equal and self.network.is_ideal

    def advance(self, seconds: Any) -> None:
        """Let time pass on every rank: one number for all, or one for each."""
        self._equal = self._equal and np.ndim(seconds) == 0
        self.time = self.time + seconds

    def note_background(self, twin: Clocks) -> None:
        """Take note of an operation in the background, whose clocks are to be reached later.

        Args:
            twin: The clocks at its end; they began as a copy of these.
        """
        self.messages = twin.messages
        self.in_background += 1
        self._equal = self._equal and twin._equal

    def spend(self, rate: float, nbytes: Any) -> None:
        """Let the time pass that each rank takes for ``nbytes`` at ``rate`` bytes per second."""
        if rate < math.inf and np.any(nbytes):
            self.advance(nbytes / rate)

    def reach(self, times: Any) -> None:
        """Advance each clock to at least the given time."""
        if times is not None:
            self.time = np.maximum(self.time, times)

    def exchange(self, edges: Edges, nbytes: Any) -> Times | None:
        """Send the messages from the present clocks; return when each rank has all of its own.

        Args:
            edges: The messages.
            nbytes: Bytes of each: a number for all, or shape (E,).

        Returns:
            Times in seconds, shape (n,), or ``None`` where no clock changes.
        """
        count = len(edges)
        self.messages += count
        if isinstance(nbytes, int):
            self.sent.count(edges, nbytes)
        else:
            each = np.broadcast_to(nbytes, count)
            self.sent.by_rank[:] += np.bincount(edges.sources, each, len(self.time)).astype(
                np.int64
            )
        if not count or self._trivial:
            return None
        self._refuse_contention()
        self._equal = False
        arrivals = np.empty(len(edges))
        for slot in edges.slots:
            size = nbytes[slot] if np.ndim(nbytes) else nbytes
            arrivals[slot] = self._send(edges.sources[slot], edges.targets[slot], size)
        order, starts, receivers = edges.by_target
        complete = np.full(len(self.time), -np.inf)
        complete[receivers] = np.maximum.reduceat(arrivals[order], starts)
        return complete

    def run_round(
        self, steps: Sequence[Round], itemsizes: Sequence[int]
    ) -> tuple[_Int, _Int, list[tuple[_Int, _Int]]]:
        """Do one round of a collective on one or more buffers.

        Args:
            steps: What is done to each buffer; the partners are those of the first.
            itemsizes: Bytes of an element of each buffer.

        Returns:
            Senders, receivers, and the first and last-plus-one element that each sender sends of
            each buffer.
        """
        size = len(self.time)
        dest = np.broadcast_to(steps[0].dest, size)
        senders = np.flatnonzero(dest >= 0)
        receivers = dest[senders]
        nbytes = np.zeros(len(senders), np.int64)
        segments = []
        for step, itemsize in zip(steps, itemsizes, strict=True):
            low = np.broadcast_to(step.send[0], size)[senders]
            high = np.broadcast_to(step.send[1], size)[senders]
            nbytes += (high - low) * itemsize
            segments.append((low, high))
        self.messages += len(senders)
        self.sent.by_rank[senders] += nbytes
        if not self._trivial and len(senders):
            self._refuse_contention()
            self._equal = False
            arrivals = self._send(senders, receivers, nbytes)
            self.time[receivers] = np.maximum(self.time[receivers], arrivals)
        return senders, receivers, segments

    def run_pairs(self, pairs: Iterable[tuple[Any, Any]], nbytes: int) -> None:
        """Do the rounds of an all-to-all with blocks of ``nbytes``."""
        for dest, source in pairs:
            self.run_round([Round(dest, source, (0, nbytes), (0, nbytes), False)], [1])

    def _send(self, sources: Any, targets: Any, nbytes: Any) -> Any:
        start = self.time[sources]
        if self.network.serial_send:
            start = np.maximum(start, self.port[sources])
        self.port[sources], arrivals = self.network.transfer(sources, targets, nbytes, start)
        return arrivals

    def _refuse_contention(self) -> None:
        if self.in_background and self.network.serial_send and not self.network.is_ideal:
            raise UnsupportedOperation(
                "backend 'stacked' cannot time messages that are sent while a background "
                "operation shares the same port; wait for it first, use "
                "AlphaBeta(..., port='parallel'), or backend='sim'"
            )
