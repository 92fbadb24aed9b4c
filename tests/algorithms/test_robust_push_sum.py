"""Push-sum by running sums: the average to rounding, whatever is lost, and mass to the last bit."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dectool
from dectool import algorithms, problems, sim, topology


def digraph(n: int, seed: int) -> topology.Topology:
    edges = [(i, (i + 1) % n) for i in range(n)]
    chords = np.random.default_rng(seed).integers(0, n, (n, 2))
    edges += [(int(a), int(b)) for a, b in chords if a != b]
    return topology.from_graph(nx.DiGraph(edges), weights="uniform_push")


def solve(X: Any, graph: topology.Topology, **options: Any) -> dectool.History:
    algorithm = options.pop("algorithm", algorithms.RobustPushSum())
    return dectool.solve(algorithm, problems.Averaging(X), topology=graph, **options)


def mass(history: dectool.History, graph: topology.Topology) -> tuple[Any, float]:
    """Return what ranks hold and what they have sent that nobody has heard of yet."""
    state, C = history.state, graph.to_dense()
    s, w = state["s"].sum(axis=0), state["w"].sum()
    for j in range(graph.size):
        for place, i in enumerate(graph.in_neighbors(j)):
            s = s + C[j, i] * (state["sigma"][i] - state["rho"][j, place])
            w = w + float(C[j, i] * (state["sigma_w"][i] - state["rho_w"][j, place])[0])
    return s, w


@pytest.mark.parametrize("backend", ["stacked", "sim"])
def test_without_losses_it_is_push_sum(backend: str) -> None:
    X = np.random.default_rng(1).normal(size=(7, 3))
    graph = digraph(7, 1)
    robust = solve(X, graph, steps=25, backend=backend)
    plain = solve(X, graph, steps=25, backend=backend, algorithm=algorithms.PushSum())
    np.testing.assert_allclose(robust.x, plain.x, atol=1e-13)
    np.testing.assert_allclose(robust.state["w"], plain.state["w"], atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_a_fifth_of_the_messages_lost_and_yet_the_average(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(10, 3))
    graph = digraph(10, seed)
    loss = [sim.MessageLoss(0.2)]
    history = solve(X, graph, steps=400, backend="sim", faults=loss, seed=seed)
    assert history.faults is not None
    assert 0.17 < history.faults.messages_lost / history.faults.messages < 0.23
    np.testing.assert_allclose(history.x, np.tile(X.mean(axis=0), (10, 1)), atol=1e-10)
    plain = solve(
        X, graph, steps=400, backend="sim", faults=loss, seed=seed, missing="self",
        algorithm=algorithms.PushSum(),
    )  # fmt: skip
    assert np.abs(plain.x - X.mean(axis=0)).max() > 1e-3


@settings(max_examples=40)
@given(
    n=st.integers(2, 8),
    seed=st.integers(0, 50),
    steps=st.integers(0, 60),
    p=st.floats(0.0, 1.0),
)
def test_mass_is_accounted_for(n: int, seed: int, steps: int, p: float) -> None:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    graph = digraph(n, seed)
    faults = [sim.MessageLoss(p), sim.LinkDown(0, 1, stop=0.3)]
    history = solve(
        X, graph, steps=steps, backend="sim", faults=faults, seed=seed, compute=sim.Constant(0.1)
    )
    s, w = mass(history, graph)
    np.testing.assert_allclose(s, X.sum(axis=0), atol=1e-12)
    assert w == pytest.approx(n, abs=1e-12)


def test_all_that_was_lost_comes_when_the_link_works_again() -> None:
    """Rank 0 is cut off at first; nothing of what it sent in the meantime is missing later."""
    X = np.array([[9.0], [0.0], [0.0], [0.0]])
    graph = topology.exponential(4, weights="uniform_push")
    cut = [sim.LinkDown(0, other, start=0.0, stop=30.5) for other in (1, 2, 3)]
    network = sim.AlphaBeta(latency=1.0)
    during = solve(X, graph, steps=20, backend="sim", faults=cut, network=network)
    np.testing.assert_array_equal(during.x[1:], 0.0)
    after = solve(X, graph, steps=150, backend="sim", faults=cut, network=network)
    np.testing.assert_allclose(after.x, 2.25, atol=1e-10)


def test_what_waits_for_a_rank_that_comes_late_is_there_for_it() -> None:
    X = np.array([[9.0], [0.0], [0.0], [3.0]])
    graph = topology.exponential(4, weights="uniform_push")
    late, network = [sim.LateJoin(2, at=3.05)], sim.AlphaBeta(latency=0.1)
    history = solve(X, graph, steps=200, backend="sim", faults=late, network=network)
    assert history["alive"].min() == 3
    np.testing.assert_allclose(history.x, 3.0, atol=1e-10)
