"""Guarantees of the literature: they hold in runs, and a run or a number that is wrong is seen."""

import dataclasses
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import linalg

import dectool
from dectool import algorithms, compression, problems, theory, topology
from dectool.errors import ArgumentError, ArgumentTypeError
from dectool.theory import _bounds_exact, _facts
from tests.theory.q8 import EYE, QUADRATIC, RING, B, H, W

DESCENTS = (
    algorithms.AllReduceGD,
    algorithms.DGD,
    algorithms.ATC,
    algorithms.CTA,
    algorithms.EXTRA,
    algorithms.PGEXTRA,
    algorithms.NIDS,
    algorithms.ExactDiffusion,
    algorithms.D2,
    algorithms.DIGing,
    algorithms.SemiATCGradientTracking,
    algorithms.ATCGradientTracking,
)
GRAPHS = (topology.ring, topology.path, topology.star, topology.complete)


def rotated(n, d, mu, seed):
    """Return quadratics of curvatures from mu to 1, both of them there, in rotated axes."""
    rng = np.random.default_rng(seed)
    h = rng.choice([mu, 1.0, (mu + 1.0) / 2], size=(n, d))
    h[0, 0], h[1, 0] = 1.0, mu
    Q = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    H = Q @ (h[:, :, None] * Q.transpose(0, 2, 1))
    return problems.Quadratic(h=(H + H.transpose(0, 2, 1)) / 2, b=rng.normal(size=(n, d)))


def named(kind, found):
    return [bound for bound in found if bound.kind == kind]


@pytest.mark.parametrize("kind", DESCENTS, ids=lambda kind: kind.__name__)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(
    n=st.integers(3, 6),
    d=st.integers(1, 2),
    mu=st.sampled_from([0.05, 0.3, 1.0]),
    make=st.sampled_from(GRAPHS),
    share=st.floats(0.05, 0.999),
    seed=st.integers(0, 99),
)
def test_guarantees_hold(kind, n, d, mu, make, share, seed):
    problem, graph = rotated(n, d, mu, seed), make(n)
    for step in named("step size", theory.bounds(kind(lr=1.0), problem, graph)):
        if not step.applies:
            assert kind is algorithms.D2
            continue
        chosen = kind(lr=share * step.value)
        rate = theory.rate(chosen, problem, graph)
        assert rate < 1.0 + 1e-9
        found = [bound for bound in theory.bounds(chosen, problem, graph) if bound.applies]
        history = dectool.solve(chosen, problem, topology=graph, steps=30, check=False)
        for bound in found:
            if bound.kind == "contraction":
                assert rate <= bound.value + 1e-9
            # A rate cannot be fitted to a few records.
            if bound._envelope is not None:
                assert bound.check(history)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(n=st.integers(2, 9), make=st.sampled_from(GRAPHS), seed=st.integers(0, 99))
def test_averaging_keeps_its_bounds(n, make, seed):
    graph = make(n)
    start = np.random.default_rng(seed).normal(size=(n, 2))
    for gossip in (
        algorithms.Gossip(),
        algorithms.ChebyshevGossip(),
        algorithms.ChebyshevGossip(interval="tight"),
        algorithms.ShiftRegisterGossip(),
    ):
        problem = problems.Averaging(start)
        history = dectool.solve(gossip, problem, topology=graph, steps=40)
        (bound,) = theory.bounds(gossip, problem, graph)
        assert bound.applies
        assert bound.check(history)


def test_bounds_of_averaging_are_reached():
    # From the slowest mode: rho^k, 1 / T_k(1/rho), and q^k (1 + k sqrt(1 - rho^2)).
    values, vectors = np.linalg.eigh(RING.to_dense() - 1 / 8)
    slowest = problems.Averaging(vectors[:, [np.argmax(np.abs(values))]])
    for gossip in (
        algorithms.Gossip(),
        algorithms.ChebyshevGossip(),
        algorithms.ShiftRegisterGossip(),
    ):
        history = dectool.solve(gossip, slowest, topology=RING, steps=30)
        (bound,) = theory.bounds(gossip, slowest, RING)
        np.testing.assert_allclose(
            history["consensus_error"], bound.envelope(history), rtol=1e-9, atol=1e-13
        )


def test_schedules():
    six = topology.one_peer_exponential(6)
    problem = problems.Averaging(np.random.default_rng(0).normal(size=(6, 2)))
    (bound,) = theory.bounds(algorithms.Gossip(), problem, six)
    assert bound.value == pytest.approx(0.216506350946 ** (1 / 3), abs=1e-9)
    assert bound.check(dectool.solve(algorithms.Gossip(), problem, topology=six, steps=30))
    quadratic = rotated(6, 2, 0.5, 0)
    step, rate = theory.bounds(algorithms.DIGing(lr=1e-4), quadratic, six)
    assert step.applies
    assert rate.applies
    assert theory.rate(algorithms.DIGing(lr=1e-4), quadratic, six) <= rate.value < 1.0
    assert theory.bounds(algorithms.EXTRA(lr=0.1), quadratic, six) == ()
    drawn = topology.equidyn(6)
    assert theory.bounds(algorithms.Gossip(), problem, drawn) == ()


def test_push_sum():
    three = nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    graph = topology.from_graph(three, weights="uniform_push")
    problem = problems.Averaging([[1.0, -2.0], [5.0, 0.5], [0.0, 3.0]])
    history = dectool.solve(algorithms.PushSum(), problem, topology=graph, steps=60)
    (bound,) = theory.bounds(algorithms.PushSum(), problem, graph)
    assert bound.value == pytest.approx(1 - 1 / 27)
    assert bound.check(history)
    assert not theory.bounds(algorithms.PushSum(), problem, topology.path(3))[0].applies


def test_compressed_gossip():
    problem = problems.Averaging(np.random.default_rng(0).normal(size=(6, 4)))
    graph, compressor = topology.complete(6), compression.TopK(2)
    gamma = algorithms.choco_gamma(graph, compressor.contraction(4))
    choco = algorithms.CHOCOGossip(gamma=gamma, compressor=compressor)
    (bound,) = theory.bounds(choco, problem, graph)
    assert bound.value == pytest.approx(math.sqrt(1 - 0.5 / 82))
    assert bound.check(dectool.solve(choco, problem, topology=graph, steps=200))
    other = algorithms.CHOCOGossip(gamma=2 * gamma, compressor=compressor)
    assert not theory.bounds(other, problem, graph)[0].applies


def test_lead():
    problem, graph = rotated(4, 4, 0.5, 0), topology.complete(4)
    lead = algorithms.LEAD(
        lr=1.0, gamma=0.4, rate=0.12, compressor=compression.RandomK(2, unbiased=True)
    )
    (bound,) = theory.bounds(lead, problem, graph)
    assert bound.applies, bound
    assert bound.check(dectool.solve(lead, problem, topology=graph, steps=400))
    # 1 - rate; with half the gamma, 1 - gamma lambda_2(I - W)/2.
    assert bound.value == pytest.approx(math.sqrt(0.88))
    (slower,) = theory.bounds(dataclasses.replace(lead, gamma=0.2), problem, graph)
    assert slower.value == pytest.approx(math.sqrt(0.9))
    for wrong in ({"gamma": 1.0}, {"rate": 0.5}, {"rate": 0.01}, {"lr": 1.5}):
        assert not theory.bounds(dataclasses.replace(lead, **wrong), problem, graph)[0].applies
    biased = dataclasses.replace(lead, compressor=compression.TopK(2))
    assert not theory.bounds(biased, problem, graph)[0].applies


def test_ssda():
    ssda = algorithms.SSDA.for_problem(QUADRATIC, RING)
    (bound,) = theory.bounds(ssda, QUADRATIC, RING)
    assert bound.value == pytest.approx(math.sqrt(0.808658283817), abs=1e-12)
    assert theory.rate(ssda, QUADRATIC, RING) <= bound.value
    assert bound.check(dectool.solve(ssda, QUADRATIC, topology=RING, steps=60))
    other = dataclasses.replace(ssda, momentum=0.5)
    assert not theory.bounds(other, QUADRATIC, RING)[0].applies
    directed = topology.exponential(8)
    assert not theory.bounds(ssda, QUADRATIC, directed)[0].applies


def test_steps_that_are_the_largest():
    # On one curvature h the mode of lambda_min is the first to grow: in EXTRA its roots are those
    # of r^2 - (1 + l - lr h) r + (1 + l)/2 - lr h, and -1 is one for lr h = (5 + 3 l)/4.
    flat = problems.Quadratic(h=np.full((8, 1), 2.0), b=np.arange(8.0)[:, None])
    low = RING.lambda_min
    _, larger, _ = theory.bounds(algorithms.EXTRA(lr=0.1), flat, RING)
    assert larger.value == pytest.approx((5 + 3 * low) / 8)
    assert theory.largest_stable_lr(algorithms.EXTRA(lr=0.1), flat, RING) == pytest.approx(
        larger.value, rel=1e-8
    )
    step, *_ = theory.bounds(algorithms.DGD(lr=0.1), flat, RING)
    assert theory.largest_stable_lr(algorithms.DGD(lr=0.1), flat, RING) == pytest.approx(
        step.value, rel=1e-8
    )


def test_largest_stable_steps_are_above():
    for kind in (algorithms.DGD, algorithms.EXTRA, algorithms.D2, algorithms.ATCGradientTracking):
        most = theory.largest_stable_lr(kind(lr=0.1), QUADRATIC, RING.lazy())
        for step in named("step size", theory.bounds(kind(lr=0.1), QUADRATIC, RING.lazy())):
            assert step.applies
            assert most >= step.value * (1 - 1e-9)


def test_numbers_of_theorems():
    # n = 8, L = 4, mu = 1, rho = (1 + sqrt(2)) / 3 and lambda_min = -1/3.
    rho = (1 + math.sqrt(2)) / 3
    found = theory.bounds(algorithms.DIGing(lr=1e-6), QUADRATIC, RING)
    small, _, step, rate = (bound.value for bound in found)
    assert step == pytest.approx(1.5 * (1 - rho) ** 2 / (3 * 4 * (1 + 4 * math.sqrt(8) * 2)))
    assert rate == pytest.approx(math.sqrt(1 - 1e-6 / 1.5))
    # Where errors stop shrinking, the system has the eigenvalue 1, and it is its largest.
    a, L, mu = small, 4.0, 2.5
    G = [[rho + a * L, L * (a * L + 2), a * L**2], [a, rho, 0], [0, a * L, 1 - a * mu]]
    assert max(abs(np.linalg.eigvals(G))) == pytest.approx(1.0, abs=1e-9)
    for kind in DESCENTS[-3:]:
        edge = theory.bounds(kind(lr=1.0), QUADRATIC, RING)[0].value
        assert theory.bounds(kind(lr=edge), QUADRATIC, RING)[1].value == pytest.approx(1.0)
    # Of the two formulas of DIGing's rate the one takes over where the other ends.
    steps = np.linspace(0.01, 1.0, 200) * step
    rates = [theory.bounds(algorithms.DIGing(lr=a), QUADRATIC, RING)[3].value for a in steps]
    assert np.abs(np.diff(rates)).max() < 0.01
    assert 0 < np.argmin(rates) < 199
    _, _, radius = theory.bounds(algorithms.DGD(lr=0.1), QUADRATIC, RING)
    c2, D = 2.5 * 4 / 6.5, math.sqrt(4 * np.sum(np.arange(8.0) ** 2))
    spread = 0.1 * D / (1 - rho)
    assert radius.value == pytest.approx(spread * (1 + 4 * math.sqrt(4 / c2**2 - 0.2 / c2)))
    _, rate = theory.bounds(algorithms.NIDS(lr=0.1), QUADRATIC, RING)
    assert rate.value == pytest.approx(math.sqrt((1 + rho) / 2))


def test_extra_contracts_by_the_best_delta():
    # Against a search over both parameters of the theorem.
    lr, L, mu, low, gap = 0.3, 1.0, 0.5, 2 / 3, 0.1
    eta = np.linspace(lr / low, 2 * mu, 501)[1:-1, None]
    theta = 1 + np.geomspace(1e-2, 1e3, 2000)
    first = lr * (2 * mu - eta) * gap / (theta * (lr * L) ** 2 + gap)
    second = (theta - 1) * (eta * low - lr) * gap / (theta * eta * (1 + lr * L) ** 2)
    best = np.minimum(first, second).max()
    assert best <= _bounds_exact._extra_delta(lr, L, mu, low, gap) <= 1.001 * best


def test_extra_contracts_by_nothing_at_the_largest_step():
    # Of one curvature and eigenvalues 0 of W that is 1 / L; rounding may leave 1 / L below it.
    lr = np.nextafter(1.0, 0.0)
    assert _bounds_exact._extra_delta(lr, 1.0, 1.0, 0.5, 0.5) == pytest.approx(0.0, abs=1e-12)


def test_extra_begins_where_its_dual_variable_does():
    # z = (q; x) with q^0 = U x^0, q* = -lr U^+ grad f(x*), U^2 = (I - W)/2, in |.|_G.
    extra, x0 = algorithms.EXTRA(lr=0.02), np.arange(8.0)[:, None] ** 2
    history = dectool.solve(extra, QUADRATIC, topology=RING, steps=0, x0=x0)
    U = linalg.sqrtm((EYE - W) / 2).real
    x_star = np.full((8, 1), 1.4)
    q = U @ x0 + 0.02 * np.linalg.pinv(U, rcond=1e-6) @ (H[:, None] * x_star - B[:, None])
    Wt, x = (EYE + W) / 2, x0 - x_star
    low = np.linalg.eigvalsh(Wt)[0]
    expected = math.sqrt((np.sum(q**2) + np.sum(x * (Wt @ x))) / low)
    bound = theory.bounds(extra, QUADRATIC, RING)[2]
    assert bound.envelope(history)[0] == pytest.approx(expected)


def test_conditions_that_are_not_met():
    one = problems.Quadratic(h=[[1.0], [1.0], [-0.5]], b=np.zeros((3, 1)))
    cases = [
        (algorithms.EXTRA(lr=0.1), one, topology.ring(3), "every f_i convex"),
        (algorithms.NIDS(lr=9.0), QUADRATIC, RING, "lr < 2 / L_max"),
        (algorithms.DGD(lr=0.1), QUADRATIC, topology.exponential(8), "W symmetric"),
        (algorithms.D2(lr=0.1), QUADRATIC, topology.hypercube(3), "lambda_min > -1/3"),
        (algorithms.ATC(lr=lambda k: 0.1), QUADRATIC, RING, "lr constant"),
    ]
    for algorithm, problem, graph, text in cases:
        found = theory.bounds(algorithm, problem, graph)
        broken = [bound for bound in found if not bound.applies]
        assert any(text in str(bound) for bound in broken), (algorithm, found)
        history = dectool.solve(algorithm, problem, topology=graph, steps=1, check=False)
        with pytest.raises(ArgumentError, match="promises nothing here"):
            broken[0].check(history)


def test_wrong_numbers_are_seen(monkeypatch):
    problem = problems.Averaging(np.eye(8))
    history = dectool.solve(algorithms.Gossip(), problem, topology=RING, steps=20)
    monkeypatch.setattr(_facts.Facts, "rho", property(lambda f: 0.7))
    (bound,) = theory.bounds(algorithms.Gossip(), problem, RING)
    assert not bound.check(history)


@pytest.mark.parametrize("kind", [algorithms.DGD, algorithms.ATC, algorithms.DIGing])
def test_runs_that_break_their_bounds_are_seen(kind):
    chosen = kind(lr=1e-4)
    history = dectool.solve(chosen, QUADRATIC, topology=RING, steps=40)
    found = [bound for bound in theory.bounds(chosen, QUADRATIC, RING) if bound.applies]
    assert all(bound.check(history) for bound in found)
    growing = 2.0 ** history["step"]
    for column in ("distance", "worst_distance", "change"):
        history.records[column] = history[column] * growing
    assert not any(bound.check(history) for bound in found)


def test_a_history_of_another_run_is_refused():
    nids = algorithms.NIDS(lr=0.1)
    history = dectool.solve(nids, QUADRATIC, topology=RING, steps=20)
    step, rate = theory.bounds(algorithms.NIDS(lr=0.2), QUADRATIC, RING)
    with pytest.raises(ArgumentError, match="the history is of parameters"):
        step.check(history)
    with pytest.raises(ArgumentError, match="limits no single iterate"):
        theory.bounds(nids, QUADRATIC, RING)[1].envelope(history)
    del rate
    (step, *_) = theory.bounds(algorithms.NIDS(lr=0.6), QUADRATIC, RING)
    beyond = dectool.solve(algorithms.NIDS(lr=0.6), QUADRATIC, topology=RING, steps=5)
    with pytest.raises(ArgumentError, match=r"only steps below 0\.5 are guaranteed"):
        step.check(beyond)
    sparse = dectool.solve(
        algorithms.ATC(lr=0.1), QUADRATIC, topology=RING, steps=20, record_every=5
    )
    _, rate = theory.bounds(algorithms.ATC(lr=0.1), QUADRATIC, RING)
    with pytest.raises(ArgumentError, match="record every step"):
        rate.check(sparse)


def test_a_step_size_that_changes_is_refused():
    atc = algorithms.ATC(lr=lambda k: 0.1)
    history = dectool.solve(atc, QUADRATIC, topology=RING, steps=5)
    step, _ = theory.bounds(atc, QUADRATIC, RING)
    assert step.applies
    with pytest.raises(ArgumentError, match="lr of the run changes from step to step"):
        step.check(history)


def test_runs_that_stand_still_or_grow_slowly_are_seen():
    nids = algorithms.NIDS(lr=1e-4)
    history = dectool.solve(nids, QUADRATIC, topology=RING, steps=40)
    step, rate = theory.bounds(nids, QUADRATIC, RING)
    assert 0.9998 < rate.value < 1.0
    assert step.check(history)
    assert rate.check(history)
    history.records["change"] = np.ones(41)
    assert not rate.check(history)
    history.records["change"] = 1.0005 ** history["step"]
    assert not step.check(history)


def test_curvatures_are_zero_but_for_rounding():
    flat, line = ([[curvature], [1.0], [1.0]] for curvature in (-1e-16, 1e-16))
    for h in (flat, line):
        problem = problems.Quadratic(h=h, b=np.zeros((3, 1)))
        step, _, rate = theory.bounds(algorithms.EXTRA(lr=0.1), problem, topology.ring(3))
        assert step.applies
        assert "FAIL every f_i strongly convex" in str(rate)


def test_a_bound_that_is_infinite_is_kept():
    even = problems.Averaging(np.ones((3, 1)))
    graph = topology.directed_ring(3, weights="uniform_push")
    history = dectool.solve(algorithms.PushSum(), even, topology=graph, steps=5)
    assert theory.bounds(algorithms.PushSum(), even, graph)[0].check(history)


def test_shares_that_are_nearly_even_are_not_even():
    graph = topology.from_matrix([[0.5 + 1e-6, 0.5], [0.5 - 1e-6, 0.5]])
    problem = problems.Averaging([[0.0], [1.0]])
    assert not theory.bounds(algorithms.PushSum(), problem, graph)[0].applies


def test_a_single_rank():
    single, mean = problems.Quadratic(h=[[1.0, 2.0]], b=[[1.0, 0.0]]), problems.Averaging([[1.0]])
    tight = algorithms.ChebyshevGossip(interval="tight")
    for gossip in (algorithms.Gossip(), algorithms.PushSum(), tight):
        (bound,) = theory.bounds(gossip, mean, topology.complete(1))
        assert bound.applies
        assert bound.value >= 0.0
        assert bound.check(dectool.solve(gossip, mean, topology=topology.complete(1), steps=3))
    for kind in (*DESCENTS, algorithms.SSDA, algorithms.LEAD):
        found = theory.bounds(kind(lr=0.01), single, topology.complete(1))
        assert all(bound.value > 0.0 for bound in found if bound.applies)


def test_arguments():
    assert theory.bounds(algorithms.QSGD(lr=0.1), QUADRATIC, RING) == ()
    corners = problems.Composite(QUADRATIC, problems.L1(0.1))
    assert theory.bounds(algorithms.NIDS(lr=0.1), corners, RING) == ()
    with pytest.raises(ArgumentTypeError, match="algorithm is"):
        theory.bounds(algorithms.EXTRA, QUADRATIC, RING)
    with pytest.raises(ArgumentTypeError, match="problem is"):
        theory.bounds(algorithms.EXTRA(lr=0.1), RING, RING)
    with pytest.raises(ArgumentError, match="build both for the same number"):
        theory.bounds(algorithms.EXTRA(lr=0.1), QUADRATIC, topology.ring(4))
