"""Low rank with the last factor as a start."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, final

import numpy as np

from dectool.communicator._arrays import Phantom, close_array
from dectool.compression._compressor import Compressor
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, narrow, saturated, widen
from dectool.compression._lowrank import LowRank
from dectool.compression._payload import Payload, open_rows
from dectool.compression._stateful import Memory, StatefulCompressor
from dectool.errors import ArgumentTypeError


@final
@dataclasses.dataclass(frozen=True)
class WarmStart(StatefulCompressor):
    r"""PowerSGD's warm start: :class:`LowRank` begins with the right factor of the last message.

    For matrices that change slowly that is the power method, which finds the best approximation
    of rank r. Columns of the factor that are zero, as all are at first, are drawn anew; the draw
    is made at every step, so that the stream of random numbers does not depend on the data.

    The sender's memory is ``{"right": Q}``, by rows; the receiver's is empty. PowerSGD is
    ``ErrorFeedback(WarmStart(LowRank(2)))``.

    Args:
        inner: The low-rank compressor.

    Example:
        >>> from dectool import compression
        >>> c = WarmStart(LowRank(1, shape=(2, 2)))
        >>> x, rng = np.array([2.0, 0.0, 0.0, 1.0]), np.random.default_rng(0)
        >>> memory = c.init(x)
        >>> for _ in range(20):
        ...     payload, memory = c.compress(x, rng, memory)
        >>> c.decompress(payload, {})[0].round(6)
        array([ 2., -0., -0.,  0.])

    References:
        T. Vogels, S. P. Karimireddy & M. Jaggi, PowerSGD, NeurIPS 2019, Section 4.2.
    """

    inner: LowRank

    wrappable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the compressor within."""
        if not isinstance(self.inner, LowRank):
            raise ArgumentTypeError(
                f"WarmStart: {self.inner!r} has no factor to begin with; give compression.LowRank"
            )

    @property
    def wire(self) -> Compressor:
        """The low-rank compressor."""
        return self.inner

    def init(self, x: Any, *, lead: int | None = None) -> Memory:
        """Return the right factor zero, which is drawn at the first message."""
        buffer, leaf, shape = open_rows(x, lead)
        rows, count = buffer.shape
        size = self.inner.matrix_shape(count)[1] * self.inner.rank_of(count) if count else 0
        leaf = leaf._replace(shape=(size,), origin=_array_of(leaf.origin))
        if isinstance(buffer, Phantom):
            return {"right": close_array(Phantom((rows, size), buffer.itemsize), leaf, shape)}
        return {"right": close_array(np.zeros((rows, size), buffer.dtype), leaf, shape)}

    def init_receiver(self, x: Any) -> Memory:
        """Return nothing."""
        del x
        return {}

    def compress(
        self, x: Any, rng: Any, memory: Memory, *, lead: int | None = None
    ) -> tuple[Payload, Memory]:
        """Return the payload of ``x``, and its right factor."""
        buffer, leaf, shape = open_rows(x, lead)
        rows, count = buffer.shape
        if isinstance(buffer, Phantom) or not count:
            return self.inner.compress(x, rng, lead=lead), {"right": memory["right"]}
        wide = np.ascontiguousarray(widen(buffer, leaf.dtype))
        last, last_leaf, _ = open_rows(memory["right"], len(shape))
        assert not isinstance(last, Phantom)
        drawn = self.inner.start(count, Draw(rng, rows, "LowRank"), wide.dtype)
        starts = _renewed(widen(last, last_leaf.dtype).reshape(drawn.shape), drawn)
        with np.errstate(all="ignore"):
            data, right = self.inner.encode_from(wide, starts, leaf.dtype)
            kept = narrow(saturated(right.reshape(rows, -1), leaf.dtype), leaf.dtype)
        return Payload(self.inner, data, leaf, shape), {
            "right": close_array(kept, last_leaf, shape)
        }

    def decompress(self, payload: Payload, memory: Memory) -> tuple[Any, Memory]:
        """Return the product of the factors."""
        del memory
        return self.inner.decompress(payload), {}


def _array_of(origin: str) -> str:
    return origin if origin in ("torch", "meta") else "numpy"


def _renewed(last: Array, drawn: Array) -> Array:
    """Return the last factors, with the columns that say nothing replaced by drawn ones."""
    useful = np.isfinite(last).all(axis=1, keepdims=True) & (last != 0).any(axis=1, keepdims=True)
    return np.where(useful, last, drawn)
