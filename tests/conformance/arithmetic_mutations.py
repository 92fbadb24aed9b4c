"""Slips of arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from dectool.communicator import _neighborhood, _parcel, _plans
from dectool.kernels import _casts
from tests.conformance.planting import Mutation, instead, replace


def backwards(original: Any) -> Any:
    return lambda weights, rows, dtype: original(weights[::-1], rows[::-1], dtype)


def from_the_first_term(original: Any) -> Any:
    """Drop the +0.0 that every sum starts from."""

    def mutant(weights: Any, rows: Any, dtype: str) -> Any:
        total = original(weights, rows, dtype)
        if dtype in ("float64", "float32"):
            products = [
                np.asarray(w, row.dtype) * row for w, row in zip(weights, rows, strict=True)
            ]
            negative = np.all([(p == 0) & np.signbit(p) for p in products], axis=0)
            total[negative] = -0.0
        return total

    return mutant


def without_rounding(original: Any) -> Any:
    """Sum in extended precision, as fused multiply-adds in part do."""

    def mutant(weights: Any, rows: Any, dtype: str) -> Any:
        if dtype != "float64":
            return original(weights, rows, dtype)
        return original(weights, [row.astype("longdouble") for row in rows], "float128").astype(
            "f8"
        )

    return mutant


def transposed(original: Any) -> Any:
    def mutant(topology: Any, rank: int) -> Any:
        plan = original(topology, rank)
        ranks = [*plan.sources]
        if plan.place is not None:
            ranks.insert(plan.place, rank)
        return plan._replace(weights=tuple(topology.weight(j, rank) for j in ranks))

    return mutant


def in_double(original: Any) -> Any:
    """Return NumPy's float32 as float64."""

    def mutant(*args: Any, **named: Any) -> Any:
        array = original(*args, **named)
        single = isinstance(array, np.ndarray) and array.dtype == "float32"
        return array.astype("float64") if single else array

    return mutant


ARITHMETIC: dict[str, Mutation] = {
    "order of summation": replace(_parcel, "weighted_sum", backwards),
    "no +0.0": replace(_parcel, "weighted_sum", from_the_first_term),
    "no rounding of products": replace(_parcel, "weighted_sum", without_rounding),
    "transposed W": replace(_plans, "plan_of", transposed),
    "float16 summed in float16": instead(_casts, "is_half", lambda dtype: False),
    "wrong dtype": replace(_neighborhood, "unpack", in_double),
}
"""Slips of arithmetic; all break neighbor_allreduce."""
