"""Arrays that are not there yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dectool.communicator._arrays import BFLOAT16, Buffer, Leaf, open_array
from dectool.errors import ArgumentError, ContractError


@final
@dataclass(frozen=True)
class Spec:
    """An array that is not there yet: shape, dtype and origin.

    Args:
        shape: With the leading axes, if there are some.
        dtype: Name of a dtype of NumPy, or "bfloat16".
        origin: "numpy", "torch", or "meta" for tensors without data.

    Raises:
        ArgumentError: ``origin`` or ``dtype`` is unknown.

    Example:
        >>> from dectool import fusion
        >>> [view.shape for view in fusion.Buckets([fusion.Spec((2, 3)), fusion.Spec((4,))]).views]
        [(2, 3), (4,)]
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    origin: str = "numpy"

    def __post_init__(self) -> None:
        """Check dtype and origin."""
        if self.origin not in ("numpy", "torch", "meta"):
            raise ArgumentError(f"Spec: origin={self.origin!r} must be 'numpy', 'torch' or 'meta'")
        try:
            np.dtype("uint16" if self.dtype == BFLOAT16 else self.dtype)
        except TypeError:
            raise ArgumentError(
                f"Spec: dtype={self.dtype!r} is no dtype; give a name such as 'float32'"
            ) from None


def open_spec(x: Any, lead: int) -> tuple[Buffer | None, Leaf, tuple[int, ...]]:
    """Return the buffer of an array (of a :class:`Spec` none), what it is, and its leading axes.

    Raises:
        ArgumentTypeError: It is neither.
        ContractError: It has fewer axes than must lead.
    """
    if isinstance(x, Spec):
        if len(x.shape) < lead:
            raise ContractError(f"{x} has fewer than the {lead} axes that must be in front")
        return None, Leaf(x.origin, x.dtype, tuple(x.shape[lead:])), tuple(x.shape[:lead])
    buffer, leaf = open_array(x, lead)
    if leaf.origin in ("generic", "scalar"):
        leaf = leaf._replace(origin="numpy")
    return buffer, leaf, buffer.shape[:-1]
