"""Claims on random averaging and push-sum: they hold, and would be seen to fail."""

import dataclasses

import numpy as np
import pytest

from dectool import algorithms, problems, topology
from dectool.algorithms.asynchronous import _clocks, adpsgd
from dectool.errors import ArgumentError, ArgumentTypeError, TopologyError
from dectool.theory import claims
from dectool.theory.claims import _random_gossip

TREE = topology.tree(6, 2)
BLOCKS = problems.Quadratic.random(3, 2, seed=2)
HOLD = {
    "pairs": claims.randomized_gossip_contracts_in_mean_square,
    "pairs, star": lambda: claims.randomized_gossip_contracts_in_mean_square(
        topology.star(5), steps=6, runs=60, seed=1
    ),
    "averaging time": claims.averaging_time_is_between_its_bounds,
    "averaging time, star": lambda: claims.averaging_time_is_between_its_bounds(
        topology.star(5), eps=0.2, runs=10, seed=1
    ),
    "complete": claims.gossip_in_pairs_contracts_alike,
    "complete, 2": lambda: claims.gossip_in_pairs_contracts_alike(2, runs=20),
    "one-peer": claims.random_steps_contract_as_expected,
    "OU-EquiDyn": lambda: claims.random_steps_contract_as_expected(topology.equidyn(9), runs=300),
    "broadcast": lambda: claims.random_steps_contract_as_expected(
        topology.random_broadcast(TREE), runs=300
    ),
    "OD-EquiDyn": lambda: claims.equidyn_contracts_alike_from_everywhere(24, runs=300, seed=1),
    "MATCHA": claims.matcha_contracts_as_planned,
    "MATCHA, tree": lambda: claims.matcha_contracts_as_planned(TREE, budget=0.3, seed=1),
    "clocks": claims.gossip_on_clocks_has_an_exponential_mean,
    "clocks, tree": lambda: claims.gossip_on_clocks_has_an_exponential_mean(
        TREE, time=2, runs=40, seed=1
    ),
    "broadcasts": claims.broadcast_gossip_agrees_on_a_random_value,
    "broadcasts, star": lambda: claims.broadcast_gossip_agrees_on_a_random_value(
        topology.star(4), gamma=0.2, time=2, runs=50, seed=1
    ),
    "AD-PSGD": claims.adpsgd_mean_follows_a_linear_recursion,
    "AD-PSGD, blocks": lambda: claims.adpsgd_mean_follows_a_linear_recursion(
        BLOCKS, topology.path(3), lr=0.1, time=2.0, runs=40, seed=1
    ),
    "Swarm": claims.swarm_mean_follows_a_linear_recursion,
    "Swarm, blocks": lambda: claims.swarm_mean_follows_a_linear_recursion(
        BLOCKS, topology.path(3), local_steps=3, runs=40, seed=1
    ),
    "push-sum": claims.push_sum_converges_at_the_second_eigenvalue,
    "push-sum, undirected": lambda: claims.push_sum_converges_at_the_second_eigenvalue(
        topology.ring(7)
    ),
    "push-sum, two ranks": lambda: claims.push_sum_converges_at_the_second_eigenvalue(
        topology.complete(2, weights="uniform_push")
    ),
    "push-sum, ten rounds": lambda: claims.push_sum_converges_at_the_second_eigenvalue(
        topology.random_digraph(8, 0.6, seed=11, weights="uniform_push"), steps=10
    ),
    "push-sum, random": lambda: claims.push_sum_converges_at_the_second_eigenvalue(
        topology.random_digraph(9, 0.4, seed=3, weights="uniform_push")
    ),
}


@pytest.mark.parametrize("name", HOLD)
def test_claims_hold(name):
    found = HOLD[name]()
    assert found.verdict, found


def test_published_values():
    pushed = claims.push_sum_converges_at_the_second_eigenvalue()
    assert pushed.checks[1].predicted == pytest.approx(0.763762615826, abs=1e-11)
    ring = claims.randomized_gossip_contracts_in_mean_square(topology.ring(16), steps=2, runs=20)
    rate, bound = ring.checks[-3:-1]
    assert rate.measured == pytest.approx(0.990581112908, abs=1e-12)
    assert bound.predicted == pytest.approx(0.995242470782, abs=1e-12)
    spoken = claims.broadcast_gossip_agrees_on_a_random_value(topology.ring(16), time=1, runs=20)
    assert spoken.checks[-1].predicted == pytest.approx(0.995219836698, abs=1e-12)
    hops = claims.equidyn_contracts_alike_from_everywhere(16)
    assert hops.checks[0].predicted == 15 / 32


def test_pairs_of_other_chances_are_seen(monkeypatch):
    right = topology.random_pair

    def always_the_first(graph, seed=0):
        found = right(graph, seed=seed)
        pairs = [k for k in range(400) if found.at(k).in_degrees[0] or found.at(k).in_degrees[1]]
        return topology.Schedule(
            lambda k: found.at(pairs[k % len(pairs)]),
            size=graph.size,
            period=None,
            name="first",
            law=found.law,
        )

    monkeypatch.setattr(_random_gossip, "random_pair", always_the_first)
    found = claims.randomized_gossip_contracts_in_mean_square()
    assert "FAIL values after" in found.verdict.text
    assert "FAIL squared error" in found.verdict.text


def test_a_law_of_now_and_then_two_pairs_is_seen(monkeypatch):
    """One step in a thousand is two, which no sample would tell."""
    right = topology.random_pair

    def mostly(graph, seed):
        found = right(graph, seed=seed)
        once = found.law.forward
        law = topology.Law.moments(
            0.999 * found.law.mean + 0.001 * found.law.mean @ found.law.mean,
            lambda X: 0.999 * once(X) + 0.001 * once(once(X)),
        )
        return topology.Schedule(found.at, size=graph.size, period=None, name="mostly", law=law)

    monkeypatch.setattr(_random_gossip, "random_pair", mostly)
    found = claims.randomized_gossip_contracts_in_mean_square()
    failed = [check.quantity for check in found.checks if not check]
    assert failed == ["exact mean square after 1 step"]


@pytest.mark.parametrize("speed", [0, 8])
def test_other_averaging_times_are_seen(speed, monkeypatch):
    right = topology.random_pair

    def wrong(graph, seed):
        found = right(graph, seed=seed)

        def several(k):
            W = np.eye(graph.size)
            for j in range(speed * k, speed * (k + 1)):
                W = found.at(j).W @ W
            return topology.from_matrix(W, require_connected=False)

        return topology.Schedule(several, size=graph.size, period=None, name="several")

    monkeypatch.setattr(_random_gossip, "random_pair", wrong)
    assert not claims.averaging_time_is_between_its_bounds(topology.ring(5), runs=10).verdict


def test_another_law_is_seen(monkeypatch):
    """The law of another schedule: exact moments disagree, and so do draws."""
    monkeypatch.setattr(_random_gossip, "random_pair", lambda graph, seed: topology.random_pair(
        topology.ring(graph.size), seed=seed))  # fmt: skip
    assert not claims.randomized_gossip_contracts_in_mean_square(topology.star(8)).verdict
    assert not claims.gossip_in_pairs_contracts_alike(8).verdict
    monkeypatch.setattr(
        _random_gossip, "equidyn", lambda n, directed, seed: topology.equidyn(n, seed=seed)
    )
    assert not claims.equidyn_contracts_alike_from_everywhere(8).verdict
    ring, star = (topology.random_pair(make(8)) for make in (topology.ring, topology.star))
    mixed = topology.Schedule(ring.at, size=8, period=None, name="mixed", law=star.law)
    assert not claims.random_steps_contract_as_expected(mixed).verdict


def test_another_weight_of_matcha_is_seen(monkeypatch):
    right = topology.MatchaPlan.schedule

    def wrong(self, seed):
        return right(dataclasses.replace(self, alpha=0.5 * self.alpha), seed)

    monkeypatch.setattr(topology.MatchaPlan, "schedule", wrong)
    assert "FAIL squared error" in claims.matcha_contracts_as_planned().verdict.text
    monkeypatch.undo()
    monkeypatch.setattr(topology.MatchaPlan, "second_moment", lambda self: np.eye(self.size))
    assert "FAIL second moment" in claims.matcha_contracts_as_planned(runs=10).verdict.text


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("meetings", claims.gossip_on_clocks_has_an_exponential_mean),
        ("meetings", claims.swarm_mean_follows_a_linear_recursion),
        ("broadcasts", claims.broadcast_gossip_agrees_on_a_random_value),
    ],
)
def test_faster_clocks_are_seen(name, claim, monkeypatch):
    right = getattr(_clocks, name)
    monkeypatch.setattr(
        _clocks, name, lambda rank, graph, seed, k, time: right(rank, graph, seed, k, 2.0 * time)
    )
    assert not claim().verdict


def test_answers_to_broadcasts_are_seen(monkeypatch):
    """With both ends averaging, the mean would not scatter."""
    monkeypatch.setattr(algorithms.BroadcastGossip, "step", algorithms.RandomizedGossip.step)
    found = claims.broadcast_gossip_agrees_on_a_random_value()
    assert "FAIL squared distance of the average" in found.verdict.text


def test_fresh_gradients_of_adpsgd_are_seen(monkeypatch):
    curvatures = np.arange(1.0, 5.0)

    def fresh(self, comm, s, grad):
        window = self._window(comm)
        read = window.value
        g = grad(read)
        peer = adpsgd.random_neighbor(comm, window, "ADPSGD", s.k)
        adpsgd.average_pair(comm, window, peer)
        g = g + curvatures[comm.rank % 4] * (window.value - read)
        window.add(-(self.lr * g), [comm.rank])
        return s.replace(x=window.value, k=s.k + 1)

    monkeypatch.setattr(algorithms.ADPSGD, "step", fresh)
    assert not claims.adpsgd_mean_follows_a_linear_recursion().verdict


def test_other_weights_of_push_sum_are_seen(monkeypatch):
    right = algorithms.PushSum.step

    def wrong(self, comm, s, grad):
        found = right(self, comm, s, grad)
        return found.replace(w=0.0 * found.w + 1.0)

    monkeypatch.setattr(algorithms.PushSum, "step", wrong)
    text = claims.push_sum_converges_at_the_second_eigenvalue().verdict.text
    assert "FAIL error" in text
    assert "FAIL weights" in text


def test_weights_that_slip_at_the_end_are_seen(monkeypatch):
    """On a slow graph, where the last weights are in no iterate; their sum is right."""
    right, calls = algorithms.PushSum.step, []

    def wrong(self, comm, s, grad):
        found = right(self, comm, s, grad)
        calls.append(1)
        slip = np.where(comm.rank < 15, 0.01, -0.01)[:, None] if len(calls) == 120 else 0.0
        return found.replace(w=found.w + slip)

    slow = topology.ring(30, weights="uniform_push")
    assert claims.push_sum_converges_at_the_second_eigenvalue(slow).verdict
    monkeypatch.setattr(algorithms.PushSum, "step", wrong)
    found = claims.push_sum_converges_at_the_second_eigenvalue(slow)
    assert [check.quantity for check in found.checks if not check] == [
        "weights less n pi (farthest)"
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: claims.randomized_gossip_contracts_in_mean_square(topology.path(2)),
            TopologyError,
            "use 3",
        ),
        (
            lambda: claims.averaging_time_is_between_its_bounds(eps=0.3),
            ArgumentError,
            "at most 1/4",
        ),
        (
            lambda: claims.averaging_time_is_between_its_bounds(runs=5),
            ArgumentError,
            "runs must be at least 10",
        ),
        (lambda: claims.gossip_in_pairs_contracts_alike(1), ArgumentError, "n must be at least 2"),
        (
            lambda: claims.random_steps_contract_as_expected(
                topology.b_connected(topology.ring(4), 2)
            ),
            TopologyError,
            "law of a step",
        ),
        (
            lambda: claims.matcha_contracts_as_planned(topology.complete(14)),
            TopologyError,
            "14 matchings",
        ),
        (
            lambda: claims.gossip_on_clocks_has_an_exponential_mean(topology.exponential(8)),
            TopologyError,
            "must be undirected",
        ),
        (
            lambda: claims.gossip_on_clocks_has_an_exponential_mean(topology.path(2)),
            TopologyError,
            "use 3",
        ),
        (
            lambda: claims.broadcast_gossip_agrees_on_a_random_value(topology.ring(1)),
            TopologyError,
            "one rank",
        ),
        (
            lambda: claims.adpsgd_mean_follows_a_linear_recursion(problems.Averaging(np.eye(4))),
            ArgumentTypeError,
            "linear for problems.Quadratic",
        ),
        (
            lambda: claims.swarm_mean_follows_a_linear_recursion(topology=topology.ring(5)),
            TopologyError,
            "5 ranks, and the problem 4",
        ),
        (
            lambda: claims.push_sum_converges_at_the_second_eigenvalue(
                topology.path(4, weights="uniform")
            ),
            TopologyError,
            "uniform_push",
        ),
        (
            lambda: claims.push_sum_converges_at_the_second_eigenvalue(topology.complete(1)),
            TopologyError,
            "of two ranks or more",
        ),
        (
            lambda: claims.push_sum_converges_at_the_second_eigenvalue(
                topology.from_matrix(np.roll(np.eye(4), 1, axis=0))
            ),
            TopologyError,
            "shares go round in circles",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
