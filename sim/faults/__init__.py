"""Faults of a simulated run: one class for each, and the machinery that makes them happen."""

from __future__ import annotations

from dectool.sim.faults._fault import Fault as Fault
from dectool.sim.faults._messages import (
    LinkDown as LinkDown,
    MessageLoss as MessageLoss,
    RandomLinkDown as RandomLinkDown,
    SlowLink as SlowLink,
)
from dectool.sim.faults._ranks import (
    Crash as Crash,
    LateJoin as LateJoin,
    RandomCrashes as RandomCrashes,
    RandomSlowPeriods as RandomSlowPeriods,
    SlowPeriod as SlowPeriod,
)

__all__ = [
    "Crash",
    "Fault",
    "LateJoin",
    "LinkDown",
    "MessageLoss",
    "RandomCrashes",
    "RandomLinkDown",
    "RandomSlowPeriods",
    "SlowLink",
    "SlowPeriod",
]
