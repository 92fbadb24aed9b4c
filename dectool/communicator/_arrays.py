"""The one door through which arrays of any library pass.

Inside dectool an array is a flat NumPy buffer and a :class:`Leaf` that says what it was. A buffer
of bfloat16 holds the 16 bits as ``uint16``; a meta tensor becomes a :class:`Phantom`, which has a
size and no data.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from dectool.errors import ArgumentTypeError, ContractError, UnsupportedOperation

BFLOAT16 = "bfloat16"

_NUMPY_KINDS = frozenset("fciub")
_AXES = {1: "one axis of rows", 2: "the axis of ranks and one of rows"}


class Phantom:
    """A buffer without data: what a meta tensor becomes, so that its size is still timed.

    Args:
        shape: Shape of the buffer.
        itemsize: Bytes of one element.
    """

    __slots__ = ("itemsize", "shape")

    def __init__(self, shape: tuple[int, ...], itemsize: int) -> None:
        self.shape = shape
        self.itemsize = itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        """Bytes that the data would take."""
        return self.size * self.itemsize

    def segment(self, start: int, stop: int) -> Phantom:
        """Return the part of a flat buffer between two positions."""
        return Phantom((stop - start,), self.itemsize)


Buffer = np.ndarray[Any, Any] | Phantom
"""A flat array, or the stand-in for one."""


class Leaf(NamedTuple):
    """What an array was before it became a buffer.

    ``origin`` is "numpy", "torch", "meta", "generic" (a scalar of NumPy) or "scalar" (a number
    of Python); ``dtype`` is the logical name, such as "float32" or "bfloat16"; ``shape`` leaves
    out the rank axis.
    """

    origin: str
    dtype: str
    shape: tuple[int, ...]


def _torch() -> Any:
    return sys.modules.get("torch")


def is_array(x: object) -> bool:
    """Tell whether ``x`` is one array or number, as opposed to a container of them."""
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        return True
    torch = _torch()
    return (torch is not None and isinstance(x, torch.Tensor)) or hasattr(
        x, "__cuda_array_interface__"
    )


def open_array(x: Any, lead: int = 0) -> tuple[Buffer, Leaf]:
    """Return the buffer of ``x`` (flat behind ``lead`` leading axes) and what it was.

    The buffer is a view of ``x`` where memory order allows, else a copy.

    Raises:
        ArgumentTypeError: ``x`` is no array, or has a dtype that cannot be sent.
        ContractError: ``x`` has fewer axes than must lead.
    """
    if lead and is_array(x) and len(getattr(x, "shape", ())) < lead:
        raise ContractError(
            f"got an array of shape {tuple(getattr(x, 'shape', ()))}, but {_AXES[lead]} must be in "
            "front: give it a leading axis with one row for each rank or edge that is concerned"
        )
    if isinstance(x, np.ndarray):
        return _open_numpy(x, "numpy", lead)
    if isinstance(x, np.generic):
        return _open_numpy(np.asarray(x), "generic", 0)
    if isinstance(x, (bool, int, float, complex)):
        return _open_numpy(np.asarray(x), "scalar", 0)
    torch = _torch()
    if torch is not None and isinstance(x, torch.Tensor):
        return _open_torch(torch, x, lead)
    if hasattr(x, "__cuda_array_interface__"):
        raise UnsupportedOperation(
            f"{type(x).__name__} lives on a GPU; the simulated backends take NumPy arrays and "
            "PyTorch tensors on device 'cpu' or 'meta'"
        )
    instead = getattr(type(x), "instead", None)
    if isinstance(instead, str):
        raise ArgumentTypeError(f"got {type(x).__name__} where arrays are needed: {instead}")
    raise ArgumentTypeError(
        f"got {type(x).__name__}, which is no array; pass a NumPy array, a PyTorch tensor, "
        "a number, or a list, tuple or dict of these"
    )


def _open_numpy(x: np.ndarray[Any, Any], origin: str, lead: int) -> tuple[Buffer, Leaf]:
    dtype = x.dtype
    if isinstance(x, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "got a masked array; its mask would be lost: fill it first (x.filled(value))"
        )
    if dtype.kind not in _NUMPY_KINDS and not _is_extended_float(dtype):
        raise ArgumentTypeError(
            f"cannot send a NumPy array of dtype {dtype}; "
            "convert it to a number type, such as float64, first"
        )
    if not dtype.isnative:
        x = x.astype(dtype.newbyteorder("="))
        dtype = x.dtype
    leaf = Leaf(origin, dtype.name, x.shape[lead:])
    flat = np.asarray(x).reshape((*x.shape[:lead], -1)) if x.size else _empty(x, lead)
    return (flat.view(np.uint16) if dtype.name == BFLOAT16 else flat), leaf


def _empty(x: np.ndarray[Any, Any], lead: int) -> np.ndarray[Any, Any]:
    count = int(np.prod(x.shape[lead:], dtype=np.int64))
    return np.empty((*x.shape[:lead], count), x.dtype)


def _is_extended_float(dtype: np.dtype[Any]) -> bool:
    """Tell whether this is a float type of ml_dtypes (their NumPy kind is "V")."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes" and "float" in dtype.name


def _open_torch(torch: Any, x: Any, lead: int) -> tuple[Buffer, Leaf]:
    name = str(x.dtype).removeprefix("torch.")
    shape = tuple(x.shape)
    if x.device.type == "meta":
        count = int(np.prod(shape[lead:], dtype=np.int64))
        return Phantom((*shape[:lead], count), x.element_size()), Leaf("meta", name, shape[lead:])
    if x.device.type != "cpu":
        raise UnsupportedOperation(
            f"tensor on device '{x.device}'; the simulated backends take tensors on "
            "'cpu' or 'meta': move it with x.cpu()"
        )
    if x.layout != torch.strided or x.is_quantized:
        raise ArgumentTypeError(f"cannot send a {x.layout} tensor; make it dense first")
    count = int(np.prod(shape[lead:], dtype=np.int64))
    flat = x.detach().resolve_conj().resolve_neg().reshape((*shape[:lead], count)).contiguous()
    try:
        buffer = (flat.view(torch.uint16) if name == BFLOAT16 else flat).numpy()
    except (TypeError, RuntimeError) as error:
        raise ArgumentTypeError(
            f"cannot send a tensor of dtype {x.dtype}; convert it to one that NumPy knows, "
            "or to bfloat16, first"
        ) from error
    return buffer, Leaf("torch", name, shape[lead:])


def close_array(buffer: Buffer, leaf: Leaf, lead_shape: tuple[int, ...] = ()) -> Any:
    """Turn a buffer back into an array of the kind, dtype and shape that ``leaf`` tells.

    Args:
        buffer: The data; it is owned by the result from here on.
        leaf: What the array was; its shape may have been replaced.
        lead_shape: Axes in front of the leaf's shape, such as the rank axis.
    """
    shape = (*lead_shape, *leaf.shape)
    if isinstance(buffer, Phantom):
        torch = _torch()
        return torch.empty(shape, dtype=getattr(torch, leaf.dtype), device="meta")
    if leaf.origin == "torch":
        torch = _torch()
        tensor = torch.from_numpy(np.ascontiguousarray(buffer))
        if leaf.dtype == BFLOAT16:
            tensor = tensor.view(torch.bfloat16)
        return tensor.reshape(shape)
    array = buffer.reshape(shape)
    if leaf.dtype == BFLOAT16:
        import ml_dtypes

        array = array.view(ml_dtypes.bfloat16)
    if shape or leaf.origin in ("numpy", "torch"):
        return array
    return array.item() if leaf.origin == "scalar" else array[()]


def columns(buffer: Buffer, start: int, stop: int) -> Buffer:
    """Return the elements from ``start`` to ``stop`` behind all leading axes, as a view."""
    if isinstance(buffer, Phantom):
        return Phantom((*buffer.shape[:-1], stop - start), buffer.itemsize)
    return buffer[..., start:stop]


def view_array(buffer: Buffer, leaf: Leaf, lead_shape: tuple[int, ...] = ()) -> Any:
    """Return a part of a buffer as an array that shares its memory.

    Like :func:`close_array`, but numbers become arrays of no axis.
    """
    shape = (*lead_shape, *leaf.shape)
    if isinstance(buffer, Phantom):
        return close_array(buffer, leaf, lead_shape)
    if leaf.origin == "torch":
        tensor = _torch().from_numpy(buffer)
        return (tensor.view(_torch().bfloat16) if leaf.dtype == BFLOAT16 else tensor).view(shape)
    array = buffer.reshape(shape)
    if leaf.dtype == BFLOAT16:
        import ml_dtypes

        array = array.view(ml_dtypes.bfloat16)
    return array
