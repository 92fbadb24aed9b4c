"""The samples of all ranks in one padded array, so that no loop over ranks is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dectool.problems._arrays import Casts, FloatArray, IndexArray, Rows


class Samples(NamedTuple):
    """Samples of k ranks: rows A (k, m, d), targets t (k, m, ...), weights w (k, m).

    A rank with fewer than m samples has zero rows with weight zero at its end. The loss of a
    rank is the sum over its rows of weight times loss.
    """

    A: FloatArray
    t: FloatArray
    w: FloatArray


class Shards:
    r"""The samples of n ranks, padded with zero rows to the largest shard.

    A single rank is a view of the same padded array that all ranks use, so a matrix product
    has the same shape, and the same bits, for one rank and for many. Memory is n times the
    largest shard.

    Args:
        samples: Rows (m, d) and targets (m, ...) of all samples; their weights are not used.
        parts: One index array per rank.
        weighted: Weight n / m for every sample, so that the mean over ranks is the mean over
            samples; otherwise 1 / m_i, so that it is the mean of the local means.
    """

    def __init__(
        self,
        samples: Samples,
        parts: Sequence[IndexArray],
        *,
        weighted: bool,
    ) -> None:
        A, t, _ = samples
        n, most = len(parts), max(part.size for part in parts)
        self.counts = np.array([part.size for part in parts])
        owner = np.repeat(np.arange(n), self.counts)
        place = np.concatenate([np.arange(count) for count in self.counts])
        order = np.concatenate(parts).astype(np.intp)
        rows = np.zeros((n, most, *A.shape[1:]))
        targets = np.zeros((n, most, *t.shape[1:]))
        weights = np.zeros((n, most))
        rows[owner, place], targets[owner, place] = A[order], t[order]
        weights[owner, place] = (n / len(A)) if weighted else 1.0 / self.counts[owner]
        # What a rank's mean loss is multiplied by: the sum of its weights, without rounding.
        scale = self.counts * n / len(A) if weighted else np.minimum(self.counts, 1.0)
        self._data = Casts(rows, targets, weights, scale)

    def take(self, rows: Rows, dtype: DTypeLike) -> Samples:
        """Return the samples of some ranks; a view if ``rows`` is a slice."""
        A, t, w, _ = self._data.at(dtype)
        return Samples(A[rows], t[rows], w[rows])

    def pool(self, dtype: DTypeLike) -> Samples:
        """Return all samples as those of a single rank whose loss is the mean over ranks."""
        A, t, w, _ = self._data.at(dtype)
        n, m = w.shape
        return Samples(
            A.reshape(1, n * m, *A.shape[2:]),
            t.reshape(1, n * m, *t.shape[2:]),
            w.reshape(1, n * m) / n,
        )

    def draw(self, rows: IndexArray, chosen: IndexArray, dtype: DTypeLike) -> Samples:
        """Return the chosen samples (k, b) of k ranks, weighted to estimate the whole shard."""
        A, t, _, scale = self._data.at(dtype)
        k, b = chosen.shape
        owner = rows[:, None]
        weight = np.broadcast_to((scale[rows] / b)[:, None], (k, b)).astype(A.dtype)
        return Samples(A[owner, chosen], t[owner, chosen], weight)
