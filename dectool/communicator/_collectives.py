"""Operations of all ranks of a communicator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from dectool._text import nearest
from dectool.communicator import _rounds
from dectool.communicator._buckets import Buckets
from dectool.communicator._core import CommunicatorCore
from dectool.communicator._parcel import (
    Buffer,
    Layout,
    Parcel,
    Phantom,
    own,
    row,
    same_layout,
    segment,
    stack,
    unpack,
)
from dectool.communicator._request import Request
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError
from dectool.kernels import combine, divide

_OPERATORS = ("mean", "sum", "max", "min", "prod")


class CollectiveOperations(CommunicatorCore):
    """The collective part of a communicator, derived from messages by rounds."""

    def iallreduce(self, x: Any, op: str = "mean", algorithm: str = "auto") -> Request[Any]:
        """Start an :meth:`allreduce`."""
        buffers, layout = self._allreduce_arguments(x, op, algorithm)
        buffers = own(buffers)
        return self._in_background(
            lambda comm: comm._allreduce(buffers, layout, op, algorithm),
            lambda reduced: unpack(reduced, layout, self._lead_shape),
        )

    def allreduce(self, x: Any, op: str = "mean", algorithm: str = "auto") -> Any:
        """Reduce over all ranks, element by element; every rank gets the result.

        Args:
            x: An array, or a container of arrays (one message).
            op: "mean" (of floats or complex numbers), "sum", "max", "min" or "prod".
            algorithm: "ring", "recursive_doubling", "rabenseifner", "tree", or "auto": what
                an MPI library would do (recursive doubling up to 64 KiB,
                then Rabenseifner for a power of two and the ring otherwise).

        Returns:
            Like ``x``; the same bits on every rank. Backends agree to rounding.

        Raises:
            ArgumentError: ``op`` or ``algorithm`` is unknown.
            ArgumentTypeError: The dtype has no such reduction, such as a mean of integers.
            ContractError: Ranks hold arrays of other shapes or dtypes.

        Example:
            >>> import dectool
            >>> dectool.run(lambda comm: comm.allreduce(float(comm.rank)), n=4).values
            [1.5, 1.5, 1.5, 1.5]
        """
        buffers, layout = self._allreduce_arguments(x, op, algorithm)
        return unpack(self._allreduce(buffers, layout, op, algorithm), layout, self._lead_shape)

    def ireduce_scatter(self, x: Any, op: str = "mean") -> Request[Any]:
        """Start a :meth:`reduce_scatter`."""
        if type(x) is Buckets:
            return x.start(self.ireduce_scatter, op)
        buffers, layout = self._rows_argument(x, "reduce_scatter")
        _check_operator(op, layout)
        buffers = own(buffers)
        return self._in_background(
            lambda comm: comm._reduce_scatter(buffers, layout, op),
            lambda reduced: unpack(reduced, layout, self._lead_shape),
        )

    def reduce_scatter(self, x: Any, op: str = "mean") -> Any:
        """Reduce row i of every rank's ``x`` into rank i, in ascending rank order.

        Args:
            x: Arrays whose leading axis has one row for each rank.
            op: As for :meth:`allreduce`.

        Returns:
            Like ``x`` without the leading axis.

        Raises:
            ArgumentError: ``op`` is unknown.
            ArgumentTypeError: The dtype has no such reduction.
            ContractError: The leading axis is not the number of ranks, or ranks hold other arrays.
        """
        if type(x) is Buckets:
            return x.each(self.reduce_scatter, op)
        buffers, layout = self._rows_argument(x, "reduce_scatter")
        _check_operator(op, layout)
        return unpack(self._reduce_scatter(buffers, layout, op), layout, self._lead_shape)

    def iallgather(self, x: Any) -> Request[Any]:
        """Start an :meth:`allgather`."""
        buffers, layout = self._pack(x)
        buffers = own(buffers)
        return self._in_background(
            lambda comm: comm._allgather(buffers, layout),
            lambda rows: unpack(rows, layout, (*self._lead_shape, self.size)),
        )

    def allgather(self, x: Any) -> Any:
        """Return what every rank holds, with a new leading axis over ranks.

        Args:
            x: An array, or a container of arrays, of one shape and dtype on all ranks.

        Returns:
            Like ``x``, row j from rank j.

        Raises:
            ContractError: Ranks hold arrays of other shapes or dtypes.
        """
        if type(x) is Buckets:
            return x.each(self.allgather)
        buffers, layout = self._pack(x)
        rows = self._allgather(buffers, layout)
        return unpack(rows, layout, (*self._lead_shape, self.size))

    def ialltoall(self, x: Any) -> Request[Any]:
        """Start an :meth:`alltoall`."""
        buffers, layout = self._rows_argument(x, "alltoall")
        buffers = own(buffers)
        return self._in_background(
            lambda comm: comm._alltoall(buffers, layout),
            lambda rows: unpack(rows, layout, (*self._lead_shape, self.size)),
        )

    def alltoall(self, x: Any) -> Any:
        """Send row i of ``x`` to rank i; return what each rank sent here, as rows.

        Args:
            x: Arrays whose leading axis has one row for each rank.

        Returns:
            Like ``x``, row j from rank j.

        Raises:
            ContractError: The leading axis is not the number of ranks, or ranks hold other arrays.
        """
        if type(x) is Buckets:
            return x.each(self.alltoall)
        buffers, layout = self._rows_argument(x, "alltoall")
        return unpack(self._alltoall(buffers, layout), layout, (*self._lead_shape, self.size))

    def ibroadcast(self, x: Any, root: int = 0) -> Request[Any]:
        """Start a :meth:`broadcast`."""
        root = self._check_peer(root, "root")
        buffers, layout = self._pack(x)
        buffers = own(buffers)
        return self._in_background(
            lambda comm: comm._broadcast(buffers, layout, root),
            lambda data: unpack(data, layout, self._lead_shape),
        )

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """Return what rank ``root`` holds.

        Args:
            x: An array, or a container; on the other ranks one of the same shape and dtype.
            root: Whose value everyone gets.

        Returns:
            A new array or container like ``x``.

        Raises:
            ArgumentError: ``root`` is no rank.
            ContractError: Ranks hold arrays of other shapes or dtypes.
        """
        root = self._check_peer(root, "root")
        buffers, layout = self._pack(x)
        return unpack(self._broadcast(buffers, layout, root), layout, self._lead_shape)

    def ibarrier(self) -> Request[None]:
        """Start a :meth:`barrier`."""
        return self._in_background(lambda comm: comm.barrier(), lambda done: None)

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        empty = (np.zeros(0, np.uint8),)
        self._run_rounds(_rounds.dissemination, empty, ("uint8",), None, "barrier")

    # -- how ranks that exchange messages do it ------------------------------------------------

    def _in_background(
        self, operation: Callable[[Any], Any], finish: Callable[[Any], Any]
    ) -> Request[Any]:
        pending = self._background(operation)
        return Request(self, [pending], lambda results: finish(results[0]))

    def _allreduce_arguments(
        self, x: Any, op: str, algorithm: str
    ) -> tuple[tuple[Buffer, ...], Layout]:
        if algorithm != "auto" and algorithm not in _rounds.ALLREDUCE:
            raise ArgumentError(
                f"algorithm={algorithm!r} is no all-reduce algorithm; "
                + nearest(algorithm, ["auto", *_rounds.ALLREDUCE])
            )
        buffers, layout = self._pack(x)
        _check_operator(op, layout)
        return buffers, layout

    def _rows_argument(self, x: Any, operation: str) -> tuple[tuple[Buffer, ...], Layout]:
        buffers, layout = self._pack(x, 1)
        axis = len(self._lead_shape)
        for buffer in buffers:
            if buffer.shape[axis] != self.size:
                raise ContractError(
                    f"{operation} needs arrays with one row for each of the {self.size} ranks, "
                    f"but got a leading axis of {buffer.shape[axis]}"
                )
        return buffers, layout

    def _allreduce(
        self, buffers: Sequence[Buffer], layout: Layout, op: str, algorithm: str
    ) -> tuple[Buffer, ...]:
        nbytes = sum(buffer.nbytes for buffer in buffers)
        name = _rounds.choose_allreduce(nbytes, self.size) if algorithm == "auto" else algorithm
        # The names in the channel make ranks that disagree about them a deadlock, not garbage.
        operation = f"allreduce({op}, {name})"
        dtypes = layout.dtypes
        totals = self._run_rounds(_rounds.ALLREDUCE[name], buffers, dtypes, op, operation, layout)
        if op != "mean":
            return totals
        return tuple(_divided(t, self.size, d) for t, d in zip(totals, dtypes, strict=True))

    def _broadcast(
        self, buffers: Sequence[Buffer], layout: Layout, root: int
    ) -> tuple[Buffer, ...]:
        def rounds(rank: Any, size: int, cuts: Any) -> Iterator[_rounds.Round]:
            return _rounds.binomial_broadcast(rank, size, cuts, root)

        operation = f"broadcast(root={root})"
        return self._run_rounds(rounds, buffers, layout.dtypes, None, operation, layout)

    def _allgather(self, buffers: Sequence[Buffer], layout: Layout) -> tuple[Buffer, ...]:
        cuts = [np.arange(self.size + 1) * buffer.shape[-1] for buffer in buffers]
        spread = [self._spread(buffer) for buffer in buffers]
        gathered = self._run_rounds(
            _rounds.ring_allgather, spread, layout.dtypes, None, "allgather", layout, cuts
        )
        return tuple(
            _as_rows(whole, self.size, buffer.shape[-1])
            for whole, buffer in zip(gathered, buffers, strict=True)
        )

    def _spread(self, buffer: Buffer) -> Buffer:
        """Return room for every rank's buffer, with this rank's in its place."""
        if isinstance(buffer, Phantom):
            return Phantom((buffer.size * self.size,), buffer.itemsize)
        whole = np.empty(buffer.size * self.size, buffer.dtype)
        whole[self.rank * buffer.size : (self.rank + 1) * buffer.size] = buffer
        return whole

    def _alltoall(self, buffers: Sequence[Buffer], layout: Layout) -> tuple[Buffer, ...]:
        received = self._alltoall_parcels(buffers, layout, "alltoall")
        return tuple(
            stack([parcel.buffers[index] for parcel in received], row(buffer, 0))
            for index, buffer in enumerate(buffers)
        )

    def _alltoall_parcels(
        self, buffers: Sequence[Buffer], layout: Layout, operation: str
    ) -> list[Parcel]:
        channel = (*self._context, operation, self._next_sequence(operation))
        received = [Parcel(tuple(row(b, self.rank) for b in buffers), layout)] * self.size
        for dest, source in _rounds.pairwise(self.rank, self.size):
            rows = tuple(row(buffer, dest) for buffer in buffers)
            self._post(self._owned(rows, layout), dest, channel)
            (parcel,) = self._await([self._expect(source, channel)])
            same_layout(layout, parcel.layout, f"rank {self.rank} and rank {source}")
            received[source] = parcel
        return received

    def _reduce_scatter(
        self, buffers: Sequence[Buffer], layout: Layout, op: str
    ) -> tuple[Buffer, ...]:
        parts = self._alltoall_parcels(buffers, layout, f"reduce_scatter({op})")
        reduced = []
        for index, dtype in enumerate(layout.dtypes):
            total = left_to_right(
                [part.buffers[index] for part in parts],
                partial(_combined, op, dtype=dtype),
            )
            if len(parts) == 1:
                (total,) = own((total,))
            reduced.append(_divided(total, self.size, dtype) if op == "mean" else total)
        return tuple(reduced)

    def _run_rounds(
        self,
        rounds: _rounds.Rounds,
        buffers: Sequence[Buffer],
        dtypes: Sequence[str],
        op: str | None,
        operation: str,
        layout: Layout | None = None,
        cuts: Sequence[Any] | None = None,
    ) -> tuple[Buffer, ...]:
        """Carry out a collective on copies of the buffers, round by round, in one message each."""
        channel = (*self._context, operation, self._next_sequence(operation))
        data = own(tuple(buffers))
        for steps in self._steps(rounds, self.rank, buffers, cuts):
            dest, source = int(steps[0].dest), int(steps[0].source)
            if dest >= 0:
                parts = tuple(
                    segment(d, int(step.send[0]), int(step.send[1]))
                    for d, step in zip(data, steps, strict=True)
                )
                self._post(self._owned(parts, layout), dest, channel)
            if source >= 0:
                (parcel,) = self._await([self._expect(source, channel)])
                if layout is not None:
                    who = f"rank {self.rank} and rank {source} in {operation}"
                    same_layout(layout, parcel.layout, who)
                for d, step, got, dtype in zip(data, steps, parcel.buffers, dtypes, strict=True):
                    _place(d, step, got, dtype, op, source < self.rank)
        return data

    def _steps(
        self,
        rounds: _rounds.Rounds,
        rank: Any,
        buffers: Sequence[Buffer],
        cuts: Sequence[Any] | None,
    ) -> Iterator[tuple[_rounds.Round, ...]]:
        """Yield for each round what is done to each buffer; the partners are the same for all."""
        if cuts is None:
            cuts = [_rounds.blocks(buffer.shape[-1], self.size) for buffer in buffers]
        return zip(*(rounds(rank, self.size, one) for one in cuts), strict=True)


def left_to_right(values: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Reduce one value for each rank in the order of a ``reduce_scatter``, which is this one."""
    return reduce(combine, values)


def _place(
    data: Buffer, step: _rounds.Round, got: Buffer, dtype: str, op: str | None, first: bool
) -> None:
    """Put in its place what was received, or combine it, the lower rank's share on the left.

    The order tells when the maximum of -0.0 and 0.0 is taken, or two NaNs meet.
    """
    if isinstance(data, Phantom) or isinstance(got, Phantom):
        return
    start, stop = int(step.receive[0]), int(step.receive[1])
    if step.reduces and op is not None:
        left, right = (got, data[start:stop]) if first else (data[start:stop], got)
        data[start:stop] = combine(op, left, right, dtype)
    else:
        data[start:stop] = got


def _as_rows(buffer: Buffer, rows: int, elements: int) -> Buffer:
    if isinstance(buffer, Phantom):
        return Phantom((*buffer.shape[:-1], rows, elements), buffer.itemsize)
    return buffer.reshape(*buffer.shape[:-1], rows, elements)


def _combined(op: str, left: Buffer, right: Buffer, dtype: str) -> Buffer:
    if isinstance(left, Phantom) or isinstance(right, Phantom):
        return left
    return combine(op, left, right, dtype)


def _divided(total: Buffer, size: int, dtype: str) -> Buffer:
    if isinstance(total, Phantom):
        return total
    return divide(total, size, dtype)


def _check_operator(op: str, layout: Layout) -> None:
    if op not in _OPERATORS:
        raise ArgumentError(f"op={op!r} is no reduction; {nearest(str(op), _OPERATORS)}")
    if op == "mean":
        layout.require_averageable("op='mean'")
    for dtype in layout.dtypes:
        if dtype.startswith("complex") and op in ("max", "min"):
            raise ArgumentTypeError(f"op={op!r} of {dtype}: complex numbers have no order")
        if dtype == "bool" and op in ("sum", "prod"):
            raise ArgumentTypeError(
                f"op={op!r} of bool: cast to an integer to count, or use 'max' (any), 'min' (all)"
            )
