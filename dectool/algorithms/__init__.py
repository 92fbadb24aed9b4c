"""Decentralized algorithms; each is a frozen dataclass with ``init`` and ``step``."""

from __future__ import annotations

import dataclasses as _dataclasses
from typing import Any

from dectool._text import nearest as _nearest
from dectool.algorithms._algorithm import Algorithm as Algorithm, State as State
from dectool.algorithms._needs import Needs as Needs, check_needs as check_needs
from dectool.algorithms.accelerated import OPAPC as OPAPC, Mudag as Mudag
from dectool.algorithms.admm import DecentralizedADMM as DecentralizedADMM
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
from dectool.algorithms.byzantine import (
    BRIDGE as BRIDGE,
    ClippedGossip as ClippedGossip,
    ClippedGossipSGD as ClippedGossipSGD,
)
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
from dectool.algorithms.dlm import DLM as DLM
from dectool.algorithms.dual_accelerated import MSDA as MSDA, SSDA as SSDA
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
from dectool.algorithms.gradient_push import SGP as SGP, SubgradientPush as SubgradientPush
from dectool.algorithms.gradient_tracking import (
    ATCGradientTracking as ATCGradientTracking,
    DIGing as DIGing,
    SemiATCGradientTracking as SemiATCGradientTracking,
)
from dectool.algorithms.lead import CEDAS as CEDAS, LEAD as LEAD
from dectool.algorithms.momentum import (
    DecentLaM as DecentLaM,
    DmSGD as DmSGD,
    QuasiGlobalMomentum as QuasiGlobalMomentum,
)
from dectool.algorithms.moniqua import Moniqua as Moniqua
from dectool.algorithms.near_dgd import NEARDGD as NEARDGD, DGDt as DGDt
from dectool.algorithms.periodic_averaging import (
    CooperativeSGD as CooperativeSGD,
    GossipPGA as GossipPGA,
    LocalSGD as LocalSGD,
    SlowMo as SlowMo,
)
from dectool.algorithms.pg_extra import PGEXTRA as PGEXTRA
from dectool.algorithms.power_gossip import PowerGossip as PowerGossip
from dectool.algorithms.push_diging import ADDOPT as ADDOPT, PushDIGing as PushDIGing
from dectool.algorithms.push_pull import (
    AB as AB,
    ATCPushPull as ATCPushPull,
    PushPull as PushPull,
)
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
        PGEXTRA,
        ExactDiffusion,
        NIDS,
        D2,
        DIGing,
        SemiATCGradientTracking,
        ATCGradientTracking,
        AB,
        PushPull,
        ATCPushPull,
        PushDIGing,
        ADDOPT,
        SubgradientPush,
        SGP,
        NEARDGD,
        DGDt,
        DLM,
        DecentralizedADMM,
        SSDA,
        MSDA,
        Mudag,
        OPAPC,
        AllReduceGD,
        DmSGD,
        QuasiGlobalMomentum,
        DecentLaM,
        LocalSGD,
        CooperativeSGD,
        GossipPGA,
        SlowMo,
        ClippedGossip,
        ClippedGossipSGD,
        BRIDGE,
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
    "AB",
    "ADDOPT",
    "ADPSGD",
    "ALGORITHMS",
    "ATC",
    "BEER",
    "BRIDGE",
    "CEDAS",
    "CHOCO",
    "CTA",
    "D2",
    "DCD",
    "DGC",
    "DGD",
    "DLM",
    "ECD",
    "EF21",
    "EFSGD",
    "EXTRA",
    "LEAD",
    "MSDA",
    "NEARDGD",
    "NIDS",
    "OPAPC",
    "OSGP",
    "PGEXTRA",
    "QSGD",
    "SGP",
    "SSDA",
    "ATCGradientTracking",
    "ATCPushPull",
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
    "ClippedGossip",
    "ClippedGossipSGD",
    "CooperativeSGD",
    "DGDt",
    "DIGing",
    "DecentLaM",
    "DecentralizedADMM",
    "DeepSqueeze",
    "DmSGD",
    "ExactDiffusion",
    "Gossip",
    "GossipPGA",
    "LocalSGD",
    "LowPrecisionDecentralized",
    "Moniqua",
    "Mudag",
    "Needs",
    "NewestModelAverage",
    "OneBitAdam",
    "PowerGossip",
    "PushDIGing",
    "PushPull",
    "PushSum",
    "QAdam",
    "QuasiGlobalMomentum",
    "RandomizedGossip",
    "RelaySGD",
    "RelaySum",
    "RobustPushSum",
    "SemiATCGradientTracking",
    "ShiftRegisterGossip",
    "SlowMo",
    "State",
    "SubgradientPush",
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
