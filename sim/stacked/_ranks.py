"""The ranks of a stacked run as one array that refuses to be taken for a single rank."""

from __future__ import annotations

from typing import Any, NoReturn, final

import numpy as np

from dectool.errors import UnsupportedOperation


@final
class Ranks(np.ndarray[Any, Any]):
    """The numbers of all ranks. Arithmetic and indexing work; branching on them cannot."""

    def __array_wrap__(
        self, array: np.ndarray[Any, Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Keep the type for integers and conditions, so that branching on them is explained."""
        if return_scalar:
            return array[()]
        return array.view(Ranks) if array.dtype.kind in "iub" else array.view(np.ndarray)

    def __bool__(self) -> bool:
        """Refuse to choose one branch for all ranks."""
        if self.size == 1:
            return bool(self.item())
        _refuse("branches on comm.rank")

    def __int__(self) -> int:
        """Refuse to be one number."""
        if self.size == 1:
            return int(self.item())
        _refuse("takes comm.rank for one number")

    def __float__(self) -> float:
        """Refuse to be one number."""
        if self.size == 1:
            return float(self.item())
        _refuse("takes comm.rank for one number")

    def __index__(self) -> int:
        """Refuse to be one number."""
        if self.size == 1:
            return int(self.item())
        _refuse("takes comm.rank for one number")

    def __hash__(self) -> int:  # type: ignore[override]
        """Refuse to be one key of a dict."""
        if self.size == 1:
            return hash(self.item())
        _refuse("takes comm.rank for one number")


def all_ranks(size: int) -> Ranks:
    """Return the ranks from 0 to ``size - 1``."""
    ranks = np.arange(size).view(Ranks)
    ranks.flags.writeable = False
    return ranks


def _refuse(what: str) -> NoReturn:
    raise UnsupportedOperation(
        f"the program {what}, but backend 'stacked' runs all ranks at once and comm.rank is the "
        "array of them. Select rows with data[comm.rank], make values with "
        "comm.per_rank(function), or run it with backend='sim'"
    )
