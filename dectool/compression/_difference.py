"""Differences to what the receiver already holds."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from dectool.compression._checks import check_positive
from dectool.compression._compressor import Compressor
from dectool.compression._payload import Payload
from dectool.compression._stateful import Memory, StatefulCompressor, stateful, zeros
from dectool.compression._warm_start import WarmStart
from dectool.errors import ArgumentError


@dataclasses.dataclass(frozen=True)
class _Tracking(StatefulCompressor):
    """Sender and receivers hold the same replica h, and the payload is of x - h."""

    inner: Compressor | WarmStart

    def __post_init__(self) -> None:
        """Check the compressor within."""
        stateful(self.inner, type(self).__name__)

    def _rate(self) -> float:
        return 1.0

    @property
    def wire(self) -> Compressor:
        """The compressor within."""
        return stateful(self.inner, type(self).__name__).wire

    def init(self, x: Any, *, lead: int | None = None) -> Memory:
        """Return the replica zero; set it to what both sides know, if they know something."""
        within = stateful(self.inner, type(self).__name__).init(x, lead=lead)
        return {"replica": zeros(x), **within}

    def init_receiver(self, x: Any) -> Memory:
        """Return the replica zero."""
        return {"replica": zeros(x)}

    def compress(
        self, x: Any, rng: Any, memory: Memory, *, lead: int | None = None
    ) -> tuple[Payload, Memory]:
        """Return the payload of x - h, and the next replica."""
        inner = stateful(self.inner, type(self).__name__)
        replica = memory["replica"]
        payload, within = inner.compress(x - replica, rng, memory, lead=lead)
        sent, _ = inner.decompress(payload, {})
        return payload, {"replica": self._next(replica, sent), **within}

    def decompress(self, payload: Payload, memory: Memory) -> tuple[Any, Memory]:
        """Return the estimate h + C(x - h), and the next replica."""
        sent, _ = stateful(self.inner, type(self).__name__).decompress(payload, {})
        replica = memory["replica"]
        return replica + sent, {"replica": self._next(replica, sent)}

    def _next(self, replica: Any, sent: Any) -> Any:
        rate = self._rate()
        return replica + sent if rate == 1.0 else replica + rate * sent


@final
@dataclasses.dataclass(frozen=True)
class Difference(_Tracking):
    r"""Compresses the difference to a replica that sender and receivers move alike.

    .. math:: \hat x_t = h_t + C(x_t - h_t), \qquad h_{t+1} = h_t + a\,C(x_t - h_t)

    so that the error vanishes as x settles. The receiver gets :math:`\hat x_t`. With rate a = 1
    the replica is the estimate, as in CHOCO; an unbiased C of variance ω takes a ≤ 1/(1 + ω), as
    in DIANA and LEAD.

    The memory of both sides is ``{"replica": h}``, with the same bits.

    Args:
        inner: A compressor, or :class:`WarmStart`.
        rate: a, in (0, 1].

    Example:
        >>> import numpy as np
        >>> from dectool import compression
        >>> c = Difference(compression.TopK(1))
        >>> x, here, there = np.array([3.0, 2.0]), c.init(np.zeros(2)), c.init_receiver(np.zeros(2))
        >>> for _ in range(2):
        ...     payload, here = c.compress(x, None, here)
        ...     estimate, there = c.decompress(payload, there)
        >>> estimate
        array([3., 2.])

    References:
        K. Mishchenko, E. Gorbunov, M. Takáč & P. Richtárik, Distributed learning with compressed
        gradient differences, 2019; A. Koloskova, S. Stich & M. Jaggi, Decentralized stochastic
        optimization and gossip algorithms with compressed communication, ICML 2019.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        """Check the compressor within, and the rate."""
        super().__post_init__()
        check_positive("Difference", "rate", self.rate)
        if self.rate > 1:
            raise ArgumentError(f"Difference(rate={self.rate}): rate must be above 0, at most 1")

    def _rate(self) -> float:
        return self.rate


@final
@dataclasses.dataclass(frozen=True)
class EF21(_Tracking):
    r"""EF21: the receiver's estimate of a gradient is moved by a compressed difference.

    .. math:: g_{t+1} = g_t + C(\nabla f(x_{t+1}) - g_t)

    The receiver gets :math:`g_{t+1}`. For a biased C with contraction δ, such as top-k, it
    converges as gradient descent does, with no bound on the gradients. It is :class:`Difference`
    with rate 1 for gradients; the paper starts from :math:`g_0 = C(\nabla f(x_0))`, the first
    message from the replica zero.

    The memory of both sides is ``{"replica": g}``, with the same bits.

    Args:
        inner: A compressor, or :class:`WarmStart`.

    Example:
        >>> import numpy as np
        >>> from dectool import compression
        >>> c = EF21(compression.TopK(1))
        >>> payload, memory = c.compress(np.array([3.0, 2.0]), None, c.init(np.zeros(2)))
        >>> memory
        {'replica': array([3., 0.])}

    References:
        P. Richtárik, I. Sokolov & I. Fatkhullin, EF21: A new, simpler, theoretically better, and
        practically faster error feedback, NeurIPS 2021, Algorithm 2.
    """
