"""One process's part of a window: in memory that neighbours on the node map, or by message."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, final

from dectool.backends.mpi._engine import Receipt
from dectool.backends.mpi._shared_memory import Place, SharedMemory, attach
from dectool.backends.mpi._window_cells import (
    PATIENCE,
    Line,
    Part,
    make_line,
    mark_of,
    part_size,
    write_sources,
)
from dectool.backends.mpi._window_messages import NOTHING, Freed, Order
from dectool.backends.mpi._window_service import WindowService
from dectool.communicator import Channel, Parcel, Pending
from dectool.communicator._cells import (
    Opening,
    Remote,
    Store,
    apply,
    exclusive,
    look,
    write,
)
from dectool.communicator._parcel import own
from dectool.errors import WindowError

if TYPE_CHECKING:
    from dectool.backends.mpi._communicator import MPICommunicator

_INVITATION = struct.Struct("<4q")
"""Process, descriptor and size of the memory (0 for none), and number of the window."""

_NOWHERE = Place(0, 0, 0)


@final
class MPIStore(Store):
    """A process's part of a window.

    Args:
        comm: The rank's communicator.
        opening: What the window is made of.
        service: Serves neighbours that share no memory with this rank.
    """

    def __init__(self, comm: MPICommunicator, opening: Opening, service: WindowService) -> None:
        self._comm = comm
        self._engine = comm._engine
        self._service = service
        self._channel: Channel = (*comm._base, "window", opening.name)
        self._like = opening.buffers
        self._shared = _memory(part_size(opening.buffers, len(opening.sources)), comm)
        memory, self._place = _map(self._shared)
        self._number = service.number()
        write_sources(memory, _mark(self._engine.comm.rank, self._number), opening.sources)
        self._part = self._part_in(memory)
        self.own = self._part.own
        self.slots = self._part.slots
        self.layout = opening.layout
        self.decode = opening.decode
        with exclusive([self.own, *self.slots.values()]):
            write(self.own, opening.buffers, 1.0, self.layout.dtypes)
            self.own.weight = opening.first_weight if opening.push_sum else 0.0
            first = opening.first_slot()
            for cell in self.slots.values():
                write(cell, first, 1.0, self.layout.dtypes)
        self._near: dict[int, Part] = {comm.rank: self._part}
        self._far: dict[int, int] = {}
        self._held: dict[int, Line | None] = {}
        service.enter(self._number, self, self._part)

    def _part_in(self, memory: Any) -> Part:
        # The cells must not keep the store: what keeps itself is freed late.
        service, channel = self._service, self._channel
        me = self._engine.comm.rank
        return Part(memory, me, self._like, lambda line: service.wait_for(line, channel))

    @property
    def invitation(self) -> bytes:
        """Where the memory is, and the number of the window."""
        return _INVITATION.pack(*self._place, self._number)

    def connect(self, invitations: dict[int, bytes]) -> None:
        """Map the parts of neighbours on the node; take note of the others' numbers."""
        node = self._engine.boards.node
        for rank, invitation in invitations.items():
            *place, number = _INVITATION.unpack(invitation)
            memory = None
            world = self._comm._world(rank)
            if world in node and make_line is not None:
                memory = _attached(Place(*place), _mark(world, number))
            if memory is None:
                self._far[rank] = number
            else:
                self._near[rank] = self._part_in(memory)
        if self._far:
            self._service.reach_far(self._number)

    def settle(self) -> None:
        """Serve what has come by message; everything else is in place already."""
        if self._far:
            self._service.look()

    # -- operations ----------------------------------------------------------------------------

    def send(
        self, parcel: Parcel, shares: Sequence[tuple[int, Remote]], extra: int
    ) -> list[Pending]:
        """Ask far ranks, and write into the slots at near ones; those are complete at once."""
        self._engine.messages += len(shares)
        self._engine.bytes += len(shares) * (parcel.nbytes + extra)
        pending: list[Pending] = []
        mine = parcel.buffers is self.own.buffers
        if self._far and any(dest in self._far for dest, _ in shares):
            kept = look(self.own).buffers if mine else own(parcel.buffers)
            for dest, remote in shares:
                if dest in self._far:
                    order = Order("write", self._far[dest], 0, self._comm.rank, remote)
                    pending.append(self._ask(dest, order, Parcel(kept, None)))
        near = [(dest, remote) for dest, remote in shares if dest in self._near]
        if near:
            buffers = self.decode(parcel)
            # Neighbours may add to what is read here; who waits for it waits for nobody else.
            with self.own.exclusive() if mine else nullcontext():
                for dest, remote in near:
                    part = self._near[dest]
                    slot = part.slots[self._comm.rank]
                    apply(part.own, slot, remote, buffers, self.layout.dtypes)
        return pending

    def read(self, sources: Sequence[int]) -> list[Pending]:
        """Copy the values of near ranks; ask far ones."""
        self._engine.messages += len(sources)
        self._engine.bytes += len(sources) * sum(buffer.nbytes for buffer in self.own.buffers)
        return [self._read_one(source) for source in sources]

    def _read_one(self, source: int) -> Receipt:
        number = self._far.get(source)
        if number is not None:
            return self._ask(source, Order("read", number, 0), NOTHING)
        receipt = Receipt(self._comm._world(source), self._channel)
        receipt.content = look(self._near[source].own)
        return receipt

    def _ask(self, dest: int, order: Order, parcel: Parcel, what: tuple[str, ...] = ()) -> Receipt:
        channel = (*self._channel, *what)
        return self._service.ask(self._comm._world(dest), order, parcel, channel)

    def wait(self, done: Callable[[], bool], sources: Sequence[int]) -> None:
        """Go on with everything else until it is done."""
        engine, world = self._engine, [self._comm._world(source) for source in sources]

        def missing() -> list[Receipt]:
            # What a rank wrote is here before it is heard that it has ended.
            running = [rank for rank in world if rank not in engine.ended]
            return [Receipt(rank, self._channel) for rank in running or world]

        engine.block(done, missing)

    # -- mutex ---------------------------------------------------------------------------------

    def acquire(self, owner: int) -> None:
        """Take a near rank's mutex; ask a far one for it."""
        number = self._far.get(owner)
        if number is None:
            line = self._near[owner].mutex
            if not line.take(PATIENCE):
                self._service.block_for(line, (*self._channel, "lock"))
            self._held[owner] = line
            return
        receipt = self._ask(owner, Order("lock", number, 0), NOTHING, ("lock",))
        (answer,) = self._engine.wait([receipt])
        if isinstance(answer, Freed):
            raise WindowError(answer.message)
        self._held[owner] = None

    def release(self, owner: int) -> None:
        """Give the mutex back, be it that the window was freed meanwhile."""
        line = self._held.pop(owner)
        if line is not None:
            line.give_back()
        else:
            self._ask(owner, Order("unlock", self._far[owner], 0), NOTHING)

    def close(self) -> None:
        """Let go of the memory; neighbours that have mapped it may still write there."""
        self._service.leave(self._number)
        self._near.clear()
        self._shared = None


def _memory(size: int, comm: MPICommunicator) -> SharedMemory | mmap.mmap | None:
    """Return memory for a part: such as neighbours can map, if this rank has any on its node."""
    if make_line is not None and comm._engine.boards.node:
        try:
            return SharedMemory(size)
        except OSError:
            pass
    return mmap.mmap(-1, size)


def _mark(rank: int, number: int) -> int:
    """Return what tells a part from every other of the run."""
    return rank << 32 | number


def _attached(place: Place, mark: int) -> Any:
    """Map a neighbour's part; ``None`` if it is not to be had, or was freed meanwhile."""
    if not place.process:
        return None
    try:
        memory = attach(place)
    except OSError:
        return None
    return memory if mark_of(memory) == mark else None


def _map(memory: SharedMemory | mmap.mmap | None) -> tuple[Any, Place]:
    if isinstance(memory, SharedMemory):
        return memory.map, memory.place
    return memory, _NOWHERE
