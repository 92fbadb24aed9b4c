"""Largest stable steps, against bisected values, closed forms, and theorems' lower bounds."""

import math

import numpy as np
import pytest

from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError
from tests.theory.q8 import QUADRATIC, RING, H, W

L = 4.0


def largest(algorithm, problem=QUADRATIC, graph=RING):
    return theory.largest_stable_lr(algorithm, problem, graph)


def test_published_values():
    assert largest(algorithms.DIGing(lr=0.1)) == pytest.approx(0.084272354, abs=1e-9)
    assert largest(algorithms.NIDS(lr=0.1)) == pytest.approx(0.564932546, abs=1e-9)


def test_closed_forms():
    # Gradient descent on the mean, of curvature 2.5; and on one curvature, where the mode of the
    # smallest eigenvalue -1/3 of W is the first to grow: -1/3 - lr h = -1.
    assert largest(algorithms.AllReduceGD(lr=0.1)) == pytest.approx(2 / H.mean(), abs=1e-9)
    flat = problems.Quadratic(h=np.full((8, 1), 2.0), b=np.arange(8.0)[:, None])
    smallest = np.linalg.eigvalsh(W)[0]
    assert largest(algorithms.DGD(lr=0.1), flat) == pytest.approx((1 + smallest) / 2, abs=1e-9)
    assert largest(algorithms.ATC(lr=0.1), flat) == pytest.approx(2 / 2, abs=1e-9)


def test_theorems_are_lower_bounds():
    smallest = np.linalg.eigvalsh(W)[0]
    assert largest(algorithms.DGD(lr=0.1)) >= (1 + smallest) / L
    assert largest(algorithms.ATC(lr=0.1)) >= 2 / L
    assert largest(algorithms.CTA(lr=0.1)) >= 2 / L
    assert largest(algorithms.EXTRA(lr=0.1)) >= (1 + smallest) / L
    assert largest(algorithms.NIDS(lr=0.1)) >= 2 / L


@pytest.mark.parametrize(("smallest", "stable"), [(-0.33, True), (-0.34, False)])
def test_d2_needs_eigenvalues_above_minus_a_third(smallest, stable):
    # Without curvature the mode of an eigenvalue -l has the root l + sqrt(l^2 + l).
    pair = topology.from_matrix((np.eye(2) * (1 + smallest) + (1 - np.eye(2)) * (1 - smallest)) / 2)
    problem = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
    assert (-smallest + math.sqrt(smallest**2 - smallest) < 1.0) == stable
    slow = algorithms.D2(lr=1e-4)
    assert (theory.rate(slow, problem, pair) < 1.0) == stable


def test_what_is_never_stable_or_has_no_step_is_refused():
    pair = topology.from_matrix(np.array([[0.3, 0.7], [0.7, 0.3]]))
    problem = problems.Quadratic(h=[[1.0], [1.0]], b=[[0.0], [2.0]])
    with pytest.raises(ArgumentError, match=r"D2 does not converge with lr=0\.001, which is small"):
        largest(algorithms.D2(lr=0.1), problem, pair)
    with pytest.raises(ArgumentError, match="Gossip has no step size"):
        largest(algorithms.Gossip())
