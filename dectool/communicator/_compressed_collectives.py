"""All-reduce and broadcast of compressed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.communicator import _rounds
from dectool.communicator._arrays import Phantom
from dectool.communicator._buckets import Buckets
from dectool.communicator._coded import Coded
from dectool.communicator._collectives import CollectiveOperations
from dectool.communicator._encode import checked_compressor, encode, template
from dectool.communicator._layout import share_layout
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    average,
    dense,
    join,
    own,
    row_bytes,
    same_layout,
    unpack,
)
from dectool.communicator._request import Request
from dectool.errors import ArgumentError
from dectool.kernels import divide

ALLREDUCE, BROADCAST = "compressed allreduce", "compressed broadcast"


class CompressedCollectives(CollectiveOperations):
    """The collective part of a communicator, with operations that may compress what is sent."""

    def iallreduce(
        self,
        x: Any,
        op: str = "mean",
        algorithm: str = "auto",
        *,
        compressor: Any = None,
        number: int | None = None,
    ) -> Request[Any]:
        """Start an :meth:`allreduce`."""
        if type(x) is Buckets:
            return x.start(self.iallreduce, op, algorithm, compressor=compressor, number=number)
        if compressor is None:
            return super().iallreduce(x, op, algorithm)
        buffers, layout = self._compressible(x, op, algorithm)
        buffers = own(buffers)
        calls = self._calls(number)
        return self._in_background(
            lambda comm: comm._coded_allreduce(buffers, layout, op, compressor, calls),
            lambda reduced: unpack(reduced, layout, self._lead_shape),
        )

    def allreduce(
        self,
        x: Any,
        op: str = "mean",
        algorithm: str = "auto",
        *,
        compressor: Any = None,
        number: int | None = None,
    ) -> Any:
        """Reduce over all ranks, element by element; every rank gets the result.

        With a compressor there are two phases: every rank compresses a block for each rank (of m
        elements those from m r // n on for rank r) and sends it there; each averages the blocks
        that it gets, its own compressed as well, and sends the compressed average to all. So a
        rank sends 2 (n - 1) / n of a compressed array.

        Args:
            x: An array, or a container of arrays (one message).
            op: "mean" (of floats or complex numbers), "sum", "max", "min" or "prod"; with a
                compressor "mean" or "sum".
            algorithm: "ring", "recursive_doubling", "rabenseifner", "tree", or "auto": what
                an MPI library would do (recursive doubling up to 64 KiB,
                then Rabenseifner for a power of two and the ring otherwise). A compressor has
                its own.
            compressor: A :class:`dectool.compression.Compressor` for what is sent.
            number: Of which of the rank's generators a compressor draws; see :meth:`rng`. Unless
                given, how many calls with a compressor there were before, which a resumed run
                begins to count anew.

        Returns:
            Like ``x``; the same bits on every rank. Backends agree to rounding.

        Raises:
            ArgumentError: ``op`` or ``algorithm`` is unknown, or does not go with a compressor.
            ArgumentTypeError: The dtype has no such reduction, such as a mean of integers.
            ContractError: Ranks hold arrays of other shapes or dtypes.

        Example:
            >>> import dectool
            >>> dectool.run(lambda comm: comm.allreduce(float(comm.rank)), n=4).values
            [1.5, 1.5, 1.5, 1.5]
        """
        if type(x) is Buckets:
            return x.each(self.allreduce, op, algorithm, compressor=compressor, number=number)
        if compressor is None:
            return super().allreduce(x, op, algorithm)
        buffers, layout = self._compressible(x, op, algorithm)
        calls = self._calls(number)
        reduced = self._coded_allreduce(buffers, layout, op, compressor, calls)
        return unpack(reduced, layout, self._lead_shape)

    def ibroadcast(self, x: Any, root: int = 0, *, compressor: Any = None) -> Request[Any]:
        """Start a :meth:`broadcast`."""
        if type(x) is Buckets:
            return x.start(self.ibroadcast, root, compressor=compressor)
        if compressor is None:
            return super().ibroadcast(x, root)
        root = self._check_peer(root, "root")
        buffers, layout = dense(*self._pack(x))
        buffers = own(buffers)
        number = self._next_sequence(BROADCAST)
        return self._in_background(
            lambda comm: comm._coded_broadcast(buffers, layout, root, compressor, number),
            lambda data: unpack(data, layout, self._lead_shape),
        )

    def broadcast(self, x: Any, root: int = 0, *, compressor: Any = None) -> Any:
        """Return what rank ``root`` holds.

        Args:
            x: An array, or a container; on the other ranks one of the same shape and dtype.
            root: Whose value everyone gets.
            compressor: For what is sent; then the root too gets what the others get. Its size
                must not depend on the data.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``root`` is no rank.
            ContractError: Ranks hold arrays of other shapes or dtypes.
        """
        if type(x) is Buckets:
            return x.each(self.broadcast, root, compressor=compressor)
        if compressor is None:
            return super().broadcast(x, root)
        root = self._check_peer(root, "root")
        buffers, layout = dense(*self._pack(x))
        number = self._next_sequence(BROADCAST)
        data = self._coded_broadcast(buffers, layout, root, compressor, number)
        return unpack(data, layout, self._lead_shape)

    # -- how ranks that exchange messages do it ------------------------------------------------

    def _compressible(self, x: Any, op: str, algorithm: str) -> tuple[tuple[Buffer, ...], Layout]:
        if op not in ("mean", "sum") or algorithm != "auto":
            raise ArgumentError(
                f"allreduce(op={op!r}, algorithm={algorithm!r}): with a compressor op is 'mean' "
                "or 'sum', and the algorithm is its own"
            )
        buffers, layout = self._allreduce_arguments(x, op, algorithm)
        layout.require_averageable("allreduce with a compressor")
        return dense(buffers, layout)

    def _calls(self, number: int | None) -> tuple[int, int]:
        """Return the number of this call, and that of the generator that it draws from."""
        count = self._next_sequence(ALLREDUCE)
        return count, count if number is None else number

    def _coded_allreduce(
        self,
        buffers: Sequence[Buffer],
        layout: Layout,
        op: str,
        compressor: Any,
        calls: tuple[int, int],
    ) -> tuple[Buffer, ...]:
        number, draws = calls
        rng = self.rng(ALLREDUCE, draws)
        parts = compressed_blocks(buffers, layout, compressor, rng, self.size, ())
        self._spend("compress", row_bytes(buffers))
        received = self._trade_all(parts, "scatter", number)
        mine = parts[self.rank]
        terms = [mine.received(wire, mine.decompressed()) for wire in received]
        block_bytes = row_bytes(terms[0])
        self._spend("decompress", (self.size - 1) * block_bytes)
        reduced = reduced_block(terms, mine.layout, op, self.size)
        block = encode(reduced, mine.layout, compressor, rng, (), "allreduce")
        self._spend("compress", block_bytes)
        gathered = self._trade_all([block] * self.size, "gather", number, parts)
        blocks = [part.received(wire, ()) for part, wire in zip(parts, gathered, strict=True)]
        self._spend("decompress", row_bytes(buffers) - block_bytes)
        return tuple(join(pieces) for pieces in zip(*blocks, strict=True))

    def _trade_all(
        self,
        outgoing: Sequence[Coded],
        phase: str,
        number: int,
        incoming: Sequence[Coded] | None = None,
    ) -> list[tuple[Buffer, ...]]:
        """Send each rank its part at once; return the bytes that each has sent here.

        Args:
            outgoing: What goes to each rank.
            phase: Name of the exchange.
            number: How often there was one before.
            incoming: What is expected of each rank, if it is not like one's own part.
        """
        channel = (*self._context, f"allreduce(compressed, {phase})", number)
        others = [rank for rank in range(self.size) if rank != self.rank]
        for dest in others:
            coded = outgoing[dest]
            self._post(Parcel(coded.wire, coded.wire_layout), dest, channel)
        parcels = self._await([self._expect(source, channel) for source in others])
        received = [outgoing[self.rank].wire] * self.size
        for source, parcel in zip(others, parcels, strict=True):
            like = outgoing[self.rank] if incoming is None else incoming[source]
            same_layout(like.wire_layout, parcel.layout, f"rank {self.rank} and rank {source}")
            received[source] = parcel.buffers
        return received

    def _coded_broadcast(
        self, buffers: Sequence[Buffer], layout: Layout, root: int, compressor: Any, number: int
    ) -> tuple[Buffer, ...]:
        coded = template(buffers, layout, compressor, "broadcast")
        if self.rank == root:
            rng = self.rng(BROADCAST, number)
            coded = encode(buffers, layout, compressor, rng, (), "broadcast")
            self._spend("compress", row_bytes(buffers))
        data = self._broadcast(coded.wire, coded.wire_layout, root)
        if self.rank != root:
            self._spend("decompress", row_bytes(buffers))
        return coded.received(data, ())


def compressed_blocks(
    buffers: Sequence[Buffer],
    layout: Layout,
    compressor: Any,
    rng: Any,
    size: int,
    lead: tuple[int, ...],
) -> list[Coded]:
    """Return each rank's share of the buffers, compressed by itself."""
    checked_compressor(compressor, "allreduce")
    cuts = [_rounds.blocks(buffer.shape[-1], size) for buffer in buffers]
    parts = []
    for rank in range(size):
        spans = [(int(cut[rank]), int(cut[rank + 1])) for cut in cuts]
        shares = [_columns(buffer, *span) for buffer, span in zip(buffers, spans, strict=True)]
        block = share_layout(layout, spans, compressor.per_tensor)
        parts.append(encode(shares, block, compressor, rng, lead, "allreduce"))
    return parts


def reduced_block(
    terms: Sequence[tuple[Buffer, ...]], layout: Layout, op: str, size: int
) -> list[Buffer]:
    """Return the sum or the mean of what each rank holds of a block, in ascending order."""
    reduced: list[Buffer] = []
    for index, dtype in enumerate(layout.dtypes):
        total = average([1.0] * size, [term[index] for term in terms], dtype)
        if op == "mean" and not isinstance(total, Phantom):
            total = divide(total, size, dtype)
        reduced.append(total)
    return reduced


def _columns(buffer: Buffer, start: int, stop: int) -> Buffer:
    if isinstance(buffer, Phantom):
        return Phantom((*buffer.shape[:-1], stop - start), buffer.itemsize)
    return np.ascontiguousarray(buffer[..., start:stop])
