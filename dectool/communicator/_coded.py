"""Compressed arrays as they travel: bytes in place of buffers.

A compressor works on vectors; here every buffer of a parcel is one (the arrays of a container that
have one dtype are fused, unless the compressor asks for each array by itself). What is sent is the
payloads' bytes and nothing else: receivers know the rest from their own arrays, and that they
agree is checked as for any message.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.communicator._arrays import Leaf
from dectool.communicator._parcel import Buffer, Layout, Phantom, unpack
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError

if TYPE_CHECKING:
    from dectool.compression import Compressor, Payload

_LAYOUTS: dict[tuple[Any, ...], Layout] = {}


class Coded:
    """An array or container in compressed form.

    Args:
        compressor: What compressed it.
        layout: What it was.
        payloads: One for each part.
        lead: Axes in front of each array: ``()``, or ``(n,)`` with ``"stacked"``.

    Attributes:
        wire: What is sent in place of the buffers, one array of bytes for each part.
        sizes: Bytes that each rank sends, shape (1,) or (n,).
    """

    def __init__(
        self,
        compressor: Compressor,
        layout: Layout,
        payloads: Sequence[Payload],
        lead: tuple[int, ...],
    ) -> None:
        self.compressor = compressor
        self.layout = layout
        self.payloads = tuple(payloads)
        self.lead = lead

    @property
    def nbytes(self) -> int:
        """Bytes on the wire, exactly."""
        return sum(payload.nbytes for payload in self.payloads)

    @property
    def sizes(self) -> Any:
        """Bytes that each rank sends."""
        return sum(payload.sizes for payload in self.payloads)

    @property
    def wire(self) -> tuple[Buffer, ...]:
        """The bytes of each part of a single rank."""
        return tuple(
            Phantom((payload.nbytes,), 1)
            if isinstance(payload.data, Phantom)
            else payload.data[0, : payload.nbytes]
            for payload in self.payloads
        )

    @property
    def wire_layout(self) -> Layout:
        """The layout of what is sent; ranks agree when compressor and arrays are the same."""
        meta = isinstance(self.payloads[0].data, Phantom) if self.payloads else False
        sizes = tuple(payload.nbytes for payload in self.payloads)
        key = (self.compressor.name, self.layout.signature, sizes, meta)
        layout = _LAYOUTS.get(key)
        if layout is None:
            if len(_LAYOUTS) > 4096:
                _LAYOUTS.clear()
            leaves = tuple(Leaf("meta" if meta else "numpy", "uint8", (s,)) for s in sizes)
            code = (f"{self.compressor.name} of {self.layout}", self.layout.signature)
            layout = _LAYOUTS[key] = Layout(leaves, None, code)
        return layout

    def decompressed(self, reference: Sequence[Buffer] | None = None) -> tuple[Buffer, ...]:
        """Return what the payloads stand for, as buffers of ``layout``.

        Args:
            reference: Buffers that are near, for compressors that need them.
        """
        near = [None] * len(self.payloads) if reference is None else self._parts(reference)
        dense = []
        for payload, part in zip(self.payloads, near, strict=True):
            buffer = self.compressor.decompress_buffer(payload, _as_reference(payload, part))
            dense.append(buffer if self.lead else _only_row(buffer))
        return self._fused(dense)

    def received(self, wire: Sequence[Buffer], reference: Sequence[Buffer]) -> tuple[Buffer, ...]:
        """Return what the bytes of another rank stand for, like one's own.

        Raises:
            ContractError: They are no such payloads.
        """
        from dectool.compression import Payload

        payloads = []
        for mine, data in zip(self.payloads, wire, strict=True):
            rows = Phantom((1, data.size), 1) if isinstance(data, Phantom) else data[None]
            payload = Payload(self.compressor, rows, mine.leaf)
            self.compressor.check(payload)
            payloads.append(payload)
        other = Coded(self.compressor, self.layout, payloads, ())
        return other.decompressed(reference if self.compressor.needs_reference else None)

    def rows(self, ranks: Any) -> Coded:
        """Return the payloads of some ranks, one after the other ("stacked")."""
        from dectool.compression import Payload

        payloads = [
            Payload(
                self.compressor,
                Phantom((len(ranks), p.data.shape[1]), 1)
                if isinstance(p.data, Phantom)
                else p.data[ranks],
                p.leaf,
                (len(ranks),),
                p.sizes[ranks],
            )
            for p in self.payloads
        ]
        return Coded(self.compressor, self.layout, payloads, (len(ranks),))

    def unpacked(self) -> Any:
        """Return the array or container that the payloads stand for."""
        return unpack(self.decompressed(), self.layout, self.lead)

    def _parts(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        return list(buffers)

    def _fused(self, parts: Sequence[Buffer]) -> tuple[Buffer, ...]:
        return tuple(parts)


def is_payload(x: Any) -> bool:
    """Tell whether ``x`` is compressed already."""
    if isinstance(x, Coded):
        return True
    # Whoever has a payload has imported what made it.
    module = sys.modules.get("dectool.compression")
    return module is not None and isinstance(x, module.Payload)


def _as_reference(payload: Payload, part: Buffer | None) -> Any:
    if part is None or isinstance(part, Phantom):
        return None
    from dectool.compression._formats import widen

    return widen(part.reshape(len(payload.sizes), payload.count), payload.dtype)


def _only_row(buffer: Buffer) -> Buffer:
    return Phantom((buffer.size,), buffer.itemsize) if isinstance(buffer, Phantom) else buffer[0]


def template(buffers: Sequence[Buffer], layout: Layout, compressor: Any, operation: str) -> Coded:
    """Return what a rank holds that only receives: payloads of the right size, and no content.

    Raises:
        ArgumentError: The size depends on the data.
    """
    from dectool.compression import Payload

    checked_compressor(compressor, operation)
    if not compressor.fixed_size or compressor.needs_reference:
        raise ArgumentError(
            f"{operation}: {compressor.name} needs the array to tell its size or to decompress, "
            "and only the root has it; use one of fixed size, such as topk"
        )
    payloads = []
    for leaf, buffer in zip(_leaves(buffers, layout), buffers, strict=True):
        size = compressor.wire_bytes(buffer.shape[-1], leaf.dtype)
        meta = isinstance(buffer, Phantom)
        data = Phantom((1, size), 1) if meta else np.zeros((1, size), np.uint8)
        payloads.append(Payload(compressor, data, leaf))
    return Coded(compressor, layout, payloads, ())


def checked_compressor(compressor: Any, operation: str) -> Compressor:
    """Refuse what cannot compress what is sent.

    Raises:
        ArgumentTypeError: It is no compressor, or one with a memory.
    """
    from dectool.compression import Compressor, StatefulCompressor

    if isinstance(compressor, StatefulCompressor):
        raise ArgumentTypeError(
            f"{operation}: {compressor.name} has a memory, which somebody must keep: call "
            "payload, memory = compressor.compress(x, comm.rng('compression'), memory) and pass "
            "the payload in place of x"
        )
    if not isinstance(compressor, Compressor):
        raise ArgumentTypeError(
            f"{operation}: compressor is {compressor!r}; pass one of dectool.compression, such as "
            "compression.get('topk:0.01')"
        )
    return compressor


def _leaves(buffers: Sequence[Buffer], layout: Layout) -> list[Leaf]:
    """Return what each buffer is to a compressor: an array, or a vector of several."""
    return [
        layout.leaves[members[0]]
        if len(members) == 1
        else Leaf("numpy", dtype, (buffer.shape[-1],))
        for (dtype, members), buffer in zip(layout.groups, buffers, strict=True)
    ]


def encode(
    buffers: Sequence[Buffer],
    layout: Layout,
    compressor: Any,
    rng: Any,
    lead: tuple[int, ...],
    operation: str,
) -> Coded:
    """Compress buffers.

    Args:
        buffers: Each of shape (*lead, elements).
        layout: What they hold.
        compressor: A :class:`dectool.compression.Compressor`.
        rng: Where random numbers come from.
        lead: The rank axis, if there is one.
        operation: Who asks, for messages.

    Raises:
        ArgumentTypeError: ``compressor`` is none, or an array has a dtype that is not compressed.
    """
    checked_compressor(compressor, operation)
    payloads = []
    rows = lead[0] if lead else 1
    for leaf, buffer in zip(_leaves(buffers, layout), buffers, strict=True):
        flat = (
            Phantom((rows, buffer.shape[-1]), buffer.itemsize)
            if isinstance(buffer, Phantom)
            else buffer.reshape(rows, -1)
        )
        payloads.append(compressor.compress_buffer(flat, leaf, lead, rng))
    return Coded(compressor, layout, payloads, lead)


def coded_payload(payload: Payload, lead: tuple[int, ...], operation: str) -> Coded:
    """Return a payload that a program has made as what travels.

    Raises:
        ContractError: It has axes in front that the backend does not give it.
        ArgumentError: Its compressor needs a reference, which a payload alone does not have.
    """
    if payload.lead != lead:
        wanted = "the axis of ranks and nothing else" if lead else "no axis: one vector"
        raise ContractError(
            f"{operation}: the payload has leading axes {payload.lead}, but this backend needs "
            f"{wanted}; use comm.compress(x, compressor)"
        )
    if payload.compressor.needs_reference:
        raise ArgumentError(
            f"{operation}: a payload of {payload.compressor.name} means something only beside a "
            "near vector; pass x, compressor= instead"
        )
    return Coded(payload.compressor, Layout((payload.leaf,), None), [payload], lead)
