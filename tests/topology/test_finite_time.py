"""Exact averaging: after how many rounds, from which start, and that contraction does not count."""

import numpy as np
import pytest

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError


def by_products(schedule, start):
    """Multiply until every entry is 1/n."""
    product, k = np.eye(schedule.size), 0
    while abs(product - 1 / schedule.size).max() > 1e-11:
        product = schedule.at(start + k).W @ product
        k += 1
    return k


@pytest.mark.parametrize(
    ("schedule", "length"),
    [
        *((topology.one_peer_exponential(2**k), k) for k in range(1, 8)),
        (topology.one_peer_hypercube(4), 4),
        (topology.alternating_ring(4), 2),
        (topology.base_k(6, k=1), 4),
        (topology.base_k(25, k=2), 6),
        (topology.simple_base_k(12, k=1), 7),
        (topology.hyper_hypercube(24, k=2), 4),
        (topology.laplacian_sequence(topology.ring(9)), 4),
        (topology.laplacian_sequence(topology.ring(64)), 32),
        (topology.laplacian_sequence(topology.star(7)), 2),
        (topology.laplacian_sequence(topology.petersen()), 2),
        (topology.laplacian_sequence(topology.hypercube(5)), 5),
        (topology.laplacian_sequence(topology.torus(4, 4)), 4),
        (topology.laplacian_sequence(topology.grid(4, 4)), 8),
        (topology.static(topology.complete(7)), 1),
        (topology.static(topology.de_bruijn(32)), 5),
        (topology.static(topology.de_bruijn(27, 3)), 3),
    ],
    ids=lambda case: getattr(case, "name", case),
)
def test_lengths_from_every_start(schedule, length):
    find = topology.finite_time_length
    assert find(schedule, start=0) == length
    starts = [find(schedule, start=s) for s in range(schedule.period)]
    assert starts == [by_products(schedule, s) for s in range(schedule.period)]
    assert find(schedule) == max(starts)


def test_cyclic_starts():
    """Powers of two need no more from any start; Base-(k+1) graphs need a whole cycle to come."""
    find = topology.finite_time_length
    assert [find(topology.one_peer_exponential(16), start=s) for s in range(4)] == [4] * 4
    lengths = [find(topology.base_k(6), start=s) for s in range(4)]
    assert lengths[0] == 4 < max(lengths) <= 7


@pytest.mark.parametrize(
    "never",
    [
        topology.ring(8),
        topology.complete(6).lazy(),
        topology.exponential(16),
        topology.one_peer_exponential(6),
        topology.shift_one(16),
        topology.periodic([topology.complete(5).lazy()] * 60),
        topology.periodic([topology.complete(5).lazy(), topology.ring(5)] * 40),
        topology.periodic([topology.ring(9), topology.star(9)]),
    ],
    ids=repr,
)
def test_contraction_is_not_enough(never):
    assert topology.finite_time_length(never) is None


@pytest.mark.parametrize("columns", [False, True])
def test_agreement_on_something_else_is_not_the_mean(columns):
    """W = 1πᵀ makes all alike at once, and Wᵀ = π1ᵀ forgets all differences."""
    W = np.outer(np.ones(3), [0.5, 0.25, 0.25])
    other = topology.from_matrix(W.T if columns else W)
    mean = topology.from_matrix(np.full((3, 3), 1 / 3))
    find = topology.finite_time_length
    assert find(other) is None
    both = topology.periodic([other, mean])
    assert find(both, start=1) == 1
    assert find(both, start=0) == (2 if columns else None)
    assert find(both) == (2 if columns else None)


def test_small_and_large():
    assert topology.finite_time_length(topology.complete(1)) == 0
    assert topology.finite_time_length(topology.one_peer_exponential(4096)) == 12
    assert topology.finite_time_length(topology.de_bruijn(4096)) == 12


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: topology.finite_time_length(3), ArgumentTypeError, "must be a Topology, got int"),
        (
            lambda: topology.finite_time_length(topology.random_pair(topology.ring(4))),
            TopologyError,
            r"needs a periodic schedule, .*mean_square_rate",
        ),
        (
            lambda: topology.finite_time_length(topology.one_peer_exponential(8), start=3),
            ArgumentError,
            "start must be below the period, 3, got 3",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
