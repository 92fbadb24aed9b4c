"""Asynchronous push-sum, gradient push and OSGP: mass, limits, and the synchronous special case."""

import numpy as np
import pytest

import dectool
from dectool import algorithms, problems, sim, topology
from dectool.algorithms import OSGP, AsynchronousGradientPush, AsynchronousPushSum, PushSum
from dectool.sim import _mass, _window
from tests.algorithms.pacing import B, H, last, quadratic, run_until
from tests.golden.test_g8 import X0

N = 20
VALUES = np.random.default_rng(5).normal(size=(N, 3))
SLOW = sim.PerRank({3: 10.0, 11: 10.0}, sim.Exponential(1.0))
LATE = sim.AlphaBeta(latency=np.random.default_rng(6).uniform(0.0, 3.0, (N, N)), bandwidth=1e3)
PUSH = topology.exponential(8, weights="uniform_push")
DIGRAPH = topology.from_graph(
    __import__("networkx").DiGraph([(i, (i + 1) % 8) for i in range(8)] + [(0, 3), (2, 6), (5, 1)]),
    weights="uniform_push",
)


@pytest.fixture
def worst(monkeypatch):
    """The largest error of mass so far, of weights and of values, looked at every 10 operations."""
    found = {"weight": 0.0, "value": 0.0, "looks": 0}

    def check(self, name, cells):
        parts = [(1.0, cell.weight, cell.buffers) for cell in cells]
        parts += [(r.factor, r.weight, buffers) for r, buffers in self._flying.values()]
        weight = sum(carried for _, carried, _ in parts)
        value = sum(factor * buffers[0] for factor, _, buffers in parts)
        found["weight"] = max(found["weight"], abs(weight - N) / N)
        found["value"] = max(found["value"], float(np.abs(value - self._expected[0]).max()))
        found["looks"] += 1

    monkeypatch.setattr(_window, "_CHECK_EVERY", 10 / N)
    monkeypatch.setattr(_mass.Mass, "check", check)
    return found


def test_slow_ranks_and_random_delays(worst):
    """The true average to 1e-10, with a tenth of the ranks ten times slower; no mass lost."""
    h = dectool.solve(
        AsynchronousPushSum(),
        problems.Averaging(VALUES),
        topology=topology.exponential(N),
        steps=450,
        backend="sim",
        network=LATE,
        compute=SLOW,
        record_every=450,
    )
    assert np.abs(h.x - VALUES.mean(axis=0)).max() < 1e-10
    assert worst["looks"] > 1000
    assert worst["weight"] < 1e-12
    assert worst["value"] < 1e-12


@pytest.mark.parametrize("network", [None, sim.AlphaBeta(latency=0.4, bandwidth=1e4)])
@pytest.mark.parametrize("graph", [PUSH, DIGRAPH], ids=["exponential", "digraph"])
def test_ranks_in_step_make_it_push_sum(graph, network):
    problem = problems.Averaging(X0)
    expected = dectool.solve(PushSum(), problem, topology=graph, steps=20)
    found = dectool.solve(
        AsynchronousPushSum(),
        problem,
        topology=graph,
        steps=20,
        backend="sim",
        network=network,
        compute=sim.Constant(1.0),
    )
    for name in ("x", "s", "w"):
        if graph is PUSH:
            assert found.state[name].tobytes() == expected.state[name].tobytes(), name
        # Elsewhere W holds thirds that are rounded another way.
        np.testing.assert_allclose(found.state[name], expected.state[name], rtol=1e-14)


def test_the_golden_value_of_push_sum():
    h = dectool.solve(
        AsynchronousPushSum(),
        problems.Averaging(X0),
        topology=DIGRAPH,
        steps=20,
        backend="sim",
        compute=sim.Constant(1.0),
    )
    assert h.x[0, 0] == pytest.approx(-0.036768580019, abs=1e-12)
    assert h.state["w"][0, 0] == pytest.approx(0.827565817558, abs=1e-12)


def test_weights_do_not_underflow_while_an_in_neighbor_is_slow():
    """Rank 1 takes 5,000 steps for one of rank 0: halved in each, its weight would be 0."""
    h = dectool.solve(
        AsynchronousPushSum(),
        problems.Averaging([[1.0], [3.0]]),
        topology=topology.complete(2),
        steps=5000,
        backend="sim",
        compute=sim.PerRank({0: 5000.0}),
        record_every=5000,
    )
    assert h.state["w"].min() > 0.2
    assert np.isfinite(h.x).all()


def gradient_push(graph, lr, steps):
    """The recursion s+ = C s - lr grad(s / w), w+ = C w in dense arithmetic."""
    C = graph.to_dense()
    s, w = np.zeros((8, 1)), np.ones((8, 1))
    for k in range(steps):
        s, w = C @ s - lr(k) * (H * (s / w) - B), C @ w
    return s / w


@pytest.mark.parametrize("graph", [PUSH, DIGRAPH], ids=["exponential", "digraph"])
def test_ranks_in_step_make_it_gradient_push(graph):
    found = dectool.solve(
        AsynchronousGradientPush(lr=lambda k: 1.0 / (k + 20), floor=0.0),
        quadratic(),
        topology=graph,
        steps=60,
        backend="sim",
        network=sim.AlphaBeta(latency=0.4),
        compute=sim.Constant(1.0),
    )
    expected = gradient_push(graph, lambda k: 1.0 / (k + 20), 60)
    np.testing.assert_allclose(found.x, expected, rtol=1e-12)


def test_gradient_push_with_decreasing_steps_tends_to_the_optimum():
    """Ranks that step equally often on average, with late messages, on a directed graph."""
    states = run_until(
        1500.0,
        AsynchronousGradientPush(lr=lambda k: 2.0 / (k + 60)),
        quadratic(),
        DIGRAPH,
        network=sim.AlphaBeta(latency=0.5),
        compute=sim.Exponential(1.0),
    )
    assert np.abs(last(states) - 1.4).max() < 0.1
    assert np.mean([s.x for each in states for s in each[-500:]]) == pytest.approx(1.4, abs=0.02)


def test_small_weights_do_not_make_gradient_push_jump():
    """Ranks that are done swallow the others' weight; the last ones still stay where f is."""
    h = dectool.solve(
        AsynchronousGradientPush(lr=0.02),
        quadratic(),
        topology=PUSH,
        steps=300,
        backend="sim",
        compute=sim.PerRank({0: 5.0, 4: 5.0}),
    )
    assert h.state["w"].min() < 1e-3
    assert h.x.min() > 0.0
    assert h.x.max() < 7.0


def osgp(graph, lr, late, steps):
    """The recursion of OSGP where every message is taken in exactly ``late`` steps later."""
    n = graph.size
    share = 1.0 / (graph.out_degrees + 1.0)[:, None]
    s, w = np.zeros((n, 1)), np.ones((n, 1))
    sent = []
    for k in range(steps):
        u = s - lr * (H * (s / w) - B)
        sent.append((share * u, share * w))
        s, w = sent[-1]
        if k >= late:
            old_s, old_w = sent[k - late]
            s = s + [sum(old_s[j] for j in graph.in_neighbors(i)) for i in range(n)]
            w = w + [sum(old_w[j] for j in graph.in_neighbors(i)) for i in range(n)]
    return s / w


@pytest.mark.parametrize(
    ("latency", "delay", "late"), [(0.0, 0, 0), (1.5, 0, 0), (0.5, 3, 1), (1.5, 3, 2), (9.0, 3, 3)]
)
def test_osgp_takes_messages_in_when_they_come_or_are_due(latency, delay, late):
    """A rank goes on without what is on its way for at most `delay` steps."""
    h = dectool.solve(
        OSGP(lr=0.05, delay=delay),
        quadratic(),
        topology=PUSH,
        steps=40,
        backend="sim",
        network=sim.AlphaBeta(latency=latency),
        compute=sim.Constant(1.0),
    )
    np.testing.assert_allclose(h.x, osgp(PUSH, 0.05, late, 40), rtol=1e-12)


def test_the_bias_of_osgp_is_of_the_order_of_the_step():
    wide, narrow = (np.abs(osgp(PUSH, lr, 2, 4000) - 1.4).max() for lr in (0.004, 0.002))
    assert narrow > 1e-3
    assert wide / narrow == pytest.approx(2.0, rel=0.05)


def test_osgp_on_random_delays_conserves_what_it_averages():
    """With no gradient it is push-sum with late messages: the true average."""
    values = VALUES[:8]
    problem = problems.Averaging(values)

    def program(comm):
        algorithm = algorithms.OSGP(lr=0.1, delay=4)

        def nothing(x):
            with comm.computing():
                return 0.0 * x

        state = algorithm.init(comm, problem.initial(comm.rank), nothing)
        for _ in range(200):
            state = algorithm.step(comm, state, nothing)
        return state.x

    found = dectool.run(
        program,
        topology=topology.exponential(8),
        backend="sim",
        network=sim.AlphaBeta(latency=2.0),
        compute=sim.Exponential(1.0),
    ).values
    np.testing.assert_allclose(found, np.tile(values.mean(axis=0), (8, 1)), atol=1e-10)
