"""Arrays made into what travels in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.communicator._coded import Coded, vectors
from dectool.communicator._parcel import Buffer, Layout, Phantom
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError

if TYPE_CHECKING:
    from dectool.compression import Compressor, Payload


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
    for buffer, leaf in vectors(buffers, layout, compressor):
        size = compressor.payload_bytes(leaf)
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
    for buffer, leaf in vectors(buffers, layout, compressor):
        flat = (
            Phantom((rows, buffer.shape[-1]), buffer.itemsize)
            if isinstance(buffer, Phantom)
            else buffer.reshape(rows, buffer.shape[-1])
        )
        payloads.append(compressor.compress_buffer(flat, leaf, lead, rng))
    return Coded(compressor, layout, payloads, lead)


def encode_rows(
    buffers: Sequence[Buffer], layout: Layout, compressor: Any, rng: Any, operation: str
) -> Coded | None:
    """Compress each row of buffers of shape (rows, elements) by itself; without rows, nothing.

    Raises:
        ArgumentError: The compressor needs a vector that is near, and there is none.
        ArgumentTypeError: It is none, or an array has a dtype that is not compressed.
    """
    if checked_compressor(compressor, operation).needs_reference:
        raise ArgumentError(
            f"{operation}: {compressor.name} sends what tells a row from a near vector, and the "
            "receiver has none; use another compressor, such as qsgd:4"
        )
    count = buffers[0].shape[0] if buffers else 0
    return encode(buffers, layout, compressor, rng, (count,), operation) if count else None


def encode_nothing(likes: Sequence[Buffer], layout: Layout, compressor: Compressor) -> Coded:
    """Return what reads payloads of arrays like these, without bytes of its own."""
    from dectool.compression import Payload

    payloads = [
        Payload(
            compressor,
            Phantom((1, 0), 1) if isinstance(buffer, Phantom) else np.empty((1, 0), np.uint8),
            leaf,
        )
        for buffer, leaf in vectors(likes, layout, compressor)
    ]
    return Coded(compressor, layout, payloads, ())


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
