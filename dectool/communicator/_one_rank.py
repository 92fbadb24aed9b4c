"""What backends share whose communicator is that of one rank, not of all at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

from dectool.communicator._communicator import Communicator
from dectool.communicator._core import Channel
from dectool.communicator._random import generator


class OneRankCommunicator(Communicator):
    """One rank, in the world or in a group; a backend adds messages and time.

    Args:
        rank: This rank's number in the world.
        size: Number of ranks of the world.
        seed: Seed of the run.
        local_size: Ranks on one node.
    """

    def __init__(self, rank: int, size: int, *, seed: int, local_size: int) -> None:
        self._me = rank
        self._rank = rank
        self._size = size
        self._seed = seed
        self._local_size = local_size
        self._members: Sequence[int] | None = None
        self._base: Channel = ("world",)
        self._topology = None
        self._schedule = None
        self._generators: dict[str, Any] = {}
        self._reset()

    def _reset(self) -> None:
        self._sequence = {}
        self._counters = {}
        self._groups = {}
        self._plans = {}
        self._windows = {}

    @property
    def rank(self) -> int:
        """This rank's number, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    @property
    def local_size(self) -> int:
        """Number of ranks on one node."""
        return self._local_size

    @property
    def _context(self) -> Channel:
        return self._base

    def _world(self, rank: int) -> int:
        """Return the number in the world of a rank of this group."""
        return rank if self._members is None else self._members[rank]

    def _twin(self) -> tuple[Self, int]:
        """Return a communicator of the same ranks for a background operation, and its number."""
        number = self._next_sequence("background")
        twin = copy.copy(self)
        twin._reset()
        twin._base = (*self._base, "background", number)
        return twin, number

    def _subgroup(self, members: Sequence[int], context: Channel) -> Self:
        group = copy.copy(self)
        group._reset()
        group._members = [self._world(member) for member in members]
        group._rank = list(members).index(self._rank)
        group._size = len(members)
        group._base = context
        group._topology = None
        group._schedule = None
        group._local_size = 1
        return group

    def rng(self, purpose: str, number: int | None = None) -> Any:
        """Return the generator of (seed, this rank, ``purpose``), or a fresh numbered one."""
        if number is not None:
            return generator(self._seed, self._me, purpose, number)
        if purpose not in self._generators:
            self._generators[purpose] = generator(self._seed, self._me, purpose)
        return self._generators[purpose]
