"""Every weight rule on random graphs: sums, support, symmetry, and its formula."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import WEIGHTS, _sinkhorn

ANY_GRAPH = ("uniform", "uniform_push", "sinkhorn")
UNDIRECTED_ONLY = [name for name in WEIGHTS if name not in ANY_GRAPH]


@st.composite
def graphs(draw):
    """Return a connected undirected graph: a random tree and some more edges."""
    n = draw(st.integers(1, 20))
    edges = [(draw(st.integers(0, i - 1)), i) for i in range(1, n)]
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges += draw(st.lists(pairs, max_size=25))
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edges)
    return graph


@st.composite
def digraphs(draw):
    """Return a strongly connected digraph: a cycle through all ranks and some more edges."""
    n = draw(st.integers(1, 20))
    order = draw(st.permutations(range(n)))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(order, order[1:] + order[:1], strict=True))
    graph.add_edges_from(draw(st.lists(pairs, max_size=25)))
    return graph


def adjacency(graph):
    """Return A with A[i, j] = 1 if i hears j, without self-loops."""
    A = nx.to_numpy_array(graph, nodelist=range(len(graph))).T != 0
    np.fill_diagonal(A, False)
    return A


@given(graphs(), st.sampled_from(UNDIRECTED_ONLY))
@settings(max_examples=150, deadline=None)
def test_symmetric_rules(graph, weights):
    t = topology.from_graph(graph, weights=weights)
    W, A, n = t.to_dense(), adjacency(graph), len(graph)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-13)
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_array_equal((W != 0) & ~np.eye(n, dtype=bool), A)
    assert t.is_symmetric
    assert t.is_doubly_stochastic
    assert not t.is_directed
    assert t.is_nonnegative or weights == "best_constant"
    assert t.rho <= 1 + 1e-12
    dense = np.linalg.norm(W - 1 / n, 2)
    assert t.rho == pytest.approx(dense, abs=1e-12)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_formulas(graph):
    A = adjacency(graph)
    d = A.sum(axis=1)
    larger = np.maximum.outer(d, d)
    spectrum = np.linalg.eigvalsh(np.diag(d) - A)
    expected = {
        "metropolis_hastings": 1 / (1 + larger),
        "metropolis_hastings_boyd": 1 / np.maximum(larger, 1),
        "max_degree": np.full(A.shape, 1 / (1 + d.max())),
        "max_degree_boyd": np.full(A.shape, 1 / max(d.max(), 1)),
        "best_constant": np.full(A.shape, 2 / (spectrum[:2][-1] + spectrum[-1] or 1)),
        "lazy": 0.5 / (1 + larger),
        "uniform": np.broadcast_to(1 / (1 + d)[:, None], A.shape),
        "uniform_push": np.broadcast_to(1 / (1 + d)[None, :], A.shape),
    }
    assert set(expected) == set(WEIGHTS) - {"sinkhorn"}
    for weights, off in expected.items():
        W = topology.from_graph(graph, weights=weights).to_dense()
        np.testing.assert_allclose(W[A], off[A], atol=1e-12, rtol=0, err_msg=weights)


@given(digraphs())
@settings(max_examples=80, deadline=None)
def test_uniform_rules_on_digraphs(graph):
    A = adjacency(graph)
    pull = topology.from_graph(graph, weights="uniform")
    push = topology.from_graph(graph, weights="uniform_push")
    np.testing.assert_allclose(pull.to_dense().sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(push.to_dense().sum(axis=0), 1, atol=1e-14)
    assert pull.is_row_stochastic
    assert push.is_column_stochastic
    for t in (pull, push):
        W = t.to_dense()
        np.testing.assert_array_equal((W != 0) & ~np.eye(len(A), dtype=bool), A)
        assert (np.diag(W) > 0).all()
        assert t.is_directed == bool((A != A.T).any())
    regular = len(set(A.sum(axis=0)) | set(A.sum(axis=1))) == 1
    assert not regular or pull.is_doubly_stochastic
    pi, mass = pull.perron, push.perron
    np.testing.assert_allclose(pi @ pull.to_dense(), pi, atol=1e-12)
    np.testing.assert_allclose(push.to_dense() @ mass, mass, atol=1e-11)
    assert pi.sum() == pytest.approx(1)
    assert (pi > 0).all()


@given(digraphs() | graphs())
@settings(max_examples=100, deadline=None)
def test_sinkhorn_scales_rows_and_columns(graph):
    t = topology.from_graph(graph, weights="sinkhorn")
    W, A = t.to_dense(), adjacency(graph) | np.eye(len(graph), dtype=bool)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-13)
    np.testing.assert_array_equal(W > 0, A)
    assert t.is_symmetric == (not t.is_directed)
    # W = diag(x) A diag(y), x and y read off a tree.
    x, y = np.ones(len(W)), np.full(len(W), W[0, 0])
    for i, j in nx.bfs_edges(graph.to_undirected(), 0):
        if A[j, i]:
            x[j] = W[j, i] / y[i]
            y[j] = W[j, j] / x[j]
        else:
            y[j] = W[i, j] / x[i]
            x[j] = W[j, j] / y[j]
    np.testing.assert_allclose(W, np.outer(x, y) * A, rtol=1e-9)


def test_sinkhorn_closed_form_and_slow_graphs():
    # 0 -> 1 -> 2 -> 0 and 1 -> 0: the golden ratio squared and its like.
    t = topology.from_graph(nx.DiGraph([(0, 1), (1, 2), (2, 0), (1, 0)]), weights="sinkhorn")
    assert t.weight(0, 1) == pytest.approx(5**0.5 - 2, abs=1e-14)
    out_and_back = nx.DiGraph([(i, i + 1) for i in range(199)])
    out_and_back.add_edges_from((i, 0) for i in range(1, 200))
    slow = topology.from_graph(out_and_back, weights="sinkhorn").to_dense()
    assert abs(slow.sum(axis=0) - 1).max() < 1e-13
    assert abs(slow.sum(axis=1) - 1).max() < 1e-13
    with pytest.raises(
        TopologyError, match=r"every edge on a circuit, but none leads from 1 back to 0"
    ):
        topology.from_graph(nx.DiGraph([(0, 1)]), weights="sinkhorn", require_connected=False)


def test_sinkhorn_of_expanders_needs_no_factors(monkeypatch):
    """Their factors fill up, and alternation is done when rounding alone is left."""
    monkeypatch.setattr(_sinkhorn, "_newton", None)
    W = topology.random_digraph(600, 10 / 600, weights="sinkhorn").W
    assert abs(W.sum(axis=0) - 1).max() < 1e-14
    assert abs(W.sum(axis=1) - 1).max() < 1e-14


def test_exact_zero_self_weights_are_not_stored():
    for n in (4, 7, 14):
        # 1/6 six times adds up to less than 1; the remainder is rounding, not a self-weight.
        t = topology.complete(n, weights="max_degree_boyd")
        assert not t.W.diagonal().any()
        assert t.W.nnz == n * (n - 1)
        assert t.row(0)[0] == tuple(range(1, n))


def test_callable_gets_the_ranked_graph():
    def doubled(graph):
        assert sorted(graph) == [0, 1, 2]
        return np.array([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])

    t = topology.from_graph(nx.path_graph(["x", "y", "z"]), weights=doubled)
    assert t.labels == ("x", "y", "z")
    assert t.weights == "given"
    assert t.rho == pytest.approx(0.5)
    assert topology.path(3, weights=doubled).rho == pytest.approx(0.5)


def test_mapping_fills_the_diagonal():
    t = topology.path(3, weights={(0, 1): 0.2, (1, 0): 0.2, (1, 2): 0.3, (2, 1): 0.3})
    np.testing.assert_allclose(t.to_dense(), [[0.8, 0.2, 0], [0.2, 0.5, 0.3], [0, 0.3, 0.7]])
    column = {(0, 0): 0.5, (1, 0): 0.5, (0, 1): 1.0, (1, 1): 0.0}
    assert topology.path(2, weights=column).row(1) == ((0,), (0.5,))


def test_reciprocal_digraph_counts_as_undirected():
    t = topology.from_graph(nx.path_graph(4).to_directed())
    assert not t.is_directed
    assert t.rho == topology.path(4).rho


@pytest.mark.parametrize("weights", UNDIRECTED_ONLY)
def test_undirected_rules_refuse_digraphs(weights):
    message = (
        rf"weights='{weights}' needs an undirected graph, but the edge 6 -> 0 has no reverse; "
        r"use weights='uniform'.*'uniform_push'"
    )
    with pytest.raises(TopologyError, match=message):
        topology.exponential(8, weights=weights)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (
            "metropolis",
            ArgumentError,
            r"weights='metropolis' is unknown; did you mean 'metropolis_",
        ),
        ("xyz", ArgumentError, r"weights='xyz' is unknown; known: best_constant, fastest_ave"),
        (
            0.3,
            ArgumentTypeError,
            r"weights must be a name.*got float; for a matrix use.*from_matrix",
        ),
        (
            {(0, 2): 0.1},
            TopologyError,
            r"W\[0, 2\] = 0.1 but the graph has no edge 2 -> 0.*set it to",
        ),
        ({(0, 9): 0.1}, ArgumentError, r"key \(0, 9\).*ranks 0 to 3"),
        ({"01": 0.1}, ArgumentError, r"key '01'; each key must be \(i, j\)"),
        ({(0, 1): "half"}, ArgumentTypeError, r"weights\[0, 1\] must be a number, got 'half'"),
        ({(0, 1): None}, ArgumentTypeError, r"weights\[0, 1\] must be a number, got None"),
        (lambda g: np.eye(3), TopologyError, r"W is 3 x 3 but the graph has 4 nodes"),
        (lambda g: np.full((4, 4), 0.25), TopologyError, r"W\[0, 2\] = 0.25.*2 -> 0 \(6 entries"),
        (lambda g: 0.5 * np.eye(4), TopologyError, r"row 0 sums to 0.5 \(0.5 short; 4 rows off\)"),
    ],
)
def test_bad_weights(weights, error, message):
    with pytest.raises(error, match=message):
        topology.path(4, weights=weights)
