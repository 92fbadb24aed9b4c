"""The class Topology: access by rank, flags, immutability, copies."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from dectool import topology
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.topology import Topology

RING = topology.ring(5)
PUSH = topology.exponential(6, weights="uniform_push")


@pytest.mark.parametrize("t", [RING, PUSH, topology.star(4, weights="uniform"), topology.ring(1)])
def test_access_agrees_with_the_matrix(t):
    W = t.to_dense()
    for i in range(t.size):
        sources, weights = t.row(i)
        assert sources == tuple(np.flatnonzero(W[i]).tolist())
        assert weights == tuple(W[i, list(sources)].tolist())
        assert all(type(x) is int for x in sources)
        assert all(type(x) is float for x in weights)
        assert t.in_neighbors(i) == tuple(j for j in np.flatnonzero(W[i]) if j != i)
        assert t.out_neighbors(i) == tuple(j for j in np.flatnonzero(W[:, i]) if j != i)
        assert t.self_weight(i) == W[i, i]
        assert [t.weight(i, j) for j in range(t.size)] == W[i].tolist()
        assert (t.in_degree(i), t.out_degree(i)) == (t.in_degrees[i], t.out_degrees[i])
        assert t.row(i) is t.row(np.int64(i))
    assert t.max_degree == max(t.in_degrees.max(), t.out_degrees.max())


def test_edges_go_from_sender_to_receiver():
    W = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]  # 0 hears 1, 1 hears 2, 2 hears 0
    t = topology.from_matrix(W)
    assert t.is_directed
    assert sorted(t.graph.edges) == [(0, 2), (1, 0), (2, 1)]
    assert t.in_neighbors(0) == (1,)
    assert t.out_neighbors(0) == (2,)
    assert t.weight(0, 1) == 0.5
    assert t.weight(1, 0) == 0.0


def test_matrix_is_canonical():
    W = sparse.coo_array(
        ([0.25, 0.25, 0.5, 0.5, 0.5, 0.0], ([0, 0, 0, 1, 1, 1], [1, 1, 0, 1, 0, 1])), shape=(2, 2)
    )
    t = topology.from_matrix(W)
    assert isinstance(t.W, sparse.csr_array)
    assert t.W.dtype == np.float64
    assert t.W.has_canonical_format
    assert t.W.nnz == 4
    assert (t.W.data == 0.5).all()
    assert topology.from_matrix([[0, 1], [1, 0]]).W.nnz == 2


@pytest.mark.parametrize(
    "wrap",
    [
        np.array,
        np.matrix,
        np.ndarray.tolist,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        sparse.lil_array,
        sparse.dia_array,
        np.asfortranarray,
        lambda W: W.astype(object).astype(np.float64),
    ],
)
@pytest.mark.filterwarnings("ignore:.*matrix subclass.*:PendingDeprecationWarning")
def test_any_matrix_goes_in(wrap):
    W = topology.path(4).to_dense()
    np.testing.assert_array_equal(topology.from_matrix(wrap(W)).to_dense(), W)


def test_integers_and_float32_go_in():
    assert topology.from_matrix(np.eye(2, dtype=int)[::-1]).W.dtype == np.float64
    assert topology.from_matrix(np.full((2, 2), 0.5, dtype=np.float32)).rho == 0


def test_the_matrix_is_copied_and_read_only():
    W = np.full((3, 3), 1 / 3)
    given = sparse.csr_array(W)
    t, u = topology.from_matrix(W), topology.from_matrix(given)
    W[0, 0] = given.data[0] = 9
    assert t.weight(0, 0) == u.weight(0, 0) == 1 / 3
    for array in (t.W.data, t.W.indices, t.W.indptr, t.perron, t.eigenvalues, t.in_degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError, match=r"immutable: cannot set name of matrix of 3"):
        t.name = "other"
    with pytest.raises(nx.NetworkXError, match=r"[Ff]rozen"):
        t.graph.add_edge(0, 7)
    np.testing.assert_allclose(t.W @ np.ones((3, 2)), 1)


def test_flags():
    pull, push = topology.star(4, weights="uniform"), topology.star(4, weights="uniform_push")
    assert (pull.is_row_stochastic, pull.is_column_stochastic) == (True, False)
    assert (push.is_row_stochastic, push.is_column_stochastic) == (False, True)
    assert not pull.is_symmetric
    assert not pull.is_directed
    assert not pull.is_normal
    assert not pull.is_doubly_stochastic
    circulant = topology.exponential(7)
    assert circulant.is_normal
    assert circulant.is_directed
    assert circulant.is_doubly_stochastic
    assert not circulant.is_symmetric
    assert RING.is_symmetric
    assert RING.is_normal
    assert RING.is_connected
    apart = topology.from_matrix(np.eye(3), require_connected=False)
    assert not apart.is_connected
    assert apart.rho == 1


def test_tolerance():
    W = topology.ring(4).to_dense()
    W[0, 1] += 5e-10
    assert topology.from_matrix(W).is_symmetric
    assert topology.from_matrix(W).is_doubly_stochastic


def test_perron():
    t = topology.star(4, weights="uniform")
    np.testing.assert_allclose(t.perron, np.array([4, 2, 2, 2]) / 10)
    push = topology.star(4, weights="uniform_push")
    np.testing.assert_allclose(push.perron, np.array([4, 2, 2, 2]) * 4 / 10)
    np.testing.assert_array_equal(RING.perron, np.full(5, 0.2))


@pytest.mark.parametrize("chain", [3, 700])
def test_perron_of_leaders_and_followers(chain):
    """Rank 0 and 1 hear each other alone, and everybody the one before: they decide."""
    W = np.diag(np.full(chain, 0.3)) + np.diag(np.full(chain - 1, 0.7), -1)
    W[0, :2], W[1, :2] = (0.75, 0.25), (0.5, 0.5)
    leaders = np.concatenate([[2 / 3, 1 / 3], np.zeros(chain - 2)])
    pull = topology.from_matrix(W, require_connected=False)
    np.testing.assert_allclose(pull.perron, leaders, atol=1e-12)
    push = topology.from_matrix(W.T, require_connected=False)
    np.testing.assert_allclose(push.perron, chain * leaders, atol=1e-9)
    W[0, :2], W[1, :2] = (1, 0), (0, 1)
    two = topology.from_matrix(W, require_connected=False)
    with pytest.raises(TopologyError, match=r"no unique Perron .* rank 0 to rank 1 or back"):
        _ = two.perron


def test_lazy():
    t = RING.lazy()
    np.testing.assert_allclose(t.to_dense(), (RING.to_dense() + np.eye(5)) / 2)
    assert t.name == "lazy ring of 5"
    assert t.lambda_min >= 0


def test_repr_and_identity():
    assert repr(RING) == "<Topology: ring of 5, 5 edges, metropolis_hastings, doubly stochastic>"
    assert repr(topology.exponential(8, weights="uniform_push")).startswith(
        "<Topology: exponential graph of 8, 24 directed edges, uniform_push"
    )
    assert topology.ring(5) != RING
    assert {RING: 1}[RING] == 1


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies(again):
    labelled = topology.from_graph(nx.path_graph(["a", "b", "c"]))
    _ = labelled.rho, labelled.graph, labelled.row(1)
    t = again(labelled)
    np.testing.assert_array_equal(t.to_dense(), labelled.to_dense())
    assert (t.labels, t.name, t.weights) == (labelled.labels, labelled.name, labelled.weights)
    assert t.rho == labelled.rho
    assert not t.W.data.flags.writeable


def test_caches_make_no_graph_unasked():
    t = topology.ring(100_000)
    t.row(0), t.out_neighbors(0), repr(t)
    assert "graph" not in t.__dict__


@pytest.mark.parametrize(
    "method", ["row", "in_neighbors", "out_neighbors", "self_weight", "in_degree"]
)
@pytest.mark.parametrize("rank", [-1, 5, 10**9])
def test_rank_out_of_range(method, rank):
    with pytest.raises(
        ArgumentError,
        match=rf"rank {rank} is out of range: ring of 5 has size 5, so ranks are 0 to 4",
    ):
        getattr(RING, method)(rank)


def test_rank_of_wrong_type():
    with pytest.raises(ArgumentTypeError, match=r"rank must be an integer from 0 to 4, got 1.5"):
        RING.row(1.5)
    with pytest.raises(ArgumentError, match=r"rank 7 is out of range"):
        RING.weight(0, 7)


@pytest.mark.parametrize(
    ("W", "error", "message"),
    [
        ([[1, 0, 0], [0, 1, 0]], ArgumentError, r"W must be square.*got shape \(2, 3\)"),
        ([1.0, 2.0], ArgumentError, r"W must be square.*got shape \(2,\)"),
        (
            np.zeros((0, 0)),
            ArgumentError,
            r"W must be square, n x n with n >= 1, got shape \(0, 0\)",
        ),
        ([[1, 0], [1]], ArgumentError, r"W must be a square matrix, but its rows differ"),
        ([["a"]], ArgumentTypeError, r"W must hold real numbers, got dtype <U1"),
        (np.eye(2) * 1j, ArgumentTypeError, r"W must hold real numbers, got dtype complex128"),
        (
            np.where(np.arange(36).reshape(6, 6) == 17, np.nan, 1 / 6),
            ArgumentError,
            r"W\[2, 5\] is nan; every weight must be finite",
        ),
        (sparse.csr_array([[1, np.inf], [0, 1]]), ArgumentError, r"W\[0, 1\] is inf"),
        (
            [[0.5, 0.5, 0], [0.5, 0.4, 0.08], [0, 0.5, 0.5]],
            ArgumentError,
            r"W is not stochastic: row 1 sums to 0.98 \(0.02 short; 1 rows off\) and column 2 sums "
            r"to 0.58 \(0.42 short; 2 columns off\).*Divide each row by its sum.*from_graph\(graph",
        ),
        ([[0, 1], [2, 0]], ArgumentError, r"row 1 sums to 2 \(1 over.*column 0 sums to 2 \(1 over"),
    ],
)
def test_bad_matrices(W, error, message):
    with pytest.raises(error, match=message):
        Topology(W)


def test_disconnected_names_the_components():
    W = np.eye(7)
    W[:3, :3] = 1 / 3
    W[3:5, 3:5] = 1 / 2
    message = (
        r"matrix of 7 is not connected: 4 components \{0, 1, 2\}, \{3, 4\}, \{5\}, \{6\};.*Add"
    )
    with pytest.raises(ArgumentError, match=message):
        topology.from_matrix(W)
    with pytest.raises(ArgumentError, match=r"\{0\}, \{1\}, \{2\}, \{3\}, \.\.\. \(40 in all\)"):
        topology.from_matrix(np.eye(40))
    with pytest.raises(ArgumentError, match=r"2 components \{0\}, \{1\}"):
        topology.from_matrix([[1, 0], [0.5, 0.5]])  # 1 hears 0, but never the other way round


def test_labels_must_fit():
    with pytest.raises(ArgumentError, match=r"labels must name 2 ranks, got 3"):
        Topology(np.full((2, 2), 0.5), labels="abc")
