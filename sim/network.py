"""Network models: when a message that is sent now arrives."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.sim._numbers import check_number

Parameter = float | np.ndarray[Any, np.dtype[np.float64]]


@final
@dataclass(frozen=True)
class Codec:
    """How fast a rank compresses and decompresses what it sends and receives.

    Args:
        compress: Bytes of uncompressed data per second, above 0 (``inf``: no time).
        decompress: The same for what is received.

    Raises:
        ArgumentError: A speed is not above 0.
        ArgumentTypeError: It is no number.

    Example:
        >>> AlphaBeta(bandwidth=1e8, codec=Codec(compress=2e9, decompress=4e9)).codec.compress
        2000000000.0
    """

    compress: float = math.inf
    decompress: float = math.inf

    def __post_init__(self) -> None:
        """Check the speeds."""
        for name in ("compress", "decompress"):
            value = getattr(self, name)
            check_number("Codec", name, value)
            if not value > 0.0:
                raise ArgumentError(f"Codec: {name}={value} must be above 0 bytes per second")


class NetworkModel(abc.ABC):
    """The time that messages take, from the sender's clock to the receiver's.

    Every formula works on floats and, element by element, on arrays, so that the simulator and the
    stacked backend share it.

    Attributes:
        serial_send: Whether the messages of one rank leave one after the other.
        serial_receive: Whether the messages to one rank come in one after the other.
        send_overhead: Seconds that sending a message keeps the processor.
        receive_overhead: Seconds that taking a received message keeps the processor.
        codec: How fast ranks compress what they send.
    """

    serial_send: bool
    serial_receive: bool
    send_overhead: float = 0.0
    receive_overhead: float = 0.0
    codec: Codec = Codec()

    @property
    @abc.abstractmethod
    def is_ideal(self) -> bool:
        """Whether messages take no time at all."""

    @abc.abstractmethod
    def transfer(self, source: Any, dest: Any, nbytes: Any, start: Any) -> tuple[Any, Any]:
        """Return when the sender's port is free again and when the message arrives.

        Args:
            source: Sending rank, or an array of them.
            dest: Receiving rank, or an array of them.
            nbytes: Payload in bytes.
            start: Time in seconds at which the port begins to send.

        Returns:
            Two times in seconds: the port's, and that of the arrival (of the first byte where
            the model has ``serial_receive``).
        """

    def intake(self, nbytes: float) -> tuple[float, float]:
        """Return the seconds a message keeps the receiving port, and the gap after it."""
        del nbytes
        return 0.0, 0.0

    def check_size(self, size: int) -> None:
        """Refuse a number of ranks that the model's parameters do not fit."""
        del size

    def link_seconds(self, nbytes: int, ranks: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the seconds that a message takes, alone, from each rank to each other.

        What :func:`dectool.topology.fastest_consensus` takes as ``edge_seconds``, with the model's
        ``port``.

        Args:
            nbytes: Payload in bytes, at least 0.
            ranks: Number of ranks n, at least 1.

        Returns:
            Array (n, n); entry [i, j] is the time from rank i to rank j, 0 on the diagonal.

        Raises:
            ArgumentError: The model's parameters do not fit so many ranks, or a number is too
                small.

        Example:
            >>> AlphaBeta(latency=1e-5, bandwidth=1e9).link_seconds(1000, ranks=2)
            array([[0.0e+00, 1.1e-05],
                   [1.1e-05, 0.0e+00]])
        """
        if nbytes < 0 or ranks < 1:
            raise ArgumentError(
                f"link_seconds: nbytes={nbytes} must be at least 0, and ranks={ranks} at least 1"
            )
        self.check_size(ranks)
        source, dest = np.indices((ranks, ranks))
        _, arrival = self.transfer(source, dest, nbytes, self.send_overhead)
        occupied = self.intake(nbytes)[0] if self.serial_receive else 0.0
        seconds = np.broadcast_to(arrival + occupied + self.receive_overhead, (ranks, ranks))
        return np.where(source == dest, 0.0, seconds)

    def scaled(self, factor: float) -> NetworkModel:
        """Return this network for messages that stand for ones ``factor`` times as large.

        With it a small problem takes the time of a large model, without the memory for one.

        Args:
            factor: Bytes that each byte stands for, finite and above 0.

        Raises:
            ArgumentError: The factor is not above 0, or infinite.

        Example:
            >>> AlphaBeta(latency=1e-5, bandwidth=1e9).scaled(1000.0).transfer(0, 1, 8, start=0.0)
            (8e-06, 1.8e-05)
        """
        return _Scaled(self, factor)

    def message_cost(self, messages: int = 1, ranks: int = 2) -> tuple[float, float, float]:
        """Return what it takes that every rank sends and receives some messages of m bytes at once.

        Args:
            messages: How many messages each rank sends, and receives.
            ranks: Number of ranks.

        Returns:
            a, b and h: from the first to the last moment it takes a + b m seconds, on the slowest
            of the links that :meth:`slowest` names, for h of which the processor is busy.

        Example:
            >>> a, b, h = AlphaBeta(latency=1e-5, bandwidth=1e9).message_cost(messages=2)
            >>> round(a, 12), round(b, 15), h
            (1e-05, 2e-09, 0.0)
        """
        if ranks < 2:
            return 0.0, 0.0, 0.0
        source, dest = self.slowest(ranks)
        low, high = 1, 2**20 + 1
        short = self._exchange(messages, source, dest, low)
        each = (self._exchange(messages, source, dest, high) - short) / (high - low)
        busy = messages * (self.send_overhead + self.receive_overhead)
        return max(0.0, short - each * low), each, busy

    def slowest(self, ranks: int) -> tuple[Any, Any]:
        """Return source and destination of the slowest link, or arrays of some that may be.

        Unless a model knows better, the first and the last rank: the farthest apart where ranks
        are placed on nodes in blocks.
        """
        return 0, ranks - 1

    def _exchange(self, messages: int, source: Any, dest: Any, nbytes: int) -> float:
        """Return the seconds in which a rank has sent and received so many messages.

        Ranks send to their neighbours in ascending order, so the rank of the highest number gets
        all of its messages last: where they queue at the receiver, at the same time.
        """
        clock, port = 0.0, 0.0
        arrivals = []
        for _ in range(messages):
            clock += self.send_overhead
            start = np.maximum(clock, port) if self.serial_send else clock
            port, arrival = self.transfer(source, dest, nbytes, start)
            arrivals.append(arrival)
        free: Any = 0.0
        end: Any = clock
        for arrival in arrivals:
            complete = arrival
            if self.serial_receive:
                occupied, gap = self.intake(nbytes)
                complete = np.maximum(free, arrivals[-1]) + occupied
                free = complete + gap
            end = np.maximum(end, complete) + self.receive_overhead
        return float(np.max(end))


@final
class AlphaBeta(NetworkModel):
    r"""Hockney's model: latency plus size over bandwidth.

    .. math:: T(m) = \alpha + m / B

    Args:
        latency: α in seconds, at least 0; a number, or an array of shape (n, n) whose entry
            [i, j] holds for messages from rank i to rank j.
        bandwidth: B in bytes per second, above 0 (``inf`` allowed); a number or such an array.
        port: "serial" (default): the messages that a rank sends share its network interface and
            leave one after the other; "parallel": each has the bandwidth for itself.
        codec: How fast ranks compress; default: in no time.

    Raises:
        ArgumentError: A negative or NaN latency, a bandwidth that is not positive, another
            ``port``.
        ArgumentTypeError: One of them is no number.

    Example:
        >>> net = AlphaBeta(latency=1e-5, bandwidth=1e9)
        >>> net.transfer(0, 1, 1000, start=0.0)
        (1e-06, 1.1000000000000001e-05)

    References:
        R. W. Hockney, Parallel Computing 20(3), 1994.
    """

    serial_receive = False

    def __init__(
        self,
        latency: Any = 0.0,
        bandwidth: Any = math.inf,
        port: str = "serial",
        *,
        codec: Codec | None = None,
    ) -> None:
        self.codec = codec or Codec()
        self.latency = _parameter("latency", latency, zero=True)
        self.bandwidth = _parameter("bandwidth", bandwidth, zero=False)
        if port not in ("serial", "parallel"):
            raise ArgumentError(f"port={port!r}: it must be 'serial' or 'parallel'")
        self.port = port
        self.serial_send = port == "serial"
        self._ideal = bool(np.all(self.latency == 0.0) and np.all(np.isinf(self.bandwidth)))
        self._uniform = isinstance(self.latency, float) and isinstance(self.bandwidth, float)

    def __repr__(self) -> str:
        return (
            f"AlphaBeta(latency={_shown(self.latency)}, bandwidth={_shown(self.bandwidth)}, "
            f"port={self.port!r}{_told(self.codec)})"
        )

    @property
    def is_ideal(self) -> bool:
        """Whether latency is 0 and bandwidth infinite between all ranks."""
        return self._ideal

    def transfer(self, source: Any, dest: Any, nbytes: Any, start: Any) -> tuple[Any, Any]:
        """Return the end of sending and the arrival, in seconds."""
        if self._uniform:
            released = start + nbytes / self.bandwidth
            return released, released + self.latency
        released = start + nbytes / _between(self.bandwidth, source, dest)
        return released, released + _between(self.latency, source, dest)

    def slowest(self, ranks: int) -> tuple[Any, Any]:
        """Return all links where latency or bandwidth is an array."""
        given = next((v for v in (self.latency, self.bandwidth) if not isinstance(v, float)), None)
        if given is None:
            return super().slowest(ranks)
        return np.nonzero(~np.eye(len(given), dtype=bool))  # type: ignore[return-value]

    def check_size(self, size: int) -> None:
        """Refuse arrays that are not of shape (size, size)."""
        for name in ("latency", "bandwidth"):
            value = getattr(self, name)
            if not isinstance(value, float) and value.shape != (size, size):
                raise ArgumentError(
                    f"{name} is an array of shape {value.shape}, but there are {size} ranks: "
                    f"its shape must be ({size}, {size})"
                )


@final
class LogGP(NetworkModel):
    r"""LogGP: latency, overhead, gap per message and gap per byte, with serial ports.

    A message of k bytes keeps the sender's processor for o, then its port for (k-1)G and the gap
    g; L later the first byte reaches the receiver's port, which takes (k-1)G and g likewise, in
    order of arrival; taking the message keeps the receiver's processor for o. Alone:

    .. math:: T(k) = L + 2o + (k - 1) G

    Args:
        L: Latency in seconds.
        o: Overhead of a send or a receive in seconds.
        g: Gap between messages at a port in seconds.
        G: Gap per byte in seconds: 1 / bandwidth.
        codec: How fast ranks compress; default: in no time.

    Raises:
        ArgumentError: A parameter is negative, infinite or NaN.
        ArgumentTypeError: It is no number.

    Example:
        >>> LogGP(L=1e-5, o=1e-6, g=0.0, G=1e-9).intake(1001)
        (1e-06, 0.0)

    References:
        A. Alexandrov, M. Ionescu, K. Schauser & C. Scheiman, SPAA 1995.
    """

    serial_send = True
    serial_receive = True

    def __init__(
        self,
        L: float,
        o: float = 0.0,
        g: float = 0.0,
        G: float = 0.0,
        *,
        codec: Codec | None = None,
    ) -> None:
        self.codec = codec or Codec()
        for name, value in (("L", L), ("o", o), ("g", g), ("G", G)):
            check_number("LogGP", name, value)
            if not 0.0 <= value < math.inf:
                raise ArgumentError(f"LogGP: {name}={value} must be finite and at least 0 seconds")
        self.L, self.o, self.g, self.G = float(L), float(o), float(g), float(G)
        self.send_overhead = self.receive_overhead = self.o

    def __repr__(self) -> str:
        return f"LogGP(L={self.L}, o={self.o}, g={self.g}, G={self.G}{_told(self.codec)})"

    @property
    def is_ideal(self) -> bool:
        """Whether all four parameters are 0."""
        return self.L == self.o == self.g == self.G == 0.0

    def transfer(self, source: Any, dest: Any, nbytes: Any, start: Any) -> tuple[Any, Any]:
        """Return when the port may send again and when the first byte arrives."""
        del source, dest
        return start + max(nbytes - 1, 0) * self.G + self.g, start + self.L

    def intake(self, nbytes: float) -> tuple[float, float]:
        """Return the time for the bytes to come in, and the gap after them."""
        return max(nbytes - 1, 0) * self.G, self.g


@final
class _Scaled(NetworkModel):
    """A network whose messages stand for larger ones; see :meth:`NetworkModel.scaled`."""

    def __init__(self, network: NetworkModel, factor: float) -> None:
        check_number("scaled", "factor", factor)
        if not 0.0 < factor < math.inf:
            raise ArgumentError(f"scaled: factor={factor} must be finite and above 0")
        self._network, self._factor = network, float(factor)
        self.serial_send = network.serial_send
        self.serial_receive = network.serial_receive
        self.send_overhead = network.send_overhead
        self.receive_overhead = network.receive_overhead
        codec = network.codec
        self.codec = Codec(codec.compress / factor, codec.decompress / factor)

    def __repr__(self) -> str:
        return f"{self._network!r}.scaled({self._factor:g})"

    @property
    def is_ideal(self) -> bool:
        """Whether the network itself takes no time."""
        return self._network.is_ideal

    def transfer(self, source: Any, dest: Any, nbytes: Any, start: Any) -> tuple[Any, Any]:
        """Return the end of sending and the arrival of the larger message."""
        return self._network.transfer(source, dest, nbytes * self._factor, start)

    def intake(self, nbytes: float) -> tuple[float, float]:
        """Return the time for the larger message to come in, and the gap after it."""
        return self._network.intake(nbytes * self._factor)

    def check_size(self, size: int) -> None:
        """Refuse what the network itself refuses."""
        self._network.check_size(size)

    def slowest(self, ranks: int) -> tuple[Any, Any]:
        """Return the slowest links of the network itself."""
        return self._network.slowest(ranks)


def _parameter(name: str, value: Any, *, zero: bool) -> Parameter:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{name}={value!r} must be a number, or an array of numbers of shape (n, n)"
        ) from None
    if array.ndim not in (0, 2):
        raise ArgumentError(
            f"{name} has shape {array.shape}; it must be a number or an array of shape (n, n)"
        )
    broken = ~(array >= 0.0) if zero else ~(array > 0.0)
    if zero:
        broken |= np.isinf(array)
    if broken.any():
        where = "" if array.ndim == 0 else f"[{', '.join(map(str, np.argwhere(broken)[0]))}]"
        rule = "finite and at least 0 seconds" if zero else "above 0 bytes per second (inf allowed)"
        raise ArgumentError(f"{name}{where}={array[broken][0]} must be {rule}")
    return float(array) if array.ndim == 0 else array


def _between(value: Parameter, source: Any, dest: Any) -> Any:
    if isinstance(value, float):
        return value
    entry = value[source, dest]
    return float(entry) if entry.ndim == 0 else entry


def _told(codec: Codec) -> str:
    return "" if codec == Codec() else f", codec={codec!r}"


def _shown(value: Parameter) -> str:
    return repr(value) if isinstance(value, float) else f"<{value.shape[0]}x{value.shape[1]} array>"
