"""The simulator: virtual time for programs that run on every backend."""

if __name__ == "sim":
    raise ImportError("import dectool.sim, not sim: a second import makes a second of every class")

from dectool.sim.compute import (
    ComputeModel as ComputeModel,
    Constant as Constant,
    Exponential as Exponential,
    FlopRate as FlopRate,
    LogNormal as LogNormal,
    Pareto as Pareto,
    PerRank as PerRank,
    ShiftedExponential as ShiftedExponential,
)
from dectool.sim.faults import (
    Crash as Crash,
    Fault as Fault,
    LateJoin as LateJoin,
    LinkDown as LinkDown,
    MessageLoss as MessageLoss,
    RandomCrashes as RandomCrashes,
    RandomLinkDown as RandomLinkDown,
    RandomSlowPeriods as RandomSlowPeriods,
    SlowLink as SlowLink,
    SlowPeriod as SlowPeriod,
)
from dectool.sim.network import (
    AlphaBeta as AlphaBeta,
    Codec as Codec,
    LogGP as LogGP,
    NetworkModel as NetworkModel,
)
from dectool.sim.trace import Trace as Trace

__all__ = [
    "AlphaBeta",
    "Codec",
    "ComputeModel",
    "Constant",
    "Crash",
    "Exponential",
    "Fault",
    "FlopRate",
    "LateJoin",
    "LinkDown",
    "LogGP",
    "LogNormal",
    "MessageLoss",
    "NetworkModel",
    "Pareto",
    "PerRank",
    "RandomCrashes",
    "RandomLinkDown",
    "RandomSlowPeriods",
    "ShiftedExponential",
    "SlowLink",
    "SlowPeriod",
    "Trace",
]
