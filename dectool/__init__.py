"""dectool: decentralized optimization, written once and run everywhere.

An algorithm is a plain function or a small class written against :class:`Communicator`. It runs
on simulated graphs (``backend="stacked"`` or ``"sim"``) and on processes (``"mpi"``) unchanged.
"""

from __future__ import annotations

import importlib as _importlib
from types import ModuleType as _ModuleType

from dectool import topology as topology
from dectool.cluster import Cluster as Cluster
from dectool.communicator import (
    Communicator as Communicator,
    Request as Request,
    Window as Window,
)
from dectool.compare import compare as compare
from dectool.comparison import Comparison as Comparison
from dectool.errors import DeadlockError as DeadlockError, DectoolError as DectoolError
from dectool.fault_report import FaultReport as FaultReport
from dectool.history import History as History
from dectool.run import Result as Result, run as run
from dectool.solve import solve as solve

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "Communicator",
    "Comparison",
    "DeadlockError",
    "DectoolError",
    "FaultReport",
    "History",
    "Request",
    "Result",
    "Window",
    "__version__",
    "compare",
    "run",
    "solve",
    "topology",
]

_LAZY = frozenset({"algorithms", "compression", "fusion", "problems", "sim", "testing", "theory"})


def __getattr__(name: str) -> _ModuleType:
    """Import a room of dectool when it is first asked for, so that ``import dectool`` is light."""
    if name in _LAZY:
        return _importlib.import_module(f"dectool.{name}")
    raise AttributeError(f"module 'dectool' has no attribute {name!r}")
