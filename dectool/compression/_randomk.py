"""Numbers at random places, which the receiver derives from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from dectool.compression._checks import check_share, kept
from dectool.compression._draw import Draw
from dectool.compression._formats import Array, raw, unraw
from dectool.compression._sparsifier import Rows, Sparsifier


@final
@dataclass(frozen=True)
class RandomK(Sparsifier):
    r"""Keeps k numbers at random places, each set of k equally likely.

    As it is, :math:`E\|C(x) - x\|^2 = (1 - k/d)\,\|x\|^2`. With ``unbiased`` the values are
    multiplied by d/k, so that :math:`E\,C(x) = x` and :math:`E\|C(x) - x\|^2 = (d/k - 1)\|x\|^2`.

    The places are not sent but the seed they follow from, which is drawn anew for each payload;
    sender and receiver derive them with NumPy's PCG64 and ``choice``, and must use versions of
    NumPy that draw alike.

    Wire, 8 + k i bytes, all little-endian:

    * 0 .. 7: the seed, an unsigned integer,
    * 8 ..: the k values by ascending place, not yet multiplied, in the dtype of x, which has i
      bytes.

    NaN and infinity at a chosen place are sent as they are; elsewhere they are lost. What d/k
    makes too large becomes infinity, or in half precision the largest number.

    Args:
        k: As in :class:`TopK`.
        unbiased: Whether to multiply by d/k.

    Example:
        >>> c = RandomK(0.2, unbiased=True)
        >>> float(c.decompress(c.compress(np.ones(10), np.random.default_rng(0))).sum())
        10.0
        >>> c.wire_bytes(1000), c.variance(1000)
        (808, 4.0)

    References:
        S. Stich, J.-B. Cordonnier & M. Jaggi, Sparsified SGD with memory, NeurIPS 2018,
        Definition 2.1; J. Konečný & P. Richtárik, Randomized distributed mean estimation, 2018.
    """

    k: int | float
    unbiased: bool = False

    def __post_init__(self) -> None:
        """Check k."""
        check_share("RandomK", self.k)

    @property
    def uses_rng(self) -> bool:
        """Always."""
        return True

    def contraction(self, count: int) -> float | None:
        """Return k/d; if unbiased, 2 - d/k where that is above 0."""
        if self.unbiased:
            return super().contraction(count)
        return self.kept(count) / max(1, count)

    def variance(self, count: int) -> float | None:
        """Return d/k - 1 if unbiased."""
        return max(1, count) / max(1, self.kept(count)) - 1.0 if self.unbiased else None

    def bound(self, x: Array) -> Array:
        """Return the size of each number, or d/k - 1 times that if it is more."""
        return np.abs(x) * max(1.0, self.variance(x.shape[-1]) or 0.0)

    def kept(self, count: int) -> int:
        """Return k, at least 1 and at most ``count``."""
        return kept(self.k, count)

    def head_size(self, count: int, many: int) -> int:
        """Return 8, for the seed."""
        del count, many
        return 8

    def factor(self, count: int) -> float:
        """Return d/k if unbiased."""
        return count / self.kept(count) if self.unbiased else 1.0

    def choose(self, rows: Array, draw: Draw) -> tuple[Rows, Rows]:
        """Draw a seed for each row and return the places that follow from it."""
        heads = raw(draw.seeds()[:, None])
        return heads, self.places(heads, rows.shape[1], self.kept(rows.shape[1]))

    def places(self, head: Array, count: int, many: int) -> Array:
        """Return the places that follow from the seeds."""
        seeds = unraw(head, np.dtype("<u8"))[:, 0]
        out = np.empty((len(seeds), many), np.int64)
        for index, seed in enumerate(seeds.tolist()):
            out[index] = places_of(seed, count, many)
        return out


def places_of(seed: int, count: int, many: int) -> Array:
    """Return ``many`` of ``count`` places, ascending, each set as likely as any other."""
    # Every receiver of a payload asks again; under simulation they share this process.
    return _few_places(seed, count, many) if many <= 256 else _places(seed, count, many)


def _places(seed: int, count: int, many: int) -> Array:
    generator = np.random.Generator(np.random.PCG64(seed))
    return np.sort(generator.choice(count, many, replace=False, shuffle=False))


_few_places = lru_cache(maxsize=4096)(_places)
