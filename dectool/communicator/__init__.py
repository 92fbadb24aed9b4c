"""The Communicator: the one interface that programs and algorithms are written against."""

from __future__ import annotations

from dectool.communicator._communicator import Communicator as Communicator
from dectool.communicator._core import (
    Channel as Channel,
    Pending as Pending,
)
from dectool.communicator._job import (
    Observer as Observer,
    Outcome as Outcome,
    Settings as Settings,
    StopRun as StopRun,
)
from dectool.communicator._observation import Observation as Observation
from dectool.communicator._one_rank import OneRankCommunicator as OneRankCommunicator
from dectool.communicator._parcel import Parcel as Parcel
from dectool.communicator._plans import NeighborPlan as NeighborPlan
from dectool.communicator._random import generator as generator
from dectool.communicator._report import (
    describe_channel as describe_channel,
    source_line as source_line,
)
from dectool.communicator._request import Request as Request
from dectool.communicator._window import Window as Window

__all__ = ["Communicator", "Request", "Window"]
