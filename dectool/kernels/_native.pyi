from collections.abc import Sequence
from typing import Any

def weighted_sum(
    kind: int, out: Any, weights: tuple[float, ...], terms: Sequence[Any], /
) -> None: ...
def minmax_encode(kind: int, x: Any, out: Any, rows: int, count: int, block: int, /) -> None: ...
def minmax_decode(
    kind: int, data: Any, out: Any, rows: int, count: int, block: int, weight: float | None, /
) -> None: ...
def sums(
    kind: int,
    x: Any,
    rows: int,
    count: int,
    square: bool,
    units: Any,
    totals: Any,
    out: Any,
    offset: int,
    /,
) -> None: ...
def spread_signs(kind: int, data: Any, out: Any, rows: int, count: int, /) -> None: ...
def largest(kind: int, x: Any, out: Any, rows: int, count: int, k: int, /) -> None: ...
def levels(
    kind: int,
    x: Any,
    norms: Any,
    rows: int,
    count: int,
    levels: int,
    uniform: Any,
    codes: Any,
    /,
) -> None: ...
def cast(kind: int, x: Any, out: Any, /) -> None: ...
def threads(numbers: int, /) -> int: ...
