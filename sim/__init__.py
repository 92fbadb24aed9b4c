"""The simulator: virtual time for programs that run on every backend."""

if __name__ == "sim":
    raise ImportError("import dectool.sim, not sim: a second import makes a second of every class")

from dectool.sim.compute import ComputeModel as ComputeModel
from dectool.sim.compute import Constant as Constant
from dectool.sim.compute import Exponential as Exponential
from dectool.sim.compute import FlopRate as FlopRate
from dectool.sim.compute import LogNormal as LogNormal
from dectool.sim.compute import Pareto as Pareto
from dectool.sim.compute import PerRank as PerRank
from dectool.sim.compute import ShiftedExponential as ShiftedExponential
from dectool.sim.network import AlphaBeta as AlphaBeta
from dectool.sim.network import LogGP as LogGP
from dectool.sim.network import NetworkModel as NetworkModel
from dectool.sim.trace import Trace as Trace

__all__ = [
    "AlphaBeta",
    "ComputeModel",
    "Constant",
    "Exponential",
    "FlopRate",
    "LogGP",
    "LogNormal",
    "NetworkModel",
    "Pareto",
    "PerRank",
    "ShiftedExponential",
    "Trace",
]
