"""Hyper-parameters: what is refused with which words, and what a file keeps of them."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, topology
from dectool.errors import ArgumentError, ArgumentTypeError

PAIR = "'symmetric', 'tight' or a pair (lowest, highest)"


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: algorithms.ChebyshevGossip("wide"), ArgumentError, f"'wide' must be {PAIR}"),
        (lambda: algorithms.ChebyshevGossip(0.5), ArgumentTypeError, f"is 0.5; give {PAIR}"),
        (lambda: algorithms.ChebyshevGossip((0.5,)), ArgumentTypeError, f"is (0.5,); give {PAIR}"),
        (lambda: algorithms.ChebyshevGossip((0.5, "1")), ArgumentError, "must lie in [-1, 1)"),
        (lambda: algorithms.ChebyshevGossip((0.5, 0.2)), ArgumentError, "lowest first"),
        (lambda: algorithms.DLM(lr=0.1, penalty="1"), ArgumentTypeError, "penalty is '1'; give a"),
        (lambda: algorithms.DLM(lr=0.1, penalty=True), ArgumentTypeError, "penalty is True; give"),
        (lambda: algorithms.Mudag(0.1, condition="9"), ArgumentTypeError, "condition is '9'; give"),
        (lambda: algorithms.OPAPC(0.1, condition=0.5), ArgumentError, "least 1: L / mu, or more"),
        (lambda: algorithms.DGD(lr=1 + 1j), ArgumentTypeError, "lr is (1+1j); give a number"),
    ],
)
def test_what_is_refused(make, kind, message):
    with pytest.raises(kind) as caught:
        make()
    assert message in str(caught.value)


def test_numbers_of_numpy_are_numbers():
    assert algorithms.DGD(lr=np.float32(0.25)).parameters() == {"lr": 0.25}
    assert type(algorithms.NEARDGD(lr=0.1, rounds=np.int64(3)).rounds) is int
    assert type(algorithms.RandomizedGossip(rate=np.float64(2.0)).rate) is float


def test_a_history_keeps_numbers_of_numpy(tmp_path):
    descent = algorithms.LocalSGD(lr=np.float32(0.25), period=np.int64(2))
    problem = problems.Averaging([[1.0], [3.0]])
    h = dectool.solve(descent, problem, topology=topology.ring(2), steps=4)
    again = dectool.History.load(h.save(tmp_path / "h.npz"))
    assert again.x.tobytes() == h.x.tobytes()
    same = algorithms.LocalSGD(lr=0.25, period=2)
    expected = dectool.solve(same, problem, topology=topology.ring(2), steps=4)
    assert again.x.tobytes() == expected.x.tobytes()


def test_accelerated_gossip_where_nothing_averages():
    """Two rings that hear nothing of each other: rho is 1, or here more by rounding."""
    two = np.kron(np.eye(2), topology.ring(10).to_dense())
    apart = topology.from_matrix(two, require_connected=False)
    start = problems.Averaging(np.arange(20.0)[:, None])
    history = dectool.solve(
        algorithms.ShiftRegisterGossip(), start, topology=apart, steps=20, check=False
    )
    assert np.isfinite(history.x).all()
    np.testing.assert_allclose(history.x.mean(axis=0), 9.5, atol=1e-9)


@pytest.mark.parametrize("lr", [np.float64(0.1), lambda k: 1.0 / np.sqrt(k + 4.0)])
@pytest.mark.parametrize("name", ["ATC", "SlowMo", "QuasiGlobalMomentum", "CHOCO", "EXTRA"])
def test_numbers_of_numpy_leave_single_precision_as_it_is(name, lr):
    """A scalar float64 of NumPy times an array of float32 is one of float64."""
    problem = problems.Averaging(np.eye(4))
    history = dectool.solve(
        algorithms.get(name, lr=lr), problem, topology=topology.ring(4), steps=3,
        x0=np.ones((4, 4), np.float32),
    )  # fmt: skip
    assert history.state["x"].dtype == np.float32
