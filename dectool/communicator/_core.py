"""The small core that a backend implements; everything else is derived from it."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dectool.communicator._buckets import Buckets
from dectool.communicator._missing import checked_policy
from dectool.communicator._parcel import Buffer, Layout, Parcel, own, pack, unpack
from dectool.communicator._request import Request
from dectool.errors import ArgumentError, ArgumentTypeError, ContractError

if TYPE_CHECKING:
    from dectool.topology import Schedule, Topology

Channel = tuple[Any, ...]
"""What a message is matched by, beside its source: (context, operation, tag or number)."""


class Pending:
    """One message or background operation that a rank waits for; made by a backend."""

    __slots__ = ()


class CommunicatorCore(abc.ABC):
    """Identity, messages, time and chance: what differs between backends.

    A backend implements the abstract members; their contract is in their docstrings. A message
    from one rank to another on one channel never overtakes an earlier one.
    """

    backend: ClassVar[str]
    """Name of the backend, as ``run(backend=...)`` takes it."""

    _topology: Topology | None
    _schedule: Schedule | None
    _missing: str = "error"
    _sequence: dict[str, int]
    _counters: dict[str, tuple[Channel, Iterator[int]]]

    # -- identity ------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def rank(self) -> Any:
        """This rank's number, from 0; with ``"stacked"``, the array of all of them."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of ranks."""

    @property
    @abc.abstractmethod
    def local_size(self) -> int:
        """Number of ranks on one node (ranks are placed on nodes in blocks)."""

    @property
    def local_rank(self) -> Any:
        """This rank's number among those of its node."""
        return self.rank % self.local_size

    @property
    def node_rank(self) -> Any:
        """Number of this rank's node."""
        return self.rank // self.local_size

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return -(-self.size // self.local_size)

    @property
    @abc.abstractmethod
    def node(self) -> Self:
        """The communicator of the ranks on this rank's node."""

    @property
    @abc.abstractmethod
    def peers_across_nodes(self) -> Self:
        """The communicator of the ranks with this rank's local rank, one on each node."""

    @property
    def topology(self) -> Topology:
        """The topology that neighbour operations use when they are given none; may be set.

        Raises:
            ArgumentError: None was given to ``run``, or one of another size is set.
        """
        if self._topology is None:
            raise ArgumentError(
                "this communicator has no topology: give one to run(..., topology=...), "
                "set comm.topology, or pass topology= to the operation"
            )
        return self._topology

    @topology.setter
    def topology(self, topology: Topology) -> None:
        self._topology = self._checked_topology(topology)

    @property
    def schedule(self) -> Schedule:
        """The schedule given to ``run``; ``comm.topology = comm.schedule.at(k)`` selects a step.

        Raises:
            ArgumentError: No topology or schedule was given.
        """
        if self._schedule is None:
            self.topology  # noqa: B018 (raises)
            raise ArgumentError("this communicator was given a topology, not a schedule")
        return self._schedule

    def _checked_topology(self, topology: Any, argument: str = "topology") -> Topology:
        from dectool.topology import Schedule, Topology

        if isinstance(topology, Schedule):
            raise ArgumentTypeError(
                f"{argument} is a schedule ({topology.name}), and a step of it is needed: "
                f"pass {argument}=schedule.at(k)"
            )
        if not isinstance(topology, Topology):
            raise ArgumentTypeError(
                f"{argument} is a {type(topology).__name__}; pass a dectool.topology.Topology "
                "(topology.from_graph and topology.from_matrix make one)"
            )
        if topology.size != self.size:
            raise ArgumentError(
                f"{argument} is a {topology.name} with {topology.size} ranks, but the "
                f"communicator has {self.size}; build it for {self.size}"
            )
        return topology

    @property
    def missing(self) -> str:
        """What averages with neighbours do where a message was lost; may be set.

        "error": raise :class:`dectool.errors.MessageLostError`; "renormalize": rescale the
        weights of those present to the sum of all; "self": take one's own value in place of what
        is missing. Messages are lost in simulations with ``faults`` alone.

        Raises:
            ArgumentError: It is set to something else.
        """
        return self._missing

    @missing.setter
    def missing(self, policy: str) -> None:
        self._missing = checked_policy(policy)

    @property
    def restarts(self) -> int:
        """How often this rank has crashed and come back; only a simulation with faults does it."""
        return 0

    @property
    def gone(self) -> tuple[int, ...]:
        """Ranks that are known not to be there: they crashed, or come late; ascending.

        Only in a simulation with faults, which tells ``detection`` seconds after a crash.
        """
        return ()

    def steps(self, stop: int, start: int = 0) -> Iterator[int]:
        """Yield the numbers of steps from ``start`` to before ``stop``, for a loop over them.

        It is ``range(start, stop)``, but where ranks come back after a crash, or come late: such
        a rank goes on at the next step that nobody has begun, so that it meets its neighbours in
        the operations of the same step.

        Example:
            >>> import numpy as np, dectool
            >>> from dectool import sim, topology
            >>> def program(comm):
            ...     x = np.array([float(comm.rank)])
            ...     for k in comm.steps(60):
            ...         comm.elapse(0.1)
            ...         x = comm.pair_gossip(comm.neighbor_allreduce(x), comm.rank ^ 1)
            ...     return x
            >>> crash = sim.Crash(rank=1, at=1.0, restart_after=0.5)
            >>> result = dectool.run(program, backend="sim", topology=topology.ring(4),
            ...                      faults=[crash], missing="self")
            >>> values = np.ravel(result.values)
            >>> bool(np.ptp(values) < 1e-12)
            True
        """
        step = self._enter(start) if start < stop else stop
        while step < stop:
            yield step
            step += 1
            if step < stop:
                self._enter(step)

    def per_rank(self, function: Callable[[int], Any]) -> Any:
        """Return ``function(rank)``: the way to make a value that differs between ranks.

        With ``"stacked"`` the function is called for every rank and its arrays are stacked, so a
        program that uses this in place of ``if comm.rank == ...`` runs on every backend.

        Example:
            >>> import numpy as np, dectool
            >>> def program(comm):
            ...     return comm.per_rank(lambda rank: np.full(2, float(rank)))
            >>> [v.tolist() for v in dectool.run(program, n=2, backend="stacked").values]
            [[0.0, 0.0], [1.0, 1.0]]
        """
        return function(self.rank)

    # -- messages ------------------------------------------------------------------------------

    @abc.abstractmethod
    def _post(self, parcel: Parcel, dest: int, channel: Channel) -> None:
        """Send a parcel; returns at once. The parcel's buffers are not changed afterwards."""

    @abc.abstractmethod
    def _expect(self, source: int, channel: Channel) -> Pending:
        """Announce the receipt of the next parcel from ``source`` on ``channel``."""

    @abc.abstractmethod
    def _await(self, pending: Sequence[Pending]) -> list[Any]:
        """Block until all are complete; return their parcels (or background results)."""

    @abc.abstractmethod
    def _ready(self, pending: Sequence[Pending]) -> bool:
        """Tell whether all are complete, without blocking."""

    @abc.abstractmethod
    def _background(self, operation: Callable[[Self], Any]) -> Pending:
        """Run a blocking operation beside the program, on a communicator of its own clock."""

    @abc.abstractmethod
    def _subgroup(self, members: Sequence[int], context: Channel) -> Self:
        """Return the communicator of some ranks, this one among them, in the order given.

        Messages of the group use ``context``, so they cannot meet those of this communicator.
        """

    @property
    @abc.abstractmethod
    def _context(self) -> Channel:
        """First parts of every channel of this communicator."""

    def _numbered(self, operation: str) -> tuple[Channel, int]:
        """Return the channel of an operation, and how often it was used before."""
        counter = self._counters.get(operation)
        if counter is None:
            counter = _shared_channel(self._context, operation), itertools.count()
            self._counters[operation] = counter
        return counter[0], next(counter[1])

    def _next_sequence(self, operation: str) -> int:
        number = self._sequence.get(operation, 0)
        self._sequence[operation] = number + 1
        return number

    def _check_peer(self, peer: Any, argument: str) -> int:
        if isinstance(peer, (bool, np.bool_)) or not isinstance(peer, (int, np.integer)):
            raise ArgumentTypeError(
                f"{argument} is {peer!r}; it must be the number of a rank, 0 to {self.size - 1}"
            )
        if not 0 <= peer < self.size:
            raise ArgumentError(
                f"{argument} is {peer}, but the ranks are 0 to {self.size - 1} (size {self.size})"
            )
        return int(peer)

    # -- point to point ------------------------------------------------------------------------

    def isend(self, x: Any, dest: int, tag: int = 0) -> Request[None]:
        """Start sending ``x`` to rank ``dest``; it may be changed as soon as this returns.

        Args:
            x: An array, or a container of arrays (sent as one message).
            dest: Rank to send to.
            tag: Number that the receiver must name too.

        Raises:
            ArgumentError: ``dest`` is no rank.
            ArgumentTypeError: ``x`` cannot be sent.
        """
        buffers, layout = pack(x)
        channel = (*self._context, "message", tag)
        self._post(self._owned(buffers, layout), self._check_peer(dest, "dest"), channel)
        return Request(self, (), _nothing)

    def irecv(self, source: int, tag: int = 0) -> Request[Any]:
        """Start receiving what rank ``source`` sends with this tag; the result is a new array.

        Raises:
            ArgumentError: ``source`` is no rank.
        """
        channel = (*self._context, "message", tag)
        return Request(self, [self._expect(self._check_peer(source, "source"), channel)], _contents)

    def send(self, x: Any, dest: int, tag: int = 0) -> None:
        """Send ``x`` to rank ``dest``; see :meth:`isend`."""
        self.isend(x, dest, tag).wait()

    def recv(self, source: int, tag: int = 0) -> Any:
        """Receive what rank ``source`` sends with this tag; see :meth:`irecv`."""
        return self.irecv(source, tag).wait()

    def isendrecv(self, x: Any, dest: Any, source: Any, tag: int = 0) -> Request[Any]:
        """Start sending ``x`` to ``dest`` and receiving from ``source``; -1 for neither.

        With ``"stacked"``, ``dest`` and ``source`` are arrays with one entry per rank, as in
        ``comm.isendrecv(x, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)``, which
        works on every backend. Without a source the result is ``None``.
        """
        if type(x) is Buckets:
            return x.start(self.isendrecv, dest, source, tag)
        if dest is not None and dest != -1:
            self.isend(x, dest, tag)
        if source is None or source == -1:
            return Request(self, (), _nothing)
        return self.irecv(source, tag)

    def sendrecv(self, x: Any, dest: Any, source: Any, tag: int = 0) -> Any:
        """Send to one rank and receive from another at once; see :meth:`isendrecv`."""
        return self.isendrecv(x, dest, source, tag).wait()

    def iexchange(
        self, sends: dict[int, Any], sources: Sequence[int], tag: int = 0
    ) -> Request[dict[int, Any]]:
        """Start sending to many ranks and receiving from many.

        Args:
            sends: What to send, by destination.
            sources: Ranks to receive from.
            tag: Number that all must name.

        Returns:
            A request for what was received, by source.
        """
        channel = (*self._context, "exchange", tag)
        expected = [self._check_peer(source, "sources") for source in sources]
        if len(set(expected)) < len(expected):
            raise ArgumentError(f"sources {list(sources)} names a rank twice; name each once")
        for dest in sorted(sends):
            buffers, layout = pack(sends[dest])
            self._post(self._owned(buffers, layout), self._check_peer(dest, "sends"), channel)
        pending = [self._expect(source, channel) for source in expected]

        def finish(parcels: Sequence[Parcel]) -> dict[int, Any]:
            return dict(zip(expected, map(_content, parcels), strict=True))

        return Request(self, pending, finish)

    def exchange(
        self, sends: dict[int, Any], sources: Sequence[int], tag: int = 0
    ) -> dict[int, Any]:
        """Send to many ranks and receive from many; see :meth:`iexchange`."""
        return self.iexchange(sends, sources, tag).wait()

    @property
    def _lead_shape(self) -> tuple[int, ...]:
        """Axes in front of every array: none where a communicator is that of one rank."""
        return ()

    def _pack(self, x: Any, rows: int = 0) -> tuple[tuple[Buffer, ...], Layout]:
        """Flatten ``x`` behind the backend's leading axes and ``rows`` more."""
        return pack(x, rows)

    def _owned(self, buffers: tuple[Any, ...], layout: Any, sequence: int = 0) -> Parcel:
        """Return a parcel whose buffers the caller's later changes cannot reach."""
        return Parcel(own(buffers), layout, sequence)

    # -- time and chance -----------------------------------------------------------------------

    @abc.abstractmethod
    def now(self) -> Any:
        """This rank's time in seconds since the start (an array of all ranks' in stacked)."""

    @property
    @abc.abstractmethod
    def bytes_sent(self) -> Any:
        """Payload bytes that this rank has sent so far (an array of all ranks' in stacked).

        What is compressed counts with the bytes that are sent in its place; headers do not count.
        """

    @abc.abstractmethod
    def elapse(self, seconds: Any) -> None:
        """Let ``seconds`` of work pass on this rank's clock (really sleep, on a real backend).

        Raises:
            ArgumentError: ``seconds`` is negative or not finite.
        """

    @contextmanager
    def computing(self, flops: float | None = None) -> Iterator[None]:
        """Mark a block as the rank's computation; a simulator lets its modelled time pass.

        Args:
            flops: Floating-point operations of the block, for compute models that use them.

        Example:
            >>> import dectool
            >>> def program(comm):
            ...     with comm.computing():
            ...         pass                                   # a gradient, say
            ...     return comm.now()
            >>> model = dectool.sim.Constant(0.25)
            >>> dectool.run(program, n=2, backend="sim", compute=model).values
            [0.25, 0.25]
        """
        yield
        self._compute(flops)

    @abc.abstractmethod
    def _compute(self, flops: float | None = None) -> None:
        """Let the time of one computation pass, by the compute model."""

    def _spend(self, what: str, nbytes: Any) -> None:  # noqa: B027 (real backends do nothing)
        """Let the time pass that a simulator has for compressing so many bytes.

        Args:
            what: "compress" or "decompress".
            nbytes: Bytes of uncompressed data (one number for each rank in stacked).
        """

    @abc.abstractmethod
    def rng(self, purpose: str, number: int | None = None) -> Any:
        """Return the random generator of (seed, this rank, ``purpose``); the same each call.

        With ``"stacked"`` it draws for every rank, with the rank axis in front, exactly what
        each rank's own generator draws on the other backends.

        Args:
            purpose: A name, such as "minibatch"; purposes are independent of each other.
            number: If given, a fresh generator of (seed, rank, purpose, number), which is not
                kept: a run that is resumed at a step can draw what it would have drawn.

        Returns:
            A ``numpy.random.Generator`` (or its stacked form).
        """

    def _checked_seconds(self, seconds: Any) -> float:
        if (
            isinstance(seconds, (str, bytes))
            or np.ndim(seconds)
            or not hasattr(seconds, "__float__")
        ):
            raise ArgumentTypeError(
                f"elapse(seconds={seconds!r}): seconds must be a number, of this rank alone"
            )
        value = float(seconds)
        if not 0.0 <= value < float("inf"):
            raise ArgumentError(f"elapse(seconds={seconds}): seconds must be finite and at least 0")
        return value

    # -- recording -----------------------------------------------------------------------------

    @abc.abstractmethod
    def _observe(self, step: int, value: Any) -> None:
        """Hand ``value`` of step ``step`` to the run's observer, from all ranks, outside of time.

        Neither clocks nor counters move, and a simulated rank waits for no other. The run ends,
        without an error, when the observer says so.
        """

    def _enter(self, step: int) -> int:
        """Begin a step; return it, or where a rank has come back, the one to go on at.

        A backend that loses ranks overrides it, so that neighbours meet in the same step.
        """
        return step


@lru_cache(maxsize=1024)
def _shared_channel(context: Channel, operation: str) -> Channel:
    """Return one object for all ranks, so that a look-up need not compare what is in it."""
    return (*context, operation)


def _nothing(parcels: Sequence[Parcel]) -> None:
    return None


def _content(parcel: Parcel) -> Any:
    if parcel.layout is None:
        raise ContractError("an internal message without a layout was received as data")
    return unpack(parcel.buffers, parcel.layout)


def _contents(parcels: Sequence[Parcel]) -> Any:
    return _content(parcels[0])
