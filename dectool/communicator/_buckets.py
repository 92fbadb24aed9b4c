"""Many arrays in a few buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self, final, overload

import numpy as np

from dectool.communicator import _tree
from dectool.communicator._arrays import Buffer, Leaf, Phantom, columns
from dectool.communicator._bucket import Bucket, layout_of, zeros
from dectool.communicator._bucket_size import BUCKET_BYTES, best_limit, checked_limit, pipeline
from dectool.communicator._layout import Group, itemsize, lay_out
from dectool.communicator._request import Request, together
from dectool.communicator._spec import open_spec
from dectool.errors import ArgumentError, ContractError


@final
class Buckets(Sequence[Bucket]):
    r"""Arrays laid out in flat buffers of one dtype each: few messages, and no copies into them.

    The arrays are taken in their order (a dict's by its keys, sorted by their ``repr``). Each goes
    into the last bucket of its dtype if it fits, and else opens the next, so none is ever split,
    and one larger than ``bucket_bytes`` has a bucket of its own. Buckets stand in the order in
    which their last arrays come. All that follows from shapes and dtypes alone, so ranks agree.

    ``views`` are the arrays within; write to them, or let the parameters of a model be them. Any
    operation of a communicator takes all buckets (one message each; neighbour operations send all
    before they wait for the first, collectives go bucket by bucket) or one bucket.

    Args:
        arrays: An array, or nested lists, tuples and dicts of arrays or :class:`Spec`; their
            values are copied in.
        bucket_bytes: Most bytes of a bucket [byte]; ``None``: one bucket for each dtype; "auto":
            what is best for ``network``, as :func:`best_bucket_bytes` says.
        network: A network model of :mod:`dectool.sim`, for "auto".
        messages: How many each rank sends for one bucket, for "auto".
        ranks: Number of ranks, for "auto".
        rate: How fast the arrays are made [byte/s], for "auto"; default: as fast as sent.
        order: "given", or "reversed": the last array first, as a backward pass makes gradients.
        align: Bytes of which the offset of each array is a multiple, a power of two; 1 for none.
        lead: Axes in front that count ranks or rows and are no part of the arrays;
            ``comm.buckets`` knows how many.

    Raises:
        ArgumentError: A number or a name is none of these, or "auto" lacks its network.
        ArgumentTypeError: Something is no array.
        ContractError: Leading axes differ.

    Example:
        >>> import numpy as np, dectool
        >>> from dectool import fusion, topology
        >>> def program(comm):
        ...     grads = {"w": np.full((2, 3), float(comm.rank)), "b": np.ones(3)}
        ...     buckets = fusion.Buckets(grads, bucket_bytes=48)
        ...     return len(buckets), comm.neighbor_allreduce(buckets).views["w"][0]
        >>> dectool.run(program, topology=topology.complete(2), backend="sim").values[0]
        (2, array([0.5, 0.5, 0.5]))
    """

    instead: ClassVar[str] = (
        "each bucket is a message; use them one by one (for bucket in buckets), or buckets.views"
    )

    def __init__(
        self,
        arrays: Any,
        bucket_bytes: int | str | None = BUCKET_BYTES,
        *,
        network: Any = None,
        messages: int = 1,
        ranks: int = 2,
        rate: float | None = None,
        order: str = "given",
        align: int = 64,
        lead: int = 0,
    ) -> None:
        if order not in ("given", "reversed"):
            raise ArgumentError(f"Buckets: order={order!r} must be 'given' or 'reversed'")
        if not is_power_of_two(align):
            raise ArgumentError(f"Buckets: align={align!r} must be a power of two, such as 64")
        found: list[tuple[Buffer | None, Leaf, tuple[int, ...]]] = []
        self._structure = _tree.flatten(arrays, found, lead, open_spec)
        if not found:
            raise ArgumentError("Buckets: arrays has none; give at least one array")
        leaves = [leaf for _, leaf, _ in found]
        leads = {shape for *_, shape in found}
        if len(leads) > 1:
            one, other = sorted(leads)[:2]
            raise ContractError(
                f"Buckets: arrays have leading axes {one} and {other}; the first {lead} axes of "
                "all must be alike"
            )
        total = sum(int(np.prod(leaf.shape)) * itemsize(leaf.dtype) for leaf in leaves)
        limit = checked_limit(bucket_bytes)
        turn = list(range(len(leaves)))[:: -1 if order == "reversed" else 1]
        ordered = [leaves[index] for index in turn]
        if limit == "auto":
            costs = pipeline(network, messages, ranks, rate)
            limit = best_limit(
                total,
                costs,
                lambda most: [
                    group.elements * itemsize(group.dtype) for group in _cut(ordered, align, most)
                ],
            )
        self.bucket_bytes: int | None = limit
        """Most bytes of a bucket, ``None`` for no limit."""
        groups = _cut(ordered, align, limit)
        self._buckets = [
            _filled(group, [turn[place] for place in group.members], found, align)
            for group in groups
        ]

    @property
    def views(self) -> Any:
        """The arrays, in the container that they came in; views of the buckets."""
        pieces: dict[int, Any] = {}
        for bucket in self._buckets:
            pieces.update(zip(bucket.indices, bucket.views, strict=True))
        return _tree.unflatten(self._structure, iter(pieces[i] for i in range(len(pieces))))

    @property
    def nbytes(self) -> int:
        """Bytes of all messages [byte]."""
        return sum(bucket.nbytes for bucket in self._buckets)

    def copy_from(self, arrays: Any) -> None:
        """Write values into the buckets.

        Args:
            arrays: Buckets of the same layout, or a container of arrays like ``views``.

        Raises:
            ContractError: They are not like those here.
        """
        if not isinstance(arrays, Buckets):
            lead = len(self._buckets[0].lead) if self._buckets else 0
            arrays = Buckets._of(arrays, self, lead)
        if self._signature() != arrays._signature():
            raise ContractError(
                f"copy_from: got {arrays}, whose arrays are not those of {self}; shapes, dtypes "
                "and leading axes must be equal"
            )
        for mine, other in zip(self._buckets, arrays, strict=True):
            to, origin = mine.opened(len(mine.lead)), other.opened(len(mine.lead))
            if isinstance(to, np.ndarray):
                to[...] = origin

    def each(self, operation: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """Return ``operation(bucket, ...)`` for one bucket after the other.

        Args:
            operation: A method of a communicator, or any function of a bucket.
            args: Further arguments.
            named: Further arguments by name.

        Returns:
            Buckets like these where the operation returns buckets, else a list.
        """
        return self._of_results([operation(bucket, *args, **named) for bucket in self._buckets])

    def start(
        self, operation: Callable[..., Request[Any]], /, *args: Any, **named: Any
    ) -> Request[Any]:
        """Start a non-blocking operation for every bucket; return one request for all.

        Args:
            operation: A method of a communicator that returns a request.
            args: Further arguments.
            named: Further arguments by name.

        Returns:
            A request for what :meth:`each` returns.

        Example:
            >>> import numpy as np, dectool
            >>> from dectool import fusion
            >>> def program(comm):
            ...     request = fusion.Buckets([np.ones(3)]).start(comm.iallreduce, "sum")
            ...     return request.wait().views
            >>> dectool.run(program, n=4, backend="sim").values[0]
            [array([4., 4., 4.])]
        """
        requests = [operation(bucket, *args, **named) for bucket in self._buckets]
        return together(requests[0]._comm, requests, self._of_results)

    def row(self, index: int) -> Buckets:
        """Return the buckets of one row of the first axis."""
        return self._like([bucket.row(index) for bucket in self._buckets])

    def _of_results(self, results: list[Any]) -> Any:
        return self._like(results) if isinstance(results[0], Bucket) else results

    def _like(self, buckets: list[Bucket]) -> Self:
        made = object.__new__(type(self))
        made._structure = self._structure
        made.bucket_bytes = self.bucket_bytes
        made._buckets = [
            Bucket(new.opened(len(new.lead)), new.layout, old.indices)
            for new, old in zip(buckets, self._buckets, strict=True)
        ]
        return made

    @classmethod
    def _of(cls, arrays: Any, like: Buckets, lead: int) -> Self:
        """Return arrays in the buckets of others."""
        found: list[tuple[Buffer | None, Leaf, tuple[int, ...]]] = []
        structure = _tree.flatten(arrays, found, lead, open_spec)
        wanted = sum(len(bucket.indices) for bucket in like)
        if len(found) != wanted:
            raise ContractError(f"copy_from: got {len(found)} arrays for {wanted}")
        made = object.__new__(cls)
        made._structure, made.bucket_bytes = structure, like.bucket_bytes
        made._buckets = []
        for bucket in like:
            members = [found[index] for index in bucket.indices]
            for (_, leaf, _), mine in zip(members, bucket.layout.leaves, strict=True):
                if (leaf.dtype, leaf.shape) != (mine.dtype, mine.shape):
                    raise ContractError(
                        f"copy_from: got {leaf.dtype}{list(leaf.shape)} for "
                        f"{mine.dtype}{list(mine.shape)}"
                    )
            group = bucket.layout.groups[0]
            made._buckets.append(_filled(group, bucket.indices, found, bucket.layout.align))
        return made

    def _signature(self) -> Any:
        return [(bucket.layout.signature, bucket.lead, bucket.indices) for bucket in self._buckets]

    @overload
    def __getitem__(self, index: int) -> Bucket: ...
    @overload
    def __getitem__(self, index: slice) -> list[Bucket]: ...
    def __getitem__(self, index: int | slice) -> Bucket | list[Bucket]:
        return self._buckets[index]

    def __len__(self) -> int:
        return len(self._buckets)

    def __iter__(self) -> Iterator[Bucket]:
        return iter(self._buckets)

    def __repr__(self) -> str:
        arrays = sum(len(bucket.indices) for bucket in self._buckets)
        return f"<{len(self)} Buckets of {arrays} arrays, {self.nbytes} bytes>"


def _cut(leaves: Sequence[Leaf], align: int, limit: int | None) -> list[Group]:
    """Return the buckets in the order in which they are complete."""
    return sorted(lay_out(leaves, align, limit), key=lambda group: group.members[-1])


def is_power_of_two(value: Any) -> bool:
    """Tell whether a value is 1, 2, 4, ..."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and value > 0 and not value & (value - 1)


def _filled(
    group: Group,
    indices: Sequence[int],
    found: Sequence[tuple[Buffer | None, Leaf, tuple[int, ...]]],
    align: int,
) -> Bucket:
    members = [found[index] for index in indices]
    like, _, lead = members[0]
    meta = members[0][1].origin == "meta"
    sample = Phantom((), itemsize(group.dtype)) if meta and like is None else like
    buffer = zeros((*lead, group.elements), group.dtype, align, sample)
    for (values, _, _), start, count in zip(members, group.starts, group.counts, strict=True):
        if isinstance(values, np.ndarray):
            columns(buffer, start, start + count)[...] = values  # type: ignore[index]
    return Bucket(buffer, layout_of([leaf for _, leaf, _ in members], align), tuple(indices))
