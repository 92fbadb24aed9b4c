"""Averages of random runs, held against their means."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from dectool.theory._arguments import Floats
from dectool.theory._evidence import Check, Curve
from dectool.topology import Schedule, Topology, from_matrix

DEVIATIONS = 5.0
"""Standard errors that a mean of samples may be away.

By chance, one is so once in two million where samples are many; of twenty, which tell their
standard error roughly, once in ten thousand.
"""


def mean_is(quantity: str, samples: Floats, predicted: Floats | float) -> Check:
    """Return the check that the mean of samples, (runs, ...), is as predicted.

    The largest distance of an entry counts, in units of its standard error.
    """
    mean = samples.mean(axis=0)
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    away = np.abs(mean - predicted) / np.maximum(error, 1e-12)
    return Check.at_most(
        f"{quantity}: mean of {len(samples)} runs, standard errors from the prediction",
        float(np.max(away)),
        DEVIATIONS,
    )


def so_far(label: str, samples: Floats, predicted: float) -> Curve:
    """Return the curve of the mean of the first samples, by their number."""
    number = np.arange(1.0, len(samples) + 1.0)
    return Curve(label, number, samples.cumsum() / number, np.full(len(samples), predicted))


def of_ranks(label: str, samples: Floats, predicted: Floats) -> Curve:
    """Return the curve of the mean of samples, (runs, ...), by the rank (and coordinate)."""
    mean = samples.mean(axis=0).ravel()
    return Curve(label, np.arange(float(len(mean))), mean, np.ravel(predicted))


def follow(schedule: Schedule, x0: Floats, steps: int, runs: int) -> Floats:
    """Return gossip of many runs, each with the next steps, (runs, steps + 1, n)."""
    found = np.empty((runs, steps + 1, len(x0)))
    for run in range(runs):
        found[run, 0] = x0
        for k in range(steps):
            found[run, k + 1] = schedule.at(run * steps + k).W @ found[run, k]
    return found


def squares(x: Floats) -> Floats:
    """Return squared distances to the mean over ranks, the last axis."""
    return np.asarray(np.square(x - x.mean(axis=-1, keepdims=True)).sum(axis=-1))


def copies(topology: Topology, number: int) -> Topology:
    """Return a graph of many copies that do not know of each other."""
    W = sparse.block_diag([topology.W] * number, format="csr")
    return from_matrix(W, name=f"{number} times {topology.name}", require_connected=False)
