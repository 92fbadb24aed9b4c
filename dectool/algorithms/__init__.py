"""Decentralized algorithms; each is a frozen dataclass with ``init`` and ``step``."""

from __future__ import annotations

import dataclasses as _dataclasses
from typing import Any

from dectool._text import nearest as _nearest
from dectool.algorithms._algorithm import Algorithm as Algorithm, State as State
from dectool.algorithms._needs import Needs as Needs, check_needs as check_needs
from dectool.algorithms.allreduce import AllReduceGD as AllReduceGD
from dectool.algorithms.asynchronous import (
    ADPSGD as ADPSGD,
    OSGP as OSGP,
    AsynchronousADMM as AsynchronousADMM,
    AsynchronousGradientPush as AsynchronousGradientPush,
    AsynchronousModelAverage as AsynchronousModelAverage,
    AsynchronousPushSum as AsynchronousPushSum,
    AsynchronousRelaySGD as AsynchronousRelaySGD,
    AsynchronousRelaySum as AsynchronousRelaySum,
    BlockingSwarmSGD as BlockingSwarmSGD,
    BoundedStaleness as BoundedStaleness,
    BroadcastGossip as BroadcastGossip,
    NewestModelAverage as NewestModelAverage,
    RandomizedGossip as RandomizedGossip,
    SwarmSGD as SwarmSGD,
)
from dectool.algorithms.beer import BEER as BEER
from dectool.algorithms.choco import (
    CHOCO as CHOCO,
    CHOCOGossip as CHOCOGossip,
    choco_gamma as choco_gamma,
)
from dectool.algorithms.compressed_adam import OneBitAdam as OneBitAdam, QAdam as QAdam
from dectool.algorithms.compressed_gradients import (
    DGC as DGC,
    EF21 as EF21,
    EFSGD as EFSGD,
    QSGD as QSGD,
    ByteGrad as ByteGrad,
)
from dectool.algorithms.dcd import (
    DCD as DCD,
    ECD as ECD,
    LowPrecisionDecentralized as LowPrecisionDecentralized,
)
from dectool.algorithms.deepsqueeze import DeepSqueeze as DeepSqueeze
from dectool.algorithms.diffusion import ATC as ATC, CTA as CTA, DGD as DGD
from dectool.algorithms.exact_diffusion import (
    D2 as D2,
    NIDS as NIDS,
    ExactDiffusion as ExactDiffusion,
)
from dectool.algorithms.extra import EXTRA as EXTRA
from dectool.algorithms.gossip import (
    ChebyshevGossip as ChebyshevGossip,
    Gossip as Gossip,
    PushSum as PushSum,
    ShiftRegisterGossip as ShiftRegisterGossip,
)
from dectool.algorithms.gradient_tracking import (
    ATCGradientTracking as ATCGradientTracking,
    DIGing as DIGing,
    SemiATCGradientTracking as SemiATCGradientTracking,
)
from dectool.algorithms.lead import CEDAS as CEDAS, LEAD as LEAD
from dectool.algorithms.moniqua import Moniqua as Moniqua
from dectool.algorithms.power_gossip import PowerGossip as PowerGossip
from dectool.algorithms.relay import RelaySGD as RelaySGD, RelaySum as RelaySum
from dectool.algorithms.robust_push_sum import RobustPushSum as RobustPushSum
from dectool.errors import ArgumentError as _ArgumentError

ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.__name__: kind
    for kind in (
        Gossip,
        ChebyshevGossip,
        ShiftRegisterGossip,
        PushSum,
        RobustPushSum,
        DGD,
        ATC,
        CTA,
        EXTRA,
        ExactDiffusion,
        NIDS,
        D2,
        DIGing,
        SemiATCGradientTracking,
        ATCGradientTracking,
        AllReduceGD,
        CHOCOGossip,
        CHOCO,
        DCD,
        ECD,
        LowPrecisionDecentralized,
        DeepSqueeze,
        Moniqua,
        LEAD,
        CEDAS,
        BEER,
        PowerGossip,
        QSGD,
        EFSGD,
        EF21,
        DGC,
        ByteGrad,
        OneBitAdam,
        QAdam,
        RelaySum,
        RelaySGD,
        AsynchronousPushSum,
        AsynchronousGradientPush,
        OSGP,
        RandomizedGossip,
        BroadcastGossip,
        ADPSGD,
        SwarmSGD,
        BlockingSwarmSGD,
        BoundedStaleness,
        AsynchronousModelAverage,
        NewestModelAverage,
        AsynchronousRelaySum,
        AsynchronousRelaySGD,
        AsynchronousADMM,
    )
}
"""Every algorithm by its class name."""

__all__ = [
    "ADPSGD",
    "ALGORITHMS",
    "ATC",
    "BEER",
    "CEDAS",
    "CHOCO",
    "CTA",
    "D2",
    "DCD",
    "DGC",
    "DGD",
    "ECD",
    "EF21",
    "EFSGD",
    "EXTRA",
    "LEAD",
    "NIDS",
    "OSGP",
    "QSGD",
    "ATCGradientTracking",
    "Algorithm",
    "AllReduceGD",
    "AsynchronousADMM",
    "AsynchronousGradientPush",
    "AsynchronousModelAverage",
    "AsynchronousPushSum",
    "AsynchronousRelaySGD",
    "AsynchronousRelaySum",
    "BlockingSwarmSGD",
    "BoundedStaleness",
    "BroadcastGossip",
    "ByteGrad",
    "CHOCOGossip",
    "ChebyshevGossip",
    "DIGing",
    "DeepSqueeze",
    "ExactDiffusion",
    "Gossip",
    "LowPrecisionDecentralized",
    "Moniqua",
    "Needs",
    "NewestModelAverage",
    "OneBitAdam",
    "PowerGossip",
    "PushSum",
    "QAdam",
    "RandomizedGossip",
    "RelaySGD",
    "RelaySum",
    "RobustPushSum",
    "SemiATCGradientTracking",
    "ShiftRegisterGossip",
    "State",
    "SwarmSGD",
    "check_needs",
    "choco_gamma",
    "get",
]


def get(name: str, **parameters: Any) -> Algorithm:
    """Return the algorithm of a name (in any case) with the given hyper-parameters.

    Raises:
        ArgumentError: No algorithm has that name, or it lacks or has not such a parameter.

    Example:
        >>> get("extra", lr=0.1)
        EXTRA(lr=0.1)
    """
    by_lower = {known.lower(): kind for known, kind in ALGORITHMS.items()}
    kind = by_lower.get(name.lower())
    if kind is None:
        raise _ArgumentError(f"algorithm {name!r} is unknown; {_nearest(name, ALGORITHMS)}")
    fields = {field.name: field for field in _dataclasses.fields(kind)}
    for given in parameters:
        if given not in fields:
            choices = _nearest(given, fields) if fields else "it has none"
            raise _ArgumentError(f"{kind.__name__} has no parameter {given!r}; {choices}")
    for name, field in fields.items():
        if field.default is _dataclasses.MISSING and name not in parameters:
            raise _ArgumentError(f"{kind.__name__} needs {name}, such as {name}=0.1")
    return kind(**parameters)
