"""How large a bucket should be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dectool.errors import ArgumentError, ArgumentTypeError

BUCKET_BYTES = 25 * 2**20
"""Most bytes of a bucket where nothing else is said, as in PyTorch."""


def checked_limit(bucket_bytes: Any) -> Any:
    """Return a limit of bytes, ``None`` or "auto".

    Raises:
        ArgumentTypeError: It is something else.
        ArgumentError: It is below 1.
    """
    if bucket_bytes is None or bucket_bytes == "auto":
        return bucket_bytes
    if isinstance(bucket_bytes, bool) or not isinstance(bucket_bytes, int):
        raise ArgumentTypeError(
            f"bucket_bytes={bucket_bytes!r} must be a number of bytes, 'auto', or None for one "
            "bucket of each dtype"
        )
    if bucket_bytes < 1:
        raise ArgumentError(f"bucket_bytes={bucket_bytes} must be at least 1 byte, or None")
    return bucket_bytes


class Pipeline(NamedTuple):
    """Two stages: while one bucket travels, the next is made.

    Attributes:
        fixed: a, seconds that a bucket takes to travel, however small it is.
        each: b, seconds more for each byte.
        overhead: h, seconds for which a bucket keeps the processor, whatever its size.
        making: 1 / r, seconds to make a byte.
    """

    fixed: float
    each: float
    overhead: float
    making: float

    def seconds(self, sizes: Iterable[float]) -> float:
        """Return the time of buckets of these bytes, one after the other [s]."""
        clock = arrived = 0.0
        for size in sizes:
            clock = max(clock + self.making * size + self.overhead, arrived)
            arrived = clock + self.fixed + self.each * size
        return arrived

    def of_equal(self, total: float, size: float) -> float:
        """Return T(B), the time of ``total`` bytes in buckets of ``size`` [s]."""
        making, sending = self.making * size + self.overhead, self.fixed + self.each * size
        return making + sending + (total / size - 1.0) * max(making, sending)

    def best(self, total: float) -> float:
        """Return the B at which T(B) is least, from 1 to ``total``."""
        fixed, each, overhead, making = self
        found = []
        if making > 0.0:
            found.append(math.sqrt(total * fixed / making))
        if each > 0.0:
            found.append(math.sqrt(total * overhead / each))
        if making > each:
            found.append((fixed - overhead) / (making - each))
        sizes = sorted({min(max(size, 1.0), max(total, 1.0)) for size in [*found, total]})
        return min(reversed(sizes), key=lambda size: self.of_equal(total, size))


def pipeline(network: Any, messages: int, ranks: int, rate: float | None) -> Pipeline:
    """Return the pipeline of a network model.

    Raises:
        ArgumentError: There is no network model, or a number is not above 0.
    """
    if not hasattr(network, "message_cost"):
        raise ArgumentError(
            f"bucket_bytes='auto' follows from a network model, and network is {network!r}; pass "
            "network=dectool.sim.AlphaBeta(latency, bandwidth), or a number of bytes"
        )
    if messages < 1:
        raise ArgumentError(f"messages={messages} must be at least 1")
    if rate is not None and not rate > 0.0:
        raise ArgumentError(f"rate={rate} must be above 0 bytes per second")
    fixed, each, overhead = network.message_cost(messages, ranks)
    return Pipeline(fixed, each, overhead, each if rate is None else 1.0 / rate)


def best_bucket_bytes(
    total_bytes: int,
    network: Any,
    *,
    messages: int = 1,
    ranks: int = 2,
    rate: float | None = None,
) -> int:
    r"""Return the bytes of a bucket with which a pipeline of two stages ends first.

    While a bucket travels the next is made, as by a backward pass, and each is waited for before
    the next is sent. The network model says how long ``messages`` messages at once take to go out
    and come in: a seconds, and b for each byte, h of which keep the processor. Buckets of B bytes
    are made in B / r + h and travel in a + b B, so all S bytes take

    .. math::
        T(B) = \frac Br + h + (a + b B)
        + \Bigl(\frac SB - 1\Bigr) \max\Bigl(\frac Br + h,\; a + b B\Bigr)

    which is least at one of

    .. math:: \sqrt{S a r}, \qquad \sqrt{S h / b}, \qquad \frac{a - h}{1/r - b}

    the first where sending is the slower stage, the second where making is, the third where both
    are alike. Without a rate, making is as fast as sending, r = 1/b: what is then paid beyond S b
    is a for each bucket, and one bucket, a S/B + b B, and :math:`B^* = \sqrt{S a / b}`. For
    ``AlphaBeta`` with one message that is :math:`\sqrt{S \alpha \beta}`, β its bandwidth.

    ``bucket_bytes="auto"`` begins here, and takes the fastest of what some sizes around it give,
    since arrays are not split: with those arrays, and T of the buckets that they make.

    Args:
        total_bytes: S, bytes of all arrays together [byte].
        network: A network model of :mod:`dectool.sim`.
        messages: Messages that each rank sends for one bucket, such as its out-degree.
        ranks: Number of ranks.
        rate: r, how fast the arrays are made [byte/s].

    Returns:
        A number of bytes from 1 to ``total_bytes``; all of them where the network takes no time.

    Raises:
        ArgumentError: There is no network model, or a number is not above 0.

    Example:
        >>> from dectool import fusion, sim
        >>> fusion.best_bucket_bytes(10**8, sim.AlphaBeta(latency=1e-4, bandwidth=1e9))
        3162277
    """
    return int(pipeline(network, messages, ranks, rate).best(float(total_bytes)))


def best_limit(total_bytes: int, chosen: Pipeline, cut: Callable[[int], Sequence[int]]) -> int:
    """Return the limit of bytes whose buckets take the least time.

    Args:
        total_bytes: Of all arrays.
        chosen: What a bucket costs.
        cut: Returns the bytes of the buckets that a limit gives.
    """
    about = total_bytes / chosen.best(float(total_bytes))
    counts = {max(1, round(about * math.pow(2.0, step / 6))) for step in range(-12, 13)}
    limits = sorted({max(1, -(-total_bytes // count)) for count in counts}, reverse=True)
    return min(limits, key=lambda limit: chosen.seconds(cut(limit)))
