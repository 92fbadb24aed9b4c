"""Decentralized algorithms; each is a frozen dataclass with ``init`` and ``step``."""

from __future__ import annotations

import dataclasses as _dataclasses
from typing import Any

from dectool._text import nearest as _nearest
from dectool.algorithms._algorithm import Algorithm as Algorithm, State as State
from dectool.algorithms._needs import Needs as Needs, check_needs as check_needs
from dectool.algorithms.allreduce import AllReduceGD as AllReduceGD
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
from dectool.errors import ArgumentError as _ArgumentError

ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.__name__: kind
    for kind in (
        Gossip,
        ChebyshevGossip,
        ShiftRegisterGossip,
        PushSum,
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
    )
}
"""Every algorithm by its class name."""

__all__ = [
    "ALGORITHMS",
    "ATC",
    "CTA",
    "D2",
    "DGD",
    "EXTRA",
    "NIDS",
    "ATCGradientTracking",
    "Algorithm",
    "AllReduceGD",
    "ChebyshevGossip",
    "DIGing",
    "ExactDiffusion",
    "Gossip",
    "Needs",
    "PushSum",
    "SemiATCGradientTracking",
    "ShiftRegisterGossip",
    "State",
    "check_needs",
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
