"""Random streams: one generator for each (seed, rank, purpose)."""

from __future__ import annotations

import hashlib

import numpy as np

from dectool.errors import ArgumentTypeError


def generator(seed: int, rank: int, purpose: str, number: int | None = None) -> np.random.Generator:
    """Return the generator of (seed, rank, purpose), or of (seed, rank, purpose, number).

    Example:
        >>> a, b = generator(0, 1, "noise"), generator(0, 1, "noise")
        >>> a.random() == b.random()
        True
    """
    if not isinstance(purpose, str):
        raise ArgumentTypeError(f"rng(purpose={purpose!r}): purpose is a name, such as 'minibatch'")
    key: tuple[int, ...]
    digest = hashlib.sha256(purpose.encode()).digest()
    key = (rank, int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little"))
    if number is not None:
        key = (*key, number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
