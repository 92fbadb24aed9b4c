"""A parcel that comes in several messages: the first says what it is, the others are its data."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from dectool.backends.mpi import _wire
from dectool.communicator import Parcel

if TYPE_CHECKING:
    from mpi4py import MPI


class Incoming:
    """A parcel whose data are on their way, in one message after the other."""

    __slots__ = ("bytes", "header", "parcel", "requests")

    def __init__(self, header: _wire.Header, parcel: Parcel, requests: deque[Any]) -> None:
        self.header = header
        self.parcel = parcel
        self.requests = requests
        self.bytes = 0

    def advance(self) -> bool:
        """Take note of the messages that have come; tell whether all have."""
        while self.requests and self.requests[0][0].Test():
            self.bytes += self.requests.popleft()[1]
        return not self.requests


def begin(comm: MPI.Intracomm, source: int, first: np.ndarray[Any, Any], data_tag: int) -> Incoming:
    """Start receiving what a first message announces; small data are in it."""
    from mpi4py import MPI

    header, data = _wire.decode(first)
    buffers = _wire.empty_buffers(header)
    requests: deque[Any] = deque()
    if header.inline:
        _wire.fill(buffers, data)
    else:
        for piece in _wire.raw(buffers, header.piece):
            request = comm.Irecv([piece, MPI.BYTE], source, data_tag)
            requests.append((request, piece.size))
    parcel = Parcel(buffers, _wire.layout_of(header.layout), header.sequence)
    return Incoming(header, parcel, requests)
