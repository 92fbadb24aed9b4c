"""Circulant matrices, whose spectrum is a Fourier transform at any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dectool.topology._edges import Edges, Matrix

_ROUNDING = 1e-14


def is_circulant(edges: Edges) -> bool:
    """Say whether each rank hears those at the same hops from itself."""
    n, degrees = edges.size, edges.in_degrees
    if not (degrees == degrees[0]).all():
        return False
    order = np.argsort(edges.receivers, kind="stable")
    hops = (edges.senders - edges.receivers)[order].reshape(n, int(degrees[0])) % n
    hops.sort(axis=1)
    return bool((hops == hops[0]).all())


def circulant_eigenvalues(W: Matrix) -> NDArray[np.complexfloating[Any]] | None:
    """Return the eigenvalues of W, (n,), or None unless W[i, j] depends on j - i mod n alone.

    Entry k belongs to the eigenvector of entries exp(2πi jk/n); the first row of a function of W
    is the inverse transform of that of its eigenvalues.
    """
    n = W.shape[0]
    counts = np.diff(W.indptr)
    if not (counts == counts[0]).all():
        return None
    shape = (n, int(counts[0]))
    hops = (W.indices.reshape(shape).astype(np.int64) - np.arange(n)[:, None]) % n
    order = np.argsort(hops, axis=1, kind="stable")
    hops = np.take_along_axis(hops, order, axis=1)
    weights = np.take_along_axis(W.data.reshape(shape), order, axis=1)
    if (hops != hops[0]).any() or np.abs(weights - weights[0]).max(initial=0.0) > _ROUNDING:
        return None
    first = np.zeros(n)
    first[hops[0]] = weights[0]
    return np.conj(np.fft.fft(first))
