"""Containers of arrays in stacked form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dectool.communicator._arrays import is_array
from dectool.communicator._bucket import Bucket
from dectool.communicator._buckets import Buckets
from dectool.errors import ContractError

_SCALARS = (np.generic, bool, int, float, complex)


def fill_scalars(x: Any, size: int) -> Any:
    """Give plain numbers the rank axis; refuse arrays without one.

    Raises:
        ContractError: An array has no axis of ``size`` in front where one is needed.
    """
    if isinstance(x, _SCALARS):
        return np.full(size, x)
    if is_array(x):
        if not x.ndim or x.shape[0] != size:
            raise ContractError(
                f"an array of shape {tuple(x.shape)} was given, but with backend 'stacked' axis 0 "
                f"must have one row for each of the {size} ranks: make it with "
                "comm.per_rank(function)"
            )
        return x
    if isinstance(x, dict):
        return {key: fill_scalars(value, size) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        items = [fill_scalars(item, size) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def stack_trees(values: Sequence[Any]) -> Any:
    """Return the values of all ranks as one, arrays stacked; a list where they are not alike.

    Raises:
        ContractError: The ranks' arrays differ in shape.
    """
    first = values[0]
    if all(is_array(value) for value in values):
        return _stack_arrays(values)
    if isinstance(first, dict) and first and all(_same_keys(first, value) for value in values):
        return {key: stack_trees([value[key] for value in values]) for key in first}
    if isinstance(first, (list, tuple)) and first and all(_same_length(first, v) for v in values):
        items = [stack_trees([value[i] for value in values]) for i in range(len(first))]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    return list(values)


def _same_keys(first: Any, value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == first.keys()


def _same_length(first: Any, value: Any) -> bool:
    return type(value) is type(first) and len(value) == len(first)


def _stack_arrays(values: Sequence[Any]) -> Any:
    first = values[0]
    for rank, value in enumerate(values):
        mine, other = np.shape(value), np.shape(first)
        if mine != other:
            raise ContractError(
                f"per_rank: rank {rank} has shape {mine}, rank 0 has {other}; with backend "
                "'stacked' the arrays of all ranks must have the same shape"
            )
    if isinstance(first, (np.ndarray, *_SCALARS)):
        return np.stack([np.asarray(value) for value in values])
    import torch

    return torch.stack(list(values))


def unstack_tree(tree: Any, rank: int, size: int) -> Any:
    """Return one rank's share of a stacked value; what is not stacked is shared by all."""
    if isinstance(tree, dict):
        return {key: unstack_tree(value, rank, size) for key, value in tree.items()}
    if isinstance(tree, (Bucket, Buckets)):
        return tree.row(rank)
    if isinstance(tree, tuple):
        items = [unstack_tree(item, rank, size) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    if isinstance(tree, list):
        if len(tree) == size and not any(is_array(item) for item in tree):
            return tree[rank]
        return [unstack_tree(item, rank, size) for item in tree]
    if is_array(tree) and not isinstance(tree, _SCALARS) and tree.ndim and len(tree) == size:
        return tree[rank]
    return tree
