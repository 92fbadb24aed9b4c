"""Groups of ranks: splits, nodes, and the peers of a rank on the other nodes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dectool.communicator._compressed_collectives import CompressedCollectives
from dectool.errors import ArgumentError, ArgumentTypeError


class GroupOperations(CompressedCollectives):
    """The part of a communicator that makes smaller communicators."""

    _groups: dict[str, Any]

    def split(self, color: int | None, key: int = 0) -> Self | None:
        """Return the communicator of the ranks that give the same color; collective.

        Args:
            color: Number of the group, at least 0; ``None`` for no group.
            key: Order of the ranks in the group; ties by rank.

        Returns:
            The group, without a topology; ``None`` where ``color`` is ``None``.

        Raises:
            ArgumentTypeError: ``color`` or ``key`` is no integer.
            ArgumentError: ``color`` is negative.
        """
        _check_whole("color", color, "an integer from 0, or None")
        _check_whole("key", key, "an integer")
        if color is not None and color < 0:
            raise ArgumentError(f"color is {color}; give an integer from 0, or None")
        mine = np.array([-1 if color is None else color, key], np.int64)
        number = self._next_sequence("split")
        everyone = self.allgather(mine)
        if color is None:
            return None
        members = np.flatnonzero(everyone[:, 0] == color)
        ordered = members[np.argsort(everyone[members, 1], kind="stable")]
        context = (*self._context, "split", number, int(color))
        return self._subgroup([int(rank) for rank in ordered], context)

    @property
    def node(self) -> Self:
        """The communicator of the ranks on this rank's node."""
        if "node" not in self._groups:
            first = self.node_rank * self.local_size
            members = range(first, min(first + self.local_size, self.size))
            self._groups["node"] = self._subgroup(
                list(members), (*self._context, "node", self.node_rank)
            )
        group: Self = self._groups["node"]
        return group

    @property
    def peers_across_nodes(self) -> Self:
        """The communicator of the ranks with this rank's local rank, one on each node."""
        if "peers" not in self._groups:
            members = range(self.local_rank, self.size, self.local_size)
            self._groups["peers"] = self._subgroup(
                list(members), (*self._context, "peers", self.local_rank)
            )
        group: Self = self._groups["peers"]
        return group


def _check_whole(name: str, value: Any, wanted: str) -> None:
    optional = value is None and "None" in wanted
    if not optional and not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(f"{name} is {value!r}; give {wanted}")
