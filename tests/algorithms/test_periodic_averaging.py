"""Rounds of descent: special cases, what is sent, where a round ends, and the map of a period."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, theory, topology
from dectool.algorithms import CooperativeSGD, GossipPGA, LocalSGD, SlowMo
from dectool.errors import ArgumentError, ArgumentTypeError
from tests.solving import BACKENDS, same_bits, same_records
from tests.theory.q8 import EYE, QUADRATIC, RING, B, H, W

LR = 0.1
J = np.full((8, 8), 1 / 8)
STEP = EYE - LR * np.diag(H)
ONE_PEER = topology.one_peer_exponential(8)


def solve(algorithm, steps=23, **options):
    options = {"topology": RING, "backend": "stacked", **options}
    return dectool.solve(algorithm, QUADRATIC, steps=steps, **options)


@pytest.mark.parametrize(
    ("algorithm", "same"),
    [
        (LocalSGD(lr=LR, period=1), algorithms.AllReduceGD(lr=LR)),
        (GossipPGA(lr=LR, period=1), algorithms.AllReduceGD(lr=LR)),
        (CooperativeSGD(lr=LR, period=1), algorithms.ATC(lr=LR)),
        (GossipPGA(lr=LR, period=99), algorithms.ATC(lr=LR)),
        (SlowMo(lr=LR, beta=0.0), LocalSGD(lr=LR)),
        (SlowMo(lr=LR, beta=0.0, inner="gossip"), GossipPGA(lr=LR)),
        (SlowMo(lr=LR, period=1, beta=0.0, slow_lr=0.5), algorithms.AllReduceGD(lr=LR / 2)),
    ],
    ids=lambda algorithm: repr(algorithm),
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_special_cases(algorithm, same, backend):
    found, expected = solve(algorithm, backend=backend), solve(same, backend=backend)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found["distance"], expected["distance"], rtol=0, atol=1e-14)


def test_on_the_complete_graph_neighbors_are_all():
    for algorithm, same in [
        (CooperativeSGD(lr=LR), LocalSGD(lr=LR)),
        (GossipPGA(lr=LR), algorithms.AllReduceGD(lr=LR)),
    ]:
        found = solve(algorithm, topology=topology.complete(8))
        np.testing.assert_allclose(found.x, solve(same).x, rtol=0, atol=1e-14)


def test_slow_momentum_with_rounds_of_one_step_is_momentum():
    found = solve(SlowMo(lr=LR, period=1, beta=0.7))
    one = topology.complete(8)
    expected = solve(algorithms.DmSGD(lr=LR, beta=0.7), topology=one)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("backend", BACKENDS)
def test_ranks_agree_at_the_ends_of_rounds_only(phase, backend):
    history = solve(LocalSGD(lr=LR, period=4, phase=phase), backend=backend)
    ends = (history["step"] + phase) % 4 == 0
    ends[0] = True  # the start
    np.testing.assert_array_equal(history["consensus_error"] < 1e-15, ends)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_of_each_step(backend):
    everyone = np.diff(solve(algorithms.AllReduceGD(lr=LR), backend=backend)["bytes"])[0]
    neighbors = np.diff(solve(algorithms.ATC(lr=LR), backend=backend)["bytes"])[0]
    assert (neighbors, everyone > 0) == (8 * 2 * 8, True)
    ends = np.arange(1, 24) % 4 == 0
    for algorithm, last, others in [
        (LocalSGD(lr=LR), everyone, 0),
        (CooperativeSGD(lr=LR), neighbors, 0),
        (GossipPGA(lr=LR), everyone, neighbors),
        (SlowMo(lr=LR), everyone, 0),
        (SlowMo(lr=LR, inner="gossip"), everyone, neighbors),
    ]:
        sent = np.diff(solve(algorithm, backend=backend)["bytes"])
        np.testing.assert_array_equal(sent, np.where(ends, last, others))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    period=st.integers(1, 7), phase=st.integers(0, 6), j=st.integers(0, 40), k=st.integers(0, 40)
)
def test_an_algorithm_of_a_later_step_goes_on_from_there(period, phase, j, k):
    algorithm = GossipPGA(lr=LR, period=period, phase=phase % period)
    assert algorithm.at(j).at(k) == algorithm.at(j + k)
    assert algorithm.at(j + period) == algorithm.at(j)
    assert algorithm.at(j).ends_round == ((algorithm.phase + j + 1) % period == 0)


@pytest.mark.parametrize("half", range(1, 6))
@pytest.mark.parametrize("backend", BACKENDS)
def test_resume_within_a_round(half, backend, tmp_path):
    options = {"topology": ONE_PEER, "backend": backend}
    for algorithm in (
        GossipPGA(lr=lambda k: 0.3 / (1 + k), period=4),
        SlowMo(lr=LR, period=5, inner="gossip"),
    ):
        whole = solve(algorithm, steps=11, **options)
        file = tmp_path / "half.npz"
        solve(algorithm, steps=half, checkpoint=file, checkpoint_every=half, **options)
        rest = solve(algorithm, steps=11, resume=file, **options)
        same_bits(rest, whole)
        same_records(rest, whole)


def test_map_of_a_period_is_the_product_over_algorithm_and_schedule():
    # Four steps of a round on three topologies in turn: twelve steps.
    matrices = [ONE_PEER.at(k).to_dense() for k in range(3)]
    expected = EYE
    for k in range(12):
        expected = (J if k % 4 == 3 else matrices[k % 3]) @ STEP @ expected
    found = theory.iteration(GossipPGA(lr=LR), QUADRATIC, ONE_PEER)
    assert found.period == 12
    np.testing.assert_allclose(found.matrix, expected, atol=1e-14)
    assert found.rate == pytest.approx(np.abs(np.linalg.eigvals(expected)).max() ** (1 / 12))


def test_map_of_a_period_begins_at_the_phase():
    found = theory.iteration_matrix(GossipPGA(lr=LR, period=3, phase=2), QUADRATIC, RING)
    np.testing.assert_allclose(found, W @ STEP @ W @ STEP @ J @ STEP, atol=1e-14)


def test_noise_of_a_round_adds_up_from_all_its_steps():
    # With one curvature the mean of the ranks is that of descent, and at the end of a round all
    # ranks are there.
    flat = problems.Quadratic(h=np.full((8, 1), 2.0), b=B[:, None])
    for algorithm in (LocalSGD(lr=LR), GossipPGA(lr=LR, period=3)):
        found = theory.steady_state(algorithm, flat, RING, noise=0.7)
        expected = LR * 0.7**2 / (8 * 2 * (2 - LR * 2))
        assert found.mean_variance == pytest.approx(expected, rel=1e-12)
        assert found.variance == pytest.approx(expected, rel=1e-12)


def test_largest_step_of_a_round():
    flat = problems.Quadratic(h=np.full((8, 1), 2.0), b=B[:, None])
    assert theory.largest_stable_lr(LocalSGD(lr=LR), flat, RING) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"period": 0}, ArgumentError, "LocalSGD: period=0 must be at least 1"),
        ({"period": 2.5}, ArgumentTypeError, r"LocalSGD: period is 2\.5; give a whole number"),
        ({"phase": -1}, ArgumentError, "LocalSGD: phase=-1 must be at least 0"),
        ({"period": 3, "phase": 3}, ArgumentError, "phase=3 must be below period=3; leave it out"),
        ({"lr": 0.0}, ArgumentError, r"LocalSGD: lr=0\.0 must be finite and above 0"),
    ],
)
def test_parameters_of_rounds_are_checked(parameters, kind, message):
    with pytest.raises(kind, match=message):
        LocalSGD(**{"lr": LR, **parameters})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beta": 1.0}, r"SlowMo: beta=1\.0 must be at least 0 and below 1"),
        ({"slow_lr": 0.0}, r"SlowMo: slow_lr=0\.0 must be finite and above 0"),
        ({"inner": "adam"}, "SlowMo: inner='adam' is not known; give local or gossip"),
    ],
)
def test_parameters_of_slow_momentum_are_checked(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        SlowMo(lr=LR, **parameters)


@pytest.mark.parametrize("kind", [algorithms.DmSGD, algorithms.DecentLaM])
def test_momentum_is_below_one(kind):
    with pytest.raises(ArgumentError, match=r"beta=1\.0 must be at least 0 and below 1"):
        kind(lr=LR, beta=1.0)
