"""Histories held against predictions: those that agree, and planted mistakes that do not."""

import matplotlib as mpl
import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.errors import ArgumentError
from tests.theory.q8 import QUADRATIC, RING

mpl.use("Agg")
NAMES = ["DGD", "ATC", "CTA", "EXTRA", "NIDS", "ExactDiffusion", "DIGing", "ATCGradientTracking"]
NAMES += ["DmSGD", "QuasiGlobalMomentum", "DecentLaM"]


@pytest.mark.parametrize("name", [*NAMES, "AllReduceGD", "LEAD", "BEER"])
def test_every_iterate_is_predicted(name):
    extra = {"compressor": "identity"} if name in ("LEAD", "BEER") else {}
    algorithm = algorithms.get(name, lr=0.1, **extra)
    history = dectool.solve(algorithm, QUADRATIC, topology=RING, steps=50)
    prediction = theory.predict(algorithm, QUADRATIC, RING)
    agreement = theory.compare(history, prediction)
    assert agreement.verdict, agreement.verdict
    assert [check.quantity.split()[0] for check in agreement.checks] == [
        "distance",
        "consensus_error",
        "gap",
    ]
    assert max(check.error for check in agreement.checks) < 1e-12


@pytest.mark.parametrize("name", ["RelaySGD", "RelaySum"])
def test_relayed_sums_are_predicted_from_the_diameter_on(name):
    # Their counts grow until all ranks have been heard, and are no states of the map.
    algorithm = algorithms.get(name, **({"lr": 0.1} if name == "RelaySGD" else {}))
    x0, path = np.arange(8.0)[:, None], topology.path(8)
    history = dectool.solve(algorithm, QUADRATIC, topology=path, steps=100, x0=x0)
    prediction = theory.predict(algorithm, QUADRATIC, path, x0=x0)
    assert "c" not in prediction.iteration.fields
    assert theory.compare(history, prediction).verdict


def test_golden_trajectory_and_limit():
    # Published for 50 steps and for the limit.
    found = theory.predict(algorithms.ATC(lr=0.1), QUADRATIC, RING)
    assert found.trajectory([50])["distance"][0] == pytest.approx(1.093922000969, abs=1e-11)
    assert found.iterates([50])[0, 0, 0] == pytest.approx(1.156453221921, abs=1e-11)
    assert found.rate == pytest.approx(0.755763899765, abs=1e-11)
    assert found.bias == pytest.approx(1.093922064331, abs=1e-11)


def test_another_matrix_disagrees():
    history = dectool.solve(algorithms.ATC(lr=0.1), QUADRATIC, topology=RING, steps=50)
    lazy = topology.from_matrix((np.eye(8) + RING.to_dense()) / 2, name=RING.name)
    agreement = theory.compare(history, theory.predict(algorithms.ATC(lr=0.1), QUADRATIC, lazy))
    assert not agreement.verdict
    assert "DISAGREES" in str(agreement.verdict)
    assert "FAIL distance" in str(agreement.verdict)


@pytest.mark.parametrize(
    ("algorithm", "graph", "period"),
    [
        (algorithms.ATC(lr=0.1), topology.one_peer_exponential(8), 3),
        (algorithms.LocalSGD(lr=0.1, period=4, phase=1), RING, 4),
        (algorithms.GossipPGA(lr=0.1, period=4), topology.one_peer_exponential(8), 12),
        (algorithms.CooperativeSGD(lr=0.1, period=2), topology.one_peer_exponential(8), 6),
        (algorithms.SlowMo(lr=0.1, period=3, inner="gossip"), topology.one_peer_exponential(8), 3),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_every_step_of_a_period_is_predicted(algorithm, graph, period):
    x0 = np.tile(np.arange(1.0, 2.0), (8, 1))
    history = dectool.solve(algorithm, QUADRATIC, topology=graph, steps=41, x0=x0)
    prediction = theory.predict(algorithm, QUADRATIC, graph, x0=x0)
    assert prediction.period == period
    agreement = theory.compare(history, prediction)
    assert agreement.verdict, agreement.verdict
    assert "worst of 42 steps" in agreement.checks[0].quantity
    assert max(check.error for check in agreement.checks) < 1e-12


def test_other_problems_are_compared_by_rate():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 3)) * [3.0, 2.0, 1.0]
    y = np.sign(A @ [1.0, -1.0, 2.0] + rng.normal(size=80))
    problem = problems.LogisticRegression(A, y, n=4, l2=0.05)
    algorithm, graph = algorithms.EXTRA(lr=0.3), topology.ring(4)
    history = dectool.solve(algorithm, problem, topology=graph, steps=1500)
    prediction = theory.predict(algorithm, problem, graph)
    assert not prediction.exact
    agreement = theory.compare(history, prediction)
    assert agreement.verdict
    assert agreement.checks[0].measured == history.rate()
    # One that stands still does not have a rate that is nearly 1.
    slow = algorithms.EXTRA(lr=0.003)
    still = dectool.solve(slow, problem, topology=graph, steps=20)
    still.records["change"] = np.ones(21)
    found = theory.compare(still, theory.predict(slow, problem, graph))
    assert 0.99 < found.prediction.rate < 1.0
    assert not found.verdict
    with pytest.raises(ArgumentError, match="is not quadratic"):
        prediction.iterates([1])
    assert len(agreement.plot().lines) == 2


def test_averaging_from_its_own_start():
    problem = problems.Averaging(np.arange(16.0).reshape(8, 2))
    history = dectool.solve(algorithms.Gossip(), problem, topology=RING, steps=40)
    assert theory.compare(history, theory.predict(algorithms.Gossip(), problem, RING)).verdict


def test_a_loaded_history_and_its_plot(tmp_path):
    dgd = algorithms.DGD(lr=0.1)
    x0 = np.arange(8.0)[:, None]
    history = dectool.solve(dgd, QUADRATIC, topology=RING, steps=30, x0=x0, record_every=10)
    loaded = dectool.History.load(history.save(tmp_path / "run.npz"))
    agreement = theory.compare(loaded, theory.predict(dgd, QUADRATIC, RING, x0=x0))
    assert agreement.verdict
    axes = agreement.plot()
    assert [len(line.get_xdata()) for line in axes.lines] == [4, 4]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), axes.lines[1].get_ydata(), rtol=1e-10)
    with pytest.raises(ArgumentError, match="'bytes' is not predicted"):
        agreement.plot("bytes")


@pytest.mark.parametrize(
    ("algorithm", "x0", "reason"),
    [
        (algorithms.ATC(lr=0.1), None, "history is of algorithm 'DGD'"),
        (algorithms.DGD(lr=0.2), None, "history is of parameters"),
        (algorithms.DGD(lr=0.1), [[1.0]] * 8, "began elsewhere"),
    ],
)
def test_what_was_not_run_is_refused(algorithm, x0, reason):
    history = dectool.solve(algorithms.DGD(lr=0.1), QUADRATIC, topology=RING, steps=5)
    with pytest.raises(ArgumentError, match=reason):
        theory.compare(history, theory.predict(algorithm, QUADRATIC, RING, x0=x0))
