"""Containers of arrays taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dectool.communicator._arrays import open_array


def flatten(
    x: Any, leaves: list[Any], lead: int, opener: Callable[[Any, int], Any] = open_array
) -> Any:
    """Append the arrays of a container to ``leaves``; return its structure.

    Args:
        x: An array, or nested lists, tuples and dicts of arrays.
        leaves: Gets what ``opener`` returns of each array: its buffer and what it was.
        lead: Leading axes to keep.
        opener: What opens an array.

    Returns:
        ``None`` for an array; for a container its type, the structures of its children, and the
        keys of a dict in their own order.

    Raises:
        ArgumentTypeError: Something in the container is no array.
    """
    if isinstance(x, dict):
        # Sorted, so that ranks which filled their dicts in another order still agree.
        children = {key: flatten(x[key], leaves, lead, opener) for key in sorted(x, key=repr)}
        return (dict, children, tuple(x))
    if isinstance(x, (list, tuple)):
        return (type(x), [flatten(item, leaves, lead, opener) for item in x], ())
    leaves.append(opener(x, lead))
    return None


def unflatten(structure: Any, pieces: Iterator[Any]) -> Any:
    """Return the container of a structure, filled with the pieces in their order."""
    if structure is None:
        return next(pieces)
    kind, children, order = structure
    if kind is dict:
        rebuilt = {key: unflatten(child, pieces) for key, child in children.items()}
        return {key: rebuilt[key] for key in order}
    items = [unflatten(child, pieces) for child in children]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def shape_of(structure: Any) -> Any:
    """Return the hashable form of a structure, in which named tuples and tuples are alike."""
    if structure is None:
        return None
    kind, children, _ = structure
    if kind is dict:
        return ("dict", *((key, shape_of(child)) for key, child in children.items()))
    name = "list" if issubclass(kind, list) else "tuple"
    return (name, *(shape_of(child) for child in children))
