"""Compressors with a memory: the memory is passed in and out, so that it can be saved."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, final

import numpy as np

from dectool.communicator._arrays import Phantom, close_array, open_array
from dectool.compression._compressor import Compressor
from dectool.compression._payload import Payload
from dectool.errors import ArgumentTypeError

Memory = dict[str, Any]
"""Named arrays of the kind of x; flat, so that an algorithm can keep them in its state."""


@dataclasses.dataclass(frozen=True)
class StatefulCompressor(abc.ABC):
    """A compressor whose next payload depends on what was sent before.

    Like :class:`Compressor` it is a frozen dataclass of parameters. What it remembers is a
    :data:`Memory`, a flat dict of arrays that the caller holds: ``compress`` and ``decompress``
    take one and return the next, and change none. Sender and receiver have a memory each, the
    receiver one for every sender; the payload itself is that of a stateless compressor, ``wire``.

    Example:
        >>> import numpy as np
        >>> from dectool import compression
        >>> c = compression.ErrorFeedback(compression.TopK(1))
        >>> x = np.array([3.0, 2.0])
        >>> here, there = c.init(x), c.init_receiver(x)
        >>> for _ in range(2):
        ...     payload, here = c.compress(x, None, here)
        ...     value, there = c.decompress(payload, there)
        ...     print(value)
        [3. 0.]
        [0. 4.]
    """

    wrappable: ClassVar[bool] = False
    """Whether another may wrap it: its receiver remembers nothing, and it keeps no error."""

    @property
    @abc.abstractmethod
    def wire(self) -> Compressor:
        """The stateless compressor whose payloads travel."""

    @property
    def fixed_size(self) -> bool:
        """Whether the size in bytes follows from the number of elements alone."""
        return self.wire.fixed_size

    @property
    def uses_rng(self) -> bool:
        """Whether something is drawn at random."""
        return self.wire.uses_rng

    @property
    def name(self) -> str:
        """The compressor in words that :func:`get` reads, such as "ef:topk:0.01"."""
        from dectool.compression._registry import spell

        return spell(self)

    def wire_bytes(self, count: int, dtype: str = "float32") -> int:
        """Return the exact size of the payload of ``count`` numbers."""
        return self.wire.wire_bytes(count, dtype)

    @abc.abstractmethod
    def init(self, x: Any, *, lead: int | None = None) -> Memory:
        """Return what the sender remembers before its first message, for arrays like ``x``."""

    @abc.abstractmethod
    def init_receiver(self, x: Any) -> Memory:
        """Return what a receiver remembers of a sender before the first message."""

    @abc.abstractmethod
    def compress(
        self, x: Any, rng: Any, memory: Memory, *, lead: int | None = None
    ) -> tuple[Payload, Memory]:
        """Return the payload of ``x`` and the sender's next memory."""

    @abc.abstractmethod
    def decompress(self, payload: Payload, memory: Memory) -> tuple[Any, Memory]:
        """Return what the receiver now takes x to be, and the receiver's next memory."""

    def __str__(self) -> str:
        return self.name


@final
@dataclasses.dataclass(frozen=True)
class Stateless(StatefulCompressor):
    """A compressor without memory, where one with memory is asked for.

    Example:
        >>> from dectool import compression
        >>> c = Stateless(compression.Identity())
        >>> payload, memory = c.compress(1.5, None, c.init(1.5))
        >>> c.decompress(payload, {}), memory
        ((1.5, {}), {})
    """

    inner: Compressor

    @property
    def wire(self) -> Compressor:
        """The compressor itself."""
        return self.inner

    def init(self, x: Any, *, lead: int | None = None) -> Memory:
        """Return nothing."""
        del x, lead
        return {}

    def init_receiver(self, x: Any) -> Memory:
        """Return nothing."""
        del x
        return {}

    def compress(
        self, x: Any, rng: Any, memory: Memory, *, lead: int | None = None
    ) -> tuple[Payload, Memory]:
        """Return the payload of ``x``."""
        del memory
        return self.inner.compress(x, rng, lead=lead), {}

    def decompress(self, payload: Payload, memory: Memory) -> tuple[Any, Memory]:
        """Return the array that ``payload`` stands for."""
        del memory
        return self.inner.decompress(payload), {}


def stateful(inner: Any, who: str) -> StatefulCompressor:
    """Return what a wrapper wraps as a compressor with a memory, which may be empty.

    Raises:
        ArgumentTypeError: It is no compressor, or one that cannot be wrapped.
    """
    if isinstance(inner, Compressor) and not inner.needs_reference:
        return Stateless(inner)
    if isinstance(inner, StatefulCompressor) and inner.wrappable:
        return inner
    if isinstance(inner, Compressor):
        why = "needs a near vector to decompress, which the sender lacks"
    elif isinstance(inner, StatefulCompressor):
        why = "already makes up for its errors"
    else:
        why = "is no compressor"
    raise ArgumentTypeError(
        f"{who}: {inner} {why}; wrap a compressor without memory, such as compression.TopK(0.01)"
    )


def zeros(x: Any) -> Any:
    """Return an array of zeros of the kind, shape and dtype of ``x``."""
    buffer, leaf = open_array(x)
    if isinstance(buffer, Phantom):
        return close_array(buffer, leaf)
    return close_array(np.zeros(buffer.shape, buffer.dtype), leaf)
