"""A mixing matrix that somebody has changed is refused, and the message says where."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import TopologyError

GRAPHS = st.one_of(
    st.builds(topology.ring, st.integers(3, 12)),
    st.builds(topology.star, st.integers(3, 9)),
    st.builds(topology.torus, st.integers(2, 4), st.integers(2, 4)),
    st.builds(topology.exponential, st.integers(3, 12)),
    st.builds(topology.de_bruijn, st.integers(3, 12)),
    st.builds(topology.equistatic, st.integers(6, 12), st.just(4), seed=st.integers(0, 9)),
    st.builds(topology.erdos_renyi, st.integers(3, 9), st.just(0.8), seed=st.integers(0, 9)),
    st.builds(
        topology.random_digraph,
        st.integers(3, 9),
        st.just(0.7),
        seed=st.integers(0, 9),
        weights=st.sampled_from(["uniform", "sinkhorn"]),
    ),
)
CHANGES = st.floats(-2, 2).filter(lambda change: abs(change) > 1e-8)


@st.composite
def edits(draw):
    t = draw(GRAPHS)
    ranks = st.integers(0, t.size - 1)
    return t, draw(ranks), draw(ranks)


@given(edits(), CHANGES)
@settings(max_examples=150, deadline=None)
def test_a_changed_entry(edit, change):
    t, i, j = edit
    W = t.to_dense()
    W[i, j] += change
    with pytest.raises(TopologyError) as caught:
        topology.from_matrix(W)
    found = re.search(r"row (\d+) sums to (\S+) .*column (\d+) sums to", str(caught.value))
    assert int(found[1]) == i
    assert float(found[2]) == pytest.approx(1 + change)
    assert not t.is_column_stochastic or int(found[3]) == j


@given(edits(), st.sampled_from([np.nan, np.inf, -np.inf]))
@settings(max_examples=40, deadline=None)
def test_an_entry_that_is_no_number(edit, value):
    t, i, j = edit
    W = t.to_dense()
    W[i, j] = value
    with pytest.raises(TopologyError, match=rf"W\[{i}, {j}\] is {value}"):
        topology.from_matrix(W)


@given(edits(), st.floats(0.01, 0.5))
@settings(max_examples=80, deadline=None)
def test_weight_outside_the_graph(edit, weight):
    t, i, j = edit
    W = t.to_dense()
    if i == j or W[i, j] != 0:
        return
    W[i, j] = weight
    W[i, i] -= weight
    with pytest.raises(TopologyError, match=rf"W\[{i}, {j}\] = .*no edge {j} -> {i}; set it to 0"):
        topology.from_matrix(W, t.graph)


@given(edits())
@settings(max_examples=60, deadline=None)
def test_a_rank_cut_off(edit):
    t, i, _ = edit
    W = t.to_dense()
    W[np.arange(t.size), np.arange(t.size)] += W[:, i]
    W[:, i] = W[i] = 0
    W[i, i] = 1
    for r in range(t.size):
        W[r] /= W[r].sum()
    with pytest.raises(TopologyError, match=rf"not connected.*\{{.*\b{i}\b.*\}}"):
        topology.from_matrix(W)


@given(edits(), st.floats(0.01, 0.3))
@settings(max_examples=60, deadline=None)
def test_moving_weight_in_a_row_is_no_longer_doubly_stochastic(edit, weight):
    t, i, j = edit
    if i == j or not t.is_doubly_stochastic:
        return
    W = t.to_dense()
    W[i, j] += weight
    W[i, i] -= weight
    changed = topology.from_matrix(W, require_connected=False)
    assert changed.is_row_stochastic
    assert not changed.is_doubly_stochastic
    assert "row stochastic" in repr(changed)
