from collections.abc import Sequence
from typing import Any

def weighted_sum(
    kind: int, out: Any, weights: tuple[float, ...], terms: Sequence[Any], /
) -> None: ...
