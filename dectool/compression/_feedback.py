"""Error feedback: what a message lacked goes into the next one."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from dectool.compression._compressor import Compressor
from dectool.compression._payload import Payload
from dectool.compression._stateful import Memory, StatefulCompressor, stateful, zeros
from dectool.compression._warm_start import WarmStart


@final
@dataclasses.dataclass(frozen=True)
class ErrorFeedback(StatefulCompressor):
    r"""Error feedback (EF): the error of a message is added to the next.

    .. math:: \Delta_t = C(x_t + e_t), \qquad e_{t+1} = x_t + e_t - \Delta_t, \qquad e_0 = 0

    The receiver gets :math:`\Delta_t`. Over time nothing is lost:
    :math:`\sum_t \Delta_t = \sum_t x_t - e_T`. It suits what is summed, such as gradient steps.

    The sender's memory is ``{"error": e}``; the receiver's is empty.

    Args:
        inner: A compressor, or :class:`WarmStart`.

    Example:
        >>> import numpy as np
        >>> from dectool import compression
        >>> c = ErrorFeedback(compression.TopK(1))
        >>> payload, memory = c.compress(np.array([3.0, 2.0]), None, c.init(np.zeros(2)))
        >>> memory
        {'error': array([0., 2.])}

    References:
        S. P. Karimireddy, Q. Rebjock, S. Stich & M. Jaggi, Error feedback fixes SignSGD, ICML
        2019, Algorithm 2.
    """

    inner: Compressor | WarmStart

    def __post_init__(self) -> None:
        """Check the compressor within."""
        stateful(self.inner, "ErrorFeedback")

    @property
    def wire(self) -> Compressor:
        """The compressor within."""
        return stateful(self.inner, "ErrorFeedback").wire

    def init(self, x: Any, *, lead: int | None = None) -> Memory:
        """Return the error zero."""
        within = stateful(self.inner, "ErrorFeedback").init(x, lead=lead)
        return {"error": zeros(x), **within}

    def init_receiver(self, x: Any) -> Memory:
        """Return nothing."""
        del x
        return {}

    def compress(
        self, x: Any, rng: Any, memory: Memory, *, lead: int | None = None
    ) -> tuple[Payload, Memory]:
        """Return the payload of x + e, and the error that it leaves."""
        inner = stateful(self.inner, "ErrorFeedback")
        wanted = x + memory["error"]
        payload, within = inner.compress(wanted, rng, memory, lead=lead)
        sent, _ = inner.decompress(payload, {})
        return payload, {"error": wanted - sent, **within}

    def decompress(self, payload: Payload, memory: Memory) -> tuple[Any, Memory]:
        """Return what was sent."""
        return stateful(self.inner, "ErrorFeedback").decompress(payload, memory)
