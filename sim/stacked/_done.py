"""Operations of all ranks at once are done when they begin; what is left is their time."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.communicator import Pending
from dectool.communicator._arrays import Buffer, Phantom


class Done(Pending):
    """A value that is there, and the times at which each rank may have it."""

    __slots__ = ("times", "value")

    def __init__(self, value: Any, times: Any) -> None:
        self.value = value
        self.times = times


class Background(Done):
    """The same for a background operation, which holds the ports until it is waited for."""


def take(buffer: Buffer, rows: Any) -> Buffer:
    """Return some rows of a buffer, one after the other."""
    if isinstance(buffer, Phantom):
        return Phantom((len(rows), *buffer.shape[1:]), buffer.itemsize)
    taken: Buffer = buffer[rows]
    return taken


def one_row(buffer: Buffer, index: int) -> Buffer:
    """Return one row of a buffer."""
    if isinstance(buffer, Phantom):
        return Phantom(buffer.shape[1:], buffer.itemsize)
    row: Buffer = buffer[index]
    return row


def repeated(buffer: Buffer, size: int) -> Buffer:
    """Return one rank's buffer as that of every rank."""
    if isinstance(buffer, Phantom):
        return Phantom((size, *buffer.shape), buffer.itemsize)
    return np.repeat(buffer[None], size, axis=0)
