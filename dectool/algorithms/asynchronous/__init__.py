"""Algorithms whose ranks go on at their own pace, on one-sided windows or Poisson clocks."""

from __future__ import annotations

from dectool.algorithms.asynchronous.admm import AsynchronousADMM as AsynchronousADMM
from dectool.algorithms.asynchronous.adpsgd import ADPSGD as ADPSGD
from dectool.algorithms.asynchronous.bounded_staleness import BoundedStaleness as BoundedStaleness
from dectool.algorithms.asynchronous.gossip import (
    BroadcastGossip as BroadcastGossip,
    RandomizedGossip as RandomizedGossip,
)
from dectool.algorithms.asynchronous.model_average import (
    AsynchronousModelAverage as AsynchronousModelAverage,
    NewestModelAverage as NewestModelAverage,
)
from dectool.algorithms.asynchronous.osgp import OSGP as OSGP
from dectool.algorithms.asynchronous.push_sum import (
    AsynchronousGradientPush as AsynchronousGradientPush,
    AsynchronousPushSum as AsynchronousPushSum,
)
from dectool.algorithms.asynchronous.relay import (
    AsynchronousRelaySGD as AsynchronousRelaySGD,
    AsynchronousRelaySum as AsynchronousRelaySum,
)
from dectool.algorithms.asynchronous.swarm import (
    BlockingSwarmSGD as BlockingSwarmSGD,
    SwarmSGD as SwarmSGD,
)

__all__ = [
    "ADPSGD",
    "OSGP",
    "AsynchronousADMM",
    "AsynchronousGradientPush",
    "AsynchronousModelAverage",
    "AsynchronousPushSum",
    "AsynchronousRelaySGD",
    "AsynchronousRelaySum",
    "BlockingSwarmSGD",
    "BoundedStaleness",
    "BroadcastGossip",
    "NewestModelAverage",
    "RandomizedGossip",
    "SwarmSGD",
]
