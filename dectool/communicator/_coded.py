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

from dectool.communicator._arrays import Leaf, columns
from dectool.communicator._parcel import Buffer, Layout, Phantom, join, unpack

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

    def row(self, index: int) -> Coded:
        """Return the payloads of one row."""
        return Coded(self.compressor, self.layout, [p.row(index) for p in self.payloads], ())

    def unpacked(self) -> Any:
        """Return the array or container that the payloads stand for."""
        return unpack(self.decompressed(), self.layout, self.lead)

    def _parts(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        return [part for part, _ in vectors(buffers, self.layout, self.compressor)]

    def _fused(self, parts: Sequence[Buffer]) -> tuple[Buffer, ...]:
        if not self.compressor.per_tensor:
            return tuple(parts)
        rest = iter(parts)
        return tuple(join([next(rest) for _ in group.members]) for group in self.layout.groups)


def is_payload(x: Any) -> bool:
    """Tell whether ``x`` is compressed already."""
    if type(x) is np.ndarray:
        return False
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


def vectors(
    buffers: Sequence[Buffer], layout: Layout, compressor: Compressor
) -> list[tuple[Buffer, Leaf]]:
    """Return what is compressed by itself: arrays, or vectors of all of one dtype."""
    found: list[tuple[Buffer, Leaf]] = []
    for group, buffer in zip(layout.groups, buffers, strict=True):
        leaves = [layout.leaves[member] for member in group.members]
        if len(leaves) == 1:
            found.append((buffer, leaves[0]))
        elif compressor.per_tensor:
            found += [
                (columns(buffer, start, start + count), leaf)
                for leaf, start, count in zip(leaves, group.starts, group.counts, strict=True)
            ]
        else:
            found.append((buffer, Leaf("numpy", group.dtype, (buffer.shape[-1],))))
    return found
