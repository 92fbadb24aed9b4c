"""The largest numbers, by count or by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dectool.compression._checks import check_positive, check_share, kept
from dectool.compression._draw import Draw
from dectool.compression._formats import Array
from dectool.compression._select import place_size, read_places, write_places
from dectool.compression._sparsifier import Rows, WithPlaces
from dectool.kernels import at_least, largest_places, magnitudes


@final
@dataclass(frozen=True)
class TopK(WithPlaces):
    r"""Keeps the k numbers of largest magnitude; of equal ones those that come first.

    :math:`\|C(x) - x\|^2 \le (1 - k/d)\,\|x\|^2`, with equality where all magnitudes are equal.
    Biased; for convergence it needs a memory, such as :class:`ErrorFeedback`.

    Wire, k (w + i) bytes, all little-endian:

    * 0 .. k w - 1: the k places, ascending, in w bytes each, as few as hold d - 1: 1 up to 256
      numbers, 2 up to 65536, 3 up to 16.7 million,
    * k w ..: the k values in the same order, in the dtype of x, which has i bytes.

    NaN counts as the largest, infinity as the next, and both are sent as they are.

    Args:
        k: How many, if it is an integer; a share of all, rounded to nearest and at least one
            number, if it is a float below 1.

    Example:
        >>> c = TopK(2)
        >>> c.decompress(c.compress(np.array([1.0, -5.0, 2.0, 0.5])))
        array([ 0., -5.,  2.,  0.])
        >>> TopK(0.01).wire_bytes(100_000), TopK(0.01).contraction(100_000)
        (7000, 0.01)

    References:
        S. Stich, J.-B. Cordonnier & M. Jaggi, Sparsified SGD with memory, NeurIPS 2018,
        Definition 2.1 and Lemma A.1.
    """

    k: int | float

    def __post_init__(self) -> None:
        """Check k."""
        check_share("TopK", self.k)

    def contraction(self, count: int) -> float:
        """Return k/d."""
        return self.kept(count) / max(1, count)

    def bound(self, x: Array) -> Array:
        """Return the size of each number: it is kept or lost."""
        return np.abs(x)

    def kept(self, count: int) -> int:
        """Return k, at least 1 and at most ``count``."""
        return kept(self.k, count)

    def choose(self, rows: Array, draw: Draw) -> tuple[Rows, Rows]:
        """Return the places of the largest magnitudes."""
        del draw
        places = largest_places(rows, self.kept(rows.shape[1]))
        return write_places(places, rows.shape[1]), places


@final
@dataclass(frozen=True)
class Threshold(WithPlaces):
    r"""Keeps the numbers of magnitude t or more: :math:`|C(x)_j - x_j| < t`.

    Wire, v + k (w + i) bytes, so the size depends on the data:

    * 0 .. v - 1: how many there are, k, little-endian, in as few bytes as hold d,
    * v ..: places and values as in :class:`TopK`.

    NaN and infinity are kept.

    Args:
        threshold: t > 0.

    Example:
        >>> c = Threshold(1.0)
        >>> p = c.compress(np.array([0.5, -1.0, 2.0]))
        >>> p.nbytes, c.decompress(p)
        (19, array([ 0., -1.,  2.]))

    References:
        A. Aji & K. Heafield, Sparse communication for distributed gradient descent, EMNLP 2017.
    """

    threshold: float

    def __post_init__(self) -> None:
        """Check the threshold."""
        check_positive("Threshold", "threshold", self.threshold)

    @property
    def fixed_size(self) -> bool:
        """Never."""
        return False

    def bound(self, x: Array) -> Array:
        """Return the size of each number below the threshold, else 0."""
        size = np.abs(x)
        return np.where(size < x.dtype.type(self.threshold), size, 0.0)

    def kept(self, count: int) -> int:
        """Return ``count``: all may be kept."""
        return count

    def many(self, data: Array, count: int) -> int:
        """Return the k that the first bytes tell."""
        width = place_size(count + 1)
        if len(data) < width:
            return count + 1
        return int(read_places(data[None, :width], count + 1)[0, 0])

    def head_size(self, count: int, many: int) -> int:
        """Return the bytes of k and the places."""
        return place_size(count + 1) + super().head_size(count, many)

    def places(self, head: Array, count: int, many: int) -> Array:
        """Return the places behind k."""
        return super().places(head[:, place_size(count + 1) :], count, many)

    def wrong_places(self, head: Array, count: int, many: int) -> str:
        """Return what is wrong with the places behind k."""
        return super().wrong_places(head[place_size(count + 1) :], count, many)

    def choose(self, rows: Array, draw: Draw) -> tuple[Rows, Rows]:
        """Return the places of the numbers that are not below the threshold."""
        del draw
        count = rows.shape[1]
        least = magnitudes(np.array([self.threshold], rows.dtype))[0]
        places = [at_least(row, least)[0] for row in rows]
        heads = [
            np.concatenate(
                [
                    write_places(np.array([[len(where)]]), count + 1)[0],
                    write_places(where[None], count)[0],
                ]
            )
            for where in places
        ]
        return heads, places
