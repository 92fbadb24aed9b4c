"""The Communicator: the one interface that programs and algorithms are written against."""

from __future__ import annotations

from dectool.communicator._core import (
    Channel as Channel,
    Observation as Observation,
    Pending as Pending,
)
from dectool.communicator._hierarchical import HierarchicalOperations
from dectool.communicator._job import (
    Observer as Observer,
    Outcome as Outcome,
    Settings as Settings,
    StopRun as StopRun,
)
from dectool.communicator._parcel import Parcel as Parcel
from dectool.communicator._plans import NeighborPlan as NeighborPlan
from dectool.communicator._random import generator as generator
from dectool.communicator._report import (
    describe_channel as describe_channel,
    source_line as source_line,
)
from dectool.communicator._request import Request as Request

__all__ = ["Communicator", "Request"]


class Communicator(HierarchicalOperations):
    """What a rank sees of the others; a program is a plain function of one.

    The blocking calls are those of MPI. Any array goes in (NumPy, PyTorch) and the same kind comes
    out; a list, tuple or dict of arrays travels as one message. Inputs are never modified. Each
    operation has a non-blocking form with an ``i`` in front that returns a :class:`Request`.

    A program is written once and runs on every backend: see :func:`dectool.run`.
    """
