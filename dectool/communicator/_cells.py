"""What a window is made of: cells that are read and written as a whole, and who moves them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Literal, NamedTuple

import numpy as np

from dectool.communicator._core import Pending
from dectool.communicator._missing import Missing
from dectool.communicator._parcel import Buffer, Layout, Parcel, Phantom, own as copied
from dectool.kernels import add_scaled, scale

Kind = Literal["put", "accumulate", "add"]
"""To write a slot, to add to a slot, to add to the value of the rank itself."""


_NOBODY_ELSE = nullcontext()


class Cell:
    """One value of a window: that of a rank itself, or the last of one in-neighbour.

    Attributes:
        buffers: Flat arrays.
        weight: What push-sum carries along.
        version: How often the cell was written.
        received: How many remote operations have come to it, be it that they were lost.
        time: When what was written last was sent, in seconds of the run.
    """

    buffers: tuple[Buffer, ...]
    weight: float
    version: int
    received: int
    time: float

    def __init__(self, buffers: tuple[Buffer, ...], weight: float) -> None:
        self.buffers = buffers
        self.weight = weight
        self.version = 0
        self.received = 0
        self.time = 0.0

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep everybody else from reading or writing the cell; never held while waiting.

        Where ranks take turns, as here, there is nobody to keep away.
        """
        return _NOBODY_ELSE

    def fill(self, into: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
        """Copy an array into one of the buffers."""
        np.copyto(into, source)


def exclusive(cells: Sequence[Cell]) -> AbstractContextManager[Any]:
    """Keep everybody else from several cells, taken in the order given."""
    if type(cells[0]) is Cell:
        return _NOBODY_ELSE
    with ExitStack() as stack:
        for cell in cells:
            stack.enter_context(cell.exclusive())
        return stack.pop_all()


class Remote(NamedTuple):
    """What one rank does to its slot at another.

    Attributes:
        kind: What is done.
        factor: By what the value is scaled.
        weight: What push-sum sends along: the sender's weight, scaled.
        time: When it was sent, in seconds of the run.
    """

    kind: Kind
    factor: float
    weight: float
    time: float


class Snapshot(NamedTuple):
    """The content of a cell at one moment."""

    buffers: tuple[Buffer, ...]
    time: float


def write(cell: Cell, buffers: Sequence[Buffer], factor: float, dtypes: Sequence[str]) -> None:
    """Let a cell hold ``factor`` times the buffers; the cell must be held exclusively."""
    for into, buffer, dtype in zip(cell.buffers, buffers, dtypes, strict=True):
        if not isinstance(into, Phantom) and not isinstance(buffer, Phantom):
            cell.fill(into, buffer if factor == 1.0 else scale(buffer, factor, dtype))


def increase(cell: Cell, buffers: Sequence[Buffer], factor: float, dtypes: Sequence[str]) -> None:
    """Add ``factor`` times the buffers to a cell that is held exclusively."""
    for into, buffer, dtype in zip(cell.buffers, buffers, dtypes, strict=True):
        if not isinstance(into, Phantom) and not isinstance(buffer, Phantom):
            add_scaled(into, buffer, factor, dtype)


def apply(
    own: Cell, slot: Cell, remote: Remote, buffers: Sequence[Buffer], dtypes: Sequence[str]
) -> None:
    """Do what another rank has asked for; nobody sees half of it.

    Args:
        own: The value of the rank that it is done to.
        slot: What that rank keeps of the one that asks.
        remote: What is asked for.
        buffers: The value that was sent.
        dtypes: Of the buffers.
    """
    cell = own if remote.kind == "add" else slot
    with cell.exclusive():
        if remote.kind == "put":
            write(cell, buffers, remote.factor, dtypes)
            cell.weight = remote.weight
        else:
            increase(cell, buffers, remote.factor, dtypes)
            cell.weight += remote.weight
        cell.version += 1
        cell.time = remote.time
        if cell is slot:
            slot.received += 1
            return
    # After the value is given back: nobody asks for a cell while holding another.
    with slot.exclusive():
        slot.received += 1


def look(cell: Cell) -> Snapshot:
    """Return a copy of a cell."""
    with cell.exclusive():
        return Snapshot(copied(cell.buffers), cell.time)


class Store(abc.ABC):
    """One rank's part of a window, and how it reaches those of the others: what a backend makes.

    Ranks are those of the window's communicator.

    Attributes:
        own: This rank's value.
        slots: What each in-neighbour has left here.
        layout: What the buffers hold.
        decode: Returns the buffers that a parcel stands for.
    """

    own: Cell
    slots: dict[int, Cell]
    layout: Layout
    decode: Callable[[Parcel], tuple[Buffer, ...]]

    @property
    @abc.abstractmethod
    def invitation(self) -> bytes:
        """What the neighbours must know to reach this part; at most 64 bytes."""

    @abc.abstractmethod
    def connect(self, invitations: dict[int, bytes]) -> None:
        """Take note of the neighbours' invitations; then they may be reached."""

    @abc.abstractmethod
    def settle(self) -> None:
        """Take in all that has arrived by this rank's time, in the order of arrival."""

    @abc.abstractmethod
    def send(
        self, parcel: Parcel, shares: Sequence[tuple[int, Remote]], extra: int
    ) -> list[Pending]:
        """Do something to this rank's slots at others; returns at once.

        Args:
            parcel: The value; its buffers may change as soon as this returns.
            shares: Whom it goes to, in the order of sending, and what is to be done there.
            extra: Bytes that are sent beside the parcel's.

        Returns:
            What to await for it to be visible there; nothing for what is already.
        """

    @abc.abstractmethod
    def read(self, sources: Sequence[int]) -> list[Pending]:
        """Ask for a :class:`Snapshot` of the sources' own values."""

    @abc.abstractmethod
    def wait(self, done: Callable[[], bool], sources: Sequence[int]) -> Missing | None:
        """Block until ``done()``, which looks at the slots of ``sources``.

        Returns:
            What says that one of them is gone, so that it will never be done.
        """

    @abc.abstractmethod
    def acquire(self, owner: int) -> Missing | None:
        """Block until this rank has the mutex of another's part (or of its own).

        Returns:
            What says that the owner is gone, and its mutex with it.
        """

    @abc.abstractmethod
    def release(self, owner: int) -> None:
        """Give the mutex back."""

    def absent(self) -> dict[int, Missing]:
        """Return what says so of each neighbour that is known to be gone, for good."""
        return {}

    def injected(self, old: Sequence[Buffer], new: Sequence[Buffer]) -> None:  # noqa: B027
        """Take note that the program has replaced this rank's value, for accounts of mass."""

    def moved(self) -> None:  # noqa: B027
        """Take note that this rank's value and slots were collected."""

    def used(self, ages: dict[int, float]) -> None:  # noqa: B027
        """Take note of how old (seconds) what was used of each in-neighbour is."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go; what arrives from now on is dropped."""


class Opening(NamedTuple):
    """What a backend is told to make its part of a window of.

    Attributes:
        name: Of the window.
        buffers: This rank's value.
        layout: What they hold.
        sources: In-neighbours, which get a slot each.
        destinations: Out-neighbours.
        zero: Whether slots start from zero, not from this rank's value.
        push_sum: Whether weights travel along, which start from 1 here and 0 in the slots.
        decode: Returns the buffers that a parcel stands for.
    """

    name: str
    buffers: tuple[Buffer, ...]
    layout: Layout
    sources: tuple[int, ...]
    destinations: tuple[int, ...]
    zero: bool
    push_sum: bool
    decode: Callable[[Parcel], tuple[Buffer, ...]]

    def first_slot(self) -> tuple[Buffer, ...]:
        """Return what a slot holds at first."""
        if not self.zero:
            return copied(self.buffers)
        return tuple(b if isinstance(b, Phantom) else np.zeros_like(b) for b in self.buffers)

    @property
    def first_weight(self) -> float:
        """What push-sum's weight is at first, in this rank's own value."""
        return 1.0


def emptied(cell: Cell) -> None:
    """Set a cell that is held exclusively to zero."""
    for buffer in cell.buffers:
        if not isinstance(buffer, Phantom):
            buffer[...] = 0
    cell.weight = 0.0


def whole(x: Any) -> tuple[Buffer, ...]:
    """Return buffers that are contiguous, as cells keep them."""
    return tuple(b if isinstance(b, Phantom) else np.ascontiguousarray(b) for b in x)
